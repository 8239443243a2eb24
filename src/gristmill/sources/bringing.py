"""Brings items from a provider, some at a time; one that cannot be fetched is set aside, and stops no other."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import orjson

from gristmill.errors import Overloaded, Permanent, Transient
from gristmill.sources.model import RawItem
from gristmill.sources.moments import read_moment

TRIES = 3  # for an item that fails while its provider answers
SETTLED = timedelta(minutes=1)  # so long after a change, no second change can get the same time
TOO_DEEP = (RecursionError, orjson.JSONEncodeError)
FRESH = "~"  # added to the mark of an item that may change again within the same second


@dataclass(frozen=True)
class Bringer:
    """`fetch` gives the items of these ids that exist; `check` raises if the provider gives nothing at all."""

    fetch: Callable[[Sequence[str]], Awaitable[list[RawItem]]]
    check: Callable[[], Awaitable[object]]
    portion: int  # items that are asked for together
    max_bytes: int

    async def bring(self, ids: Sequence[str]) -> AsyncIterator[list[RawItem]]:
        """The items with these ids, in portions; an id that the source does not have is left out."""
        for start in range(0, len(ids), self.portion):
            if items := await self._bring(ids[start : start + self.portion]):
                yield [self._limit(item) for item in items]

    async def bring_each(self, ids: Sequence[str]) -> AsyncIterator[RawItem]:
        """… one by one."""
        async for items in self.bring(ids):
            for item in items:
                yield item

    async def _bring(self, ids: Sequence[str]) -> list[RawItem]:
        try:
            return await self.fetch(ids)
        except Overloaded:
            raise
        except (Transient, Permanent) as error:
            await self.check()  # it raises if the provider is to blame, and not the items
            if len(ids) == 1:
                return await self._insist(ids[0], error)
        except TOO_DEEP:
            if len(ids) == 1:
                return [_set_aside(ids[0], "it is nested too deep")]
        return [item for one in ids for item in await self._bring([one])]

    async def _insist(self, id_: str, error: Transient | Permanent) -> list[RawItem]:
        """Try one item some more times; in the end it is set aside, without a mark: the next listing tries it again."""
        for _ in range(TRIES - 1):
            if isinstance(error, Permanent):
                break
            try:
                return await self.fetch([id_])
            except Overloaded:
                raise
            except (Transient, Permanent) as again:
                error = again
            except TOO_DEEP:
                return [_set_aside(id_, "it is nested too deep")]
        return [_set_aside(id_, str(error).rstrip("."))]

    def _limit(self, item: RawItem) -> RawItem:
        if len(item.content) <= self.max_bytes:
            return item
        return refuse_large(item.external, len(item.content), self.max_bytes, dict(item.note), item.mark)


def refuse_large(external: str, size: int, most: int, note: dict[str, object], mark: str | None = None) -> RawItem:
    """An item whose bytes are not even fetched."""
    return RawItem(external, b"", mark, note, f"It has {size:,} bytes, more than the {most:,} of documents.max_bytes.")


def _set_aside(id_: str, why: str) -> RawItem:
    return RawItem(id_, b"", refusal=f"It could not be fetched: {why}.")


def mark_version(updated: str, seen: datetime | None) -> str:
    """The mark of an item, from the times of its update and of our look, both by the clock of its provider.

    A provider counts whole seconds. An item that has just changed may change again within the same second: it gets a
    mark that no listing has, so that it is fetched once more.
    """
    changed = read_moment(updated)
    settled = changed is not None and seen is not None and seen - changed >= SETTLED
    return updated if settled else updated + FRESH
