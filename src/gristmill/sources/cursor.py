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

    Each page begins at the time where the last one ended. An item that is updated meanwhile moves to the end, and the
    items behind it move up: pages that are counted from the beginning would miss one. Items of exactly that time are
    fetched again, and are known by their bytes. Pages are counted in two cases only: all items of a page have the same
    time, or the provider counts time in longer steps than we do and gives items from before that time.
    """
    since, skip = str(checkpoint.get("since", "")), int(checkpoint.get("skip", 0))
    before, idle = list[T](), 0
    while True:
        page = await fetch(since, skip)
        last = page.times[-1] if page.times else since
        # an empty or a repeated page brings nothing new: the provider may give the next one later, or never
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
    """The time; now, if the provider takes it for the future: a poll would miss all changes until then."""
    return min(said, write_moment(now)) if now else said


async def walk_updates(fetch: FetchPage[RawItem], checkpoint: Checkpoint) -> AsyncIterator[Batch]:
    """Batches of everything that was updated at or after the time of the checkpoint."""
    async for page, behind in walk_pages(fetch, checkpoint):
        yield Batch(behind, page.items)
