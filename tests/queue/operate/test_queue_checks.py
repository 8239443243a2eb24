"""What the doctor says of workers, by table."""

from types import SimpleNamespace

import pytest

from gristmill.queue.operate.checks import judge_workers
from gristmill.telemetry import Check


@pytest.mark.parametrize(
    ("check", "verdict"),
    [
        (judge_workers(SimpleNamespace(live=1, silent=0, lost=0), []), "ok"),
        (judge_workers(SimpleNamespace(live=1, silent=1, lost=0), []), "warn"),
        (judge_workers(SimpleNamespace(live=1, silent=0, lost=2), []), "warn"),
    ],
    ids=lambda value: value.name if isinstance(value, Check) else value,
)
def test_what_is_found_is_judged(check: Check, verdict: str) -> None:
    assert check.verdict == verdict
    assert check.sentence.endswith(".")
    assert bool(check.advice) == (verdict != "ok")
