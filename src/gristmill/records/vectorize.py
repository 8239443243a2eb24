"""Gives records their vectors and terms, so that search finds them; it asks for the records that have none yet."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from gristmill.db import Database, Tx, queries
from gristmill.errors import OutOfCredit, Permanent
from gristmill.ids import DocumentId, ScopeId
from gristmill.knowledge import (
    Chunk,
    Embedders,
    LongTextEmbedder,
    Piece,
    Terms,
    chunks,
    lexicon,
    make_searchable,
    terms_of,
    vectors,
)
from gristmill.models import Usage, measure_usage
from gristmill.queue import Done, Snooze, current, send_many
from gristmill.records.credit import RETRY, refresh_balance, report_empty
from gristmill.records.letters import Vectorize, vectorize_letter
from gristmill.records.model import RecordId
from gristmill.records.records import fold_tally
from gristmill.settings import EmbeddingSettings, RecordsSettings

SQL = queries("gristmill.records", "vectorize.sql")

AHEAD = 3  # batches at a time: one is written, one embedded, one prepared
Vectors = dict[bytes, dict[int, bytes]]  # by the hash of a text and the number of a model


@dataclass(frozen=True)
class WaitingRecord:
    """A record without a vector."""

    id: RecordId
    document: DocumentId
    row: int
    hash: str
    content: str


async def vectorize(
    task: Vectorize, *, db: Database, embedders: Embedders, settings: RecordsSettings, provider: EmbeddingSettings
) -> Done | Snooze:
    """The next records of a project, a few at a time; the rest is left to the next job."""
    async with db.transaction() as tx:
        waiting = await tx.all(SQL["waiting"], WaitingRecord, scope=task.scope, most=settings.embed_job)
        left = await tx.only_value(SQL["count_waiting"], int, scope=task.scope)
    try:
        size = settings.embed_batch
        batches = [waiting[at : at + size] for at in range(0, len(waiting), size)]
        done = await _Pipeline(db, embedders).run(batches, left)
    except OutOfCredit as error:
        await report_empty(db, str(error))
        return Snooze(RETRY, str(error))
    if done and provider.key is not None:
        await refresh_balance(db, provider)
    async with db.transaction() as tx:
        has_more = await tx.only_value(SQL["has_waiting"], bool, scope=task.scope)
        for document in {one.document for one in waiting}:
            await fold_tally(tx, document)
    # even if all of these were refused, other records wait
    fold, again = (lexicon.fold_letter(task.scope),), (vectorize_letter(task.scope),)
    return Done(then=((*fold,) if done else ()) + (again if has_more else ()), result={"vectorizedCount": done})


class _Pipeline:
    """Batches one behind the other: one is asked of the model, the one before is written, the next is prepared.

    The model is asked for one batch at a time, and never waits for the database.
    """

    def __init__(self, db: Database, embedders: Embedders) -> None:
        self._db = db
        turn = asyncio.Lock()
        self._embedders = [LongTextEmbedder(one, turn) for one in vectors.available_embedders(embedders)]
        self._places = asyncio.Semaphore(AHEAD)
        self._errors: list[Exception] = []
        self._writing: set[asyncio.Task[int]] = set()
        self._done = 0

    async def run(self, batches: Sequence[Sequence[WaitingRecord]], total: int) -> int:
        """How many records can be found now. Vectors that were paid for are kept, also when we are interrupted."""
        running = [asyncio.create_task(self._run(batch, total)) for batch in batches]
        try:
            await asyncio.gather(*running)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, *self._writing, return_exceptions=True)
        if self._errors:
            raise self._errors[0]
        return self._done

    async def _run(self, batch: Sequence[WaitingRecord], total: int) -> None:
        async with self._places:
            if self._errors:  # what kept one batch from its vectors keeps the others, too
                return
            current().progress(self._done, total, "records embedded")
            try:
                embedded = await self._embed(batch)
                writing = asyncio.create_task(_write_batch(self._db, embedded))
                self._writing.add(writing)
                self._done += await asyncio.shield(writing)
            except Exception as error:  # noqa: BLE001 raised by `run`, when the other batches have ended
                self._errors.append(error)

    async def _embed(self, batch: Sequence[WaitingRecord]) -> "_Embedded":
        texts = await asyncio.to_thread(_prepare_texts, batch)
        with measure_usage() as usage:
            try:
                wanted = {piece.hash: piece.text for piece, _ in texts}
                made = await vectors.make_vectors(self._db, self._embedders, wanted)
            except Permanent as error:
                if len(batch) > 1:
                    return await self._embed_one_by_one(batch)
                await _note_trouble(self._db, batch[0], str(error))
                return _Embedded((), (), {}, usage)
        if not usage.calls:  # a model of our own
            usage.tokens = sum(piece.tokens for piece, _ in texts)
        return _Embedded(batch, texts, made, usage)

    async def _embed_one_by_one(self, batch: Sequence[WaitingRecord]) -> "_Embedded":
        """The provider refuses one of them: the others must not suffer for it."""
        parts = [await self._embed([one]) for one in batch]
        return _Embedded(
            [record for part in parts for record in part.records],
            [text for part in parts for text in part.texts],
            {hash_: made for part in parts for hash_, made in part.made.items()},
            Usage(
                sum(part.usage.calls for part in parts),
                sum(part.usage.tokens for part in parts),
                sum(part.usage.cost for part in parts),
            ),
        )


@dataclass(frozen=True)
class _Embedded:
    """A batch with its vectors, ready to be written."""

    records: Sequence[WaitingRecord]
    texts: Sequence[tuple[Piece, Terms]]
    made: Vectors
    usage: Usage


def _prepare_texts(batch: Sequence[WaitingRecord]) -> list[tuple[Piece, Terms]]:
    pieces = [chunks.make_piece(one.content, 0) for one in batch]
    return [(piece, terms_of(piece.text, piece.language)) for piece in pieces]


async def _note_trouble(db: Database, record: WaitingRecord, reason: str) -> None:
    async with db.transaction() as tx:
        await tx.execute(SQL["note_trouble"], record=record.id, reason=reason[:1_000])


class _LockedRow(NamedTuple):
    id: RecordId
    document: DocumentId
    row: int


async def _write_batch(db: Database, embedded: _Embedded) -> int:
    """Records that changed, went or got their vector meanwhile are left out; how many were written."""
    batch = embedded.records
    if not batch:
        return 0
    async with db.transaction() as tx:
        await _note_cost(tx, batch, embedded.usage)  # first: every writer locks imports before their records
        ids, hashes = [one.id for one in batch], [one.hash for one in batch]
        locked = await tx.all(SQL["lock_waiting"], _LockedRow, ids=ids, hashes=hashes)
        at = {row.id: (row.document, row.row) for row in locked}
        places = {at[one.id]: n for n, one in enumerate(batch) if one.id in at}
        saved = await _save_chunks(tx, list(places), [embedded.texts[n][0] for n in places.values()])
        for chunk in saved:
            n = places[chunk.document, chunk.page]
            await make_searchable(tx, chunk, embedded.made[chunk.hash], embedded.texts[n][1])
            await tx.add(SQL["link_chunks"], records=batch[n].id, chunks=chunk.id)
    return len(saved)


async def _save_chunks(tx: Tx, places: Sequence[tuple[DocumentId, int]], pieces: Sequence[Piece]) -> list[Chunk]:
    return await chunks.add(tx, places, pieces) if pieces else []


async def _note_cost(tx: Tx, batch: Sequence[WaitingRecord], usage: Usage) -> None:
    """Each import bears its share."""
    documents = sorted(one.document for one in batch)
    for document, some in groupby(documents):
        share = sum(1 for _ in some) / len(documents)
        await tx.execute(
            SQL["add_cost"], document=document, tokens=round(usage.tokens * share), cost=usage.cost * share
        )


async def embed_records(tx: Tx, scope: ScopeId) -> int:
    """Ask for vectors of the records of a project that have none yet, or that a provider refused; how many."""
    n = await tx.only_value(SQL["want_vectors"], int, scope=scope)
    await send_many(tx, [vectorize_letter(scope)])
    return n
