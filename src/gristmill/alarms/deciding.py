"""Decides what becomes of an alarm after a look at its rule: a pure function, tested by table."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from gristmill.alarms.model import Event, OpenAlarm
from gristmill.telemetry import Finding


@dataclass(frozen=True)
class Rhythm:
    """How often an alarm is told again, and how long all must be well before it is over."""

    repeat: timedelta
    calm: timedelta


@dataclass(frozen=True)
class AlarmStep:
    """What becomes of an alarm: since when it is so, whether it is so for long enough, and whom to tell what."""

    since: datetime
    holds: bool
    event: Event | None = None
    forget: bool = False  # it never fired, and is not found any more


def decide(known: OpenAlarm | None, finding: Finding | None, now: datetime, rhythm: Rhythm) -> AlarmStep:
    """`known` is the alarm as the last look left it, `finding` what this look found; one of them is there."""
    unbroken = known is not None and finding is not None and known.mark == finding.mark
    since = known.since if known is not None and unbroken else now
    holds = finding is not None and now - since >= finding.lasting
    if known is None or known.fired_at is None:
        return AlarmStep(since, holds, "fired" if holds else None, forget=finding is None)
    if holds:
        return AlarmStep(since, holds, "repeated" if _is_due(known, now, rhythm.repeat) else None)
    return AlarmStep(since, holds, "over" if now - known.seen_at >= rhythm.calm else None)


def _is_due(known: OpenAlarm, now: datetime, repeat: timedelta) -> bool:
    """Somebody who acknowledged an alarm knows of it."""
    return known.acknowledged_at is None and (known.told_at is None or now - known.told_at >= repeat)
