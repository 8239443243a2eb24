"""Vectors of chunks: which model made them, which exist already, and which lie near a query."""

import sys
from array import array as float_array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import orjson

from gristmill.db import Database, Tx, Vector, array, queries, read_vector, with_numbers
from gristmill.errors import Refused
from gristmill.ids import ScopeId
from gristmill.knowledge.chunks import Chunk
from gristmill.knowledge.letters import FillVectors
from gristmill.knowledge.terms import Terms
from gristmill.knowledge.windows import LongTextEmbedder
from gristmill.models import Embedder, MiniLm
from gristmill.queue import Done, Envelope, Skip, Snooze, Unique, send_many
from gristmill.scopes import GLOBAL_ID

SQL = queries("gristmill.knowledge", "vectors.sql")
MOST_DIMENSIONS = 2000  # that an HNSW index can hold


@dataclass(frozen=True, slots=True)
class Model:
    """A model that made vectors; search answers from the current one."""

    id: int
    name: str
    dimensions: int
    current: bool


class _ModelRow(NamedTuple):
    id: int
    name: str
    dimensions: int
    current: bool
    settled: bool  # search answers from it, and no other model is left


async def register(tx: Tx, embedder: Embedder) -> Model:
    """The model of this embedder; a new model gets an index of its own.

    The first model of all is current at once. A later one is filled in the background, and then takes the place of the
    model before. The current model is filled too while vectors of another exist: their chunks may lack one of its own.
    """
    name, dimensions = embedder.name, embedder.dimensions
    found = await tx.one(SQL["find_model"], _ModelRow, name=name, dimensions=dimensions)
    row = found or await _make_model(tx, name, dimensions)
    if not row.settled:
        await _send_fill(tx, name)
    return Model(row.id, row.name, row.dimensions, row.current)


async def choose_model(tx: Tx, name: str) -> None:
    """Makes the model of this name the one to use: vectors of any other are replaced in the background."""
    if await tx.value(SQL["has_other_model"], name=name):
        await _send_fill(tx, name)


async def _send_fill(tx: Tx, name: str) -> None:
    await send_many(tx, [_fill_letter(name)])


def _fill_letter(name: str, after: int = 0) -> Envelope:
    return Envelope(FillVectors(name, after), unique=Unique(f"fill:{name}"), scope=GLOBAL_ID)


async def _make_model(tx: Tx, name: str, dimensions: int) -> _ModelRow:
    if not 1 <= dimensions <= MOST_DIMENSIONS:
        raise Refused(f"{name} makes vectors of {dimensions:,} numbers: an index holds {MOST_DIMENSIONS:,}.")
    await tx.one(SQL["lock_models"])
    named = {"name": name, "dimensions": dimensions}
    made = await tx.one(SQL["find_model"], _ModelRow, **named) or await tx.one(SQL["make_model"], _ModelRow, **named)
    assert made is not None
    await tx.one(SQL["make_index"], model=made.id, dimensions=made.dimensions)
    return made


async def current_model(tx: Tx) -> Model | None:
    """The model that search answers from; None before the first."""
    return await tx.one(SQL["current_model"], Model)


async def describe_refill(tx: Tx, current: Model) -> str | None:
    """A sentence on the chunks that a search by meaning misses while another model is filled; None if there are none.

    The built-in model misses none: new chunks get a vector of it as well.
    """
    coming = None if current.name == MiniLm.name else await tx.value(SQL["coming_model"], str)
    if coming is None:
        return None
    return f"{coming} takes the place of {current.name}: until it has, what was added since is found by words alone."


class _KnownVector(NamedTuple):
    """The vector of a text with this hash."""

    hash: bytes
    vector: bytes


async def find_vectors(tx: Tx, model: int, hashes: Sequence[bytes]) -> dict[bytes, bytes]:
    """The vectors that this model has made already, by the hash of their text."""
    rows = await tx.all(SQL["known_vectors"], _KnownVector, model=model, hashes=list(set(hashes)))
    return {row.hash: read_vector(row.vector) for row in rows}


Embedders = Embedder | Sequence[Embedder]  # the one that the settings name comes first


def available_embedders(embedders: Embedders | None) -> list[Embedder]:
    """One embedder, several or none, as a list."""
    return list(embedders) if isinstance(embedders, Sequence) else [embedders] if embedders else []


async def make_vectors(db: Database, embedders: Embedders, texts: Mapping[bytes, str]) -> dict[bytes, dict[int, bytes]]:
    """The vectors of texts, by hash and model; only texts without a vector are embedded.

    Each text gets a vector of the first embedder. While the model of that one is being filled, each text also gets one
    of the current model, if its embedder is available: so new texts are found meanwhile, too.
    """
    ours, *others = available_embedders(embedders)
    await ours.prepare()
    async with db.transaction() as tx:
        model = await register(tx, ours)
        makers = {model.id: ours}
        current = model if model.current else await current_model(tx)
        if current and current != model:
            makers |= [(current.id, one) for one in others if one.name == current.name]
        found = {id: await find_vectors(tx, id, list(texts)) for id in makers}
    for id, maker in makers.items():
        new = {hash: text for hash, text in texts.items() if hash not in found[id]}
        found[id] |= zip(new, await maker.embed(list(new.values())), strict=True)
    return {hash: {id: found[id][hash] for id in makers} for hash in texts}


async def make_searchable(tx: Tx, chunk: Chunk, vectors: Mapping[int, bytes], terms: Terms) -> None:
    """Writes the vectors and terms by which a chunk is found; no other chunk's rows are touched."""
    await tx.execute(
        SQL["make_searchable"],
        chunk=chunk.id,
        scope=chunk.scope,
        language=chunk.language,
        models=list(vectors),
        vectors=[vector_text(one) for one in vectors.values()],
        length=terms.length,
        terms=orjson.dumps(terms.counts).decode(),
    )


# --- the nearest

MOST_SCANNED = 200_000  # vectors that the index reads at most to find enough that pass a filter
FEW = 4_000  # so many chunks are compared one by one as fast as the index finds those that pass a narrow filter


@dataclass(frozen=True, slots=True)
class Filter:
    """Only documents of these types, written after this moment (or added, if nobody knows when they were written).

    With `columns`, only records that have these values in them.
    """

    types: tuple[str, ...] | None = None
    after: datetime | None = None
    columns: Mapping[str, str] | None = None

    @property
    def passes_all(self) -> bool:
        return self.types is None and self.after is None and not self.columns

    @property
    def params(self) -> dict[str, Any]:
        """The parameters that statements take."""
        return {
            "types": None if self.types is None else list(self.types),
            "after": self.after,
            "columns": orjson.dumps(dict(self.columns)).decode() if self.columns else None,
        }


async def find_nearest(
    tx: Tx, model: Model, vector: bytes, scopes: Sequence[ScopeId], size: int, only: Filter, most: int
) -> dict[int, float]:
    """The cosines of the most similar chunks; `size` is the number of chunks in these scopes."""
    if size <= FEW or not only.passes_all:
        few = await _chunks_if_few(tx, scopes, only)
        if len(few) <= FEW:
            return await compute_cosines(tx, model, vector, few, most)
    asked = {"scopes": array(scopes), "near": Vector(vector), **only.params}
    nearest = SQL["nearest_by_index"] if only.passes_all else SQL["nearest_filtered"]
    by_index = with_numbers(nearest, model=model.id, dimensions=model.dimensions, most=most, most_scanned=MOST_SCANNED)
    found = await tx.pairs(by_index, dict[int, float], **asked)
    if len(found) < most:  # the index stopped early, among vectors of other scopes
        found = await tx.pairs(SQL["nearest_without_index"], dict[int, float], **asked, model=model.id, most=most)
    return found


async def compute_cosines(
    tx: Tx, model: Model, vector: bytes, chunks: Sequence[int], most: int | None = None
) -> dict[int, float]:
    """The cosines of these chunks, or of the `most` similar among them."""
    asked = {"model": model.id, "near": Vector(vector), "chunks": array(chunks), "most": most}
    return await tx.pairs(SQL["nearest_of_chunks"], dict[int, float], **asked) if chunks else {}


async def _chunks_if_few(tx: Tx, scopes: Sequence[ScopeId], only: Filter) -> list[int]:
    """The chunks that pass the filter; more than FEW if there are too many to compare each."""
    if only.columns:
        return await tx.values(SQL["few_chunks_with_columns"], int, scopes=scopes, most=FEW + 1, **only.params)
    statement = (
        SQL["few_chunks_of_type"] if only.types else SQL["few_chunks_since"] if only.after else SQL["few_chunks"]
    )
    return await tx.values(statement, int, scopes=scopes, most=FEW + 1, **only.params)


# --- another model

PORTION = 64  # chunks embedded at a time
PORTIONS = 8  # embedded by one task, before other work has its turn
DROP_PORTION = 1_000  # chunks whose old vectors are dropped at a time
MOMENT = timedelta(seconds=1)  # until dropping the old models is tried again


async def fill_vectors(task: FillVectors, *, db: Database, embedder: Embedder) -> Done | Skip | Snooze:
    """Gives every chunk a vector of this model, lets search answer from it, and drops the vectors of other models.

    The vectors of a portion stay if the task is killed: the next try asks for the chunks that still lack one. The
    letter says after which chunk to go on. Without it, each portion would read all chunks that are filled already.
    """
    if task.model != embedder.name:
        return Skip(f"{embedder.name} is the model now")
    await embedder.prepare()
    async with db.transaction() as tx:
        model = await register(tx, embedder)
    if after := await _fill_portions(db, model, embedder, task.after):
        return Done(then=(_fill_letter(task.model, after),))
    async with db.transaction() as tx:
        await tx.one(SQL["lock_models"])
        await tx.execute(SQL["unset_current"], model=model.id)
        await tx.execute(SQL["make_current"], model=model.id)
    await _drop_other_vectors(db, model)
    async with db.transaction() as tx:
        await tx.one(SQL["lock_models"])
        alone = await tx.only_value(SQL["drop_other_models"], bool, model=model.id)
    return Done() if alone else Snooze(MOMENT, "somebody still uses the vectors of the model before")


async def _fill_portions(db: Database, model: Model, embedder: Embedder, after: int) -> int:
    """Fills a few portions, so that other work need not wait; the last chunk filled, or 0 if none is left."""
    for _ in range(PORTIONS):
        found = await _load_unfilled(db, model, after)
        if not found and after:
            found = await _load_unfilled(db, model, 0)  # chunks behind us, written by others meanwhile
        if not found:
            return 0
        texts = [chunk.text_to_embed for chunk in found]
        vectors = await LongTextEmbedder(embedder).embed(texts)  # chunks of notes may be long
        async with db.transaction() as tx:
            for chunk, vector in zip(found, vectors, strict=True):
                await tx.execute(SQL["add_vector"], model=model.id, chunk=chunk.id, vector=Vector(vector))
        after = found[-1].id
    return after


async def _load_unfilled(db: Database, model: Model, after: int) -> Sequence[Chunk]:
    async with db.transaction() as tx:
        return await tx.all(SQL["chunks_without_vector"], Chunk, model=model.id, after=after, most=PORTION)


async def _drop_other_vectors(db: Database, model: Model) -> None:
    after: int | None = 0
    while after is not None:
        async with db.transaction() as tx:
            after = await tx.value(SQL["drop_other_vectors"], int, model=model.id, after=after, most=DROP_PORTION)


def vector_text(vector: bytes) -> str:
    """A vector as PostgreSQL reads it from text; four bytes hold no more than nine digits."""
    numbers = float_array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return "[" + ",".join(["%.9g"] * len(numbers)) % tuple(numbers) + "]"
