"""The full listing: compares all ids there with those here, fetches what is missing, removes what is gone."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import partial
from hashlib import blake2b
from typing import NamedTuple

import orjson

from gristmill.db import Column, Database, Tx
from gristmill.ids import ItemId
from gristmill.queue import Answer, Done, Skip, current
from gristmill.sources import store
from gristmill.sources.letters import ListSource
from gristmill.sources.model import Connector, RawItem, Source
from gristmill.sources.poller import GONE, PAUSED, Poller, send_listing
from gristmill.sources.store import SQL, KnownItems

PORTION = 1_000  # items that are read, fetched or removed together
MOST_SHOWN = 1_000  # ids that a report names
FEW = 10  # items that may be gone at once without anybody asking
LARGE = 16 << 20  # bytes that are kept in one transaction
DOUBTED = Skip("most of its source seemed gone: it waits until somebody agrees, or asks for a listing")


class _Living(NamedTuple):
    id: ItemId
    external: str
    state: str


@dataclass
class Comparison:
    """What a source has there and here, at one moment."""

    at: datetime
    there: int = 0
    here: int = 0
    missing: list[str] = field(default_factory=list[str])  # there, and not here
    stale: list[str] = field(default_factory=list[str])  # here in another version than there
    surplus: list[str] = field(default_factory=list[str])  # here, and not there
    waiting: int = 0  # here, and not yet handed on
    set_aside: int = 0

    @property
    def agrees(self) -> bool:
        return not self.missing and not self.stale and not self.surplus

    def shorten(self) -> dict[str, object]:
        """The comparison as it is kept and shown: how many ids of each sort, and the first of them."""
        lists = {"missing": self.missing, "stale": self.stale, "surplus": self.surplus}
        counts = {f"{name}_count": len(ids) for name, ids in lists.items()}
        shown = {name: ids[:MOST_SHOWN] for name, ids in lists.items()}
        return {**asdict(self), **shown, **counts, "at": self.at.isoformat()}


async def compare_ids(db: Database, source: Source, connector: Connector) -> Comparison:
    """Compare all ids, and write nothing: a hundred thousand equal ones cost a hundred short questions."""
    known = KnownItems(db, source)
    async with db.reading() as tx:
        last = await tx.only_value(SQL["last_item"], Column[ItemId], source=source.id)
    result, there = Comparison(source.now), set[bytes]()
    async for listed in connector.list_ids():
        fresh = [one for one in listed if (digest := _digest(one.external)) not in there and not there.add(digest)]
        for one in await known.find_unlike(fresh):
            result.stale.append(one.external)  # or missing: told apart below
    result.there = len(there)
    unlike = set(result.stale)
    here = set[str]()
    async for row in _read_living(db, source, last):
        result.here += 1
        result.waiting += row.state in ("NEW", "INDEXING")
        result.set_aside += row.state == "SET_ASIDE"
        if _digest(row.external) not in there:
            result.surplus.append(row.external)
        elif row.external in unlike:
            here.add(row.external)
    result.missing = [one for one in result.stale if one not in here]
    result.stale = [one for one in result.stale if one in here]
    return result


def _digest(external: str) -> bytes:
    """Stands for an id in memory: a million of them must fit."""
    return blake2b(external.encode(), digest_size=16).digest()


async def _read_living(db: Database, source: Source, last: ItemId) -> AsyncIterator[_Living]:
    after = ItemId(0)
    while True:
        async with db.reading() as tx:
            rows = await tx.all(SQL["living_items"], _Living, source=source.id, after=after, last=last, limit=PORTION)
        for row in rows:
            yield row
        if len(rows) < PORTION:
            return
        after = rows[-1].id


def is_too_much(there: int, here: int, most: float) -> bool:
    """Whether so much is gone that it may be a mistake: a share that is not mounted, a listing that was cut off.

    Items that only got other ids are still there, and count.
    """
    return here - there > FEW and here - there > here * most


class _Version(NamedTuple):
    """What an item is here, as far as a poll would change it."""

    number: int
    mark: str | None
    deleted: bool


_Versions = Mapping[str, _Version]


async def _load_versions(tx: Tx, source: Source, ids: Sequence[str]) -> _Versions:
    rows = await tx.all(SQL["known_items"], store.KnownItem, source=source.id, externals=list(ids))
    return {row.external: _Version(row.version, row.mark, row.state == "DELETED") for row in rows}


def divide(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """Ids in portions that are fetched or removed together."""
    for start in range(0, len(ids), PORTION):
        yield ids[start : start + PORTION]


@dataclass(frozen=True)
class Lister:
    """Runs full listings beside the polls."""

    poller: Poller
    most_gone: float  # the share of all items that may be gone at once

    async def list(self, letter: ListSource) -> Answer:
        async with self.poller.opener.db.transaction() as tx:
            await store.begin_listing(tx, letter.source)
            source = await store.load_source(tx, letter.source)
        if source is None:
            return GONE
        if source.paused:
            return PAUSED
        agreed = letter.agreed or source.listing_agreed_at is not None
        if source.awaits_agreement and not agreed:
            return DOUBTED
        return await self.poller.attempt(source, partial(self._list, source, agreed), store.LISTINGS)

    async def _list(self, source: Source, agreed: bool) -> Answer:
        db = self.poller.opener.db
        async with self.poller.opener.open(source) as connector:
            found = await compare_ids(db, source, connector)
            if not agreed and is_too_much(found.there, found.here, self.most_gone):
                return _doubt(source, found)
            for ids in divide([*found.missing, *found.stale]):
                await self._fetch(source, connector, ids, await self._look_up(source, ids))
            # last: what only got another id is indexed under it before the old one goes
            found.surplus = [*await self._remove(source, connector, found.surplus)]
        await self._note(source, found)
        written = partial(_end_listing, source=source)
        return Done(written, result={"there": found.there, "removed": len(found.surplus)})

    async def _look_up(self, source: Source, ids: Sequence[str]) -> _Versions:
        async with self.poller.opener.db.reading() as tx:
            return await _load_versions(tx, source, ids)

    async def _fetch(self, source: Source, connector: Connector, ids: Sequence[str], before: _Versions) -> set[str]:
        """Keep the items of these ids that exist; return their ids. What a poll changed meanwhile is newer."""
        db, seen = self.poller.opener.db, set[str]()
        async for items in gather_items(connector.fetch(ids)):
            seen.update(item.external for item in items)
            async with db.transaction() as tx:
                await tx.one(SQL["lock_source"], id=source.id)
                now = await _load_versions(tx, source, [item.external for item in items])
                same = [item for item in items if now.get(item.external) == before.get(item.external)]
                await store.keep_items(tx, source, same)
            current().progress(len(seen), len(ids), "fetching what is missing")
        return seen

    async def _remove(self, source: Source, connector: Connector, ids: Sequence[str]) -> Sequence[str]:
        """Remove the items of these ids that are really gone; return their ids.

        A listing misses an item if its pages move meanwhile: so each id is asked for once more. An item that does not
        come is removed at once, unless a poll has seen it meanwhile.
        """
        gone: list[str] = []
        for some in divide(ids):
            before = await self._look_up(source, some)
            back = await self._fetch(source, connector, some, before)
            async with self.poller.opener.db.transaction() as tx:
                await tx.one(SQL["lock_source"], id=source.id)
                now = await _load_versions(tx, source, some)
                lost = [one for one in some if one not in back and now.get(one) == before.get(one)]
                await store.forget_ids(tx, source, lost)
            gone += lost
        return gone

    async def _note(self, source: Source, found: Comparison) -> None:
        async with self.poller.opener.db.transaction() as tx:
            await note_listing(tx, source, found)


def _doubt(source: Source, found: Comparison) -> Answer:
    """Only a person knows whether this is a mistake: the same listing a minute later would say the same."""
    gone = f"{found.here - found.there:,} of {found.here:,} items are gone at {source.name}"
    doubt = f"{gone}, which may be a mistake: nothing is removed until somebody agrees."
    return Skip(doubt, partial(_end_doubtful_listing, source=source, found=found, doubt=doubt))


async def _end_listing(tx: Tx, source: Source) -> None:
    if await store.note_listing_success(tx, source):
        await send_listing(tx, source)


async def _end_doubtful_listing(tx: Tx, source: Source, found: Comparison, doubt: str) -> None:
    await note_listing(tx, source, found)
    if await store.note_doubt(tx, source, doubt):
        await send_listing(tx, source)


async def note_listing(tx: Tx, source: Source, found: Comparison) -> None:
    await tx.execute(SQL["note_listing"], id=source.id, report=orjson.dumps(found.shorten()).decode())


async def gather_items(items: AsyncIterator[RawItem]) -> AsyncIterator[list[RawItem]]:
    """Items in portions that one transaction can take."""
    some, size = list[RawItem](), 0
    async for item in items:
        some.append(item)
        size += len(item.content)
        if len(some) >= PORTION or size >= LARGE:
            yield some
            some, size = [], 0
    if some:
        yield some
