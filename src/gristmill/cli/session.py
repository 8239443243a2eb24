"""What a command needs to do its work: settings, an open database, an event loop, and values as people write them."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

import typer

from gristmill import durations, settings
from gristmill.cli.output import err, warn
from gristmill.db import Database, open_database, plainly
from gristmill.errors import Refused
from gristmill.settings import Settings
from gristmill.telemetry import set_up_logs

T = TypeVar("T")


@dataclass(frozen=True)
class Session:
    """One command at work."""

    db: Database
    settings: Settings


def load(*, quiet: bool = False) -> Settings:
    """The settings; what was meant to be one and is none is told, unless `quiet`."""
    loaded = settings.load()
    for sentence in [] if quiet else settings.unknown_names():
        warn(sentence)
    return loaded


@asynccontextmanager
async def session(*, size: int = 2, quiet: bool = False) -> AsyncGenerator[Session]:
    """The configured database, started and migrated if need be; `quiet` for those who share a terminal."""
    loaded = load(quiet=quiet)
    set_up_logs(loaded.log)
    with plainly():
        async with AsyncExitStack() as stack:
            with nullcontext() if quiet else err.status("Opening the database …"):
                db = await stack.enter_async_context(open_database(loaded, size=size))
            yield Session(db, loaded)


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def read(parse: Callable[[str], T], text: str) -> T:
    """A value of the command line; what cannot be read is a mistake in its use."""
    try:
        return parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def optional(parse: Callable[[str], T], text: str | None, *, none: str = "none") -> T | None:
    """`none` takes a limit away."""
    return None if text is None or text == none else read(parse, text)


def duration(text: str | None) -> timedelta | None:
    return None if text is None else read(durations.duration, text)


def instant(text: str, zone: str | None = None) -> datetime:
    """ISO 8601; without an offset it is meant in `zone`, or where this machine is."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise Refused(f"“{text}” is not a time: write for example 2026-12-01T08:00.") from None
    if at.tzinfo is None:
        return at.replace(tzinfo=ZoneInfo(zone)) if zone else at.astimezone()
    return at
