"""What every embedder can do, whichever model it asks."""

from collections.abc import Sequence
from typing import Protocol


class Embedder(Protocol):
    """Gives each text a vector of unit length; the same text gets the same vector."""

    @property
    def name(self) -> str:
        """The name of the model: vectors of models with different names are never compared."""
        ...

    @property
    def dimensions(self) -> int:
        """The length of its vectors; 0 until `prepare` or `embed` has asked an endpoint."""
        ...

    @property
    def window(self) -> int:
        """How many tokens (as `tokens.count` counts) it reads; it ignores the rest of a longer text."""
        ...

    @property
    def floor(self) -> float:
        """Two texts whose cosine is below this have nothing to do with each other; it differs from model to model."""
        ...

    async def prepare(self) -> None:
        """Get ready for the first text, or raise an error that says which part is missing."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """A vector per text, in their order: float32, little-endian."""
        ...

    async def embed_question(self, text: str) -> bytes:
        """The vector of a question that somebody waits for."""
        ...

    async def close(self) -> None:
        """Close its own connections; whoever made the process pool closes that."""
        ...
