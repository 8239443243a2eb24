"""Turns texts into vectors: what every embedder can do, whichever model it asks."""

from collections.abc import Sequence
from typing import Protocol


class Embedder(Protocol):
    """Gives each text a vector of unit length; the same text gets the same one."""

    @property
    def name(self) -> str:
        """Which model: vectors of different names are never compared."""
        ...

    @property
    def dimensions(self) -> int:
        """How long its vectors are; 0 until `prepare` or `embed` has asked an endpoint."""
        ...

    @property
    def window(self) -> int:
        """How many tokens (of `tokens.count`) it sees; the rest of a longer text is not in its vector."""
        ...

    @property
    def floor(self) -> float:
        """The cosine below which texts have nothing to do with each other; it differs from model to model."""
        ...

    async def prepare(self) -> None:
        """Learns what it does not know yet, or says what is missing."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """A vector per text, in their order: float32, little-endian."""
        ...

    async def embed_question(self, text: str) -> bytes:
        """The vector of what somebody searches for, and waits."""
        ...

    async def close(self) -> None:
        """Lets go of what it holds itself; the pool is its maker's."""
        ...
