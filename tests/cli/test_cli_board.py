"""The board: which documents it shows, what it says they wait for, and how it looks on a narrow screen."""

from collections import namedtuple
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gristmill.cli import grinding
from gristmill.cli.grinding import choose_rows, draw_board, find_notes
from gristmill.cli.output import err
from gristmill.documents import PhaseProgress, Progress
from gristmill.ids import DocumentId
from gristmill.settings import LlmSettings, Settings

Usage = namedtuple("Usage", ["total", "used", "free"])
LONG_NAME = "minutes-of-the-meeting.pdf"


def make_document(id_: int, status: str, graph: PhaseProgress | None = None) -> Progress:
    vector = PhaseProgress("vector", "vector", "chunk", "completed", 40, 0, 40)
    ocr = PhaseProgress("ocr", "ocr", "page", "completed", 12, 0, 12)
    return Progress(
        id=DocumentId(id_),
        name=LONG_NAME,
        client="",
        project="",
        urn=f"file:///{id_}",
        version=1,
        type="pdf",
        title=None,
        container=None,
        part_of=None,
        added_at=datetime(2026, 11, 1, tzinfo=UTC),
        completed_at=None,
        status=status,
        pages=12,
        chunks=40,
        phases=(ocr, vector, graph or PhaseProgress("graph", "graph", "chunk", "pending", 0, 0, 40)),
    )


def test_what_moves_comes_first_then_errors_then_the_newest():
    found = [
        make_document(id_, status)
        for id_, status in enumerate(["failed", "completed", "processing", "pending", "processing"], 1)
    ]
    assert [one.id for one in choose_rows(found, 9)] == [3, 5, 1, 4, 2]


def test_errors_are_shown_however_many_documents_move():
    found = [make_document(1, "failed"), *(make_document(id_, "processing") for id_ in range(2, 30))]
    assert [one.id for one in choose_rows(found, 4)] == [2, 3, 4, 1]


def test_on_a_narrow_screen_names_are_whole_and_each_document_has_one_line(monkeypatch):
    monkeypatch.setattr(err, "width", 80)
    with err.capture() as captured:
        err.print(draw_board([make_document(1, "processing")], rows=9))
    _, line, total = captured.get().splitlines()
    assert line.split() == [LONG_NAME, "12/12", "40/40", "0/40", "processing"]
    assert total == "0 of 1 documents complete"


def test_a_full_disk_is_told_in_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage(2**30, 2**30, 3 * 2**20))
    (note,) = find_notes(Settings(data=tmp_path), [make_document(1, "processing")])
    assert note.sentence == f"The disk of {tmp_path} is full (3 MB are free): this goes on when there is space again."


def test_chunks_that_wait_for_an_llm_are_counted(tmp_path: Path):
    drawing = PhaseProgress("graph", "graph", "chunk", "processing", 12, 1, 40)
    found = [make_document(1, "processing", drawing), make_document(2, "processing")]
    llm = LlmSettings(model="qwen3", url="http://127.0.0.1:1")
    (note,) = find_notes(Settings(data=tmp_path, llm=llm), found)
    assert note.sentence == "Waiting for the LLM qwen3 at http://127.0.0.1:1: 27 chunks to go."
    assert find_notes(Settings(data=tmp_path), found) == []


def test_a_note_is_printed_without_a_terminal_too_but_not_at_every_look(capsys: pytest.CaptureFixture[str]):
    lines = grinding._Lines()
    for now in (0.0, 1.0, grinding.REMINDER):
        lines.print_changes([], [grinding.WaitReason("disk", "The disk is full.")], now)
    assert capsys.readouterr().err == "The disk is full.\n" * 2


HINT = "No worker is running: nothing works on it until gristmill up or gristmill worker runs.\n"


def test_what_is_added_while_nobody_works_has_a_hint(cli, tmp_path):
    (tmp_path / "plan.md").write_text("# Plan\n")
    assert cli("add", tmp_path / "plan.md").err == HINT
    assert cli("add", tmp_path / "plan.md").err == ""  # nothing new is there to be worked on
