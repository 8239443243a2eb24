"""Models that answer what a test tells them, checked as the real ones are."""

import hashlib
from collections.abc import Callable, Sequence
from math import sqrt
from struct import pack

import orjson

from gristmill.errors import BadAnswer
from gristmill.models.llm import Json, Level, Message, Shape, checker, schema_of

Reply = str | Json | Exception


class FakeLlm:
    """Answers from a list, or by a function of the question; remembers what it was asked."""

    def __init__(self, replies: Sequence[Reply] | Callable[[str], Reply]) -> None:
        self._replies = replies if callable(replies) else list(replies)
        self.asked: list[str] = []

    async def text(self, asked: str | Sequence[Message], *, model: str = "", priority: Level = "P3") -> str:
        """The next answer in words."""
        del model, priority
        question = asked if isinstance(asked, str) else "\n".join(turn.text for turn in asked)
        self.asked.append(question)
        reply = self._replies(question) if callable(self._replies) else self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        text = reply if isinstance(reply, str) else orjson.dumps(reply).decode()
        if not text.strip():
            raise BadAnswer("The model's answer is empty.")
        return text

    async def json(
        self, asked: str | Sequence[Message], schema: Json, *, model: str = "", priority: Level = "P3"
    ) -> Json:
        """The next answer, if it follows the schema."""
        return checker(schema)(await self.text(asked, model=model, priority=priority))

    async def shaped(
        self, asked: str | Sequence[Message], shape: type[Shape], *, model: str = "", priority: Level = "P3"
    ) -> Shape:
        """The next answer as an object of a pydantic model."""
        return shape.model_validate(await self.json(asked, schema_of(shape), model=model, priority=priority))


class FakeEmbedder:
    """Vectors made of the words' hashes: the same for the same text, near each other where texts share words."""

    name = "fake"
    dimensions = 384
    window = 254
    floor = 0.0

    def __init__(self) -> None:
        self.embedded: list[str] = []

    async def prepare(self) -> None:
        """Needs nothing."""

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """A vector per text, in their order: float32, little-endian."""
        self.embedded += texts
        return [self._vector(text) for text in texts]

    async def question(self, text: str) -> bytes:
        """As any other text."""
        return (await self.embed([text]))[0]

    async def close(self) -> None:
        """Holds nothing."""

    def _vector(self, text: str) -> bytes:
        numbers = [0.0] * self.dimensions
        for word in text.lower().split() or [""]:
            digest = hashlib.blake2b(word.encode(), digest_size=16).digest()
            for at in range(0, 16, 4):
                number = int.from_bytes(digest[at : at + 4])
                numbers[number % self.dimensions] += 1.0 if number >> 31 else -1.0
        length = sqrt(sum(number * number for number in numbers)) or 1.0
        return pack(f"<{self.dimensions}f", *(number / length for number in numbers))
