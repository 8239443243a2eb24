"""What a command needs to do its work: settings, an open database, an event loop, and values as people write them."""

import asyncio
import getpass
import re
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from gristmill import durations, settings
from gristmill.cli.output import Misused, err, warn
from gristmill.db import Database, open_database, outlast_outage, plainly
from gristmill.errors import Refused, Unreachable
from gristmill.settings import Settings
from gristmill.telemetry import set_up_logs

T = TypeVar("T")


@dataclass(frozen=True)
class Session:
    """One command at work."""

    db: Database
    settings: Settings


def load_settings(*, quiet: bool = False) -> Settings:
    """The settings. It warns about names that look like settings but are not, unless `quiet`."""
    loaded = settings.load()
    for sentence in [] if quiet else settings.unknown_names():
        warn(sentence)
    return loaded


@asynccontextmanager
async def session(*, size: int = 2, quiet: bool = False) -> AsyncGenerator[Session]:
    """The configured database, started and migrated if need be; `quiet` for those who share a terminal."""
    loaded = load_settings(quiet=quiet)
    set_up_logs(loaded.log)
    with plainly():
        async with AsyncExitStack() as stack:
            with nullcontext() if quiet else err.status("Opening the database …"):
                db = await stack.enter_async_context(open_database(loaded, size=size))
            yield Session(db, loaded)


async def wait_for_database(db: Database, error: Unreachable) -> None:
    await outlast_outage(db, warn, error)


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def name_user() -> str:
    """The name of the person at this terminal, kept with each decision."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run as a number without a name
        return "operator"


def parse_value(parse: Callable[[str], T], text: str) -> T:
    """A value of the command line; what cannot be read is a mistake in its use."""
    try:
        return parse(text)
    except ValueError as error:
        raise Misused(f"{error}.") from error


@contextmanager
def blame_options(**names: str) -> Generator[None]:
    """A refusal in this block is a mistake of the command line. Names of parameters are told as options."""
    try:
        yield
    except Refused as refused:
        text = str(refused)
        for name, option in names.items():
            text = re.sub(rf"^{name}\b", option, text)
        raise Misused(text) from refused


def parse_optional(parse: Callable[[str], T], text: str | None, *, none: str = "none") -> T | None:
    """`none` takes a limit away."""
    return None if text is None or text == none else parse_value(parse, text)


def parse_span(text: str | None) -> timedelta | None:
    return None if text is None else parse_value(durations.parse_duration, text)


def parse_instant(text: str, zone: str | None = None) -> datetime:
    """ISO 8601; without an offset it is meant in `zone`, or where this machine is."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise Misused(f"“{text}” is not a time: write for example 2026-12-01T08:00.") from None
    if at.tzinfo is not None:
        return at
    try:
        return at.replace(tzinfo=ZoneInfo(zone)) if zone else at.astimezone()
    except (OverflowError, ValueError):
        raise Misused(f"“{text}” is too far away: choose a year between 1970 and 9000.") from None
