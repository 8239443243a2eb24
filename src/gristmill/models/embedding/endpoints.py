"""Asks an endpoint for vectors: Ollama, the router, or a server that is compatible with OpenAI."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from math import isfinite, sqrt
from struct import pack
from typing import TYPE_CHECKING, Self, cast

import orjson

from gristmill.errors import BadAnswer, Refused
from gristmill.models.embedding.tokens import count
from gristmill.models.embedding.usage import compute_cost, note_usage
from gristmill.models.http import Http, Json, hide_credentials, make_bearer_header, read_response

if TYPE_CHECKING:  # the child processes import this file and need no settings
    from gristmill.settings import EmbeddingSettings


def get_endpoint_name(settings: "EmbeddingSettings") -> str:
    """The name of an endpoint's model: its protocol and the model it is asked for."""
    return f"{settings.kind}:{settings.model}"


class _Endpoint(ABC):
    """The common part of all endpoints: one HTTP session, and every vector is checked."""

    path: str

    def __init__(self, settings: "EmbeddingSettings") -> None:
        if not settings.model:
            raise Refused(f"GRISTMILL_EMBEDDING_KIND={settings.kind} needs a model: set GRISTMILL_EMBEDDING_MODEL.")
        self._settings = settings
        self._http = Http(make_bearer_header(settings.key), settings.timeout)
        self.name = get_endpoint_name(settings)
        self.window = settings.window
        self.floor = settings.floor
        self.dimensions = 0
        self._preparing = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the HTTP session."""
        await self._http.close()

    async def prepare(self) -> None:
        """Ask for one vector, to learn the length of all."""
        async with self._preparing:  # two at once would each pay for the same question
            if not self.dimensions:
                await self.embed(["dimensions"])

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """A vector per text, in their order: float32, little-endian."""
        share = self._settings.batch
        found: list[bytes] = []
        for at in range(0, len(texts), share):
            found += self._check_vectors(await self._ask(list(texts[at : at + share])), len(texts[at : at + share]))
        return found

    async def embed_question(self, text: str) -> bytes:
        """The vector of a question; the endpoint treats it as any text."""
        return (await self.embed([text]))[0]

    @abstractmethod
    def _pick_vectors(self, answer: Json) -> list[object]:
        """Pick the vectors out of the answer, in the order of the texts."""

    async def _ask(self, texts: list[str]) -> list[object]:
        # many endpoints refuse an empty text
        body = orjson.dumps({"model": self._settings.model, "input": [text or " " for text in texts]})
        url = self._settings.url.rstrip("/") + self.path
        answer = await self._http.post(url, body, whom=f"The embedding endpoint {hide_credentials(url)}")
        found = read_response(answer, whom="The embedding endpoint", key=self._settings.key)
        self._note_usage(found, texts)
        return self._pick_vectors(found)

    def _note_usage(self, answer: Json, texts: list[str]) -> None:
        """The tokens and the cost that the provider tells; else our own count, at the price of the settings."""
        told = answer.get("usage")
        usage = cast("Json", told) if isinstance(told, dict) else {}
        used = usage.get("total_tokens") or usage.get("prompt_tokens") or answer.get("prompt_eval_count")
        tokens = used if isinstance(used, int) else sum(count(text) for text in texts)
        cost = usage.get("cost")
        note_usage(tokens, float(cost) if isinstance(cost, int | float) else compute_cost(tokens, self._settings.price))

    def _check_vectors(self, rows: list[object], wanted: int) -> list[bytes]:
        if len(rows) != wanted:
            raise BadAnswer(f"The embedding endpoint gave {len(rows)} vectors for {wanted} texts.")
        return [self._check_vector(row) for row in rows]

    def _check_vector(self, row: object) -> bytes:
        numbers = list(_read_numbers(row))
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

    def _pick_vectors(self, answer: Json) -> list[object]:
        return _as_list(answer.get("embeddings"))


class OpenAiEmbedder(_Endpoint):
    """Any model behind an OpenAI-compatible endpoint."""

    path = "/v1/embeddings"

    def _pick_vectors(self, answer: Json) -> list[object]:
        rows = [cast("Json", row) for row in _as_list(answer.get("data")) if isinstance(row, dict)]
        return [row.get("embedding") for row in sorted(rows, key=lambda row: int(row.get("index") or 0))]


def _as_list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _read_numbers(row: object) -> Iterator[float]:
    for number in _as_list(row):
        if not isinstance(number, int | float):
            raise BadAnswer("The embedding endpoint gave a vector with something else than numbers in it.")
        yield float(number)
