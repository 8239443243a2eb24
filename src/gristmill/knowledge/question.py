"""The vector of a query: computed while the words of the query are looked up."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from gristmill.errors import GristmillError
from gristmill.knowledge.vectors import Model
from gristmill.models import Embedder, MiniLm

PATIENCE = 10.0  # seconds
FLOAT_SIZE = 4  # bytes of one number of a vector


@dataclass(frozen=True, slots=True)
class QueryVector:
    """The vector of a query, or the reason why there is none."""

    vector: bytes | None = None
    note: str | None = None
    floor: float = 0.0  # the least cosine that means anything to the model


class QueryEmbedder:
    """Asks the right embedder for the vector of a query: the one whose model made the vectors of the chunks.

    The built-in model starts before the database says which model is needed, because a vector takes as long as looking
    up the words. Its task is never cancelled, even if nobody waits for it any longer: cancelling would end the process
    that holds the model in memory.
    """

    def __init__(self, embedders: Sequence[Embedder], query: str) -> None:
        self._embedders, self._query = embedders, query
        self._asked: tuple[str, asyncio.Task[QueryVector]] | None = None  # the name of the model, and its work
        if {one.name for one in embedders} == {MiniLm.name}:
            self._ask(embedders[0])

    def start(self, model: Model | None) -> None:
        """Asks the embedder of this model, if there is one and none was asked yet."""
        fitting = next((one for one in self._embedders if model and one.name == model.name), None)
        if fitting and not self._asked:
            self._ask(fitting)

    async def vector_of(self, model: Model | None) -> QueryVector:
        """The vector that this model makes of the query, if its embedder is available."""
        if model is None:
            return QueryVector(note="No chunk has a vector yet: these hits are by words alone.")
        if self._asked and self._asked[0] == model.name:
            return _check_dimensions(await asyncio.shield(self._asked[1]), model)
        given = ", ".join(dict.fromkeys(one.name for one in self._embedders)) or "none"
        note = f"The vectors are those of {model.name} and the embedder is {given}: these hits are by words alone."
        return QueryVector(note=note)

    def _ask(self, embedder: Embedder) -> None:
        self._asked = embedder.name, asyncio.create_task(_embed_query(embedder, self._query))


def _check_dimensions(found: QueryVector, model: Model) -> QueryVector:
    """Refuses a vector of another length: an endpoint may serve a changed model under the same name.

    The old vectors are being replaced then, and a new one cannot be compared with them.
    """
    if found.vector is None or len(found.vector) == model.dimensions * FLOAT_SIZE:
        return found
    new, old = len(found.vector) // FLOAT_SIZE, model.dimensions
    changed = f"{model.name} makes vectors of {new:,} numbers now, and the old ones have {old:,}"
    return QueryVector(note=f"{changed}: until they are replaced, hits are by words alone.")


async def _embed_query(embedder: Embedder, query: str) -> QueryVector:
    try:
        async with asyncio.timeout(PATIENCE):
            return QueryVector(await embedder.embed_question(query), floor=embedder.floor)
    except TimeoutError:
        return QueryVector(note=f"The embedder {embedder.name} did not answer in time: these hits are by words alone.")
    except GristmillError as error:
        return QueryVector(note=f"These hits are by words alone: {error}")
