"""How workers claim, renew, settle and clean up."""

from datetime import timedelta
from typing import Self

from pydantic import Field, model_validator

from gristmill.settings.values import Duration, Slice


class QueueSettings(Slice):
    """How workers claim, renew, settle and clean up."""

    heartbeat: Duration = Field(default=timedelta(seconds=30), description="How often a worker says that it lives.")
    lease: Duration = Field(default=timedelta(seconds=120), description="How long a silent worker keeps its tasks.")
    poll: Duration = Field(
        default=timedelta(seconds=1), description="How often a worker looks for tasks nobody told it of."
    )
    rescue: Duration = Field(
        default=timedelta(seconds=15), description="How often the leases of dead workers are taken back."
    )
    stall: Duration = Field(
        default=timedelta(minutes=5),
        description="How long the event loop of a worker may stand still before it ends itself.",
    )
    stop: Duration = Field(
        default=timedelta(seconds=20), description="How long a stopping worker waits for its running tasks."
    )
    batch: int = Field(
        default=500, ge=1, le=900, description="How many tasks are claimed or settled in one transaction at most."
    )
    nice: int = Field(
        default=5, ge=0, le=19, description="How far computing steps back for whoever else needs the processor."
    )
    max_payload: int = Field(
        default=1_000_000,
        ge=1_000,
        description="The largest payload of a task that a worker or a command sends, in bytes of JSON.",
    )
    dead_alert: int = Field(default=10, ge=1, description="How many dead letters raise an alarm.")
    dead_keep_for: Duration = Field(default=timedelta(days=30), description="How long dead letters are kept.")
    dead_keep: int = Field(default=5_000, ge=0, description="How many dead letters are kept at most.")
    keep_for: Duration = Field(default=timedelta(days=7), description="How long finished tasks are kept.")
    keep: int = Field(default=1_000, ge=0, description="How many finished tasks are kept per queue.")

    minutes_keep_for: Duration = Field(
        default=timedelta(days=2), description="How long the history of queues is kept by the minute."
    )
    hours_keep_for: Duration = Field(
        default=timedelta(days=90), description="How long the history of queues and schedules is kept."
    )

    @model_validator(mode="after")
    def _check_durations(self) -> Self:
        if self.lease < 2 * self.heartbeat:
            raise ValueError("a lease must be at least twice as long as a heartbeat, or workers that live lose tasks")
        if min(self.heartbeat, self.poll, self.rescue, self.stall) <= timedelta(0):
            raise ValueError("heartbeat, poll, rescue and stall must be longer than zero")
        return self
