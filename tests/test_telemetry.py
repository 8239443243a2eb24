"""What is logged: enough to find a fault, and never a book."""

import io
import sys

import pytest
import structlog

from gristmill.settings import LogSettings
from gristmill.telemetry import log, set_up_logs, shortened


def test_a_huge_exception_is_cut_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    structlog.reset_defaults()
    set_up_logs(LogSettings(json_lines=True))
    try:
        raise ValueError("x" * 20_000_000)
    except ValueError as error:
        log.bind().error("task.retry", exc_info=error, error=str(error))
    finally:
        structlog.reset_defaults()
    assert "ValueError" in written.getvalue()
    assert len(written.getvalue()) < 30_000


def test_what_is_short_is_left_alone() -> None:
    assert shortened("a" * 10_000) == "a" * 10_000
    assert "characters left out" in shortened("a" * 10_001)
