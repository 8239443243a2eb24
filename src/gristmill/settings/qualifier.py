"""How items are decided, scheduled and executed."""

from datetime import timedelta

from pydantic import Field

from gristmill.settings.values import Duration, Slice


class QualifierSettings(Slice):
    """How items are decided, scheduled and executed."""

    at_once: int = Field(default=10, ge=1, le=1_000, description="How many items are decided with an LLM at a time.")
    lead_days: int = Field(
        default=2,
        ge=0,
        le=3_650,
        description="How many days before its deadline an item is worked on; a client's profile may say otherwise.",
    )
    patience: Duration = Field(
        default=timedelta(hours=1),
        description="How long an item waits for the rest of its documents before it is decided without them.",
    )
    ahead: Duration = Field(
        default=timedelta(minutes=10), description="How long before its time a scheduled item is dispatched."
    )
    quiet: Duration = Field(
        default=timedelta(seconds=30), description="How long nobody must have asked before background items run."
    )
    foreground_at_once: int = Field(
        default=4, ge=1, le=1_000, description="How many items that people wait for one worker executes at a time."
    )
    background_at_once: int = Field(
        default=1, ge=1, le=1_000, description="How many background items one worker executes at a time."
    )
    stale: Duration = Field(
        default=timedelta(minutes=10),
        description="After how long a background item whose task is gone is put back in line.",
    )
