"""What becomes of an alarm: fires once, repeats on a schedule, is over when it was calm for a while."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gristmill.alarms.deciding import AlarmStep, Rhythm, decide
from gristmill.alarms.model import AlarmId, OpenAlarm
from gristmill.ids import ScopeId
from gristmill.telemetry import Finding

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
RHYTHM = Rhythm(repeat=timedelta(hours=4), calm=timedelta(minutes=5))
AT_ONCE = Finding("disk", "disk", "The disk is full.")
LASTING = Finding("stage-stalled", "ocr", "It is stalled.", lasting=timedelta(minutes=5), mark="40")


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def known(**changes: Any) -> OpenAlarm:
    values: dict[str, Any] = {
        "id": AlarmId(7),
        "scope": ScopeId(1),
        "rule": "stage-stalled",
        "subject": "ocr",
        "level": "warning",
        "mark": "40",
        "quiet": False,
        "since": ago(3),
        "seen_at": ago(3),
        "fired_at": None,
        "told_at": None,
        "told": 0,
        "acknowledged_at": None,
    }
    return OpenAlarm(**{**values, **changes})


FIRED = {"since": ago(60), "seen_at": ago(1), "fired_at": ago(55), "told_at": ago(55), "told": 1}


@pytest.mark.parametrize(
    ("before", "finding", "step"),
    [
        # something new
        (None, AT_ONCE, AlarmStep(NOW, True, "fired")),
        (None, LASTING, AlarmStep(NOW, False)),
        # not long enough, long enough, moved meanwhile, gone meanwhile
        (known(), LASTING, AlarmStep(ago(3), False)),
        (known(since=ago(5)), LASTING, AlarmStep(ago(5), True, "fired")),
        (known(since=ago(5), mark="39"), LASTING, AlarmStep(NOW, False)),
        (known(), None, AlarmStep(NOW, False, forget=True)),
        # it has fired: told once, again when it is time, not to somebody who knows
        (known(**FIRED), LASTING, AlarmStep(ago(60), True)),
        (known(**{**FIRED, "told_at": ago(240)}), LASTING, AlarmStep(ago(60), True, "repeated")),
        (known(**{**FIRED, "told_at": ago(240)}, acknowledged_at=ago(9)), LASTING, AlarmStep(ago(60), True)),
        # it moves again, or is gone: over only when it was calm for a while
        (known(**FIRED, mark="39"), LASTING, AlarmStep(NOW, False)),
        (known(**FIRED), None, AlarmStep(NOW, False)),
        (known(**{**FIRED, "seen_at": ago(5)}), None, AlarmStep(NOW, False, "over")),
        (known(**{**FIRED, "seen_at": ago(5)}, mark="39"), LASTING, AlarmStep(NOW, False, "over")),
        (known(**{**FIRED, "seen_at": ago(5)}, acknowledged_at=ago(9)), None, AlarmStep(NOW, False, "over")),
    ],
)
def test_a_look_decides_what_becomes_of_an_alarm(
    before: OpenAlarm | None, finding: Finding | None, step: AlarmStep
) -> None:
    assert decide(before, finding, NOW, RHYTHM) == step
