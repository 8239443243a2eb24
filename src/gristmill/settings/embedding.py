"""Which model turns texts into vectors, and how it is asked."""

from datetime import timedelta
from typing import Literal

from pydantic import Field, SecretStr

from gristmill.settings.values import Duration, Slice


class EmbeddingSettings(Slice):
    """Which model turns texts into vectors."""

    kind: Literal["minilm", "ollama", "openai"] = Field(
        default="minilm", description="The built-in model (minilm), or what an endpoint speaks (ollama, openai)."
    )
    url: str = Field(
        default="http://127.0.0.1:11430", description="Where the endpoint listens, up to and without /api or /v1."
    )
    model: str = Field(default="", description="The model that an endpoint is asked for.")
    key: SecretStr | None = Field(default=None, description="The key the endpoint asks for, sent as a bearer token.")
    window: int = Field(
        default=254, ge=16, description="How many tokens an endpoint's model sees; chunks are made to fit."
    )
    floor: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="The cosine below which an endpoint's model finds nothing by meaning alone; ours has 0.2.",
    )
    price: float = Field(
        default=0.0, ge=0, description="What the endpoint takes for a million tokens, in the currency of its account."
    )
    batch: int = Field(default=64, ge=1, description="How many texts an endpoint gets in one request at most.")
    timeout: Duration = Field(default=timedelta(minutes=5), description="How long one request to an endpoint may take.")
