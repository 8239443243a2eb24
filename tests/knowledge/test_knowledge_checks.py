"""What the doctor says of an LLM that finds nothing, by table."""

from types import SimpleNamespace

import pytest

from gristmill.knowledge.checks import judge_extraction
from gristmill.telemetry import Check


@pytest.mark.parametrize(
    ("check", "verdict"),
    [
        (judge_extraction(SimpleNamespace(asked=0, silent=0)), "ok"),
        (judge_extraction(SimpleNamespace(asked=9, silent=9)), "ok"),
        (judge_extraction(SimpleNamespace(asked=50, silent=15)), "ok"),
        (judge_extraction(SimpleNamespace(asked=50, silent=16)), "warn"),
    ],
    ids=lambda value: value.name if isinstance(value, Check) else value,
)
def test_what_is_found_is_judged(check: Check, verdict: str) -> None:
    assert check.verdict == verdict
    assert check.sentence.endswith(".")
    assert bool(check.advice) == (verdict != "ok")
