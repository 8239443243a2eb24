"""Vectors of chunks: which model made them, which are known already, and what lies near."""

import sys
from array import array as float_array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson

from gristmill.db import Database, Row, Tx, Vector, array, queries, read_vector, with_numbers
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
    """What made a vector; search answers from the current one."""

    id: int
    name: str
    dimensions: int
    current: bool


async def register(tx: Tx, embedder: Embedder) -> Model:
    """The model of this embedder, with an index of its own.

    The first one ever is current at once; any other is filled in the background, and then takes the place of the one
    before. So is the current one while there are vectors of another: their chunks may have none of it.
    """
    name, dimensions = embedder.name, embedder.dimensions
    found = await tx.one(SQL["find_model"], name=name, dimensions=dimensions)
    row = found or await _make_model(tx, name, dimensions)
    if not row.settled:
        await _send_fill(tx, name)
    return Model(row.id, row.name, row.dimensions, row.current)


async def choose_model(tx: Tx, name: str) -> None:
    """From now on vectors are made by the model of this name: those of any other are replaced in the background."""
    if await tx.value(SQL["has_other_model"], name=name):
        await _send_fill(tx, name)


async def _send_fill(tx: Tx, name: str) -> None:
    await send_many(tx, [_fill_letter(name)])


def _fill_letter(name: str, after: int = 0) -> Envelope:
    return Envelope(FillVectors(name, after), unique=Unique(f"fill:{name}"), scope=GLOBAL_ID)


async def _make_model(tx: Tx, name: str, dimensions: int) -> Row:
    if not 1 <= dimensions <= MOST_DIMENSIONS:
        raise Refused(f"{name} makes vectors of {dimensions:,} numbers: an index holds {MOST_DIMENSIONS:,}.")
    await tx.one(SQL["lock_models"])
    named = {"name": name, "dimensions": dimensions}
    made = await tx.one(SQL["find_model"], **named) or await tx.one(SQL["make_model"], **named)
    assert made is not None
    await tx.one(SQL["make_index"], model=made.id, dimensions=made.dimensions)
    return made


async def current_model(tx: Tx) -> Model | None:
    """The one that search answers from; None before the first."""
    row = await tx.one(SQL["current_model"])
    return Model(*row) if row else None


async def describe_refill(tx: Tx, current: Model) -> str | None:
    """What a search by meaning does not see while another model is filled, in a sentence."""
    coming = None if current.name == MiniLm.name else await tx.value(SQL["coming_model"])
    if coming is None:  # or it is the built-in one, of which whatever comes gets a vector as well
        return None
    return f"{coming} takes the place of {current.name}: until it has, what was added since is found by words alone."


async def known_vectors(tx: Tx, model: int, hashes: Sequence[bytes]) -> dict[bytes, bytes]:
    """The vectors that this model has already made of texts with these hashes."""
    rows = await tx.all(SQL["known_vectors"], model=model, hashes=list(set(hashes)))
    return {row.hash: read_vector(row.vector) for row in rows}


Embedders = Embedder | Sequence[Embedder]  # the one of the settings, and then what else is at hand


def available_embedders(embedders: Embedders | None) -> list[Embedder]:
    return list(embedders) if isinstance(embedders, Sequence) else [embedders] if embedders else []


async def make_vectors(db: Database, embedders: Embedders, texts: Mapping[bytes, str]) -> dict[bytes, dict[int, bytes]]:
    """The vectors of texts, by hash and model; only what is not known yet is embedded.

    They are those of the first embedder; while that one's model is being filled, also those of the current one, if it
    is at hand: what comes meanwhile is found as well.
    """
    ours, *others = available_embedders(embedders)
    await ours.prepare()
    async with db.transaction() as tx:
        model = await register(tx, ours)
        makers = {model.id: ours}
        current = model if model.current else await current_model(tx)
        if current and current != model:
            makers |= [(current.id, one) for one in others if one.name == current.name]
        found = {id: await known_vectors(tx, id, list(texts)) for id in makers}
    for id, maker in makers.items():
        new = {hash: text for hash, text in texts.items() if hash not in found[id]}
        found[id] |= zip(new, await maker.embed(list(new.values())), strict=True)
    return {hash: {id: found[id][hash] for id in makers} for hash in texts}


async def make_searchable(tx: Tx, chunk: Chunk, vectors: Mapping[int, bytes], terms: Terms) -> None:
    """Writes what a chunk is found by: its vector of each model and its terms; rows of its own, and only those."""
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


# --- near

MOST_SCANNED = 200_000  # vectors that an index looks at for those that pass a filter
FEW = 4_000  # chunks that are compared one by one as fast as an index finds its way through a narrow filter


@dataclass(frozen=True, slots=True)
class Filter:
    """What is left of all that may be seen: documents of these types, written (or else added) after a moment."""

    types: tuple[str, ...] | None = None
    after: datetime | None = None

    @property
    def passes_all(self) -> bool:
        return self.types is None and self.after is None

    @property
    def params(self) -> dict[str, Any]:
        """As statements ask for it."""
        return {"types": None if self.types is None else list(self.types), "after": self.after}


async def find_nearest(
    tx: Tx, model: Model, vector: bytes, scopes: Sequence[ScopeId], size: int, only: Filter, most: int
) -> dict[int, float]:
    """The cosine of the most similar chunks; `size` is how many chunks the scopes hold."""
    if size <= FEW or not only.passes_all:
        few = await _chunks_if_few(tx, scopes, only)
        if len(few) <= FEW:
            return await compute_cosines(tx, model, vector, few, most)
    asked = {"scopes": array(scopes), "near": Vector(vector), **only.params}
    nearest = SQL["nearest_by_index"] if only.passes_all else SQL["nearest_filtered"]
    by_index = with_numbers(nearest, model=model.id, dimensions=model.dimensions, most=most, most_scanned=MOST_SCANNED)
    found = await tx.pairs(by_index, **asked)
    if len(found) < most:  # the index gave up among the vectors of others
        found = await tx.pairs(SQL["nearest_without_index"], **asked, model=model.id, most=most)
    return found


async def compute_cosines(
    tx: Tx, model: Model, vector: bytes, chunks: Sequence[int], most: int | None = None
) -> dict[int, float]:
    """Those of these chunks, or of the most similar among them."""
    asked = {"model": model.id, "near": Vector(vector), "chunks": array(chunks), "most": most}
    return await tx.pairs(SQL["nearest_of_chunks"], **asked) if chunks else {}


async def _chunks_if_few(tx: Tx, scopes: Sequence[ScopeId], only: Filter) -> list[int]:
    statement = (
        SQL["few_chunks_of_type"] if only.types else SQL["few_chunks_since"] if only.after else SQL["few_chunks"]
    )
    rows = await tx.all(statement, scopes=scopes, most=FEW + 1, **only.params)
    return [row.id for row in rows]


# --- another model

PORTION = 64  # chunks embedded at a time
PORTIONS = 8  # … before others have their turn
DROP_PORTION = 1_000  # chunks whose old vectors go at a time
MOMENT = timedelta(seconds=1)  # until the models before are tried to be dropped again


async def fill_vectors(task: FillVectors, *, db: Database, embedder: Embedder) -> Done | Skip | Snooze:
    """Gives every chunk a vector of this model, lets search answer from it, and takes away those of others.

    What a portion wrote stays if its task is killed: whoever goes on asks for what is still missing. The letter says
    from where on, or each portion would look at all that is filled already.
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
        alone = await tx.value(SQL["drop_other_models"], model=model.id)
    return Done() if alone else Snooze(MOMENT, "somebody still uses the vectors of the model before")


async def _fill_portions(db: Database, model: Model, embedder: Embedder, after: int) -> int:
    """The last chunk that was seen to, 0 if nothing is left; a few portions, so that other work is not kept waiting."""
    for _ in range(PORTIONS):
        rows = await _load_unfilled(db, model, after)
        if not rows and after:
            rows = await _load_unfilled(db, model, 0)  # what others wrote meanwhile, behind us
        if not rows:
            return 0
        found = [Chunk(*row) for row in rows]
        vectors = await LongTextEmbedder(embedder).embed(
            [chunk.text_to_embed for chunk in found]
        )  # parts of notes may be long
        async with db.transaction() as tx:
            for chunk, vector in zip(found, vectors, strict=True):
                await tx.execute(SQL["add_vector"], model=model.id, chunk=chunk.id, vector=Vector(vector))
        after = found[-1].id
    return after


async def _load_unfilled(db: Database, model: Model, after: int) -> Sequence[Row]:
    async with db.transaction() as tx:
        return await tx.all(SQL["chunks_without_vector"], model=model.id, after=after, most=PORTION)


async def _drop_other_vectors(db: Database, model: Model) -> None:
    after: int | None = 0
    while after is not None:
        async with db.transaction() as tx:
            after = await tx.value(SQL["drop_other_vectors"], model=model.id, after=after, most=DROP_PORTION)


def vector_text(vector: bytes) -> str:
    """As PostgreSQL reads it; nine digits are all that four bytes hold."""
    numbers = float_array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return "[" + ",".join(["%.9g"] * len(numbers)) % tuple(numbers) + "]"
