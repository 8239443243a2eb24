"""What is shown of texts that others wrote."""

import json

import pytest
from rich.progress import Progress, TextColumn

from gristmill.cli.output import UNSHOWN, Screen, facts, say_json, table

NASTY = "\x1b]0;owned\x07[/x] :smile: \x9b2J\u202egpj\u206a\ufeff\U000e0041.exe"
SHOWN = "]0;owned[/x] :smile: 2Jgpj.exe"


def test_names_are_neither_markup_nor_commands_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen()
    screen.print(NASTY)
    screen.print(table(("file", "state"), [(NASTY, "done")], empty=""))
    screen.print(facts([("file", NASTY)]))
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
