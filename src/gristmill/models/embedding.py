"""Turns texts into vectors: in child processes with the model of the house, or at an endpoint."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from math import isfinite, sqrt
from struct import pack
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

import orjson

from gristmill.errors import BadAnswer, Refused
from gristmill.models.http import Http, Json, bearer, shown, understood

if TYPE_CHECKING:  # children of workers import this, and need neither
    from gristmill.processes import ProcessPool
    from gristmill.settings import EmbeddingSettings

GIB = 2**30


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

    async def question(self, text: str) -> bytes:
        """The vector of what somebody searches for, and waits."""
        ...

    async def close(self) -> None:
        """Lets go of what it holds itself; the pool is its maker's."""
        ...


def embedder(settings: "EmbeddingSettings", pool: "ProcessPool") -> Embedder:
    """The embedder that the settings name."""
    if settings.kind == "minilm":
        return MiniLm(pool)
    return OllamaEmbedder(settings) if settings.kind == "ollama" else OpenAiEmbedder(settings)


def model_of(settings: "EmbeddingSettings") -> str:
    """The name of the embedder that the settings name."""
    return MiniLm.name if settings.kind == "minilm" else f"{settings.kind}:{settings.model}"


class MiniLm:
    """all-MiniLM-L6-v2 in the processes of a pool, one thread each."""

    name = "all-MiniLM-L6-v2"
    dimensions = 384
    window = 254  # it sees 256, of which two are its own marks
    floor = (
        0.2  # of what belongs together in SciFact, 99 % lies above it; of what queries about nothing find, most below
    )

    def __init__(self, pool: "ProcessPool", *, timeout: float = 300.0, memory: int = 2 * GIB, share: int = 32) -> None:
        """A call is spread over the pool in `share` texts at a time, each with its limits."""
        self._pool, self._timeout, self._memory, self._share = pool, timeout, memory, share

    async def prepare(self) -> None:
        """Loads the model once, so that what is wrong with it is said before any text waits for it."""
        await self._pool.run(_load, timeout=self._timeout, memory=self._memory)

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """A vector per text, in their order: float32, little-endian."""
        shares = [list(texts[at : at + self._share]) for at in range(0, len(texts), self._share)]
        calls = [self._pool.run(_vectors, share, timeout=self._timeout, memory=self._memory) for share in shares]
        return [vector for vectors in await asyncio.gather(*calls) for vector in vectors]

    async def question(self, text: str) -> bytes:
        """The vector of what somebody searches for: from weights of eight bits, which take less time to go through."""
        return await self._pool.run(_question, text, timeout=self._timeout, memory=self._memory, apart=True)

    async def close(self) -> None:
        """Nothing: the pool is its maker's."""


def _load() -> None:
    from gristmill.models import minilm  # noqa: PLC0415 only in a child: it takes 100 MB

    minilm.load()


def _vectors(texts: list[str]) -> list[bytes]:
    from gristmill.models import minilm  # noqa: PLC0415 as above

    return minilm.vectors(texts)


def _question(text: str) -> bytes:
    from gristmill.models import minilm  # noqa: PLC0415 as above

    return minilm.question(text)


class _Endpoint(ABC):
    """What the endpoints have in common: one HTTP session, and answers that are checked."""

    path: str

    def __init__(self, settings: "EmbeddingSettings") -> None:
        if not settings.model:
            raise Refused(f"GRISTMILL_EMBEDDING_KIND={settings.kind} needs a model: set GRISTMILL_EMBEDDING_MODEL.")
        self._settings = settings
        self._http = Http(bearer(settings.key), settings.timeout)
        self.name = model_of(settings)
        self.window = settings.window
        self.floor = settings.floor
        self.dimensions = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the HTTP session."""
        await self._http.close()

    async def prepare(self) -> None:
        """Asks for one vector, to learn how long they are."""
        if not self.dimensions:
            await self.embed(["dimensions"])

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """A vector per text, in their order: float32, little-endian."""
        share = self._settings.batch
        found: list[bytes] = []
        for at in range(0, len(texts), share):
            found += self._accepted(await self._ask(list(texts[at : at + share])), len(texts[at : at + share]))
        return found

    async def question(self, text: str) -> bytes:
        """The vector of what somebody searches for."""
        return (await self.embed([text]))[0]

    @abstractmethod
    def _vectors(self, answer: Json) -> list[Any]:
        """What the answer has for vectors, in the order of the texts."""

    async def _ask(self, texts: list[str]) -> list[Any]:
        # an empty text is an error at many endpoints
        body = orjson.dumps({"model": self._settings.model, "input": [text or " " for text in texts]})
        url = self._settings.url.rstrip("/") + self.path
        answer = await self._http.post(url, body, whom=f"The embedding endpoint {shown(url)}")
        return self._vectors(understood(answer, whom="The embedding endpoint", key=self._settings.key))

    def _accepted(self, rows: list[Any], wanted: int) -> list[bytes]:
        if len(rows) != wanted:
            raise BadAnswer(f"The embedding endpoint gave {len(rows)} vectors for {wanted} texts.")
        return [self._accepted_one(row) for row in rows]

    def _accepted_one(self, row: Any) -> bytes:
        numbers = list(_numbers(row))
        self.dimensions = self.dimensions or len(numbers)
        if len(numbers) != self.dimensions:
            raise BadAnswer(
                f"The embedding endpoint gave a vector of {len(numbers)} numbers, where {self.dimensions} were before."
            )
        length = sqrt(sum(number * number for number in numbers))
        if not isfinite(length) or length == 0:
            raise BadAnswer("The embedding endpoint gave a vector without a direction.")
        return pack(f"<{len(numbers)}f", *(number / length for number in numbers))


class OllamaEmbedder(_Endpoint):
    """Any model of an Ollama server, or of the router."""

    path = "/api/embed"

    def _vectors(self, answer: Json) -> list[Any]:
        return _list(answer.get("embeddings"))


class OpenAiEmbedder(_Endpoint):
    """Any model behind an OpenAI-compatible endpoint."""

    path = "/v1/embeddings"

    def _vectors(self, answer: Json) -> list[Any]:
        rows = [cast("Json", row) for row in _list(answer.get("data")) if isinstance(row, dict)]
        return [row.get("embedding") for row in sorted(rows, key=lambda row: int(row.get("index") or 0))]


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _numbers(row: Any) -> Iterator[float]:
    for number in _list(row):
        if not isinstance(number, int | float):
            raise BadAnswer("The embedding endpoint gave a vector with something else than numbers in it.")
        yield float(number)
