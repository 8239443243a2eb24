"""The letters that alarms sends itself."""

from dataclasses import dataclass
from typing import ClassVar

from gristmill.alarms.model import Event


@dataclass(frozen=True)
class EvaluateAlarms:
    """Look at all rules of all rooms."""

    kind: ClassVar[str] = "alarms.evaluate"


@dataclass(frozen=True)
class TellAlarm:
    """Tell one channel that an alarm fired, still lasts, or is over; `number` says how often it was told."""

    kind: ClassVar[str] = "alarms.tell"
    alarm: int
    channel: str
    event: Event
    number: int
