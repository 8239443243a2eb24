"""The LLM client: which answers it accepts, and which errors it raises instead."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web
from pydantic import BaseModel, SecretStr

from gristmill.errors import BadAnswer, GristmillError, Overloaded, Permanent, Transient
from gristmill.models import FakeLlm, ImageBytes, Llm, Message, RouterLlm, TokenCount
from gristmill.settings import LlmSettings


class City(BaseModel):
    city: str
    people: int


SCHEMA = City.model_json_schema()


class FakeRouter:
    """A router that gives the answer of the test, and remembers every question."""

    def __init__(self) -> None:
        self.status, self.answer, self.headers = 200, dict[str, Any](), dict[str, str]()
        self.asked: list[dict[str, Any]] = []
        self.seen: list[dict[str, str]] = []

    def says(self, content: str, **more: Any) -> None:
        self.answer = {
            "model": "m",
            "message": {"role": "assistant", "content": content},
            "done": True,
            "done_reason": "stop",
            **more,
        }

    async def handle(self, request: web.Request) -> web.Response:
        self.asked.append(await request.json())
        self.seen.append(dict(request.headers))
        return web.json_response(self.answer, status=self.status, headers=self.headers)


@pytest.fixture
async def router() -> AsyncIterator[tuple[FakeRouter, str]]:
    fake, app = FakeRouter(), web.Application()
    app.router.add_post("/api/chat", fake.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield fake, f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


@pytest.fixture
async def llm(router: tuple[FakeRouter, str]) -> AsyncIterator[RouterLlm]:
    async with RouterLlm(LlmSettings(url=router[1], model="m"), session="s1") as client:
        yield client


async def test_text_comes_back_as_it_was_said_and_carries_its_priority(
    router: tuple[FakeRouter, str], llm: RouterLlm
) -> None:
    router[0].says(" A mill. ")
    assert await llm.ask_text("What is this?", priority="P0") == "A mill."
    assert router[0].asked[0]["messages"] == [{"role": "user", "content": "What is this?"}]
    assert (router[0].seen[0]["X-Ollama-Priority"], router[0].seen[0]["X-Router-Session"]) == ("P0", "s1")


async def test_structured_answers_are_validated_objects(router: tuple[FakeRouter, str], llm: RouterLlm) -> None:
    router[0].says('{"city": "Brno", "people": 400000}')
    assert await llm.ask_json("Which?", SCHEMA) == {"city": "Brno", "people": 400000}
    assert await llm.ask_object("Which?", City) == City(city="Brno", people=400000)
    assert router[0].asked[0]["format"] == SCHEMA


async def test_a_fenced_answer_is_taken_out_of_its_fence(router: tuple[FakeRouter, str], llm: RouterLlm) -> None:
    router[0].says('```json\n{"city": "Brno", "people": 1}\n```')
    assert (await llm.ask_json("Which?", SCHEMA))["city"] == "Brno"


@pytest.mark.parametrize(
    "content",
    [
        "",
        "   ",
        "{}",
        "[]",
        "null",
        "Brno",
        '{"city": "Brno"}',
        '{"city": "Brno", "people": "many"}',
        '{"city": "Br',
    ],
)
async def test_an_empty_or_invalid_answer_is_an_error_and_never_an_empty_object(
    router: tuple[FakeRouter, str], llm: RouterLlm, content: str
) -> None:
    router[0].says(content)
    with pytest.raises(BadAnswer):
        await llm.ask_json("Which?", SCHEMA)
    with pytest.raises(BadAnswer):
        await FakeLlm([content]).ask_json("Which?", SCHEMA)


async def test_an_answer_cut_off_at_its_limit_is_an_error(router: tuple[FakeRouter, str], llm: RouterLlm) -> None:
    for said in ("Once upon", ""):
        router[0].says(said, done_reason="length")
        with pytest.raises(BadAnswer, match=r"cut off .* \(setting llm.max_tokens\)"):
            await llm.ask_text("Tell.")


async def test_every_answer_has_a_bound_that_the_backend_is_told(router: tuple[FakeRouter, str]) -> None:
    router[0].says("Yes.")
    async with RouterLlm(LlmSettings(url=router[1], model="m", max_tokens=77)) as client:
        await client.ask_text("Is it?")
    assert router[0].asked[0]["options"] == {"num_predict": 77}


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, Permanent),
        (401, Transient),
        (403, Transient),
        (404, Transient),
        (408, Transient),
        (413, Permanent),
        (500, Transient),
        (502, Transient),
        (504, Transient),
    ],
)
async def test_what_the_router_refuses_is_sorted_by_what_the_caller_should_do(
    router: tuple[FakeRouter, str], llm: RouterLlm, status: int, error: type[Exception]
) -> None:
    router[0].status, router[0].answer = status, {"error": "because"}
    with pytest.raises(error, match="because"):
        await llm.ask_text("Hm?")


@pytest.mark.parametrize("status", [200, 400, 401, 503])
async def test_a_router_that_quotes_the_key_does_not_make_us_repeat_it(
    router: tuple[FakeRouter, str], status: int
) -> None:
    router[0].status, router[0].answer = status, {"error": {"message": "Wrong header: Authorization: Bearer sesame."}}
    async with RouterLlm(LlmSettings(url=router[1], model="m", key=SecretStr("sesame"))) as llm:
        with pytest.raises(GristmillError, match=f"answered {status}: Wrong header: Authorization: Bearer …") as raised:
            await llm.ask_text("Hm?")
    assert router[0].seen[0]["Authorization"] == "Bearer sesame"
    assert "sesame" not in str(raised.value)


async def test_a_busy_router_says_when_to_come_back(router: tuple[FakeRouter, str], llm: RouterLlm) -> None:
    router[0].status, router[0].answer, router[0].headers = 503, {"error": "full"}, {"Retry-After": "7"}
    with pytest.raises(Overloaded) as busy:
        await llm.ask_text("Hm?")
    assert busy.value.retry_after == timedelta(seconds=7)


class Elsewhere:
    """A server that answers GET requests as a test says, and 404 to everything else."""

    def __init__(self, **answers: Any) -> None:
        self._answers = answers

    async def handle(self, request: web.Request) -> web.Response:
        found = self._answers.get(request.path.strip("/").replace("/", "_"))
        if found is None:
            return web.json_response({"error": {"message": "File Not Found", "code": 404}}, status=404)
        return web.json_response(found)


@asynccontextmanager
async def serve_elsewhere(**answers: Any) -> AsyncGenerator[str]:
    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", Elsewhere(**answers).handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


TAGS = {"models": [{"name": "qwen:latest"}, {"name": "tiny"}]}


@pytest.mark.parametrize(
    ("answers", "path", "said"),
    [
        (
            {"v1_models": {"data": [{"id": "qwen"}]}},
            "",
            "is no LLM router: name it as a backend",
        ),
        ({"v1_models": {"data": [{"id": "qwen"}]}}, "/v1", "speaks the OpenAI API and is no LLM router"),
        ({"api_tags": TAGS}, "/v1", "ends without /v1: set GRISTMILL_LLM_URL to http://127"),
        ({"api_tags": TAGS}, "", "It has qwen:latest, tiny: set GRISTMILL_LLM_MODEL to one of them"),
        ({}, "", "answers as the LLM router: set GRISTMILL_LLM_URL to its address"),
    ],
)
async def test_a_wrong_address_or_model_is_told_with_what_to_mend(
    answers: dict[str, Any], path: str, said: str
) -> None:
    async with serve_elsewhere(**answers) as url, RouterLlm(LlmSettings(url=url + path, model="m")) as llm:
        with pytest.raises(Transient, match=said):
            await llm.ask_text("Who?")
        with pytest.raises(Transient, match=said):
            _ = [piece async for piece in llm.stream_text("Who?")]


async def test_the_models_of_the_router_are_listed() -> None:
    async with serve_elsewhere(api_tags=TAGS) as url, RouterLlm(LlmSettings(url=url, model="m")) as llm:
        assert await llm.list_models() == ["qwen:latest", "tiny"]
    async with serve_elsewhere(v1_models={"data": []}) as url, RouterLlm(LlmSettings(url=url, model="m")) as llm:
        with pytest.raises(Transient, match="speaks the OpenAI API"):
            await llm.list_models()


async def test_an_absent_router_is_a_transient_error() -> None:
    async with RouterLlm(LlmSettings(url="http://bob:sesame@127.0.0.1:9?key=sesame", model="m")) as llm:
        with pytest.raises(Transient, match=r"The LLM router at http://127\.0\.0\.1:9 did not answer: nothing listens"):
            await llm.ask_text("Hm?")


async def test_a_question_without_a_model_or_with_a_wrong_schema_is_permanent(
    router: tuple[FakeRouter, str], llm: RouterLlm
) -> None:
    async with RouterLlm(LlmSettings(url=router[1])) as nameless:
        with pytest.raises(Permanent, match="GRISTMILL_LLM_MODEL"):
            await nameless.ask_text("Hm?")
    with pytest.raises(Permanent, match="schema"):
        await llm.ask_json("Hm?", {"type": 3})


async def test_pictures_and_earlier_turns_are_sent_and_tokens_are_counted(router: tuple[FakeRouter, str]) -> None:
    router[0].says("A scan.", prompt_eval_count=5, eval_count=3)
    counts: list[TokenCount] = []
    async with RouterLlm(LlmSettings(url=router[1], model="m"), count=counts.append) as llm:
        await llm.ask_text(
            [Message("system", "Be brief."), Message("user", "See?", (ImageBytes(b"png"),))], priority="P2"
        )
    assert router[0].asked[0]["messages"][1] == {"role": "user", "content": "See?", "images": ["cG5n"]}
    assert counts == [TokenCount(5, 3)]


async def test_the_fake_answers_from_a_list_or_by_a_function_and_remembers() -> None:
    by_rule: Callable[[str], dict[str, Any]] = lambda question: {"city": question, "people": 1}  # noqa: E731 read as a table
    llm: Llm = FakeLlm(by_rule)
    assert (await llm.ask_object("Brno", City)).city == "Brno"
    failing = FakeLlm([Transient("busy"), "fine"])
    with pytest.raises(Transient):
        await failing.ask_text("a")
    assert await failing.ask_text("b") == "fine"
    assert failing.questions == ["a", "b"]


# --- streams


class StreamingRouter:
    """A router that sends these lines, then stalls or ends; `left` is set when its client goes away."""

    def __init__(self) -> None:
        self.lines: list[Any] = []
        self.stalls = False
        self.asked: list[dict[str, Any]] = []
        self.seen: list[dict[str, str]] = []
        self.left = asyncio.Event()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(await request.json())
        self.seen.append(dict(request.headers))
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await response.prepare(request)
        try:
            for line in self.lines:
                await response.write(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")
            if self.stalls:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.left.set()
            raise
        return response


def piece(text: str, **more: Any) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": text}, "done": False, **more}


END = {"message": {"content": ""}, "done": True, "done_reason": "stop", "prompt_eval_count": 7, "eval_count": 3}


@pytest.fixture
async def streaming() -> AsyncIterator[tuple[StreamingRouter, RouterLlm, list[TokenCount]]]:
    fake, app, counted = StreamingRouter(), web.Application(), list[TokenCount]()
    app.router.add_post("/api/chat", fake.handle)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    settings = LlmSettings(url=f"http://127.0.0.1:{runner.addresses[0][1]}", model="m", max_tokens=100)
    async with RouterLlm(settings, count=counted.append) as client:
        yield fake, client, counted
    await runner.cleanup()


Streaming = tuple[StreamingRouter, RouterLlm, list[TokenCount]]


async def test_an_answer_is_streamed_with_its_priority_and_its_bound(streaming: Streaming) -> None:
    fake, llm, counted = streaming
    fake.lines = [piece("The "), piece("mill"), b'{"message": {"content": " turns."}, ', b'"done": false}\n', END]
    assert [one async for one in llm.stream_text("What?", max_tokens=40)] == ["The ", "mill", " turns."]
    assert fake.asked[0]["stream"] is True
    assert fake.asked[0]["options"] == {"num_predict": 40}
    assert fake.seen[0]["X-Ollama-Priority"] == "P0"
    assert counted == [TokenCount(7, 3)]


async def test_leaving_a_stream_ends_it_on_the_other_side(streaming: Streaming) -> None:
    fake, llm, _ = streaming
    fake.lines, fake.stalls = [piece("The ")], True
    stream = llm.stream_text("What?")
    assert await anext(stream) == "The "
    await stream.aclose()
    async with asyncio.timeout(10):
        await fake.left.wait()


async def test_cancelling_who_waits_for_the_first_word_ends_the_call(streaming: Streaming) -> None:
    fake, llm, _ = streaming
    fake.stalls = True
    stream = llm.stream_text("What?")
    waiting = asyncio.ensure_future(anext(stream))
    while not fake.asked:
        await asyncio.wait([waiting], timeout=0.01)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    async with asyncio.timeout(10):
        await fake.left.wait()


@pytest.mark.parametrize(
    ("lines", "kind", "said"),
    [
        ([piece(" "), END], BadAnswer, "empty"),
        ([END], BadAnswer, "empty"),
        ([piece("cut"), {**END, "done_reason": "length"}], BadAnswer, "cut off"),
        ([piece("half")], Transient, "before it was complete"),
        ([piece("half"), {"error": "the model crashed"}], Transient, "the model crashed"),
        ([b"not JSON\n"], Transient, "not a JSON object"),
    ],
)
async def test_a_stream_that_ends_badly_is_an_error(
    streaming: Streaming, lines: list[Any], kind: type[GristmillError], said: str
) -> None:
    fake, llm, _ = streaming
    fake.lines = lines
    with pytest.raises(kind, match=said):
        [one async for one in llm.stream_text("What?")]


async def test_a_router_that_refuses_a_stream_says_why(router: tuple[FakeRouter, str], llm: RouterLlm) -> None:
    router[0].status, router[0].answer, router[0].headers = 503, {"error": "full"}, {"Retry-After": "3"}
    with pytest.raises(Overloaded, match="full"):
        [one async for one in llm.stream_text("What?")]
