"""The built-in embedder: all-MiniLM-L6-v2, computed in child processes."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the child processes import this file and need no queue
    from gristmill.processes import ProcessPool

GIB = 2**30


class MiniLm:
    """all-MiniLM-L6-v2 in the processes of a pool, one thread each."""

    name = "all-MiniLM-L6-v2"
    dimensions = 384
    window = 254  # the model reads 256 tokens, and two of these are its own marks
    # In SciFact 99 % of the pairs that belong together lie above it. Of the hits for questions that have no answer
    # there, most lie below it.
    floor = 0.2

    def __init__(self, pool: "ProcessPool", *, timeout: float = 300.0, memory: int = 2 * GIB, share: int = 32) -> None:
        """`embed` spreads its texts over the pool, `share` texts to a call; the limits are those of one call."""
        self._pool, self._timeout, self._memory, self._share = pool, timeout, memory, share

    async def prepare(self) -> None:
        """Load the model in one child process, so that a missing file is reported before any text waits."""
        await self._pool.run(_load_model, timeout=self._timeout, memory=self._memory)

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """A vector per text, in their order: float32, little-endian."""
        shares = [list(texts[at : at + self._share]) for at in range(0, len(texts), self._share)]
        calls = [self._pool.run(_embed_texts, share, timeout=self._timeout, memory=self._memory) for share in shares]
        return [vector for vectors in await asyncio.gather(*calls) for vector in vectors]

    async def embed_question(self, text: str) -> bytes:
        """The vector of a question that somebody waits for: weights of eight bits take half the time."""
        return await self._pool.run(_embed_question, text, timeout=self._timeout, memory=self._memory, apart=True)

    async def close(self) -> None:
        """Nothing to do: whoever made the process pool closes it."""


def _load_model() -> None:
    from gristmill.models.embedding import minilm  # noqa: PLC0415 only in a child process: it takes 100 MB

    minilm.load_model()


def _embed_texts(texts: list[str]) -> list[bytes]:
    from gristmill.models.embedding import minilm  # noqa: PLC0415 as above

    return minilm.embed_texts(texts)


def _embed_question(text: str) -> bytes:
    from gristmill.models.embedding import minilm  # noqa: PLC0415 as above

    return minilm.embed_question(text)
