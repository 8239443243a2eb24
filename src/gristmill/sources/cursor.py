"""Walks through what a provider has updated since a time, in pages, without losing what moves meanwhile."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

from gristmill.sources.model import Batch, Checkpoint, RawItem


@dataclass(frozen=True)
class Page:
    """Items in the order of their last update, each with that time as text that sorts like a time."""

    items: Sequence[RawItem]
    times: Sequence[str]
    more: bool


async def walk_updates(fetch: Callable[[str, int], Awaitable[Page]], checkpoint: Checkpoint) -> AsyncIterator[Batch]:
    """Batches of everything that was updated at or after the time of the checkpoint.

    `fetch` takes a time and how many of the items since then to leave out. Each page begins anew at the time where the
    last one ended: an item that is updated meanwhile moves to the end, and what came behind it moves up; pages that are
    counted from the beginning would miss one. Items of the very time are fetched again, and are known by their bytes.
    Only where a whole page has one time, it is counted on within that time.
    """
    since, skip = str(checkpoint.get("since", "")), int(checkpoint.get("skip", 0))
    while True:
        page = await fetch(since, skip)
        last = page.times[-1] if page.times else since
        stuck = bool(page.times) and last == since
        since, skip = last, skip + len(page.items) if stuck else 0
        yield Batch({"since": since, "skip": skip if page.more else 0}, page.items)
        if not page.more:
            return
