"""Loads the rows of an import into the database, portion by portion; an interrupted load goes on where it was."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

import orjson

from gristmill.db import Database, Tx, queries
from gristmill.documents import Spool, drop_content
from gristmill.errors import Permanent, Transient
from gristmill.ids import ChunkId, DocumentId, ScopeId
from gristmill.knowledge import chunks
from gristmill.queue import Done, Skip, current
from gristmill.records.imports import StoredImport, find_import
from gristmill.records.letters import IngestData, vectorize_letter
from gristmill.records.model import FilePlace, ImportPlan, Rejected
from gristmill.records.readers import Readers
from gristmill.records.records import fold_tally
from gristmill.records.shaping import Owner, RowPortion, read_cells
from gristmill.settings import RecordsSettings

SQL = queries("gristmill.records", "store.sql")


class _Known(NamedTuple):
    """A record that has the id of a row."""

    place: int
    document: DocumentId  # the import that wrote it last
    hash: str
    whole: str
    chunk: ChunkId | None


@dataclass
class Sorted:
    """What is to be done with each row of a portion."""

    new: list[int] = field(default_factory=list[int])
    changed: list[int] = field(default_factory=list[int])
    duplicates: dict[int, str] = field(default_factory=dict[int, str])  # with the reason


async def ingest_data(
    task: IngestData, *, db: Database, readers: Readers, spool: Spool, settings: RecordsSettings
) -> Done | Skip:
    """Each portion is one transaction with the place in the file: whatever kills us, each row is loaded once."""
    found = await _load_state(db, task.document)
    if found is None:
        return Skip("its import was removed")
    if found.state == "loaded":
        return Skip("it is loaded already")
    try:
        path = await spool.fetch(found.hash, found.size)
        with spool.hold([found.hash]):
            await _load_portions(db, readers, path, found, settings)
    except Permanent as error:
        async with db.transaction() as tx:
            await tx.execute(SQL["fail_import"], document=found.id, error=str(error))
        raise
    if found.plan.rank_by:
        await _rank(db, found.id, found.plan)
    then = (vectorize_letter(found.scope),) if found.plan.embed else ()
    done = await _load_state(db, task.document)
    return Done(write=partial(_finish, document=found.id), then=then, result=done.counts if done else None)


async def _load_state(db: Database, document: DocumentId) -> StoredImport | None:
    async with db.transaction() as tx:
        return await find_import(tx, document)


async def _load_portions(
    db: Database, readers: Readers, path: Path, found: StoredImport, settings: RecordsSettings
) -> None:
    """A child reads the next portion while the database writes this one."""
    owner = Owner(found.scope, found.id, await _ask_time(db))
    place = FilePlace(found.file_offset, found.file_row)
    reading = asyncio.create_task(readers.read_portion(path, found.plan, place, owner))
    try:
        while True:
            portion = await reading
            current().progress(portion.place.row, max(found.estimated_rows, portion.place.row), "rows read")
            if not portion.is_last:
                reading = asyncio.create_task(readers.read_portion(path, found.plan, portion.place, owner))
            await write_portion(db, found, place, portion, settings.keep_rejected)
            if portion.is_last:
                return
            place = portion.place
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


async def _ask_time(db: Database) -> str:
    async with db.transaction() as tx:
        return (await tx.only_value(SQL["moment"], datetime)).isoformat()


class _PlaceRow(NamedTuple):
    file_offset: int
    file_row: int


async def write_portion(db: Database, found: StoredImport, place: FilePlace, portion: RowPortion, keep: int) -> None:
    """Write one portion; nothing is written if another worker wrote it meanwhile, or if the import is gone."""
    async with db.transaction() as tx:
        await tx.one(SQL["lock_project"], scope=found.scope)
        at = await tx.one(SQL["lock_import"], _PlaceRow, document=found.id)
        if at is None:
            raise Permanent("its import was removed while it was loaded")
        if (at.file_offset, at.file_row) != (place.offset, place.row):
            raise Transient("another worker loads this import, too")
        rows = await _sort_rows(tx, found.scope, found.id, portion, unique_text=found.plan.unique_text)
        if rows.new:
            await tx.copy(SQL["copy_records"], _pick_lines(portion, rows.new))
        if rows.changed:
            await _write_changes(tx, found, portion, rows.changed)
        twins = [
            Rejected(
                portion.rows[n], "duplicate", why, read_cells(portion.lines[n], found.plan.columns, found.plan.text)
            )
            for n, why in list(rows.duplicates.items())[:keep]
        ]
        await _keep_rejected(tx, found, [*portion.rejected, *twins], keep)
        await _note_portion(tx, found.id, portion, rows)


def _pick_lines(portion: RowPortion, places: Sequence[int]) -> list[bytes]:
    if len(places) == len(portion.lines):
        return [b"".join(portion.lines)]
    return [b"".join([portion.lines[n] for n in places])]


async def _sort_rows(tx: Tx, scope: ScopeId, document: DocumentId, portion: RowPortion, *, unique_text: bool) -> Sorted:
    """New rows, changed ones and duplicates, by their ids and texts."""
    named = [n for n, one in enumerate(portion.ids) if one is not None]
    known: dict[int, _Known] = {}
    if named:
        rows = await tx.all(SQL["known_ids"], _Known, scope=scope, ids=[portion.ids[n] for n in named])
        known = {named[row.place - 1]: row for row in rows}
    texts = set[int]()
    if unique_text and portion.hashes:
        hashes = "{" + ",".join(portion.hashes) + "}"
        texts = {place - 1 for place in await tx.values(SQL["known_texts"], int, scope=scope, hashes=hashes)}
    sorted_ = Sorted()
    for n in range(len(portion.lines)):
        _sort_row(sorted_, n, known.get(n), portion, document, has_twin=n in texts)
    return sorted_


def _sort_row(
    rows: Sorted, n: int, known: _Known | None, portion: RowPortion, document: DocumentId, *, has_twin: bool
) -> None:
    if known is None:
        if has_twin:
            rows.duplicates[n] = "a record has the same text"
        else:
            rows.new.append(n)
        return
    if (known.whole, known.hash) == (portion.wholes[n], portion.hashes[n]):
        rows.duplicates[n] = "the record of this id is the same"
    elif known.document == document:
        rows.duplicates[n] = "a row before it has the same id"
    else:
        rows.changed.append(n)


async def _write_changes(tx: Tx, found: StoredImport, portion: RowPortion, places: Sequence[int]) -> None:
    """Records whose text stays the same keep their chunk, which then belongs to this import."""
    ids = [portion.ids[n] for n in places]
    old = await tx.all(SQL["known_ids"], _Known, scope=found.scope, ids=ids)
    await tx.copy(SQL["copy_changes"], _pick_lines(portion, places))
    await tx.execute(SQL["change_records"], document=found.id)
    await tx.execute(SQL["forget_changes"], document=found.id)
    stale, kept = list[ChunkId](), dict[ChunkId, int]()
    for one in old:
        n = places[one.place - 1]
        if one.chunk is not None and one.hash == portion.hashes[n]:
            kept[one.chunk] = portion.rows[n]
        elif one.chunk is not None:
            stale.append(one.chunk)
    await chunks.remove(tx, stale)
    await chunks.relocate(tx, list(kept), found.id, list(kept.values()))


async def _keep_rejected(tx: Tx, found: StoredImport, rejected: Sequence[Rejected], keep: int) -> None:
    if not rejected:
        return
    left = keep - await tx.only_value(SQL["count_rejected"], int, document=found.id, most=keep)
    if left > 0:
        rows = [
            {"row": one.row, "why": one.why, "reason": one.reason, "cells": list(one.cells)}
            for one in sorted(rejected, key=lambda one: one.row)[:left]
        ]
        await tx.execute(SQL["add_rejected"], document=found.id, scope=found.scope, rows=orjson.dumps(rows).decode())


async def _note_portion(tx: Tx, document: DocumentId, portion: RowPortion, rows: Sorted) -> None:
    fates = Counter(one.why for one in portion.rejected)
    await tx.execute(
        SQL["note_portion"],
        document=document,
        offset=portion.place.offset,
        row=portion.place.row,
        loaded=len(rows.new),
        updated=len(rows.changed),
        duplicate=fates["duplicate"] + len(rows.duplicates),
        filtered=fates["filtered"],
        invalid=fates["invalid"],
        characters=portion.characters,
    )


async def _rank(db: Database, document: DocumentId, plan: ImportPlan) -> None:
    """The same rows get the same category, however often it is done."""
    async with db.transaction() as tx:
        await tx.execute(SQL["rank_records"], document=document, column=plan.rank_by, is_text=plan.rank_by in plan.text)


async def _finish(tx: Tx, *, document: DocumentId) -> None:
    """All rows are there: the file is needed no more."""
    await fold_tally(tx, document)
    if await tx.value(SQL["finish_import"], document=document) is not None:
        await drop_content(tx, document)
