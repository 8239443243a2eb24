"""Ask over HTTP: answers and conversations, the real OpenAI client, and MCP by its own client; clients stay apart."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client as McpClient
from mcp.client.streamable_http import streamable_http_client
from openai import APIStatusError, AsyncOpenAI
from serving import SAME_ORIGIN, Web, serve

from gristmill.agents import AskService
from gristmill.db import Database
from gristmill.models import FakeEmbedder, FakeLlm, Message
from gristmill.scopes import Scope
from gristmill.settings import LlmSettings, Settings
from gristmill.web.server import make_server

sys.path.insert(0, str(Path(__file__).parents[1] / "agents"))
from evidence import store_page

KETTLE = "The price of the copper kettle is EUR 5,000.00. It was made in 1868 in Brno."
QUESTION = "What is the price of the copper kettle?"
REPLY = "The price of the copper kettle is EUR 5,000.00 [1]. It belongs to Gerald Finch [1]."
SHOWN = "The price of the copper kettle is EUR 5,000.00 [1]."
OWN, OTHER = "acme viewer", "globex viewer"


@pytest.fixture
async def web(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Web]:
    settings = Settings(data=tmp_path, llm=LlmSettings(model="scripted"))
    async with serve(db, settings) as opened:
        monkeypatch.setattr(type(opened.app.state.services.finder), "embedders", [FakeEmbedder()])
        await store_page(db, KETTLE, title="Kettles", scope=Scope("acme"), embedder=FakeEmbedder())
        yield opened


def script(web: Web, llm: Any) -> AskService:
    """Let this model answer, in place of the router."""
    services = web.app.state.services
    made = services.keep(AskService, lambda given: AskService(given.db, given.settings, given.finder))
    made.answerer._llm = llm
    return made


def read_events(text: str) -> list[tuple[str, Any]]:
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line and not line.startswith(":"))
        if "event" in fields:
            found.append((fields["event"], json.loads(fields["data"])))
    return found


# --- one question


async def test_an_answer_has_checked_sentences_with_exact_places(web: Web) -> None:
    script(web, FakeLlm([REPLY]))
    answer = (await web.client(OWN).post("/api/ask", json={"question": QUESTION})).json()
    assert (answer["kind"], answer["text"]) == ("answer", SHOWN)
    (cited,) = answer["sentences"][0]["citations"]
    assert KETTLE[cited["start"] : cited["stop"]] == cited["quote"]
    assert answer["sentences"][1]["verdict"] == "unsupported"


async def test_an_answer_streams_as_events(web: Web) -> None:
    script(web, FakeLlm([REPLY]))
    answer = await web.client(OWN).post("/api/ask", json={"question": QUESTION, "stream": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = read_events(answer.text)
    assert [name for name, _ in events if name != "draft"] == ["found", "sentence", "sentence", "answer"]
    assert events[-1][1]["text"] == SHOWN


async def test_a_model_that_fails_is_told_with_a_sentence(web: Web) -> None:
    script(web, FakeLlm(["  ", "  "]))
    whole = await web.client(OWN).post("/api/ask", json={"question": QUESTION})
    assert (whole.status_code, whole.json()["kind"]) == (200, "passages")
    assert whole.json()["note"] == "The model's answer is empty."
    streamed = await web.client(OWN).post("/api/ask", json={"question": QUESTION, "stream": True})
    name, answer = read_events(streamed.text)[-1]
    assert (name, answer["kind"], answer["note"]) == ("answer", "passages", "The model's answer is empty.")
    assert answer["passages"][0]["text"]


async def test_another_client_hears_nothing_of_it(web: Web) -> None:
    script(web, FakeLlm([AssertionError("asked")]))
    answer = (await web.client(OTHER).post("/api/ask", json={"question": QUESTION})).json()
    assert (answer["kind"], answer["passages"]) == ("unknown", [])
    named = await web.client(OTHER).post("/api/ask", json={"question": QUESTION, "client": "acme"})
    assert named.status_code == 404


# --- conversations


async def test_a_conversation_is_asked_about_its_own_client_alone(web: Web) -> None:
    http = web.client("operator")
    id = (await http.post("/api/conversations", json={"client": "acme"})).json()["id"]
    about = {"question": QUESTION, "conversation": id}
    refused = await http.post("/api/ask", json={**about, "client": "globex"})
    way_out = "leave client and project out, or begin a new conversation."
    assert (refused.status_code, refused.json()["detail"]) == (422, f"Conversation {id} belongs to acme: {way_out}")
    assert (await http.post("/api/ask", json={**about, "client": "acme"})).status_code == 200


async def test_a_conversation_over_http(web: Web) -> None:
    script(web, FakeLlm([REPLY, "It was made in 1868 in Brno [1]."]))
    http = web.client(OWN)
    id = (await http.post("/api/conversations", json={})).json()["id"]
    first = (await http.post("/api/ask", json={"question": QUESTION, "conversation": id})).json()
    assert (first["text"], first["conversation"]) == (SHOWN, id)
    streamed = await http.post("/api/ask", json={"question": "When was it made?", "conversation": id, "stream": True})
    name, last = read_events(streamed.text)[-2]
    assert (name, last["state"], last["text"]) == ("message", "done", "It was made in 1868 in Brno [1].")
    whole = (await http.get(f"/api/conversations/{id}")).json()
    assert [one["role"] for one in whole["messages"]] == ["user", "assistant", "user", "assistant"]
    assert (await http.get("/api/conversations")).json()["items"][0]["title"] == QUESTION
    for path in (f"/api/conversations/{id}", f"/api/conversations/{id}/events", f"/ask/{id}"):
        assert (await web.client(OTHER).get(path)).status_code == 404
        assert (await web.client("acme admin").get(path)).status_code == 404  # another key of the same client
    assert (await http.post(f"/api/conversations/{id}/stop")).json() == {"stopped": False}
    assert (await http.delete(f"/api/conversations/{id}")).status_code == 204
    assert (await http.get(f"/api/conversations/{id}")).status_code == 404


async def test_the_page_works_without_scripts(web: Web) -> None:
    script(web, FakeLlm([REPLY]))
    browser = web.make_browser()
    await browser.sign_in(web.keys[OWN])
    token = await browser.read_token()
    form = {"question": QUESTION, "csrf": token}
    begun = await browser.client.post("/ask", data=form, headers=SAME_ORIGIN)
    assert begun.status_code == 303
    address = begun.headers["location"]
    await browser.client.get(f"{address}/events")  # until nobody writes
    page = (await browser.client.get(address)).text
    assert "EUR 5,000.00" in page
    assert "Gerald Finch" in page  # below the answer, as left out
    assert 'class="cite" href="/documents/' in page


# --- a real server, for clients that need one


@asynccontextmanager
async def listen(web: Web) -> AsyncGenerator[str]:
    server = make_server(web.app, Settings().web)
    server.config.port = 0
    running = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.wait([running], timeout=0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        await running


class Endless:
    """A model that writes one sentence and then waits for ever; `closed` is set when its call is ended."""

    def __init__(self) -> None:
        self.begun, self.closed = asyncio.Event(), asyncio.Event()

    async def stream_text(self, question: str | Sequence[Message], **_: Any) -> AsyncGenerator[str]:
        try:
            yield f"{SHOWN} It "
            self.begun.set()
            await asyncio.Event().wait()
        finally:
            self.closed.set()


@pytest.mark.parametrize("stream", [True, False])
async def test_who_hangs_up_stops_the_model(web: Web, stream: bool) -> None:
    model = Endless()
    script(web, model)
    async with listen(web) as address, httpx.AsyncClient() as http:
        headers = {"Authorization": f"Bearer {web.keys[OWN]}"}
        body = {"question": QUESTION, "stream": stream}
        waiting = asyncio.ensure_future(http.post(f"{address}/api/ask", json=body, headers=headers, timeout=60))
        await model.begun.wait()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        async with asyncio.timeout(20):
            await model.closed.wait()


# --- OpenAI


@pytest.fixture
async def openai(web: Web) -> AsyncIterator[Callable[[str], AsyncOpenAI]]:
    async with AsyncExitStack() as stack:
        address = await stack.enter_async_context(listen(web))

        def make(caller: str) -> AsyncOpenAI:
            client = AsyncOpenAI(base_url=f"{address}/v1", api_key=web.keys.get(caller, caller), max_retries=0)
            stack.push_async_callback(client.close)
            return client

        yield make


async def test_the_openai_client_gets_citations_as_annotations_and_footnotes(
    web: Web, openai: Callable[[str], AsyncOpenAI]
) -> None:
    script(web, FakeLlm([REPLY]))
    client = openai(OWN)
    assert [one.id async for one in client.models.list()] == ["gristmill"]
    done = await client.chat.completions.create(model="gristmill", messages=[{"role": "user", "content": QUESTION}])
    message = done.choices[0].message
    assert message.content is not None
    assert message.content.startswith(SHOWN)
    assert "[1] Kettles, page 1: “The price of the copper kettle is EUR 5,000.00.”" in message.content
    assert message.annotations
    (note,) = message.annotations
    assert note.type == "url_citation"
    assert message.content[note.url_citation.start_index : note.url_citation.end_index] == "[1]"
    assert "/documents/" in note.url_citation.url
    assert done.usage
    assert done.usage.total_tokens > 0


async def test_the_openai_client_streams(web: Web, openai: Callable[[str], AsyncOpenAI]) -> None:
    script(web, FakeLlm([REPLY, "It was made in 1868 in Brno [1]."]))
    messages: list[Any] = [
        {"role": "system", "content": "You are a pirate."},
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": SHOWN},
        {"role": "user", "content": [{"type": "text", "text": "And when was it made?"}]},
    ]
    first = await openai(OWN).chat.completions.create(model="gristmill", messages=messages[:2], stream=True)
    text = "".join([one.choices[0].delta.content or "" async for one in first if one.choices])
    assert text.startswith(SHOWN)
    options = {"include_usage": True}
    second = await openai(OWN).chat.completions.create(
        model="gristmill",
        messages=messages,
        stream=True,
        stream_options=options,  # type: ignore[call-overload]
    )
    chunks = [one async for one in second]
    assert "1868" in "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)
    assert chunks[-1].usage.total_tokens > 0


async def test_openai_errors_have_their_sentence(web: Web, openai: Callable[[str], AsyncOpenAI]) -> None:
    script(web, FakeLlm([]))
    said: list[Any] = [{"role": "user", "content": QUESTION}]
    with pytest.raises(APIStatusError, match="unknown or was revoked") as wrong:
        await openai("gm_nobody").chat.completions.create(model="gristmill", messages=said)
    assert wrong.value.status_code == 401
    with pytest.raises(APIStatusError, match="the only one is gristmill"):
        await openai(OWN).chat.completions.create(model="gpt-9", messages=said)
    with pytest.raises(APIStatusError, match="question of the user"):
        await openai(OWN).chat.completions.create(model="gristmill", messages=[{"role": "assistant", "content": "x"}])


async def test_the_openai_endpoint_keeps_clients_apart(web: Web, openai: Callable[[str], AsyncOpenAI]) -> None:
    script(web, FakeLlm([AssertionError("asked")]))
    done = await openai(OTHER).chat.completions.create(
        model="gristmill", messages=[{"role": "user", "content": QUESTION}]
    )
    assert "I don't know" in (done.choices[0].message.content or "")


# --- MCP


@asynccontextmanager
async def open_mcp(web: Web, address: str, caller: str) -> AsyncGenerator[McpClient]:
    headers = {"Authorization": f"Bearer {web.keys.get(caller, caller)}"}
    async with httpx2.AsyncClient(headers=headers) as http:
        transport = streamable_http_client(f"{address}/mcp", http_client=http)
        async with McpClient(transport) as client:
            yield client


def read_result(result: Any) -> Any:
    assert not result.is_error, result.content
    return json.loads(result.content[0].text)


async def test_mcp_tools_see_what_the_key_sees(web: Web) -> None:
    script(web, FakeLlm([REPLY]))
    async with listen(web) as address:
        async with open_mcp(web, address, OWN) as client:
            names = {one.name for one in (await client.list_tools()).tools}
            assert names >= {"ask", "search", "list_documents", "read_document", "graph_node", "graph_path"}
            answer = read_result(await client.call_tool("ask", {"question": QUESTION}))
            assert answer["text"] == SHOWN
            hits = read_result(await client.call_tool("search", {"query": "copper kettle"}))["hits"]
            page = read_result(await client.call_tool("read_document", {"document": hits[0]["document"]}))
            assert page["pages"][0]["text"] == KETTLE
            assert read_result(await client.call_tool("list_documents", {}))["documents"][0]["title"] == "Kettles"
        async with open_mcp(web, address, OTHER) as client:
            assert read_result(await client.call_tool("search", {"query": "copper kettle"}))["hits"] == []
            for tool, given in (
                ("read_document", {"document": hits[0]["document"]}),
                ("search", {"query": "kettle", "client": "acme"}),
                ("graph_node", {"name": "Gerald Finch"}),
            ):
                refused = await client.call_tool(tool, given)
                assert refused.is_error
                assert "There is no" in refused.content[0].text


async def test_mcp_names_the_argument_that_is_wrong_in_one_sentence(web: Web) -> None:
    async with listen(web) as address, open_mcp(web, address, OWN) as client:
        for tool, given, sentence in (
            ("read_document", {}, "The argument document of read_document is wrong: it is missing."),
            ("read_document", {"document": "x"}, "document of read_document is wrong: it is “x”, which is not a whole"),
            ("search", {"query": "q" * 2_001}, "and may have at most 2000 characters."),
            ("search", {"query": "q", "limit": 51}, "limit of search is wrong: it is “51”, and must be at most 50."),
        ):
            refused = await client.call_tool(tool, given)
            assert refused.is_error
            assert sentence in refused.content[0].text
            assert not any(word in refused.content[0].text for word in ("pydantic", "validation", "\n"))


@pytest.mark.parametrize("body", [[], {}, "text", [{"jsonrpc": "2.0", "id": 1, "method": "ping"}]])
async def test_mcp_says_what_a_message_must_be(web: Web, body: Any) -> None:
    async with listen(web) as address, httpx2.AsyncClient() as http:
        headers = {"Authorization": f"Bearer {web.keys[OWN]}", "Accept": "application/json, text/event-stream"}
        answer = await http.post(f"{address}/mcp", json=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32600)
    assert answer.json()["error"]["message"].startswith("The body must be one message of JSON-RPC 2.0")


async def test_mcp_needs_a_key(web: Web) -> None:
    answer = await web.client(None).post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert (answer.status_code, answer.headers["content-type"]) == (401, "application/problem+json")
