"""An alarm as it stands in the database."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NewType

from gristmill.ids import ScopeId
from gristmill.telemetry import Level

AlarmId = NewType("AlarmId", int)
Event = Literal["fired", "repeated", "over"]
States = Literal["open", "over", "all"]


@dataclass(frozen=True)
class OpenAlarm:
    """What is known of an alarm that is not over, or of something that has not lasted long enough to be one."""

    id: AlarmId
    scope: ScopeId
    rule: str
    subject: str
    level: Level
    mark: str
    quiet: bool
    since: datetime
    seen_at: datetime
    fired_at: datetime | None
    told_at: datetime | None
    told: int
    acknowledged_at: datetime | None


@dataclass(frozen=True)
class Alarm:
    """An alarm as people see it."""

    id: AlarmId
    client: str
    project: str
    rule: str
    subject: str
    level: Level
    sentence: str
    advice: str
    fired_at: datetime
    seen_at: datetime
    told_at: datetime | None
    told: int
    over_at: datetime | None
    acknowledged_at: datetime | None
    acknowledged_by: str | None
    note: str | None

    @property
    def state(self) -> Literal["firing", "acknowledged", "over"]:
        if self.over_at is not None:
            return "over"
        return "firing" if self.acknowledged_at is None else "acknowledged"


@dataclass(frozen=True)
class Delivery:
    """That a channel was told."""

    channel: str
    event: Event
    number: int
    sent_at: datetime
