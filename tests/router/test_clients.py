"""The official Ollama and OpenAI clients, unchanged, through the router to backends of either kind."""

import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import ollama
import pytest
import pytest_asyncio

from .conftest import Router, Scene, staged

if TYPE_CHECKING:
    import openai

pytestmark = pytest.mark.asyncio(loop_scope="module")

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        },
    },
}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ASK = [{"role": "user", "content": "hello"}]
SAID = "echo hello w0 w1 w2 w3 w4 w5 w6"


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["ollama", "openai"])
async def router(request: pytest.FixtureRequest) -> AsyncIterator[Router]:
    """A router in front of a backend of each kind."""
    async with staged() as scene:
        fake = await scene.backend()
        spec = {
            "name": "gpu0",
            "kind": request.param,
            "url": fake.url,
            "parallel": 4,
            **({"vram": "24GB"} if request.param == "ollama" else {}),
        }
        yield await scene.router(spec, process=True)


@pytest_asyncio.fixture(loop_scope="module")
async def ollama_client(router: Router) -> AsyncIterator[ollama.AsyncClient]:
    client = ollama.AsyncClient(host=router.url)
    yield client
    await client._client.aclose()


@pytest_asyncio.fixture(loop_scope="module")
async def openai_client(router: Router) -> AsyncIterator["openai.AsyncOpenAI"]:
    import openai  # noqa: PLC0415 takes a second, and every process of a run collects these tests

    async with openai.AsyncOpenAI(base_url=f"{router.url}/v1", api_key="any", max_retries=0) as client:
        yield client


# ── Ollama's client ─────────────────────────────────────────────────────────


async def test_ollama_chat_gives_the_whole_answer_and_its_token_counts(
    ollama_client: ollama.AsyncClient,
) -> None:
    answer = await ollama_client.chat("plain", ASK)
    assert answer.message.content == SAID
    assert answer.done
    assert answer.done_reason == "stop"
    assert (answer.prompt_eval_count, answer.eval_count) == (7, 8)


async def test_ollama_chat_streams_piece_by_piece_and_ends_with_the_counts(
    ollama_client: ollama.AsyncClient,
) -> None:
    pieces = [piece async for piece in await ollama_client.chat("plain", ASK, stream=True)]
    assert "".join(piece.message.content or "" for piece in pieces) == SAID
    assert len(pieces) == 9
    assert [piece.done for piece in pieces] == [False] * 8 + [True]
    assert (pieces[-1].prompt_eval_count, pieces[-1].eval_count) == (7, 8)


async def test_ollama_generate_answers_with_and_without_streaming(ollama_client: ollama.AsyncClient) -> None:
    assert (await ollama_client.generate("plain", "hello", system="be brief")).response == SAID
    pieces = [piece async for piece in await ollama_client.generate("plain", "hello", stream=True)]
    assert "".join(piece.response for piece in pieces) == SAID
    assert pieces[-1].done


async def test_ollama_tool_calls_arrive_with_their_arguments_as_an_object(
    ollama_client: ollama.AsyncClient,
) -> None:
    answer = await ollama_client.chat("plain", ASK, tools=[WEATHER])
    assert answer.message.tool_calls is not None
    call = answer.message.tool_calls[0].function
    assert (call.name, call.arguments) == ("weather", {"city": "Brno", "days": 3})
    pieces = [piece async for piece in await ollama_client.chat("plain", ASK, tools=[WEATHER], stream=True)]
    streamed = [call for piece in pieces for call in piece.message.tool_calls or ()]
    assert [call.function.arguments for call in streamed] == [{"city": "Brno", "days": 3}]


async def test_ollama_tool_results_reach_the_backend(ollama_client: ollama.AsyncClient) -> None:
    first = await ollama_client.chat("plain", ASK, tools=[WEATHER])
    told = {"role": "tool", "tool_name": "weather", "content": "sunny"}
    answer = await ollama_client.chat("plain", [*ASK, first.message, told], tools=[WEATHER])
    assert answer.message.content is not None
    assert answer.message.content.startswith("echo sunny")


async def test_ollama_structured_output_follows_the_schema(ollama_client: ollama.AsyncClient) -> None:
    answer = await ollama_client.chat("plain", ASK, format=CITY)
    assert json.loads(answer.message.content or "") == {"city": "Brno"}


async def test_ollama_options_reach_the_backend(ollama_client: ollama.AsyncClient) -> None:
    answer = await ollama_client.chat("plain", ASK, options={"num_predict": 3})
    assert answer.message.content == "echo hello w0 w1"


async def test_ollama_embeds(ollama_client: ollama.AsyncClient) -> None:
    answer = await ollama_client.embed("my-embedding:8b", ["a", "bcd"])
    assert [list(row) for row in answer.embeddings] == [[1.0, 0.5, -1.25], [3.0, 0.5, -1.25]]
    assert answer.prompt_eval_count == 2
    assert list((await ollama_client.embeddings("my-embedding:8b", "abcd")).embedding)[:2] == [4.0, 0.5]


async def test_ollama_lists_shows_and_asks_what_runs(ollama_client: ollama.AsyncClient) -> None:
    assert {model.model for model in (await ollama_client.list()).models} >= {"plain:latest", "orch:30b"}
    assert (await ollama_client.show("plain")).details is not None
    await ollama_client.chat("plain", ASK)
    assert isinstance((await ollama_client.ps()).models, list | tuple)


async def test_ollama_is_told_which_models_there_are(ollama_client: ollama.AsyncClient) -> None:
    with pytest.raises(ollama.ResponseError, match=r"'nope' not found; available: .*plain") as error:
        await ollama_client.chat("nope", ASK)
    assert error.value.status_code == 404


# ── OpenAI's client ─────────────────────────────────────────────────────────


async def test_openai_chat_gives_the_whole_answer_and_its_usage(openai_client: "openai.AsyncOpenAI") -> None:
    answer = await openai_client.chat.completions.create(model="plain", messages=ASK)
    assert answer.choices[0].message.content == SAID
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (
        7,
        8,
        15,
    )


@pytest.mark.parametrize("usage", [True, False])
async def test_openai_chat_streams_and_counts_only_when_asked(openai_client: "openai.AsyncOpenAI", usage: bool) -> None:
    more = {"stream_options": {"include_usage": True}} if usage else {}
    stream = await openai_client.chat.completions.create(model="plain", messages=ASK, stream=True, **more)
    chunks = [chunk async for chunk in stream]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == SAID
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    counts = [chunk.usage.completion_tokens for chunk in chunks if chunk.usage]
    assert counts == ([8] if usage else [])


async def test_openai_completions_answer_with_and_without_streaming(
    openai_client: "openai.AsyncOpenAI",
) -> None:
    answer = await openai_client.completions.create(model="plain", prompt="hello")
    assert answer.choices[0].text == SAID
    stream = await openai_client.completions.create(model="plain", prompt="hello", stream=True)
    assert "".join([chunk.choices[0].text async for chunk in stream if chunk.choices]) == SAID


async def test_openai_tool_calls_arrive_with_their_arguments_as_text(
    openai_client: "openai.AsyncOpenAI",
) -> None:
    answer = await openai_client.chat.completions.create(model="plain", messages=ASK, tools=[WEATHER])
    calls = answer.choices[0].message.tool_calls
    assert answer.choices[0].finish_reason == "tool_calls"
    assert calls is not None
    assert json.loads(calls[0].function.arguments) == {"city": "Brno", "days": 3}
    told = {"role": "tool", "tool_call_id": calls[0].id, "content": "sunny"}
    message = answer.choices[0].message.model_dump(exclude_none=True)
    answer = await openai_client.chat.completions.create(model="plain", messages=[*ASK, message, told], tools=[WEATHER])
    assert (answer.choices[0].message.content or "").startswith("echo sunny")


async def test_openai_tool_calls_can_be_streamed(openai_client: "openai.AsyncOpenAI") -> None:
    stream = await openai_client.chat.completions.create(model="plain", messages=ASK, tools=[WEATHER], stream=True)
    arguments, name, finish = "", "", None
    async for chunk in stream:
        for choice in chunk.choices:
            finish = choice.finish_reason or finish
            for call in choice.delta.tool_calls or ():
                name += call.function.name or ""
                arguments += call.function.arguments or ""
    assert (name, json.loads(arguments), finish) == ("weather", {"city": "Brno", "days": 3}, "tool_calls")


async def test_openai_structured_output_follows_the_schema(openai_client: "openai.AsyncOpenAI") -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "city", "schema": CITY, "strict": True}}
    answer = await openai_client.chat.completions.create(model="plain", messages=ASK, response_format=wanted)
    assert json.loads(answer.choices[0].message.content or "") == {"city": "Brno"}


async def test_openai_embeds_also_in_the_packed_form_its_client_asks_for(
    openai_client: "openai.AsyncOpenAI",
) -> None:
    packed = await openai_client.embeddings.create(model="my-embedding:8b", input=["a", "bcd"])
    plain = await openai_client.embeddings.create(model="my-embedding:8b", input=["a", "bcd"], encoding_format="float")
    assert (
        [row.embedding for row in packed.data]
        == [row.embedding for row in plain.data]
        == [[1.0, 0.5, -1.25], [3.0, 0.5, -1.25]]
    )


async def test_openai_lists_models_and_is_told_when_one_is_missing(openai_client: "openai.AsyncOpenAI") -> None:
    import openai  # noqa: PLC0415 as above

    names = {model.id async for model in openai_client.models.list()}
    assert names >= {"plain", "orch:30b"}
    assert (await openai_client.models.retrieve("plain")).id == "plain"
    with pytest.raises(openai.NotFoundError, match="available"):
        await openai_client.chat.completions.create(model="nope", messages=ASK)


@pytest.mark.asyncio(loop_scope="function")
async def test_pictures_are_carried_from_one_api_to_the_other(scene: Scene) -> None:
    import openai  # noqa: PLC0415 as above

    picture = "iVBORw0KGgoAAAANSUhEUg=="
    speaks_ollama, speaks_openai = await scene.backend(), await scene.backend()
    first = await scene.router({"name": "a", "url": speaks_ollama.url})
    async with openai.AsyncOpenAI(base_url=f"{first.url}/v1", api_key="any") as client:
        parts = [
            {"type": "text", "text": "see"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}},
        ]
        await client.chat.completions.create(model="eyes:7b", messages=[{"role": "user", "content": parts}])
    sent = (await speaks_ollama.stats())["bodies"][-1]
    assert sent["messages"] == [{"role": "user", "content": "see", "images": [picture]}]
    second = await scene.router({"name": "b", "kind": "openai", "url": speaks_openai.url})
    status, _ = await second.chat(
        "see", model="eyes:7b", messages=[{"role": "user", "content": "see", "images": [picture]}]
    )
    assert status == 200
    sent = (await speaks_openai.stats())["bodies"][-1]
    assert sent["messages"][0]["content"][1] == {
        "type": "image_url",
        "image_url": {"url": f"data:image/png;base64,{picture}"},
    }
    assert 'priority="P2"' in await first.metrics()
