"""Tokens, endpoints that misbehave, the choice of an embedder, and the fake one."""

import asyncio
import struct
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest
from aiohttp import web
from pydantic import SecretStr

from gristmill.errors import BadAnswer, Overloaded, Permanent, Refused, Transient
from gristmill.models import Embedder, FakeEmbedder, MiniLm, OllamaEmbedder, OpenAiEmbedder, make_embedder, tokens
from gristmill.settings import EmbeddingSettings


def numbers(vector: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(vector) // 4}f", vector)


def cosine(one: bytes, other: bytes) -> float:
    return sum(a * b for a, b in zip(numbers(one), numbers(other), strict=True))


# --- tokens


def test_tokens_are_found_where_they_stand() -> None:
    text = "Mlýn mele žito – and the milling\tgoes on."
    found = tokens.find_spans(text)
    assert len(found) == tokens.count(text)
    assert [text[start:stop] for start, stop in found][-4:] == ["milling", "goes", "on", "."]
    assert all(one[1] <= other[0] for one, other in pairwise(found))


def test_a_long_text_is_counted_to_its_end() -> None:
    assert tokens.count("grain " * 3000) == 3000
    assert tokens.count("") == 0
    assert tokens.find_spans("  \n ") == []


# --- endpoints


class Endpoint:
    """A server that speaks as Ollama and OpenAI do, and fails when a test says so."""

    def __init__(self) -> None:
        self.status, self.headers = 200, dict[str, str]()
        self.error: Any = None
        self.rows: Any = None
        self.is_silent = False
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []

    async def _answer(self, request: web.Request) -> list[list[float]] | web.Response:
        self.asked.append(await request.json())
        self.keys.append(request.headers.get("Authorization"))
        if self.is_silent:
            await asyncio.Event().wait()  # nobody ever sets it
        if self.error is not None:
            return web.json_response({"error": self.error}, status=self.status, headers=self.headers)
        return self.rows or [[3.0, 4.0, float(len(text))] for text in self.asked[-1]["input"]]

    async def ollama(self, request: web.Request) -> web.Response:
        rows = await self._answer(request)
        return web.json_response({"model": "m", "embeddings": rows}) if isinstance(rows, list) else rows

    async def openai(self, request: web.Request) -> web.Response:
        rows = await self._answer(request)
        if not isinstance(rows, list):
            return rows
        data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)]
        return web.json_response({"object": "list", "data": data[::-1], "model": "m"})


@pytest.fixture
async def endpoint() -> AsyncIterator[tuple[Endpoint, str]]:
    server, app = Endpoint(), web.Application()
    app.router.add_post("/api/embed", server.ollama)
    app.router.add_post("/v1/embeddings", server.openai)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield server, f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


@pytest.fixture(params=["ollama", "openai"])
async def remote(
    request: pytest.FixtureRequest, endpoint: tuple[Endpoint, str]
) -> AsyncIterator[OllamaEmbedder | OpenAiEmbedder]:
    settings = EmbeddingSettings(
        kind=request.param, url=endpoint[1] + "/", model="m", key=SecretStr("sesame"), batch=3, window=500
    )
    kind = OllamaEmbedder if request.param == "ollama" else OpenAiEmbedder
    async with kind(settings) as made:
        yield made


async def test_an_endpoint_is_asked_in_batches_and_its_vectors_have_unit_length(
    endpoint: tuple[Endpoint, str], remote: Embedder
) -> None:
    vectors = await remote.embed(["", "ab", "abc", "a" * 12])
    assert [len(asked["input"]) for asked in endpoint[0].asked] == [3, 1]
    assert set(endpoint[0].keys) == {"Bearer sesame"}
    assert numbers(vectors[3]) == pytest.approx((3 / 13, 4 / 13, 12 / 13))
    assert (remote.dimensions, remote.window, remote.name[-2:]) == (3, 500, ":m")


async def test_an_endpoint_is_asked_for_its_dimensions_once(endpoint: tuple[Endpoint, str], remote: Embedder) -> None:
    assert remote.dimensions == 0
    await remote.prepare()
    await remote.prepare()
    assert remote.dimensions == 3
    assert len(endpoint[0].asked) == 1


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ([[1.0, 2.0, 3.0]], "1 vectors for 2 texts"),
        ([[1.0, 2.0, 3.0], [1.0, 2.0]], "a vector of 2 numbers, where 3 were before"),
        ([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]], "without a direction"),
        ([[1.0, 2.0, 3.0], ["x", 0.0, 0.0]], "something else than numbers"),
        ([[1.0, 2.0, 3.0], None], "a vector of 0 numbers"),
    ],
)
async def test_a_wrong_number_or_length_of_vectors_is_an_error(
    endpoint: tuple[Endpoint, str], remote: Embedder, rows: Any, complaint: str
) -> None:
    endpoint[0].rows = rows
    with pytest.raises(BadAnswer, match=complaint):
        await remote.embed(["one", "two"])


@pytest.mark.parametrize(
    ("status", "headers", "kind"),
    [
        (429, {"Retry-After": "7"}, Overloaded),
        (503, {}, Overloaded),
        (500, {}, Transient),
        (401, {}, Transient),
        (404, {}, Transient),
        (400, {}, Permanent),
        (413, {}, Permanent),
    ],
)
async def test_what_a_status_means_for_the_caller_and_never_the_key(
    endpoint: tuple[Endpoint, str], remote: Embedder, status: int, headers: dict[str, str], kind: type[Exception]
) -> None:
    endpoint[0].status, endpoint[0].headers = status, headers
    endpoint[0].error = {"message": "Incorrect key: sesame."}
    with pytest.raises(kind, match=f"answered {status}: Incorrect key: …") as raised:
        await remote.embed(["one"])
    assert "sesame" not in str(raised.value)
    if isinstance(raised.value, Overloaded):
        assert raised.value.retry_after.total_seconds() == float(headers.get("Retry-After", 5))


async def test_an_endpoint_that_is_silent_or_away_is_tried_again_later(endpoint: tuple[Endpoint, str]) -> None:
    endpoint[0].is_silent = True
    settings = EmbeddingSettings(kind="ollama", url=endpoint[1], model="m", key=SecretStr("sesame"))
    hasty = settings.model_copy(update={"timeout": settings.timeout / 3000})
    async with (
        OllamaEmbedder(hasty) as slow,
        OllamaEmbedder(settings.model_copy(update={"url": "http://bob:sesame@[::1]:9", "key": None})) as away,
    ):
        for one in (slow, away):
            with pytest.raises(Transient, match="did not answer") as raised:
                await one.embed(["one"])
            assert "sesame" not in repr(raised.value) + repr(raised.value.__cause__)
        assert str(raised.value).startswith("The embedding endpoint http://[::1]:9/api/embed did not answer")


def test_settings_choose_the_embedder(endpoint: tuple[Endpoint, str]) -> None:
    pool: Any = None
    assert isinstance(make_embedder(EmbeddingSettings(), pool), MiniLm)
    assert isinstance(make_embedder(EmbeddingSettings(kind="openai", model="m"), pool), OpenAiEmbedder)
    with pytest.raises(Refused, match="GRISTMILL_EMBEDDING_MODEL"):
        make_embedder(EmbeddingSettings(kind="ollama"), pool)


async def test_the_fake_is_deterministic_and_knows_likeness() -> None:
    fake = FakeEmbedder()
    one, same, near, far = await fake.embed(["the old mill", "the old mill", "the new mill", "rain tomorrow"])
    assert one == same
    assert cosine(one, near) > 0.5 > 0.2 > cosine(one, far)
    assert len(one) == 4 * fake.dimensions
