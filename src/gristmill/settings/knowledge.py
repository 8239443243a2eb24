"""How search chooses its hits."""

from pydantic import Field

from gristmill.settings.values import Slice


class KnowledgeSettings(Slice):
    """How search chooses its hits."""

    meaning_share: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="A hit without any word of the query must reach this share of the best meaning; 0: all are shown.",
    )
