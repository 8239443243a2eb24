"""The delay between two visits of one domain, kept by the named limiters that all workers share."""

from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Protocol

from gristmill.queue import Limit, current
from gristmill.settings import FetchSettings

PATIENCE = timedelta(seconds=10)  # a task that would wait longer comes back later, and its worker does other things
PATIENCE_BETWEEN = timedelta(seconds=60)  # at a redirect: coming back later would repeat the visits before it
LONGEST_CRAWL_DELAY = timedelta(minutes=1)  # a robots.txt that asks for an hour would stop a source
ZERO = timedelta(0)


class Take(Protocol):
    """Waits for the turn of a limiter, as `Limiters.take` does."""

    def __call__(self, name: str, limit: Limit | None, *, patience: timedelta) -> AbstractAsyncContextManager[None]: ...


def take_turn_of_task(name: str, limit: Limit | None, *, patience: timedelta) -> AbstractAsyncContextManager[None]:
    """Wait as the task that is being answered."""
    return current().take(name, limit, patience=patience)


def choose_delay(host: str, settings: FetchSettings, crawl_delay: timedelta | None) -> tuple[str, Limit]:
    """The limiter of a host, and its delay: the entry of the longest domain that fits, or the default."""
    domain = host.removeprefix("www.")
    fitting = [name for name in settings.delays if domain == name or domain.endswith(f".{name}")]
    entry = max(fitting, key=len, default=None)
    low, high = settings.delay_min, settings.delay_max
    if entry is not None:
        low, high = settings.delays[entry].min, settings.delays[entry].max
    asked = min(crawl_delay or ZERO, LONGEST_CRAWL_DELAY)
    return f"web:{(entry or domain)[:190]}", Limit(gap=(max(low, asked), max(high, asked)))
