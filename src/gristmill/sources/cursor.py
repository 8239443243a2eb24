"""Walks through what a provider has updated since a time, in pages, without losing what moves meanwhile."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from gristmill.sources.model import Batch, Checkpoint, RawItem

T = TypeVar("T")


@dataclass(frozen=True)
class Page(Generic[T]):
    """Items in the order of their last update, and these times as text that sorts like times.

    Items that only belong to others, as the files of an issue, have no times of their own.
    """

    items: Sequence[T]
    times: Sequence[str]
    more: bool


FetchPage = Callable[[str, int], Awaitable[Page[T]]]  # since a time, without so many of the items since then


async def walk_pages(fetch: FetchPage[T], checkpoint: Checkpoint) -> AsyncIterator[tuple[Page[T], Checkpoint]]:
    """Pages of everything that was updated at or after the time of the checkpoint, each with the checkpoint behind it.

    Each page begins anew at the time where the last one ended: an item that is updated meanwhile moves to the end, and
    what came behind it moves up; pages that are counted from the beginning would miss one. Items of the very time are
    fetched again, and are known by their bytes. Only where a whole page has one time, it is counted on within that
    time; likewise where the provider counts time in longer steps than we do, and gives what lies before.
    """
    since, skip = str(checkpoint.get("since", "")), int(checkpoint.get("skip", 0))
    while True:
        page = await fetch(since, skip)
        last = page.times[-1] if page.times else since
        stuck = bool(page.times) and last <= since
        since, skip = max(last, since), skip + len(page.times) if stuck else 0
        yield page, {"since": since, "skip": skip if page.more else 0}
        if not page.more:
            return


async def walk_updates(fetch: FetchPage[RawItem], checkpoint: Checkpoint) -> AsyncIterator[Batch]:
    """Batches of everything that was updated at or after the time of the checkpoint."""
    async for page, behind in walk_pages(fetch, checkpoint):
        yield Batch(behind, page.items)
