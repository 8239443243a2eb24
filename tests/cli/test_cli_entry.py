"""The command as a whole: help, exit codes, and one sentence for whatever goes wrong."""

import html
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest
import typer
from typer.core import TyperGroup
from typer.main import get_command

from gristmill.cli import entry

GROUPS = {
    "db": ("status", "start", "stop", "migrate", "url", "psql"),
    "queue": ("list", "show", "set", "pause", "resume", "watch"),
    "task": ("list", "show", "why", "send", "cancel", "retry", "move"),
    "group": ("show", "retry", "cancel", "seal"),
    "dead": ("stats", "list", "show", "clusters", "replay", "purge"),
    "schedule": ("list", "add", "remove", "enable", "disable", "run"),
    "limiter": ("list", "set"),
    "link": ("allow", "deny", "ls", "why"),
    "alarms": ("list", "ack", "channels", "test"),
    "document": ("show", "text", "retry", "reindex", "rm"),
    "graph": ("show", "path", "find", "export", "stats", "alias add", "alias list", "alias rm"),
}
SINGLE = ("up", "add", "watch", "documents", "search", "worker", "router", "doctor")
COMMANDS = [
    *((name,) for name in SINGLE),
    *((group, *name.split()) for group, names in GROUPS.items() for name in names),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example_and_speaks_json(speak, words):
    said = speak(*words, "--help")
    assert said.code == 0
    assert "Example:" in said.out
    assert "--json" in said.out


def test_help_names_every_command_and_loads_nothing_heavy():
    heavy = (
        "import sys; from gristmill.cli import main; main(['--help']); "
        "print({'psycopg', 'pydantic'} & set(sys.modules))"
    )
    shown = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True).stdout
    assert all(f" {name} " in shown for name in entry.COMMANDS)
    assert shown.endswith("set()\n")


def test_the_package_runs_as_a_module():
    shown = subprocess.run([sys.executable, "-m", "gristmill", "--version"], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"gristmill \d+\.\d+\.\d+\n", shown.stdout)


@pytest.mark.parametrize("loading", ["typer", "rich.text", "psycopg"])
def test_ctrl_c_while_the_program_is_loading_ends_it_without_a_word(loading):
    """As if it came the moment that this module is looked for."""
    interrupted = f"""
import os, runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # tests that run in the background inherit that it is ignored
class Interrupted:
    def find_spec(self, name, path=None, target=None):
        if name == {loading!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupted())
sys.argv = ["gristmill", "queue", "list"]
runpy.run_module("gristmill", run_name="__main__")
"""
    said = subprocess.run([sys.executable, "-c", interrupted], capture_output=True, text=True, check=False)
    assert (said.returncode, said.stdout, said.stderr) == (130, "", "")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_behind_stdout_is_one_sentence(url, unbuffered):
    command = [sys.executable, "-m", "gristmill", "queue", "list", "--json"]
    env = {**os.environ, "GRISTMILL_DATABASE_URL": url, "PYTHONUNBUFFERED": unbuffered}
    with Path("/dev/full").open("w") as full:
        said = subprocess.run(command, env=env, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (said.returncode, said.stderr.count("\n")) == (1, 1)
    assert "No space left on device" in said.stderr


def test_a_closed_stdout_is_no_reason_to_fail(url):
    command = f"{sys.executable} -m gristmill queue list >&-"
    env = {**os.environ, "GRISTMILL_DATABASE_URL": url}
    said = subprocess.run(command, shell=True, env=env, stderr=subprocess.PIPE, text=True, check=False)
    assert (said.returncode, said.stderr) == (0, "")


def test_the_shell_is_told_how_words_go_on():
    asked = {"_GRISTMILL_COMPLETE": "complete_bash", "COMP_WORDS": "gristmill queue ", "COMP_CWORD": "2"}
    command = [sys.executable, "-m", "gristmill"]
    told = subprocess.run(command, env={**os.environ, **asked}, capture_output=True, text=True, check=False).stdout
    assert set(told.split()) == set(GROUPS["queue"])


def test_every_command_is_in_the_manual():
    manual = (Path(__file__).parents[2] / "docs/cli.md").read_text()
    assert [words for words in map(" ".join, COMMANDS) if words not in manual] == []


def test_what_is_not_understood_ends_with_2(speak):
    assert speak("nonsense").code == 2
    assert speak("task", "list", "--nonsense").code == 2
    assert speak("task", "show", "not-a-number").code == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            "worker --concurrency 0",
            "--concurrency is wrong: it is “0”, and must be at least 1; see gristmill worker --help.",
        ),
        ("task show x", "task is wrong: it is “x”, which is not a whole number; see gristmill task show --help."),
        ("queue set", "Missing argument 'name'; see gristmill queue set --help."),
        ("queue frob", "No such command 'frob'; see gristmill queue --help."),
        ("questions", "No such command 'questions'. Did you mean 'question'? See gristmill --help."),
    ],
)
def test_what_is_not_understood_is_one_sentence(speak, words, sentence):
    said = speak(*words.split())
    assert (said.out, said.err.splitlines()) == ("", [sentence])
    assert speak(*words.split(), "--json").json == {"error": sentence}


def test_a_wrong_setting_is_one_sentence(speak, monkeypatch):
    monkeypatch.setenv("GRISTMILL_QUEUE_LEASE", "soon")
    said = speak("task", "list")
    assert (said.code, said.out) == (1, "")
    assert "GRISTMILL_QUEUE_LEASE is wrong" in said.err
    assert "write for example 90s" in said.err


def test_an_unreachable_database_is_one_sentence_without_its_password(speak, monkeypatch):
    monkeypatch.setenv("GRISTMILL_DATABASE_URL", "postgresql://someone:secret@127.0.0.1:1/nowhere")
    said = speak("queue", "list", "--json")
    assert said.code == 1
    assert "cannot be reached" in said.err
    assert "GRISTMILL_DATABASE_URL" in said.err
    assert "Traceback" not in said.err
    assert said.json["error"] == said.err.strip()
    assert "secret" not in said.err


def test_a_newer_schema_is_refused(cli, url):
    with psycopg.connect(url) as connection:
        connection.execute(
            "INSERT INTO gristmill_migration (room, number, name, checksum) VALUES ('queue', 9999, '9999_later', '')"
        )
    said = cli("task", "list")
    assert said.code == 1
    assert "newer Gristmill" in said.err
    assert "upgrade" in said.err


def test_a_table_that_went_away_is_one_sentence(cli, url):
    with psycopg.connect(url) as connection:
        connection.execute("DROP TABLE limiter CASCADE")
    said = cli("limiter", "list")
    assert said.code == 1
    assert said.err.startswith("The database refuses this: relation")


def test_an_unexpected_error_shows_where_only_to_those_who_ask(cli, monkeypatch):
    def broken(**_):
        raise ZeroDivisionError("no mill without a stone")

    monkeypatch.setattr("gristmill.cli.session.load_settings", broken)
    said = cli("task", "list")
    assert said.code == 1
    assert "ZeroDivisionError: no mill without a stone" in said.err
    assert "GRISTMILL_LOG_LEVEL=debug" in said.err
    assert "Traceback" not in said.err
    monkeypatch.setenv("GRISTMILL_LOG_LEVEL", "debug")
    assert "Traceback" in cli("task", "list").err


def test_an_argument_that_is_not_utf_8_is_one_sentence(cli):
    said = cli("queue", "show", "caf\udce9")
    assert (said.code, said.err) == (2, "The argument “caf\\xe9” is not UTF-8: write it in that encoding.\n")


def test_a_long_name_is_not_repeated_in_full(cli):
    said = cli("queue", "show", "x" * 10_000)
    assert said.code == 1
    assert said.err == f"There is no queue “{'x' * 79}…”.\n"


def test_a_variable_that_sets_nothing_is_told_and_does_no_harm(cli, monkeypatch):
    monkeypatch.setenv("GRISTMILL_QUEUE_LESE", "1min")
    said = cli("queue", "list")
    assert said.code == 0
    assert "GRISTMILL_QUEUE_LESE is no setting and has no effect; perhaps GRISTMILL_QUEUE_LEASE" in said.err


def test_an_interruption_is_quiet(cli, monkeypatch):
    def interrupted(**_):
        raise KeyboardInterrupt

    monkeypatch.setattr("gristmill.cli.session.load_settings", interrupted)
    said = cli("task", "list")
    assert (said.code, said.out, said.err) == (130, "", "")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["queue", "ls", "--json"], ["queue", "list", "--json"]),
        (["item", "list"], ["item", "ls"]),
        (["--server", "http://mill", "task", "ls"], ["--server", "http://mill", "task", "list"]),
        (["source", "ls"], ["source", "ls"]),
        (["search", "ls"], ["search", "ls"]),
        (["run", "list"], ["run", "list"]),  # a request
        (["item", "say", "7", "list"], ["item", "say", "7", "list"]),
        (["queue"], ["queue"]),
    ],
    ids=" ".join,
)
def test_a_list_may_be_called_ls_or_list(words, meant):
    assert entry.name_list(words) == meant


def test_every_family_with_a_list_is_known_by_both_words():
    for name, families in entry.LISTS.items():
        for family in families:
            group = typer.main.get_command(entry.build([family]))
            assert name in group.commands[family].commands, family


@pytest.mark.parametrize("what", ["task", "document", "item", "run", "question", "records", "group", "dead"])
def test_a_number_that_nothing_can_have_is_as_unknown_as_any_other(cli, what):
    for number in ("999999", str(2**63), "9" * 40):
        said = cli(what, "show", number)
        assert (said.code, said.err.count("\n")) == (1, 1), said
        assert "There is no" in said.err


# --- commands that the console shows

SHOWN = re.compile(r"<code[^>]*>(gristmill [^<]+)</code>")
TEMPLATES = sorted((Path(__file__).parents[2] / "src" / "gristmill").rglob("templates/**/*.html"))


def parse_command(words: list[str]) -> str:
    """The full name of the command that these words call; it raises where the command line would refuse them."""
    command: Any = get_command(entry.build(words))
    path = ["gristmill"]
    while isinstance(command, TyperGroup) and words and words[0] in command.commands:
        path.append(words[0])
        command, words = command.commands[words[0]], words[1:]
    with command.make_context(" ".join(path), words):
        return " ".join(path)


def test_every_command_that_the_console_shows_is_understood() -> None:
    texts = [html.unescape(one) for path in TEMPLATES for one in SHOWN.findall(path.read_text(encoding="utf-8"))]
    assert len(texts) >= 10
    called = {parse_command(shlex.split(text)[1:]) for text in texts}
    assert called >= {"gristmill schedule add", "gristmill import", "gristmill run", "gristmill key add"}
