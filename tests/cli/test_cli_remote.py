"""Commands that talk to a server elsewhere: the same output as on the machine itself, or a sentence."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gristmill.app import ROOMS
from gristmill.cli.elsewhere import Elsewhere
from gristmill.db import Database
from gristmill.knowledge import Finder
from gristmill.scopes import Scope
from gristmill.serving import Caller
from gristmill.settings import Settings, WebSettings
from gristmill.web import add_key
from gristmill.web.server import open_web


@pytest.fixture
def served(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server on the same database, in a thread of its own; the key in the environment is acme's."""
    told: dict[str, str] = {}
    monkeypatch.setattr("gristmill.web.gate.observing.log.debug", lambda *_, **__: None)  # it shares our stdout here
    ready, end = threading.Event(), threading.Event()

    async def serve() -> None:
        settings = Settings(data=tmp_path / "elsewhere", web=WebSettings(port=0))
        async with Database(url) as db, Finder(db, settings) as finder:
            async with db.transaction() as tx:
                key = await add_key(tx, Caller("test", "admin", None, "test"), "acme", "manager", Scope("acme"))
            async with open_web(db, settings, ROOMS, finder) as web:
                told.update(address=f"http://127.0.0.1:{web.port}", key=key.secret)
                ready.set()
                await asyncio.to_thread(end.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(60)
    monkeypatch.setenv("GRISTMILL_KEY", told["key"])
    try:
        yield told["address"]
    finally:
        end.set()
        thread.join()


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Each command line is one process; here they share one."""
    yield
    Elsewhere.server = None


def test_documents_are_added_listed_read_and_removed_elsewhere_as_here(cli, served, tmp_path):
    (tmp_path / "a.md").write_text("# Mill\n\nIt grinds flour.\n")
    there = ("--server", served)
    (added,) = cli("add", tmp_path / "a.md", "--json", *there).json
    assert (added["status"], added["urn"].endswith("/a.md"), added["urn"].startswith("file://")) == (
        "added",
        True,
        True,
    )
    assert cli("add", tmp_path / "a.md", "--json", *there).json[0]["status"] == "unchanged"
    id_ = added["document"]
    shown = cli("documents", *there).out
    Elsewhere.server = None
    assert shown == cli("documents").out
    for words in (("document", "show", id_), ("documents", "--json"), ("document", "show", id_, "--json")):
        elsewhere = cli(*words, *there)
        Elsewhere.server = None
        here = cli(*words)
        assert (elsewhere.code, elsewhere.out) == (here.code, here.out), words
    assert cli("document", "retry", id_, *there).code == 1
    assert cli("document", "text", id_, *there).code == 0
    assert cli("document", "rm", id_, "--yes", *there).out.split()[:2] == ["documents", "1"]
    gone = cli("document", "show", id_, *there)
    assert (gone.code, gone.err.strip()) == (1, f"There is no document {id_}.")


def test_a_search_and_the_queues_are_asked_elsewhere(cli, served, monkeypatch):
    monkeypatch.setenv("GRISTMILL_SERVER", served)
    assert "Nothing fits" in cli("search", "flour", "--alpha", "0").out
    assert "Nothing fits" in cli("search", "flour", "--alpha", "0", "--where", "a=1").out


@pytest.mark.parametrize(
    "words", [("db", "url"), ("graph", "find", "a"), ("queue", "pause", "ocr"), ("worker",), ("up",)]
)
def test_a_command_for_the_machine_itself_says_so(cli, words):
    said = cli(*words, "--server", "http://mill.example.org:6455")
    assert said.code == 1
    assert "works only on the machine of the server" in said.err


@pytest.mark.parametrize("address", ["mill.example.org", "", "ftp://x"])
def test_an_address_that_is_none_is_a_mistake(cli, address):
    assert cli("documents", f"--server={address}").code == 2


def test_a_server_that_is_not_there_gets_a_sentence(cli, monkeypatch):
    monkeypatch.setattr("gristmill.client.core.ATTEMPTS", 1)
    said = cli("documents", "--server", "http://127.0.0.1:9")
    assert (said.code, "does not answer: is gristmill up running there?" in said.err) == (1, True)


def test_a_wrong_key_gets_the_sentence_of_the_server(cli, served, monkeypatch):
    monkeypatch.setenv("GRISTMILL_KEY", "gm_wrong")
    said = cli("documents", "--server", served)
    assert (said.code, "unknown or was revoked" in said.err, "gm_wrong" in said.err) == (1, True, False)
