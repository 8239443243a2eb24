"""Every field of both APIs, from clients of either to backends of either: nothing is lost or merged on the way."""

import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import ollama
import pytest
import pytest_asyncio

from .conftest import Fake, Router, Scene, staged

if TYPE_CHECKING:
    import openai

pytestmark = pytest.mark.asyncio(loop_scope="module")

ASK = [{"role": "user", "content": "hello"}]
SAID = "echo hello w0 w1 w2 w3 w4 w5 w6"
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WORDS = ["echo hello", *(f" w{number}" for number in range(7))]


def tool(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["ollama", "openai", "responses"])
async def stage(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Router, Fake]]:
    """A router in front of a backend of each kind; the last has /v1/responses itself."""
    async with staged() as scene:
        fake = await scene.backend()
        kind = "ollama" if request.param == "ollama" else "openai"
        spec = {"name": "gpu0", "kind": kind, "url": fake.url, "parallel": 4, "responses": request.param == "responses"}
        yield await scene.router(spec), fake


@pytest_asyncio.fixture(loop_scope="module")
async def client(stage: tuple[Router, Fake]) -> AsyncIterator["openai.AsyncOpenAI"]:
    import openai  # noqa: PLC0415 takes a second, and every process of a run collects these tests

    async with openai.AsyncOpenAI(base_url=f"{stage[0].url}/v1", api_key="any", max_retries=0) as one:
        yield one


@pytest_asyncio.fixture(loop_scope="module")
async def ollama_client(stage: tuple[Router, Fake]) -> AsyncIterator[ollama.AsyncClient]:
    one = ollama.AsyncClient(host=stage[0].url)
    yield one
    await one._client.aclose()


# ── several choices ─────────────────────────────────────────────────────────


async def test_two_choices_stay_two(client: "openai.AsyncOpenAI") -> None:
    answer = await client.chat.completions.create(model="plain", messages=ASK, n=2)
    assert [choice.index for choice in answer.choices] == [0, 1]
    assert all((choice.message.content or "").startswith(SAID) for choice in answer.choices)
    assert [choice.finish_reason for choice in answer.choices] == ["stop", "stop"]
    assert answer.usage is not None
    assert answer.usage.completion_tokens >= 16


async def test_two_choices_with_tools_are_two_whole_calls(client: "openai.AsyncOpenAI") -> None:
    answer = await client.chat.completions.create(model="plain", messages=ASK, n=2, tools=[tool("weather")])
    for choice in answer.choices:
        assert choice.message.tool_calls is not None
        (call,) = choice.message.tool_calls
        assert (call.function.name, json.loads(call.function.arguments)) == ("weather", {"city": "Brno", "days": 3})
        assert choice.finish_reason == "tool_calls"
    assert len(answer.choices) == 2


@pytest.mark.parametrize("stream", [False, True])
async def test_every_prompt_has_its_own_text(client: "openai.AsyncOpenAI", stream: bool) -> None:
    asked: Any = {"model": "plain", "prompt": ["one", "two"], "n": 2, "max_tokens": 2}
    texts = dict.fromkeys(range(4), "")
    if stream:
        async for chunk in await client.completions.create(**asked, stream=True):
            for choice in chunk.choices:
                texts[choice.index] += choice.text
    else:
        for choice in (await client.completions.create(**asked)).choices:
            texts[choice.index] += choice.text
    assert [text.split(" #")[0] for text in texts.values()] == ["echo one w0"] * 2 + ["echo two w0"] * 2


@pytest.mark.asyncio(loop_scope="function")
async def test_a_stream_of_two_choices_that_ends_after_the_first_is_not_whole(scene: Scene) -> None:
    fake = await scene.backend(mode="truncate", after=12)
    router = await scene.router({"name": "gpu0", "kind": "openai", "url": fake.url})
    asked = {"model": "plain", "messages": ASK, "n": 2}
    async with router.http.post(f"{router.url}/v1/chat/completions", json=asked) as answer:
        assert answer.status == 502


# ── fields ──────────────────────────────────────────────────────────────────


async def test_service_tier_and_fingerprint_of_an_openai_backend_are_kept(
    stage: tuple[Router, Fake], client: "openai.AsyncOpenAI"
) -> None:
    answer = await client.chat.completions.create(model="plain", messages=ASK)
    if stage[0].scheduler is not None and stage[0].scheduler.adapters["gpu0"].speaks == "openai":
        assert (answer.service_tier, answer.system_fingerprint, answer.id) == ("default", "fp_fake", "c1")
    assert answer.choices[0].message.content == SAID


@pytest.mark.parametrize("stream", [False, True])
async def test_openai_gets_the_logprobs_of_a_chat(client: "openai.AsyncOpenAI", stream: bool) -> None:
    asked: Any = {"model": "plain", "messages": ASK, "logprobs": True, "top_logprobs": 2}
    found: list[Any] = []
    if stream:
        async for chunk in await client.chat.completions.create(**asked, stream=True):
            found += [entry for choice in chunk.choices if choice.logprobs for entry in choice.logprobs.content or ()]
    else:
        answer = await client.chat.completions.create(**asked)
        assert answer.choices[0].logprobs is not None
        found += answer.choices[0].logprobs.content or ()
    assert [(entry.token, entry.logprob) for entry in found] == [(word, -0.5) for word in WORDS]
    assert [top.token for top in found[0].top_logprobs] == ["echo hello", "?"]


async def test_openai_gets_the_logprobs_of_a_text_completion(client: "openai.AsyncOpenAI") -> None:
    answer = await client.completions.create(model="plain", prompt="hello", logprobs=1)
    probs = answer.choices[0].logprobs
    assert probs is not None
    assert (probs.tokens, probs.token_logprobs) == (WORDS, [-0.5] * 8)
    assert probs.top_logprobs is not None
    assert probs.top_logprobs[0] == {"echo hello": -0.5}
    assert probs.text_offset == [sum(map(len, WORDS[:number])) for number in range(8)]


@pytest.mark.parametrize("path", ["chat", "generate"])
async def test_ollama_gets_logprobs_and_thinking(ollama_client: ollama.AsyncClient, path: str) -> None:
    asked: Any = {"model": "plain", "logprobs": True, "top_logprobs": 1, "think": "low"}
    asked |= {"messages": ASK} if path == "chat" else {"prompt": "hello"}
    ask: Any = getattr(ollama_client, path)
    whole = await ask(**asked)
    pieces = [piece async for piece in await ask(**asked, stream=True)]
    for found in (whole.logprobs, [entry for piece in pieces for entry in piece.logprobs or ()]):
        assert [entry.token for entry in found] == WORDS
        assert found[0].top_logprobs[0].logprob == -0.5
    spoken = [piece.message if path == "chat" else piece for piece in (whole, *pieces)]
    assert spoken[0].thinking == "".join(one.thinking or "" for one in spoken[1:]) == "hm, hello"


async def test_openai_gets_thinking_under_either_name(client: "openai.AsyncOpenAI") -> None:
    answer = await client.chat.completions.create(model="plain", messages=ASK, reasoning_effort="low")
    extra = answer.choices[0].message.model_extra or {}
    assert extra["reasoning_content"] == "hm, hello"


async def test_a_named_tool_choice_is_heeded(stage: tuple[Router, Fake], client: "openai.AsyncOpenAI") -> None:
    tools: Any = [tool("weather"), tool("time")]
    named: Any = {"type": "function", "function": {"name": "time"}}
    answer = await client.chat.completions.create(model="plain", messages=ASK, tools=tools, tool_choice=named)
    assert [call.function.name for call in answer.choices[0].message.tool_calls or ()] == ["time"]  # type: ignore[union-attr]
    body = (await stage[1].stats())["bodies"][-1]
    if body["path"] == "/api/chat":
        assert [one["function"]["name"] for one in body["tools"]] == ["time"]


@pytest.mark.parametrize("packed", ["base64", "float"])
async def test_embeddings_have_the_dimensions_and_the_form_asked_for(
    client: "openai.AsyncOpenAI", stage: tuple[Router, Fake], packed: str
) -> None:
    asked = {"model": "my-embedding:8b", "input": ["a", "bcd"], "dimensions": 2, "encoding_format": packed}
    async with stage[0].http.post(f"{stage[0].url}/v1/embeddings", json=asked) as answer:
        rows = (await answer.json())["data"]
    assert all(isinstance(row["embedding"], str if packed == "base64" else list) for row in rows)
    found = await client.embeddings.create(model="my-embedding:8b", input=["a", "bcd"], dimensions=2)
    assert [row.embedding for row in found.data] == [[1.0, 0.5], [3.0, 0.5]]


# ── /v1/responses ───────────────────────────────────────────────────────────


async def test_a_response_is_whole(client: "openai.AsyncOpenAI") -> None:
    answer = await client.responses.create(model="plain", input="hello", instructions="be brief")
    assert (answer.output_text, answer.status, answer.object) == (SAID, "completed", "response")
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (7, 8)


async def test_a_response_streams_its_events_in_order(client: "openai.AsyncOpenAI") -> None:
    events = [event async for event in await client.responses.create(model="plain", input=ASK, stream=True)]
    kinds = [event.type for event in events]
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == SAID
    inner = [kind for kind in kinds if kind not in ("response.in_progress", "response.output_text.delta")]
    assert inner[1:-1] == [
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
    ]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[-1].response.output_text == SAID  # type: ignore[union-attr]


async def test_a_response_calls_tools_and_is_told_what_they_said(client: "openai.AsyncOpenAI") -> None:
    weather: Any = {"type": "function", "name": "weather", "parameters": CITY, "strict": False}
    first = await client.responses.create(model="plain", input=ASK, tools=[weather])
    (call,) = [item for item in first.output if item.type == "function_call"]
    assert (call.name, json.loads(call.arguments)) == ("weather", {"city": "Brno", "days": 3})
    result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    turns: Any = [*ASK, *(item.model_dump(exclude_none=True) for item in first.output), result]
    second = await client.responses.create(model="plain", input=turns, tools=[weather])
    assert second.output_text.startswith("echo sunny")


async def test_a_response_streams_a_tool_call(client: "openai.AsyncOpenAI") -> None:
    weather: Any = {"type": "function", "name": "weather", "parameters": CITY, "strict": False}
    stream = await client.responses.create(model="plain", input=ASK, tools=[weather], stream=True)
    events = [event async for event in stream]
    deltas = "".join(event.delta for event in events if event.type == "response.function_call_arguments.delta")
    (done,) = [event for event in events if event.type == "response.function_call_arguments.done"]
    assert json.loads(deltas) == json.loads(done.arguments) == {"city": "Brno", "days": 3}


async def test_a_response_follows_a_schema(client: "openai.AsyncOpenAI") -> None:
    wanted: Any = {"format": {"type": "json_schema", "name": "city", "schema": CITY, "strict": True}}
    answer = await client.responses.create(model="plain", input=ASK, text=wanted)
    assert json.loads(answer.output_text) == {"city": "Brno"}


async def test_a_response_shows_what_the_model_thought(client: "openai.AsyncOpenAI") -> None:
    answer = await client.responses.create(model="plain", input="hello", reasoning={"effort": "low"})
    assert [item.type for item in answer.output] == ["reasoning", "message"]
    assert answer.output[0].summary[0].text == "hm, hello"  # type: ignore[union-attr]


async def test_pictures_reach_the_backend_from_a_response(
    stage: tuple[Router, Fake], client: "openai.AsyncOpenAI"
) -> None:
    url = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUg=="
    parts: Any = [{"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": url, "detail": "auto"}]
    await client.responses.create(model="eyes:7b", input=[{"role": "user", "content": parts}])
    body = (await stage[1].stats())["bodies"][-1]
    assert "iVBORw0KGgoAAAANSUhEUg==" in json.dumps(body)
    assert 'priority="P2"' in await stage[0].metrics()


@pytest.mark.asyncio(loop_scope="function")
async def test_a_response_that_needs_a_memory_is_refused_with_a_sentence(scene: Scene) -> None:
    router = await scene.router(await scene.backend())
    asked = {"model": "plain", "input": "hello", "previous_response_id": "resp_1"}
    async with router.http.post(f"{router.url}/v1/responses", json=asked) as answer:
        assert answer.status == 400
        assert "send the whole conversation" in (await answer.json())["error"]["message"]


@pytest.mark.asyncio(loop_scope="function")
async def test_a_response_whose_backend_breaks_off_ends_with_an_error_event(scene: Scene) -> None:
    router = await scene.router(await scene.backend(mode="truncate"))
    asked = {"model": "plain", "input": "hello", "stream": True}
    async with router.http.post(f"{router.url}/v1/responses", json=asked) as answer:
        events = (await answer.text()).strip().split("\n\n")
    assert events[-1].startswith("event: error\n")
    assert "response.completed" not in events[-1]
