"""The log holds enough to find a fault, and never as much as a book."""

import errno
import io
import sys

import pytest
import structlog

from gristmill.settings import LogSettings
from gristmill.telemetry import log, set_up_logs, shorten_text


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


def test_a_short_text_is_left_alone() -> None:
    assert shorten_text("a" * 10_000) == "a" * 10_000
    assert "characters left out" in shorten_text("a" * 10_001)


def test_a_full_disk_costs_lines_of_the_log_and_not_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.StringIO):
        def write(self, text: str, /) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stderr", Full())
    structlog.reset_defaults()
    set_up_logs(LogSettings())
    try:
        log.bind().info("settle.lost", tasks=1)
    finally:
        structlog.reset_defaults()
