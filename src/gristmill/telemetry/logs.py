"""Events, as text for people or one JSON object a line, on stderr."""

import logging
import sys
from typing import Any

import structlog

from gristmill.settings import LogSettings

log: Any = structlog.get_logger("gristmill")

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def set_up_logs(settings: LogSettings) -> None:
    for_people = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    render = structlog.processors.JSONRenderer() if settings.json_lines else for_people
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[settings.level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
