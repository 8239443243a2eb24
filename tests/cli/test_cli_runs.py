"""`gristmill run` and `gristmill runs`: begun, followed, answered, shown and stopped, here and elsewhere."""

import asyncio
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from desk import wait_until, within
from test_cli_remote import forgotten, served

from gristmill.agents import list_questions, load_run
from gristmill.agents.runs import QuestionToAsk
from gristmill.cli.elsewhere import Elsewhere
from gristmill.cli.following import draw_question
from gristmill.db import Database, Tx
from gristmill.ids import RunId
from gristmill.scopes import Scope

sys.path.insert(0, str(Path(__file__).parents[1] / "agents"))
from run_scenes import Played, go_on, play_delegating, play_waiting

__all__ = ["forgotten", "served"]
WHICH = QuestionToAsk("clarify:1", "clarify", "Which letters?")
SEND = QuestionToAsk("push:1", "push", "Push it?", choices=("approve", "refuse"))


def with_database(url: str, work: Callable[[Database], Coroutine[Any, Any, Any]]) -> Any:
    async def run_work() -> Any:
        async with Database(url) as db:
            return await work(db)

    return asyncio.run(run_work())


async def employ_worker(tx: Tx) -> None:
    await tx.execute(
        """INSERT INTO worker (name, process, journal, queues, concurrency, lease_for)
           VALUES ('here:1', '1', '1', '{agents}', 1, '10 minutes')"""
    )


@contextmanager
def working(url: str, work: Callable[[Database], Coroutine[Any, Any, None]]) -> Iterator[None]:
    """A worker beside the command, which does this."""
    within(url, employ_worker)
    thread = threading.Thread(target=with_database, args=(url, work))
    thread.start()
    try:
        yield
    finally:
        thread.join()


async def until_begun(db: Database) -> Played:
    """The worker's part of the first run, as soon as there is one."""
    while True:
        async with db.reading() as tx:
            found = await tx.values("SELECT id FROM agent_run WHERE state = 'queued'", RunId)  # pyright: ignore[reportArgumentType]
        if found:
            return await go_on(db, found[0])
        await asyncio.sleep(0.02)


async def until_answered(db: Database, run: RunId) -> Played:
    while True:
        async with db.reading() as tx:
            if (await load_run(tx, run)).state == "queued":
                break
        await asyncio.sleep(0.02)
    return await go_on(db, run)


def test_a_run_is_followed_to_its_report(cli, url: str) -> None:
    async def work(db: Database) -> None:
        played = await until_begun(db)
        await played.visit(("intake", "respond", "finalize"))
        await played.do("1#0")
        await played.finish("# Three letters")

    with working(url, work):
        said = cli("run", "Sum up the letters.", "--client", "acme")
    assert (said.code, said.out.strip()) == (0, "# Three letters")
    lines = said.err.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("✓")] == ["intake", "respond", "finalize"]
    assert any("send_mail  Send a mail to eve." in line for line in lines)
    assert "Ctrl-C leaves it running" in said.err
    (listed,) = cli("runs", "--json").json
    assert (listed["state"], listed["client"], listed["foreground"]) == ("completed", "acme", True)


def test_without_a_worker_the_command_ends_and_says_how_to_come_back(cli) -> None:
    said = cli("run", "Sum up the letters.")
    (run,) = cli("runs", "--json").json
    way = (
        f"run {run['id']} waits until gristmill up or gristmill worker runs; gristmill run watch {run['id']} comes back"
    )
    sentence = f"No worker is running: {way}."
    assert (said.code, said.out, said.err.splitlines()[-1], run["state"]) == (0, "", sentence, "queued")
    told = cli("run", "watch", run["id"], "--json")
    assert (told.code, told.json["note"], told.json["state"]) == (0, sentence, "queued")


def test_questions_are_asked_in_the_terminal_and_each_answer_goes_to_its_own(
    cli, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said_by_person = {"Your answer": "Harrow’s", "Answer (1 approve, 2 refuse)": "2"}
    monkeypatch.setattr("gristmill.cli.run.can_ask", lambda: True)
    monkeypatch.setattr("gristmill.cli.following.typer.prompt", lambda text, **_: said_by_person[text])

    async def work(db: Database) -> None:
        played = await until_begun(db)
        await played.wait_for(WHICH, SEND)
        await (await until_answered(db, played.run)).finish()

    with working(url, work):
        said = cli("run", "Push it.")
    assert said.code == 0
    assert said.err.index("Which letters?") < said.err.index("Push it?"), "the first one is asked first"
    answers = {one.kind: (one.choice, one.answer) for one in within(url, lambda tx: list_questions(tx, is_open=False))}
    assert answers == {"clarify": (None, "Harrow’s"), "push": ("refuse", "")}


def test_a_question_in_the_terminal_shows_all_of_a_commit_and_of_a_call(cli, url: str) -> None:
    changes = {"branch": "agent/run-1", "files": ["main.py", "new.py"], "diff": "+import os\n+os.remove('x')\x1b[2K"}
    call = {
        "tool": "send_mail",
        "arguments": {"to": ["anna@acme.example"], "text": "x" * 900 + "\nthe end"},
        "origins": [{"argument": "to", "value": "anna@acme.example", "sentence": "nobody said it", "who": "nobody"}],
        "reasons": ["It changes something outside."],
    }
    asked = (
        QuestionToAsk("commit", "commit", "Commit it?", ("commit", "leave"), changes),
        QuestionToAsk("push:1", "push", "Send it?", ("approve", "refuse"), call),
    )

    async def work(db: Database) -> None:
        await (await until_begun(db)).wait_for(*asked)

    with working(url, work):
        cli("run", "Push it.")
    for question in within(url, lambda tx: list_questions(tx)):
        shown = "\n".join(str(line) for line in draw_question(question))
        listed = cli("question", "show", question.id).out
        wanted = ["new.py", "+import os", "⟨U+001B⟩[2K"] if question.kind == "commit" else ["nobody said it", "the end"]
        for one in wanted:
            assert one in shown
            assert one in listed


def test_without_a_terminal_a_run_that_waits_says_how_to_answer(cli, url: str) -> None:
    played = with_database(url, play_waiting)
    said = cli("run", "watch", played.run)
    assert said.code == 1
    assert f"gristmill run answer {played.run} --question" in said.err
    assert "waits for a person" in said.err
    asked = cli("run", "watch", played.run, "--json")
    assert (asked.code, len(asked.json["questions"])) == (1, 2)


def test_several_questions_are_answered_by_their_numbers(cli, url: str) -> None:
    run = with_database(url, play_waiting).run
    approval, which = within(url, lambda tx: list_questions(tx, run=run))[::-1]
    if approval.kind == "clarify":
        approval, which = which, approval
    several = cli("run", "answer", run, "approve")
    assert (several.code, "say which one with --question" in several.err) == (2, True)
    nothing = cli("run", "answer", run)
    assert (nothing.code, "Say the answer" in nothing.err) == (2, True)
    assert cli("run", "answer", run, "maybe", "--question", approval.id).code == 1
    assert cli("run", "answer", run, "approve", "--question", approval.id).code == 0
    given = cli("run", "answer", run, "--text", "Tate’s", "--json").json
    assert (given["id"], given["answer"], given["state"]) == (which.id, "Tate’s", "answered")
    assert within(url, lambda tx: load_run(tx, run)).state == "queued"
    late = cli("run", "answer", run, "approve")
    assert (late.code, late.err.strip()) == (1, f"Run {run} waits for no answer.")


def test_a_run_is_shown_with_its_graph_steps_effects_and_questions(cli, url: str) -> None:
    waiting = with_database(url, play_waiting).run
    delegating = with_database(url, play_delegating).run
    shown = cli("run", "show", waiting).out
    assert "execute_step ? 3×" in shown
    assert "Which letters are meant" in shown
    assert "send_mail" in shown
    nested = cli("run", "show", delegating).out
    assert "\n  ✓ research  Find the contract" in nested
    assert "✗ fetch_page" in nested
    found = cli("run", "show", waiting, "--json").json
    assert (len(found["steps"]), len(found["effects"]), len(found["questions"])) == (12, 2, 2)


def test_a_run_is_stopped(cli, url: str) -> None:
    begun = cli("run", "Do it.", "--background", "--json").json
    assert (begun["state"], begun["foreground"]) == ("queued", False)
    assert cli("run", "stop", begun["id"]).out.strip() == f"Run {begun['id']} is stopped: it begins nothing more."
    watched = cli("run", "watch", begun["id"])
    assert (watched.code, "was stopped by" in watched.err) == (1, True)


def test_ctrl_c_leaves_it_running_and_says_how_to_come_back(cli, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = with_database(url, play_delegating).run

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gristmill.cli.run._follow_round", interrupt)
    said = cli("run", "watch", run)
    assert (said.code, f"gristmill run watch {run} comes back" in said.err) == (130, True)
    assert within(url, lambda tx: load_run(tx, run)).state == "running"


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("run", " "), 2, "Say what shall be done"),
        (("run", "x" * 8_001), 1, "The request has 8,001 characters: at most 8,000 are read."),
        (("run", "x", "--repository", "nowhere"), 1, "There is no git source “nowhere”"),
        (("run", "x", "--project", "mill"), 2, "client"),
        (("run", "show", "7"), 1, "There is no run 7."),
        (("run", "stop", "7"), 1, "There is no run 7."),
        (("run", "watch", "7"), 1, "There is no run 7."),
        (("run", "show", "x"), 2, "see gristmill run show --help"),
        (("runs", "--state", "asleep"), 2, "is no state of a run"),
    ],
)
def test_a_wrong_use_is_told_in_one_sentence(cli, words: tuple[str, ...], code: int, sentence: str) -> None:
    said = cli(*words)
    assert (said.code, sentence in said.err, len(said.err.strip().splitlines())) == (code, True, 1)
    assert cli("runs", "--json").json == []


def test_runs_elsewhere_are_shown_and_followed_as_here(cli, url: str, served: str) -> None:
    run = with_database(url, play_waiting).run
    there = ("--server", served)
    for words in (("runs",), ("runs", "--json"), ("run", "show", run), ("run", "show", run, "--json")):
        elsewhere = cli(*words, *there)
        Elsewhere.server = None
        here = cli(*words)
        assert (elsewhere.code, elsewhere.out) == (here.code, here.out), (words, elsewhere.err)
    begun = cli("run", "Sum it up.", "--project", "mill", "--client", "acme", "--background", "--json", *there).json
    assert (begun["asked_by"], begun["project"]) == ("acme", "mill")
    assert cli("run", "stop", begun["id"], "--json", *there).json["state"] == "stopped"
    watched = cli("run", "watch", run, *there)
    assert (watched.code, watched.err.count("Question ")) == (1, 2)
    first = cli("run", "show", run, "--json", *there).json["questions"][0]
    choice = ("approve",) if first["choices"] else ("--text", "Harrow’s")
    assert cli("run", "answer", run, *choice, "--question", first["id"], *there).code == 0
    Elsewhere.server = None
    other = within(url, lambda tx: load_run(tx, begun["id"]))
    assert other.place == Scope("acme", "mill")
    wait_until(lambda: within(url, lambda tx: list_questions(tx, run=run))[0].id != first["id"])
