"""Events, as text for people or one JSON object a line, on stderr."""

import logging
import sys
from collections.abc import MutableMapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO, cast

import structlog

if TYPE_CHECKING:  # children of workers import this, and need none
    from gristmill.settings import LogSettings

log: Any = structlog.get_logger("gristmill")

LONGEST = 10_000  # characters of one value in a log; what an exception carries may be a book
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def shortened(text: str) -> str:
    """Its beginning and its end, where a traceback says how it began and what it came to."""
    if len(text) <= LONGEST:
        return text
    head, tail = LONGEST * 3 // 4, LONGEST // 4
    return f"{text[:head]}\n… {len(text) - head - tail:,} characters left out …\n{text[-tail:]}"


def _shorten(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for name, value in event.items():
        if isinstance(value, str) and len(value) > LONGEST:
            event[name] = shortened(value)
    return event


class _Patient:
    """A stream on which a full disk costs lines, and not the program."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        with suppress(OSError):
            self._stream.write(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()


def set_up_logs(settings: "LogSettings") -> None:
    for_people = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    render = structlog.processors.JSONRenderer() if settings.json_lines else for_people
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            _shorten,
            render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[settings.level]),
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, _Patient(sys.stderr))),
        cache_logger_on_first_use=True,
    )
