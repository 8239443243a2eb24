"""What is shown of texts that others wrote."""

import json

import pytest
from rich.progress import Progress, TextColumn

from gristmill.cli.output import UNSHOWN, Screen, make_facts, make_table, out, say_json

NASTY = "\x1b]0;owned\x07[/x] :smile: \x9b2J\u202egpj\u206a\ufeff\U000e0041.exe"
SHOWN = "]0;owned[/x] :smile: 2Jgpj.exe"


def test_names_are_neither_markup_nor_commands_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen()
    screen.print(NASTY)
    screen.print(make_table(("file", "state"), [(NASTY, "done")], empty=""))
    screen.print(make_facts([("file", NASTY)]))
    with Progress(TextColumn("{task.description}", markup=False), console=screen) as bar:
        bar.add_task(NASTY)
    shown = capsys.readouterr().out
    assert shown.count(SHOWN) == 4
    assert not {"\x1b", "\x9b", "\x07", "\u202e"} & set(shown)


def test_json_is_whole_and_commands_nothing_either(capsys: pytest.CaptureFixture[str]) -> None:
    say_json({"name": NASTY, "city": "Plzeň"})
    shown = capsys.readouterr().out
    assert json.loads(shown) == {"name": NASTY, "city": "Plzeň"}
    assert not UNSHOWN.search(shown)
    assert "Plzeň" in shown


@pytest.mark.parametrize("name", ["plan.md", "Quarterly report of the board, final version.pdf", "n" * 60])
def test_on_a_narrow_screen_names_are_cut_and_words_are_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(out, "width", 80)
    columns = (">id", "~file", "type", "~client", "status", "ocr", "vector", "graph", "")
    row = (12345, name, "markdown", "acme/mill-restoration", "processing", "12/12", "40/152", "40/152")
    out.print(make_table(columns, [(*row, "12 pages, 40 of 152 chunks")], empty=""))
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert all(word in lines[1].split() for word in ("12,345", "markdown", "processing", "12/12", "40/152", "pages,"))
    told = " ".join(line[lines[1].index("12 pages") :] for line in lines[1:]).split()
    assert " ".join(told) == "12 pages, 40 of 152 chunks"


@pytest.mark.parametrize(("told", "width"), [("70", 70), ("100", 100), ("0", 160), ("wide", 160), ("", 160)])
def test_without_a_terminal_a_table_is_as_wide_as_columns_says(
    monkeypatch: pytest.MonkeyPatch, told: str, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", told)
    assert Screen().width == width
