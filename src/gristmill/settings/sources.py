"""How sources are polled."""

from datetime import timedelta
from typing import Any

from pydantic import Field

from gristmill.settings.values import Duration, Slice


class SourceSettings(Slice):
    """How sources are polled."""

    turn: Duration = Field(
        default=timedelta(minutes=1),
        description="How long a source is polled before others have their turn; it goes on from its checkpoint.",
    )
    most_gone: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="The share of a source's items that may be gone at once; more are removed when a person agrees.",
    )
    named: dict[str, dict[str, Any]] = Field(
        default={}, description="Name → kind and options of a source, as a table in gristmill.toml."
    )
