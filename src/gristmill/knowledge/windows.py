"""Vectors of texts that are longer than a model's window: the whole text counts, not only its beginning."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from itertools import accumulate, pairwise

from gristmill.models import Embedder, tokens


def split_windows(text: str, most: int) -> list[str]:
    """Divides a text into few parts of about equal length, each of at most so many tokens; words stay whole."""
    spans = tokens.find_spans(text)
    if len(spans) <= most:
        return [text]
    parts: list[str] = []
    start = 0
    while start < len(spans):
        left = len(spans) - start
        stop = start + -(-left // -(-left // most))
        while start < stop < len(spans) and not text[spans[stop][0] - 1].isspace():
            stop -= 1
        if stop == start:  # a single word that is longer than a window
            stop = min(start + most, len(spans))
        parts.append(text[spans[start][0] : spans[stop - 1][1]])
        start = stop
    return parts


def mean_vector(vectors: Sequence[bytes]) -> bytes:
    """The mean direction of these vectors, of unit length; the first of them if they cancel each other out."""
    if len(vectors) == 1:
        return vectors[0]
    import numpy as np  # noqa: PLC0415 it takes a sixth of a second, and most texts have one part

    middle = np.mean([np.frombuffer(one, "<f4") for one in vectors], axis=0, dtype=np.float64)
    length = float(np.linalg.norm(middle))
    return (middle / length).astype("<f4").tobytes() if length else vectors[0]


class LongTextEmbedder:
    """An embedder for texts of any length: a long text gets the mean of the vectors of its parts.

    With a `turn`, the model is asked by one caller at a time, while others prepare their texts.
    """

    def __init__(self, embedder: Embedder, turn: AbstractAsyncContextManager[object] | None = None) -> None:
        self._embedder = embedder
        self._turn = turn or nullcontext()

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    @property
    def window(self) -> int:
        return self._embedder.window

    @property
    def floor(self) -> float:
        return self._embedder.floor

    async def prepare(self) -> None:
        await self._embedder.prepare()

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        parts = [split_windows(text, self.window) for text in texts]
        async with self._turn:
            made = await self._embedder.embed([part for some in parts for part in some])
        bounds = pairwise(accumulate(map(len, parts), initial=0))
        return [mean_vector(made[start:stop]) for start, stop in bounds]

    async def embed_question(self, text: str) -> bytes:
        return await self._embedder.embed_question(text)

    async def close(self) -> None:
        await self._embedder.close()
