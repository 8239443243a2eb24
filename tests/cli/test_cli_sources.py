"""`gristmill source`: a person names a source, looks at it, and removes it."""

import asyncio
from pathlib import Path

import pytest

from gristmill.cli.sources import name_loss
from gristmill.db import Database
from gristmill.wording import join_sentences


@pytest.fixture
def letters(cli, tmp_path: Path) -> Path:
    folder = tmp_path / "letters"
    folder.mkdir()
    (folder / "one.eml").write_bytes(b"From: a@b.test\r\nMessage-ID: <1@b.test>\r\n\r\nHello.\r\n")
    return folder


def test_a_source_is_added_tested_paused_and_removed(cli, letters: Path) -> None:
    added = cli("source", "add", "eml", "letters", f"path={letters}", "--client", "acme", "--json")
    assert (added.code, added.json["status"], added.json["scope"]) == (0, "waiting", "acme")
    assert cli("source", "test", "letters").out == f"{letters} has 1 item.\n"
    assert cli("source", "ls", "--json").json[0]["name"] == "letters"
    assert cli("source", "pause", "letters", "--json").json["status"] == "paused"
    assert "is paused" in cli("source", "sync", "letters").err
    assert cli("source", "resume", "letters").out == "letters goes on.\n"
    assert cli("source", "rm", "letters", "--yes").out == "Removed letters.\n"
    assert cli("source", "ls", "--json").json == []


def test_a_source_that_is_removed_takes_its_folder_on_this_machine_with_it(
    cli, letters: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRISTMILL_DATA", str(tmp_path / "data"))
    id_ = cli("source", "add", "eml", "letters", f"path={letters}", "--json").json["id"]
    clone = tmp_path / "data" / "sources" / str(id_) / "clone.git"
    clone.mkdir(parents=True)
    assert cli("source", "rm", "letters", "--yes").code == 0
    assert not clone.parent.exists()
    assert clone.parent.parent.exists()


def test_a_line_break_in_the_name_of_an_item_breaks_no_table(cli, letters: Path, url: str) -> None:
    cli("source", "add", "eml", "letters", f"path={letters}")

    async def note() -> None:
        async with Database(url) as db, db.transaction() as tx:
            row = "SELECT id, scope, %(name)s, 'NEW' FROM source"
            put = f"INSERT INTO source_item (source, scope, external, state) {row}"
            await tx.execute(put, name="a\nb\u202e.eml")

    asyncio.run(note())
    head, row = cli("source", "items", "letters").out.splitlines()
    assert head.startswith("state")
    assert "a⟨U+000A⟩b⟨U+202E⟩.eml" in row


def test_verify_says_what_is_missing_and_ends_with_one(cli, letters: Path) -> None:
    cli("source", "add", "eml", "letters", f"path={letters}")
    found = cli("source", "verify", "letters", "--json")
    assert found.code == 1
    assert (found.json["missing"], found.json["there"], found.json["here"]) == (["one.eml"], 1, 0)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["add", "fax", "x"], "There is no kind of source “fax”"),
        (["add", "eml", "x", "path"], "“path” is no option: write name=value."),
        (["add", "eml", "x", "path=/x", "paht=/x"], "The option paht of a source of the kind eml is wrong"),
        (["add", "eml", "X y", "path=/x"], "“X y” is no name for a source"),
        (["add", "eml", "x", "path=/x", "--every", "7min"], "A source cannot be polled every 7 minutes"),
        (["show", "nothing"], "There is no source “nothing”"),
    ],
)
def test_a_mistake_gets_one_sentence(cli, words: list[str], sentence: str) -> None:
    said = cli("source", *words)
    assert said.code in (1, 2)
    assert sentence in said.err


def test_a_folder_that_is_no_maildir_is_refused_and_one_that_may_become_one_is_not(
    cli, letters: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words = ("source", "add", "maildir", "m1", f"path={letters}")
    sentence = f"{letters} is no Maildir: there is no folder with cur and new. The kind eml reads .eml files.\n"
    shared = cli(*words)  # a worker elsewhere may have a Maildir there
    assert (shared.code, shared.err) == (0, f"On this machine, {sentence}")
    tried = cli("source", "test", "m1")
    assert (tried.code, tried.err) == (1, sentence)
    (tmp_path / "mailbox").mkdir()
    assert cli("source", "add", "maildir", "m2", f"path={tmp_path / 'mailbox'}").err == ""
    assert cli("source", "test", "m2").out == f"{tmp_path / 'mailbox'} has 0 items.\n"
    monkeypatch.delenv("GRISTMILL_DATABASE_URL")
    monkeypatch.setenv("GRISTMILL_DATA", str(tmp_path / "data"))
    refused = cli(*words)
    assert (refused.code, refused.err) == (1, sentence)


def test_a_folder_that_is_not_there_is_refused_unless_workers_elsewhere_may_have_it(
    cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words = ("source", "add", "eml", "letters", f"path={tmp_path / 'nowhere'}")
    shared = cli(*words)
    assert (shared.code, "on this machine: workers that have it will poll it" in shared.err) == (0, True)
    monkeypatch.delenv("GRISTMILL_DATABASE_URL")
    monkeypatch.setenv("GRISTMILL_DATA", str(tmp_path / "data"))
    refused = cli(*words)
    assert refused.code == 1
    assert refused.err == f"There is no folder {tmp_path / 'nowhere'}: make it first, or mend the path.\n"


def test_everybodys_source_is_named_by_the_client_global_as_in_a_search(cli, tmp_path):
    (tmp_path / "letters").mkdir()
    assert cli("source", "add", "eml", "letters", f"path={tmp_path / 'letters'}").code == 0
    assert [one["name"] for one in cli("source", "ls", "--client", "GLOBAL", "--json").json] == ["letters"]
    assert cli("source", "rm", "letters", "--client", "GLOBAL", "--yes").out == "Removed letters.\n"


def test_what_went_with_a_source_is_told_in_words():
    assert name_loss("documents", 1) == "1 document"
    assert name_loss("nodes_weaker", 21) == "21 nodes that lost evidence"


def test_sentences_that_follow_each_other_have_one_stop_each():
    assert join_sentences(["It is new.", "It changes 7, 4", ""]) == "It is new. It changes 7, 4."
