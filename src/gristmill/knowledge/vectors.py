"""Vectors of chunks: which model made them, which are known already, and what lies near."""

import sys
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from gristmill.db import Tx, queries
from gristmill.errors import Refused
from gristmill.knowledge.chunks import Chunk
from gristmill.knowledge.terms import Terms
from gristmill.models import Embedder

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
    """The model of this embedder, with an index of its own; the first one ever is current at once."""
    named = {"name": embedder.name, "dimensions": embedder.dimensions}
    if found := await tx.one(SQL["find_model"], **named):
        return Model(*found)
    if not 1 <= embedder.dimensions <= MOST_DIMENSIONS:
        raise Refused(
            f"{embedder.name} makes vectors of {embedder.dimensions:,} numbers: an index holds {MOST_DIMENSIONS:,}."
        )
    await tx.one(SQL["lock_models"])
    made = await tx.one(SQL["find_model"], **named) or await tx.one(SQL["make_model"], **named)
    assert made is not None
    await tx.one(SQL["make_index"], model=made.id, dimensions=made.dimensions)
    return Model(*made)


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
