"""Events, as text for people or one JSON object a line, on stderr."""

import logging
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO, cast

import structlog
from structlog.typing import EventDict, FilteringBoundLogger

if TYPE_CHECKING:  # the child processes of workers import this file and need no settings
    from gristmill.settings import LogSettings

log: FilteringBoundLogger = structlog.get_logger("gristmill")

LONGEST = 10_000  # characters of one value in a log; the text of an exception may be as long as a book
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def shorten_text(text: str) -> str:
    """Keep the beginning and the end of a long text: in a traceback, these say where it began and what went wrong."""
    if len(text) <= LONGEST:
        return text
    head, tail = LONGEST * 3 // 4, LONGEST // 4
    return f"{text[:head]}\n… {len(text) - head - tail:,} characters left out …\n{text[-tail:]}"


def _shorten_values(_: object, __: str, event: EventDict) -> EventDict:
    for name, value in event.items():
        if isinstance(value, str) and len(value) > LONGEST:
            event[name] = shorten_text(value)
    return event


class _ForgivingStream:
    """A stream that drops lines when the disk is full, so that the program goes on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        with suppress(OSError):
            self._stream.write(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()


def set_up_logs(settings: "LogSettings") -> None:
    """Write events to stderr: as JSON if the settings say so, else as text, coloured in a terminal."""
    for_people = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    render = structlog.processors.JSONRenderer() if settings.json_lines else for_people
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            _shorten_values,
            render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[settings.level]),
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, _ForgivingStream(sys.stderr))),
        cache_logger_on_first_use=True,
    )
