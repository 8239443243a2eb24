"""What the doctor says of a database, by table."""

from datetime import timedelta
from types import SimpleNamespace

import pytest

from gristmill.db import SchemaState
from gristmill.db.checks import (
    judge_clocks,
    judge_disk,
    judge_extension,
    judge_schema,
    judge_server,
    judge_transactions,
)
from gristmill.telemetry import Check

GB = 2**30


def server(number: int) -> SimpleNamespace:
    return SimpleNamespace(version=str(number // 10_000), number=number, size=2**20)


@pytest.mark.parametrize(
    ("check", "verdict"),
    [
        (judge_server(server(180_004), 0.001), "ok"),
        (judge_server(server(180_004), 0.2), "warn"),
        (judge_server(server(130_010), 0.001), "fail"),
        (judge_extension(SimpleNamespace(installed="0.8", available="0.8")), "ok"),
        (judge_extension(SimpleNamespace(installed=None, available="0.8")), "warn"),
        (judge_extension(SimpleNamespace(installed=None, available=None)), "fail"),
        (judge_schema(SchemaState(1)), "ok"),
        (judge_schema(SchemaState(0, pending=("queue/0001_tables",))), "warn"),
        (judge_schema(SchemaState(2, unknown=("queue/0002_later",))), "fail"),
        (judge_schema(SchemaState(2, changed=("queue/0001_tables",))), "fail"),
        (judge_schema(SchemaState(14, older=True)), "fail"),
        (judge_clocks(0.01), "ok"),
        (judge_clocks(1.9), "ok"),
        (judge_clocks(-2.1), "warn"),
        (judge_disk("/data", 50 * GB, 100 * GB), "ok"),
        (judge_disk("/data", 4 * GB, 100 * GB), "warn"),
        (judge_disk("/data", GB - 1, 2 * GB), "warn"),
        (judge_disk("the server", None, 0), "ok"),
        (judge_transactions([]), "ok"),
        (judge_transactions([SimpleNamespace(who="session 1", age=timedelta(hours=1))]), "warn"),
    ],
    ids=lambda value: value.name if isinstance(value, Check) else value,
)
def test_what_is_found_is_judged(check: Check, verdict: str) -> None:
    assert check.verdict == verdict
    assert check.sentence.endswith(".")
    assert bool(check.advice) == (verdict != "ok")
