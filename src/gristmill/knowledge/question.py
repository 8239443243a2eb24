"""The vector of what somebody searches for, asked while the words are looked up."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from gristmill.errors import GristmillError
from gristmill.knowledge.vectors import Model
from gristmill.models import Embedder, MiniLm

PATIENCE = 10.0  # seconds
FLOAT_SIZE = 4  # bytes of one in a vector


@dataclass(frozen=True, slots=True)
class QueryVector:
    """The vector of a query, or why there is none."""

    vector: bytes | None = None
    note: str | None = None
    floor: float = 0.0  # the least cosine that means anything to the model


class Question:
    """Asks for the vector of a query, by whichever of the embedders at hand made those of the chunks.

    The built-in model begins before the database says which one it wants: a vector takes as long as looking up the
    words. It is not called off when nobody waits any longer: that would end the process which has the model in memory.
    """

    def __init__(self, embedders: Sequence[Embedder], query: str) -> None:
        self._embedders, self._query = embedders, query
        self._asked: tuple[str, asyncio.Task[QueryVector]] | None = None  # which model, and its answer
        if {one.name for one in embedders} == {MiniLm.name}:
            self._ask(embedders[0])

    def start(self, model: Model | None) -> None:
        """Begins, if an embedder of this model is at hand and it has not begun."""
        fitting = next((one for one in self._embedders if model and one.name == model.name), None)
        if fitting and not self._asked:
            self._ask(fitting)

    async def vector_of(self, model: Model | None) -> QueryVector:
        """By the embedder of this model, if it is at hand."""
        if model is None:
            return QueryVector(note="No chunk has a vector yet: these hits are by words alone.")
        if self._asked and self._asked[0] == model.name:
            return _check_dimensions(await asyncio.shield(self._asked[1]), model)
        given = ", ".join(dict.fromkeys(one.name for one in self._embedders)) or "none"
        note = f"The vectors are those of {model.name} and the embedder is {given}: these hits are by words alone."
        return QueryVector(note=note)

    def _ask(self, embedder: Embedder) -> None:
        self._asked = embedder.name, asyncio.create_task(_embed_query(embedder, self._query))


def _check_dimensions(answer: QueryVector, model: Model) -> QueryVector:
    """A model may have changed behind its name: its old vectors are being replaced, and new ones do not fit them."""
    if answer.vector is None or len(answer.vector) == model.dimensions * FLOAT_SIZE:
        return answer
    made, kept = len(answer.vector) // FLOAT_SIZE, model.dimensions
    changed = f"{model.name} makes vectors of {made:,} numbers now, and the old ones have {kept:,}"
    return QueryVector(note=f"{changed}: until they are replaced, hits are by words alone.")


async def _embed_query(embedder: Embedder, query: str) -> QueryVector:
    try:
        async with asyncio.timeout(PATIENCE):
            return QueryVector(await embedder.embed_question(query), floor=embedder.floor)
    except TimeoutError:
        return QueryVector(note=f"The embedder {embedder.name} did not answer in time: these hits are by words alone.")
    except GristmillError as error:
        return QueryVector(note=f"These hits are by words alone: {error}")
