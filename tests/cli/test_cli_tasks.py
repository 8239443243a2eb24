"""`gristmill task`: send, look, ask why, cancel, retry, move."""

from io import BytesIO, TextIOWrapper

import pytest
from desk import MILL, within

from gristmill.queue import Unique, send
from gristmill.scopes import Scope, scope_id
from mill import Convert, Extract


def test_a_letter_is_sent_and_answered(cli, ground):
    task = cli("task", "send", "demo-extract.facts", '{"item": 7}', "--app", MILL, "--json").json["task"]
    assert cli("task", "show", task, "--json").json["task"]["status"] == "pending"
    ground()
    shown = cli("task", "show", task, "--json").json
    assert shown["task"]["result"] == {"facts": 3, "asked_by": "the batch"}
    assert shown["why"].startswith("done")
    assert [event["what"] for event in shown["history"]] == ["sent", "claimed", "ended completed"]


def test_what_is_written_on_the_outside_arrives(cli):
    first = cli("task", "send", "demo-extract.facts", '{"item": 1}', "--app", MILL, "--json").json["task"]
    words = ["--priority", 5, "--foreground", "--after", first, "--unique", "k", "--serial", "s", "--queue", "other"]
    said = cli("task", "send", "demo-extract.facts", '{"item": 2}', "--app", MILL, *words, "--json").json
    task = cli("task", "show", said["task"], "--json").json["task"]
    seen = [task[name] for name in ("priority", "foreground", "after", "unique_key", "serial_key", "queue")]
    assert seen == [5, True, first, "k", "s", "other"]
    again = cli("task", "send", "demo-extract.facts", '{"item": 3}', "--app", MILL, "--unique", "k", "--json").json
    assert again["task"] == said["task"]


def test_a_delayed_letter_says_when(cli):
    cli("task", "send", "demo-extract.facts", '{"item": 1}', "--app", MILL, "--delay", "5min")
    cli("task", "send", "demo-extract.facts", '{"item": 1}', "--app", MILL, "--run-at", "2099-01-01T00:00")
    later, soon = cli("task", "list", "--json").json
    assert (soon["wait"], later["wait"]) == ("time", "time")
    assert later["run_at"].startswith(("2099-01-01", "2098-12-31"))
    assert "scheduled for" in cli("task", "why", soon["id"]).out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["demo-extract.fats", "{}"], "Did you mean demo-extract.facts"),
        (["nothing.like_it", "{}"], "It knows demo-broken.convert"),
        (
            ["demo-extract.facts", "{}"],
            "The payload does not fit demo-extract.facts: Object missing required field `item`.",
        ),
        (["demo-extract.facts", '{"item": "x"}'], "Expected `int`, got `str`"),
        (["demo-extract.facts", '{"item": 1, "itm": 2}'], "demo-extract.facts has no “itm”; it has item,"),
        (["demo-extract.facts", '{"item": 1}', "--after", "99"], "There is no task 99 to come after."),
    ],
)
def test_a_letter_that_cannot_be_sent_is_refused(cli, words, sentence):
    said = cli("task", "send", *words, "--app", MILL)
    assert said.code == 1
    assert sentence in said.err
    assert cli("task", "list", "--json").json == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["{item}"], "The payload is not JSON"),
        (["[1]"], "must be a JSON object"),
        (["@nowhere.json"], "The payload cannot be read from nowhere.json (No such file or directory)."),
        (['{"item": 1}', "--run-at", "soon"], "“soon” is not a time"),
        (['{"item": 1}', "--run-at", "1066-10-14T09:00"], "--run-at is in the year 1066"),
        (['{"item": 1}', "--delay", "long"], "“long” is not a duration"),
    ],
)
def test_a_letter_that_cannot_be_understood_is_wrong_usage(cli, words, sentence):
    said = cli("task", "send", "demo-extract.facts", *words, "--app", MILL)
    assert said.code == 2
    assert sentence in said.err
    assert cli("task", "list", "--json").json == []


def test_a_letter_comes_from_a_file_or_the_standard_input(cli, tmp_path, monkeypatch):
    (tmp_path / "letter.json").write_text('{"item": 4}')
    assert cli("task", "send", "demo-extract.facts", "@letter.json", "--app", MILL).code == 0
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(b'{"item": 5}')))
    assert cli("task", "send", "demo-extract.facts", "-", "--app", MILL).code == 0
    assert [task["payload"]["item"] for task in cli("task", "list", "--json").json] == [5, 4]


def test_a_unique_key_that_is_taken_is_told(cli):
    words = ("task", "send", "demo-extract.facts", '{"item": 1}', "--unique", "one", "--app", MILL)
    assert cli(*words, "--json").json == {"task": 1, "queue": "demo-extract", "new": True}
    assert cli(*words, "--json").json == {"task": 1, "queue": "demo-extract", "new": False}
    assert cli(*words).out.startswith("Task 1 has this unique key already; nothing was sent")


def test_the_unique_key_of_a_client_is_not_in_the_way(cli, url):
    async def hold_the_key(tx):
        return await send(tx, Extract(1), unique=Unique("one"), scope=await scope_id(tx, Scope("acme")))

    theirs = within(url, hold_the_key)
    words = ("task", "send", "demo-extract.facts", '{"item": 1}', "--unique", "one", "--app", MILL, "--json")
    sent = cli(*words).json
    assert sent["new"]
    assert sent["task"] != theirs
    assert cli(*words).json == {**sent, "new": False}


def test_an_oversized_letter_is_refused(cli, monkeypatch):
    monkeypatch.setenv("GRISTMILL_QUEUE_MAX_PAYLOAD", "1000")
    said = cli("task", "send", "demo-extract.facts", f'{{"item": 1, "asked_by": "{"x" * 1000}"}}', "--app", MILL)
    assert said.code == 1
    assert "too large (limit 1,000): store the data and send its id" in said.err


def test_a_kind_without_any_handlers_says_how_to_name_them(cli, tmp_path):
    (tmp_path / "none_bound.py").write_text("handlers = {}\n")
    said = cli("task", "send", "documents.read", "{}", "--app", f"{tmp_path / 'none_bound.py'}:handlers")
    assert said.code == 1
    assert "name yours with --app module:name" in said.err


def test_the_list_is_filtered_and_paged(cli, sent, ground):
    sent(*(Extract(item) for item in range(5)), Convert(1))
    ground()
    assert len(cli("task", "list", "--queue", "demo-extract", "--limit", 3, "--json").json) == 3
    assert [task["kind"] for task in cli("task", "list", "--status", "failed", "--json").json] == [
        "demo-broken.convert"
    ]
    assert cli("task", "list", "--kind", "demo-extract.facts", "--before", 3, "--json").json[0]["id"] == 2
    assert "no password is known" in cli("task", "list", "--status", "failed").out
    said = cli("task", "list", "--status", "done")
    assert said.code == 2
    assert "“done” is no status" in said.err


def test_why_and_show_of_a_task_that_is_not_there(cli):
    for command in ("why", "show"):
        said = cli("task", command, 99)
        assert (said.code, said.err) == (1, "There is no task 99.\n")


def test_a_pending_task_is_moved_and_cancelled(cli, sent):
    one, two = sent(Extract(1), Extract(2))
    assert cli("task", "move", two, "--foreground", "--priority", 3, "--position", -5, "--json").code == 0
    task = cli("task", "show", two, "--json").json["task"]
    assert (task["foreground"], task["priority"], task["position"]) == (True, 3, -5)
    assert cli("task", "move", two, "--position", "none", "--background").code == 0
    assert "Say where to move it" in cli("task", "move", two).err
    assert cli("task", "move", two, "--position", "first").code == 2
    assert cli("task", "cancel", one, two, "--json").json == {"cancelled": [one, two], "asked": []}
    assert "nothing left to cancel" in cli("task", "cancel", one).out


def test_a_dead_task_is_retried_and_a_finished_one_only_if_asked(cli, sent, ground):
    dead, done = sent(Convert(1), Extract(1))
    ground()
    assert cli("task", "retry", dead, "--json").json == {"tasks": [dead], "refused": []}
    said = cli("task", "retry", done)
    assert (said.code, said.out) == (1, f"Task {done} stays as it is: it is completed, not failed.\n")
    assert cli("task", "retry", done, "--any").code == 0
