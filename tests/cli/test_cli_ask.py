"""`gristmill ask` and `gristmill mcp`: the same answer with and without a running `up`, and tools over stdio."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from test_cli_remote import forgotten, served

from gristmill.cli.ask import show_sentence
from gristmill.db import Column, Database
from gristmill.scopes import Scope

sys.path.insert(0, str(Path(__file__).parents[1] / "agents"))
from evidence import store_page

__all__ = ["forgotten", "served"]
KETTLE = "The price of the copper kettle is EUR 5,000.00. It was made in 1868 in Brno."
QUESTION = "What is the price of the copper kettle?"
PATIENCE = 60.0  # seconds


@pytest.fixture
async def stored(db: Database) -> None:
    await store_page(db, KETTLE, name="kettle.md", title="Kettles")


def test_without_a_model_the_best_passages_are_printed(cli, stored) -> None:
    said = cli("ask", QUESTION)
    assert said.code == 0
    assert "No model is configured" in said.out
    assert "[1] Kettles  document" in said.out
    assert "The price of the copper kettle" in said.out
    answer = cli("ask", QUESTION, "--json").json
    assert (answer["kind"], answer["passages"][0]["text"]) == ("passages", KETTLE)


def test_a_sentence_of_which_only_names_were_compared_is_printed_with_a_mark() -> None:
    sentence = {"text": "Anna malte es.", "verdict": "partial", "citations": [{"number": 2}]}
    assert show_sentence(sentence) == "Anna malte es [2] [partial]."
    assert show_sentence({**sentence, "verdict": "supported"}) == "Anna malte es [2]."
    assert show_sentence({**sentence, "verdict": "unsupported"}) == ""


def test_what_is_not_stored_is_not_known(cli, stored) -> None:
    said = cli("ask", "Who is Batbold Sukhbaatar?")
    assert (said.code, said.out.startswith("I don't know")) == (0, True)


@pytest.mark.parametrize(
    ("words", "sentence"), [(["  "], "Say what"), (["x", "--conversation", "z"], "no conversation")]
)
def test_a_wrong_use_is_told(cli, words: list[str], sentence: str) -> None:
    said = cli("ask", *words)
    assert (said.code, sentence in said.err) == (2, True)


def test_a_conversation_goes_on_by_its_number(cli, stored) -> None:
    first = cli("ask", QUESTION, "--conversation", "new", "--json").json
    again = cli("ask", "And when was it made?", "--conversation", str(first["conversation"]), "--json").json
    assert again["conversation"] == first["conversation"]
    assert "kettle" in again["asked"]
    missing = cli("ask", QUESTION, "--conversation", "999999")
    assert (missing.code, missing.err) == (1, "There is no conversation 999999.\n")


def test_a_conversation_is_asked_about_its_own_client_alone(cli, stored) -> None:
    of_acme = cli("ask", QUESTION, "--client", "acme", "--conversation", "new", "--json").json["conversation"]
    of_nobody = cli("ask", QUESTION, "--conversation", "new", "--json").json["conversation"]
    way_out = "leave --client out, or begin a new one with --conversation new."
    for number, owner, options in (
        (of_acme, "acme", ("--client", "globex")),
        (of_acme, "acme", ("--client", "acme", "--project", "mill")),
        (of_nobody, "no client", ("--client", "acme")),
    ):
        said = cli("ask", QUESTION, "--conversation", number, *options)
        assert (said.code, said.out, said.err) == (1, "", f"Conversation {number} belongs to {owner}: {way_out}\n")
    assert cli("ask", QUESTION, "--conversation", of_acme).code == 0
    assert cli("ask", QUESTION, "--conversation", of_acme, "--client", "acme").code == 0


def test_a_conversation_elsewhere_is_told_only_if_it_exists(cli, served: str) -> None:
    there = ("--server", served)
    missing = cli("ask", QUESTION, "--conversation", "77", *there)
    assert (missing.code, missing.err) == (1, "There is no conversation 77.\n")
    begun = cli("ask", QUESTION, "--conversation", "new", *there)
    assert (begun.code, begun.err.startswith("Conversation ")) == (0, True)


@pytest.fixture
def up(cli, stored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    monkeypatch.setenv("GRISTMILL_DATA", str(tmp_path))
    process = subprocess.Popen([sys.executable, "-m", "gristmill", "up"], stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + PATIENCE
        while not (tmp_path / "local.sock").exists():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)


def test_a_running_up_answers_and_the_answer_is_the_same_without_it(cli, up, monkeypatch) -> None:
    with monkeypatch.context() as alone:
        alone.setattr("gristmill.cli.ask.AskService", None)  # this process cannot answer by itself
        warm = cli("ask", QUESTION, "--json").json
        talk = cli("ask", QUESTION, "--conversation", "new", "--json").json
    up.send_signal(signal.SIGTERM)
    up.wait(PATIENCE)
    cold = cli("ask", QUESTION, "--json").json
    for one in (warm, talk, cold):
        assert (one["kind"], one["passages"][0]["text"]) == ("passages", KETTLE)
    assert talk["conversation"] is not None


async def test_mcp_over_stdio_serves_its_own_client(url: str, stored, tmp_path: Path) -> None:
    environment = {**os.environ, "GRISTMILL_DATABASE_URL": url, "GRISTMILL_DATA": str(tmp_path)}
    server = StdioServerParameters(command=sys.executable, args=["-m", "gristmill", "mcp"], env=environment)
    async with Client(server) as client:
        names = {one.name for one in (await client.list_tools()).tools}
        assert names >= {"ask", "search", "list_items", "show_item"}
        result = await client.call_tool("ask", {"question": QUESTION})
        assert json.loads(result.content[0].text)["passages"][0]["text"] == KETTLE
        assert json.loads((await client.call_tool("list_items", {})).content[0].text) == {"items": []}
        refused = await client.call_tool("show_item", {"item": 7})
        assert refused.is_error
        assert "There is no item 7" in refused.content[0].text


def talk(url: str, data: Path, *lines: str) -> list[dict[str, Any]]:
    """The answers to these lines, of which the last one is followed by the end of the input."""
    environment = {**os.environ, "GRISTMILL_DATABASE_URL": url, "GRISTMILL_DATA": str(data)}
    command = [sys.executable, "-m", "gristmill", "mcp"]
    given = "".join(f"{line}\n" for line in lines)
    said = subprocess.run(command, input=given, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    return [json.loads(line) for line in said.stdout.splitlines()]


HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def a_message(method: str, params: dict[str, Any], **more: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more})


async def test_a_line_that_is_no_message_is_answered_over_stdio(url: str, db: Database, tmp_path: Path) -> None:
    lines = ("{garbage", "", "[1, 2]", a_message("ping", {}, id=5))
    answers = await asyncio.to_thread(talk, url, tmp_path, *lines)
    assert [(one["id"], one.get("error", {}).get("code")) for one in answers] == [
        (None, -32700),
        (None, -32600),
        (5, None),
    ]


async def test_calls_in_hand_are_answered_after_the_end_of_the_input(url: str, stored, tmp_path: Path) -> None:
    calls = [
        a_message("tools/call", {"name": "search", "arguments": {"query": "copper kettle"}}, id=id) for id in (2, 3)
    ]
    hello = (a_message("initialize", HELLO, id=1), a_message("notifications/initialized", {}))
    answers = await asyncio.to_thread(talk, url, tmp_path, *hello, *calls)
    assert sorted(one["id"] for one in answers) == [1, 2, 3]
    assert all("result" in one for one in answers)


async def documents_of(db: Database) -> list[int]:
    async with db.transaction() as tx:
        return await tx.values("SELECT id FROM document", Column[int])


async def test_mcp_for_a_client_sees_no_other(url: str, db: Database, tmp_path: Path) -> None:
    await store_page(db, KETTLE, scope=Scope("acme"))
    environment = {**os.environ, "GRISTMILL_DATABASE_URL": url, "GRISTMILL_DATA": str(tmp_path)}
    arguments = ["-m", "gristmill", "mcp", "--client", "globex"]
    server = StdioServerParameters(command=sys.executable, args=arguments, env=environment)
    async with Client(server) as client:
        found = await client.call_tool("search", {"query": "copper kettle"})
        assert json.loads(found.content[0].text)["hits"] == []
        assert (await client.call_tool("search", {"query": "kettle", "client": "acme"})).is_error
        (document,) = await documents_of(db)
        hidden = await client.call_tool("read_document", {"document": document})
        assert hidden.is_error
        assert hidden.content[0].text.endswith(f": There is no document {document}.")
