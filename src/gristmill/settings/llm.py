"""How the LLM client asks."""

from datetime import timedelta

from pydantic import Field, SecretStr

from gristmill.settings.values import Duration, Slice


class LlmSettings(Slice):
    """How the LLM client asks."""

    url: str = Field(default="http://127.0.0.1:11430", description="Where the router listens.")
    model: str = Field(default="", description="The model that is asked when a room names none.")
    key: SecretStr | None = Field(default=None, description="The key the router asks for.")
    timeout: Duration = Field(
        default=timedelta(minutes=30), description="How long one answer may take, waiting included."
    )
    max_tokens: int = Field(
        default=1_024, ge=16, description="The most tokens of one answer; a longer one is cut off, and not used."
    )
