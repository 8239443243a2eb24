"""An embedder for tests, without a model."""

import hashlib
from collections.abc import Sequence
from math import sqrt
from struct import pack


class FakeEmbedder:
    """Makes vectors from hashes of words: the same text gets the same vector, texts that share words get near ones."""

    name = "fake"
    dimensions = 384
    window = 254
    floor = 0.0

    def __init__(self) -> None:
        self.embedded: list[str] = []

    async def prepare(self) -> None:
        """Nothing to do."""

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """A vector per text, in their order: float32, little-endian."""
        self.embedded += texts
        return [self._make_vector(text) for text in texts]

    async def embed_question(self, text: str) -> bytes:
        """The same as for any text."""
        return (await self.embed([text]))[0]

    async def close(self) -> None:
        """Nothing to do."""

    def _make_vector(self, text: str) -> bytes:
        numbers = [0.0] * self.dimensions
        for word in text.lower().split() or [""]:
            digest = hashlib.blake2b(word.encode(), digest_size=16).digest()
            for at in range(0, 16, 4):
                number = int.from_bytes(digest[at : at + 4])
                numbers[number % self.dimensions] += 1.0 if number >> 31 else -1.0
        length = sqrt(sum(number * number for number in numbers)) or 1.0
        return pack(f"<{self.dimensions}f", *(number / length for number in numbers))
