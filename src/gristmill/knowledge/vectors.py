"""Vectors of chunks: which model made them, which are known already, and what lies near."""

import sys
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import orjson

from gristmill.db import Database, Row, Tx, queries
from gristmill.errors import Refused
from gristmill.ids import ScopeId
from gristmill.knowledge.chunks import Chunk
from gristmill.knowledge.terms import Terms
from gristmill.models import Embedder
from gristmill.queue import Done, Skip, Snooze, Unique, send
from gristmill.tasks import FillVectors

SQL = queries("gristmill.knowledge", "vectors.sql")
MOST_DIMENSIONS = 2000  # that an HNSW index can hold
HEADER = 4  # bytes before the numbers of a vector as PostgreSQL sends it


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
    before.
    """
    name, dimensions = embedder.name, embedder.dimensions
    found = await tx.one(SQL["find_model"], name=name, dimensions=dimensions)
    made = found or await _made(tx, name, dimensions)
    if not made.current:
        await send(tx, FillVectors(made.id), unique=Unique(f"fill:{made.id}"))
    return Model(*made)


async def _made(tx: Tx, name: str, dimensions: int) -> Row:
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


async def known(tx: Tx, model: int, hashes: Sequence[bytes]) -> dict[bytes, bytes]:
    """The vectors that this model has already made of texts with these hashes."""
    rows = await tx.all(SQL["known"], model=model, hashes=list(hashes))
    return {row.hash: _received(row.vector) for row in rows}


async def make_searchable(tx: Tx, chunk: Chunk, vectors: Mapping[int, bytes], terms: Terms) -> None:
    """Writes what a chunk is found by: its vector of each model and its terms; rows of its own, and only those."""
    await tx.execute(
        SQL["make_searchable"], chunk=chunk.id, scope=chunk.scope, language=chunk.language, models=list(vectors),
        vectors=[written(one) for one in vectors.values()], length=terms.length,
        terms=orjson.dumps(terms.counts).decode(),
    )  # fmt: skip


# --- near

FEW = 4_000  # chunks that are compared one by one as fast as an index finds its way through a narrow filter


@dataclass(frozen=True, slots=True)
class Filter:
    """What is left of all that may be seen: documents of a type, and those written (or else added) after a moment."""

    type: str | None = None
    after: datetime | None = None

    @property
    def passes_all(self) -> bool:
        return self.type is None and self.after is None


async def near(
    tx: Tx, model: Model, vector: bytes, scopes: Sequence[ScopeId], size: int, only: Filter, most: int,
    others: Sequence[int] = (),
) -> dict[int, float]:  # fmt: skip
    """The cosine of the most similar chunks, and of these others; `size` is how many chunks the scopes hold."""
    asked = {"scopes": scopes, "type": only.type, "after": only.after}
    given = {"model": model.id, "near": written(vector)}
    if size <= FEW or not only.passes_all:
        few = [row.id for row in await tx.all(SQL["few"], **asked, most=FEW + 1)]
        if len(few) <= FEW:
            rows = await tx.all(SQL["nearest_of"], **given, chunks=few, most=most)
            rest = list(set(others) - {row.chunk for row in rows})
            return dict(rows + (await tx.all(SQL["nearest_of"], **given, chunks=rest, most=None) if rest else []))
    given |= {"dimensions": model.dimensions, "others": list(others), "most": most}
    return dict(await tx.all(SQL["nearest"], **asked, **given))


# --- another model

PORTION = 64  # chunks embedded at a time


async def fill_vectors(task: FillVectors, *, db: Database, embedder: Embedder) -> Done | Skip | Snooze:
    """Gives a portion of chunks a vector of this model and comes back; when all have one, it becomes current.

    What a portion wrote stays if its task is killed: whoever goes on asks for what is still missing.
    """
    await embedder.prepare()
    async with db.transaction() as tx:
        model = await tx.one(SQL["find_model_by_id"], model=task.model)
        rows = await tx.all(SQL["unfilled"], model=task.model, most=PORTION)
    if model is None or (model.name, model.dimensions) != (embedder.name, embedder.dimensions):
        return Skip(f"{embedder.name} is the model now")
    if not rows:
        return Done(write=partial(_take_over, model=task.model))
    found = [Chunk(*row) for row in rows]
    made = await embedder.embed([chunk.embedded for chunk in found])
    async with db.transaction() as tx:
        for chunk, vector in zip(found, made, strict=True):
            await tx.execute(SQL["add_vector"], model=task.model, chunk=chunk.id, vector=written(vector))
    return Snooze(timedelta(0))


async def _take_over(tx: Tx, *, model: int) -> None:
    await tx.one(SQL["lock_models"])
    await tx.execute(SQL["retire_others"], model=model)
    await tx.execute(SQL["make_current"], model=model)
    await tx.one(SQL["drop_others"], model=model)


def written(vector: bytes) -> str:
    """As PostgreSQL reads it; nine digits are all that four bytes hold."""
    numbers = array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return "[" + ",".join(["%.9g"] * len(numbers)) % tuple(numbers) + "]"


def _received(sent: bytes) -> bytes:
    """As embedders make it: what PostgreSQL sends has a header and its bytes the other way round."""
    numbers = array("f", sent[HEADER:])
    numbers.byteswap()
    return numbers.tobytes()
