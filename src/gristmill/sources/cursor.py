"""Walks through what a provider has updated since a time, in pages, without losing what moves meanwhile."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from gristmill.errors import Transient
from gristmill.sources.model import Batch, Checkpoint, RawItem
from gristmill.sources.moments import write_moment

T = TypeVar("T")
MOST_IDLE = 10  # pages in a row that bring nothing new


@dataclass(frozen=True)
class CursorPage(Generic[T]):
    """Items in the order of their last update, and these times as text that sorts like times.

    Items that only belong to others, as the files of an issue, have no times of their own.
    """

    items: Sequence[T]
    times: Sequence[str]
    more: bool


FetchPage = Callable[[str, int], Awaitable[CursorPage[T]]]  # since a time, without so many of the items since then


async def walk_pages(fetch: FetchPage[T], checkpoint: Checkpoint) -> AsyncIterator[tuple[CursorPage[T], Checkpoint]]:
    """Pages of everything that was updated at or after the time of the checkpoint, each with the checkpoint behind it.

    Each page begins anew at the time where the last one ended: an item that is updated meanwhile moves to the end, and
    what came behind it moves up; pages that are counted from the beginning would miss one. Items of the very time are
    fetched again, and are known by their bytes. Only where a whole page has one time, it is counted on within that
    time; likewise where the provider counts time in longer steps than we do, and gives what lies before.
    """
    since, skip = str(checkpoint.get("since", "")), int(checkpoint.get("skip", 0))
    before, idle = list[T](), 0
    while True:
        page = await fetch(since, skip)
        last = page.times[-1] if page.times else since
        # an empty page, or one that came before, leads nowhere: a provider may be about to show the next one, or never
        idle = idle + 1 if last <= since and (not page.times or list(page.items) == before) else 0
        if page.more and idle >= MOST_IDLE:
            raise Transient(
                f"The provider says that there is more since {since or 'the beginning'}, and gives nothing."
            )
        if page.times:
            skip = skip + len(page.times) if last <= since else 0
        since, before = max(last, since), list(page.items)
        yield page, {"since": since, "skip": skip if page.more else 0}
        if not page.more:
            return


def cap_moment(said: str, now: datetime | None) -> str:
    """A time that lies in the future by the clock of the provider is now: what changes until then is newer than it."""
    return min(said, write_moment(now)) if now else said


async def walk_updates(fetch: FetchPage[RawItem], checkpoint: Checkpoint) -> AsyncIterator[Batch]:
    """Batches of everything that was updated at or after the time of the checkpoint."""
    async for page, behind in walk_pages(fetch, checkpoint):
        yield Batch(behind, page.items)
