"""How questions are answered: how much evidence, how long an answer, what becomes of sentences without support."""

from typing import Literal

from pydantic import Field

from gristmill.settings.values import Slice


class AskSettings(Slice):
    """How questions are answered."""

    model: str = Field(default="", description="The model that answers questions; none: `llm.model`.")
    passages: int = Field(default=10, ge=1, description="The most passages that one question is answered from.")
    evidence_tokens: int = Field(
        default=2_400, ge=100, description="The most tokens of these passages together, as the built-in model counts."
    )
    answer_tokens: int = Field(
        default=500, ge=16, description="The most tokens of one answer; `llm.max_tokens` holds, too."
    )
    unsupported: Literal["drop", "flag"] = Field(
        default="drop",
        description="Sentences that no passage supports: `drop` leaves them out of the answer, `flag` marks them.",
    )
    turns: int = Field(default=20, ge=2, description="The messages of a conversation that the model sees as they are.")
