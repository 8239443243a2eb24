"""Keeps sources and their items: what was fetched, where the next poll begins, what became of each item."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import Any, Literal, NamedTuple

import orjson

from gristmill.db import Database, Query, Tx, array, bytes_array, queries, text_array
from gristmill.errors import Transient
from gristmill.ids import ItemId, ScopeId, SourceId
from gristmill.queue import Envelope, send_many
from gristmill.sources.letters import IndexItem, RemoveItem
from gristmill.sources.model import LONGEST_ID, Batch, Checkpoint, Listed, RawItem, Source, SourceItem

SQL = queries("gristmill.sources", "sources.sql")
PIECE = 1 << 20  # bytes of an item in one row
HEAD = 1 << 16  # bytes with which an item begins …
PORTION = 500  # … and how many of them are read together


class _Waiting(NamedTuple):
    """An item that the indexer has not looked into, and the beginning of its bytes."""

    id: ItemId
    external: str
    head: bytes


class _VersionRow(NamedTuple):
    id: ItemId
    version: int


class _UrnRow(NamedTuple):
    urn: str
    external: str


class KnownItem(NamedTuple):
    """An item as it was kept before."""

    id: ItemId
    external: str
    hash: bytes | None
    mark: str | None
    state: str
    version: int
    leaving: bool  # it seemed gone, and its removal waits in line


class _RawRow(NamedTuple):
    """A row of `source_raw`; in the order of `copy_raw`."""

    item: ItemId
    n: int
    scope: ScopeId
    bytes: bytes


RAW_TYPES = ("int8", "int4", "int4", "bytea")  # of these columns


class Kept(NamedTuple):
    """An item that was written."""

    id: ItemId
    external: str
    version: int


@dataclass(frozen=True)
class BatchTally:
    """How many items of a batch were new, changed and the same."""

    new: int = 0
    changed: int = 0
    same: int = 0


async def load_source(tx: Tx, id_: SourceId) -> Source | None:
    return await tx.one(SQL["load"], Source, id=id_)


# --- what a poller writes


class PollPlace(NamedTuple):
    """Where a poll stands: its checkpoint, as it was written last, and the step of that."""

    step: int
    checkpoint: Checkpoint | None


async def keep_batch(tx: Tx, source: Source, batch: Batch, place: PollPlace) -> tuple[PollPlace, BatchTally]:
    """Write items and checkpoint together; where the poll stands now, and what the items were.

    Whoever was overtaken by another poller writes nothing. A batch that changes nothing writes nothing at all.
    """
    tally = BatchTally()
    if batch.items or batch.moved:
        if await tx.value(SQL["lock_source"], id=source.id) != place.step:
            raise _overtaken(source)
        for old, new in batch.moved.items():
            await tx.execute(SQL["move_item"], source=source.id, old=old, new=new)
        tally = await keep_items(tx, source, batch.items)
    if batch.checkpoint == place.checkpoint:
        return place, tally
    body = orjson.dumps(dict(batch.checkpoint)).decode()
    step = await tx.value(SQL["move_checkpoint"], int, id=source.id, step=place.step, checkpoint=body)
    if step is None:
        raise _overtaken(source)
    return PollPlace(step, batch.checkpoint), tally


class Overtaken(Transient):
    """Another poller, or a person, has moved the checkpoint: begin again from there."""


def _overtaken(source: Source) -> Overtaken:
    return Overtaken(f"The source {source.name} was changed or polled by another worker meanwhile.")


async def keep_items(tx: Tx, source: Source, items: Sequence[RawItem]) -> BatchTally:
    """New and changed items become NEW and go to the indexer; the others are left as they are."""
    wanted = {item.external: item for item in items}  # of one that came twice, the last
    if not wanted:
        return BatchTally()
    rows = await tx.all(SQL["known_items"], KnownItem, source=source.id, externals=text_array(wanted))
    known = {row.external: row for row in rows}
    sorts = {item.external: compare_item(item, known.get(item.external)) for item in wanted.values()}
    new, changed, marked = ([wanted[one] for one, sort in sorts.items() if sort == which] for which in SORTS)
    written = await _write_items(tx, source, SQL["add_items"], new)
    written += await _write_items(tx, source, SQL["renew_items"], changed)
    if marked:
        externals, marks = text_array(one.external for one in marked), text_array(one.mark for one in marked)
        await tx.execute(SQL["mark_items"], source=source.id, externals=externals, marks=marks)
    await _keep_raw(tx, source, [known[one.external].id for one in changed], written, wanted)
    letters = [IndexItem(row.id, row.version) for row in written if not wanted[row.external].refusal]
    await send_many(tx, [Envelope(letter, scope=source.scope) for letter in letters])
    return BatchTally(len(new), len(changed), len(wanted) - len(new) - len(changed))


Sort = Literal["new", "changed", "marked", "same"]
SORTS: tuple[Sort, ...] = ("new", "changed", "marked")


def compare_item(item: RawItem, known: KnownItem | None) -> Sort:
    """Whether an item is new here, has other bytes than here, or another mark with the same bytes.

    One that seemed gone and is back is marked, too: its removal, which may still wait in line, then does nothing.
    """
    if known is None:
        return "new"
    if known.state == "DELETED" or known.hash != hash_of(item):
        return "changed"
    return "same" if item.mark == known.mark and not known.leaving else "marked"


def hash_of(item: RawItem) -> bytes | None:
    """Of its bytes, and of what its source says beside them: a mail that moved to another folder has changed."""
    if item.refusal:
        return None
    note = orjson.dumps(dict(item.note), option=orjson.OPT_SORT_KEYS) if item.note else b""
    return sha256(item.content + note).digest()


async def _write_items(tx: Tx, source: Source, query: Any, items: Sequence[RawItem]) -> list[Kept]:
    if not items:
        return []
    return await tx.all(
        query,
        Kept,
        source=source.id,
        scope=source.scope,
        externals=text_array(one.external for one in items),
        marks=text_array(one.mark for one in items),
        hashes=bytes_array(hash_of(one) for one in items),
        sizes=array(len(one.content) for one in items),
        notes=text_array(orjson.dumps(dict(one.note)).decode() for one in items),
        errors=text_array(one.refusal or None for one in items),
    )


async def _keep_raw(
    tx: Tx, source: Source, older: Sequence[ItemId], written: Sequence[Kept], items: Mapping[str, RawItem]
) -> None:
    if older:
        await tx.execute(SQL["drop_raw"], items=list(older))
    rows = [
        _RawRow(row.id, n, source.scope, content[start : start + PIECE])
        for row in written
        for content in (items[row.external].content,)
        for n, start in enumerate(range(0, len(content), PIECE))
    ]
    await tx.add_rows(SQL["copy_raw"], SQL["insert_raw"], rows, types=RAW_TYPES)


async def forget_ids(tx: Tx, source: Source, externals: Sequence[str]) -> int:
    """The items with these ids are gone at their source: have them removed here; how many there were."""
    if not externals:
        return 0
    gone = await tx.all(SQL["let_leave"], _VersionRow, source=source.id, externals=text_array(externals))
    await send_many(tx, [Envelope(RemoveItem(row.id, row.version), scope=source.scope) for row in gone])
    return len(gone)


def make_keepable(text: str) -> str:
    """Text that the database takes, whatever somebody outside put into it."""
    if text.isascii() and "\0" not in text:
        return text
    return text.encode(errors="backslashreplace").decode().replace("\0", "\\0")


def check_external(external: str) -> str:
    """An id that can be kept: of a longer one, its beginning and its hash."""
    external = make_keepable(external)
    if len(external) <= LONGEST_ID:
        return external
    return external[: LONGEST_ID - 65] + "#" + sha256(external.encode()).hexdigest()


# --- what connectors ask


class KnownItems:
    """The items of a source that are here; each question is a short statement of its own."""

    def __init__(self, db: Database, source: Source) -> None:
        self._db = db
        self._source = source

    async def find_unlike(self, listed: Sequence[Listed]) -> list[Listed]:
        async with self._db.reading() as tx:
            ids = text_array(one.external for one in listed)
            rows = await tx.all(SQL["known_items"], KnownItem, source=self._source.id, externals=ids)
        known = {row.external: row.mark for row in rows if row.state != "DELETED" and not row.leaving}
        return [one for one in listed if one.external not in known or known[one.external] != one.mark]

    async def find_externals(self, urns: Sequence[str]) -> Mapping[str, Sequence[str]]:
        async with self._db.reading() as tx:
            rows = await tx.all(
                SQL["find_externals"], _UrnRow, source=self._source.id, scope=self._source.scope, urns=list(urns)
            )
        found: dict[str, list[str]] = {}
        for row in rows:
            found.setdefault(row.urn, []).append(row.external)
        return found

    async def read_waiting(self) -> AsyncIterator[tuple[str, bytes]]:
        after = ItemId(0)
        while True:
            async with self._db.reading() as tx:
                rows = await tx.all_binary(
                    SQL["waiting_items"], _Waiting, source=self._source.id, after=after, head=HEAD, limit=PORTION
                )
            for row in rows:
                yield row.external, row.head
            if len(rows) < PORTION:
                return
            after = rows[-1].id


# --- how a poll ended


async def begin_poll(tx: Tx, source: Source) -> None:
    await tx.execute(SQL["begin_poll"], id=source.id)


async def begin_listing(tx: Tx, source: SourceId) -> None:
    await tx.execute(SQL["begin_listing"], id=source)


async def note_success(tx: Tx, source: SourceId) -> bool:
    """Whether somebody has asked for another poll since this one began."""
    wanted = await tx.value(SQL["note_success"], bool, id=source)
    await tx.execute(SQL["fold_tally"], id=source)
    return bool(wanted)


async def note_listing_success(tx: Tx, source: Source) -> bool:
    """Whether somebody has asked for another listing since this one began."""
    return bool(await tx.value(SQL["note_listing_success"], bool, id=source.id, agreed_at=source.listing_agreed_at))


async def note_doubt(tx: Tx, source: Source, doubt: str) -> bool:
    """Most of its items seem gone: no listing begins by itself until a person has said what is true.

    Whether somebody has asked for another listing since this one began.
    """
    return bool(await tx.value(SQL["note_doubt"], bool, id=source.id, doubt=doubt))


@dataclass(frozen=True)
class TroubleLog:
    """Where the troubles of a source are written down: those of its polls and of its listings are counted apart."""

    wait: Query
    failure: Query

    async def note_wait(self, tx: Tx, source: Source, wait: timedelta, reason: str) -> None:
        await tx.execute(self.wait, id=source.id, wait=wait, reason=reason)

    async def note_failure(self, tx: Tx, source: Source, error: str) -> int:
        """How many have failed in a row now; 0 if the source was removed meanwhile."""
        return await tx.value(self.failure, int, id=source.id, error=error) or 0


POLLS = TroubleLog(SQL["note_wait"], SQL["note_failure"])
LISTINGS = TroubleLog(SQL["note_listing_wait"], SQL["note_listing_failure"])


# --- what the indexer does


async def load_items_to_index(tx: Tx, letters: Iterable[IndexItem]) -> dict[tuple[ItemId, int], SourceItem]:
    """The items that are still wanted in this version."""
    wanted = list(letters)
    ids, versions = array(one.item for one in wanted), array(one.version for one in wanted)
    rows = await tx.all(SQL["items_to_index"], SourceItem, ids=ids, versions=versions)
    return {(row.id, row.version): row for row in rows}


class _PieceRow(NamedTuple):
    item: ItemId
    bytes: bytes


async def load_raw(tx: Tx, items: Sequence[ItemId]) -> dict[ItemId, bytes]:
    found: dict[ItemId, list[bytes]] = {}
    for row in await tx.all_binary(SQL["load_raw"], _PieceRow, items=list(items)):
        found.setdefault(row.item, []).append(row.bytes)
    return {item: b"".join(pieces) for item, pieces in found.items()}
