"""`gristmill schedule`."""

import pytest
from desk import MILL

LETTER = ("demo-extract.facts", '{"item": 1}')


@pytest.fixture(autouse=True)
def _app(monkeypatch):
    monkeypatch.setenv("GRISTMILL_APP", MILL)


def test_schedules_of_every_sort_are_added_listed_and_removed(cli):
    assert "no schedules" in cli("schedule", "list").out
    cli("schedule", "add", "nightly", *LETTER, "--cron", "30 2 * * MON-FRI", "--zone", "Europe/Zagreb")
    cli("schedule", "add", "morning", *LETTER, "--daily", "06:00", "--zone", "Europe/Zagreb", "--app", MILL)
    cli("schedule", "add", "later", *LETTER, "--follow", "morning", "--delay", "60s")
    once = cli("schedule", "add", "once", *LETTER, "--at", "2099-12-01T08:00", "--zone", "Europe/Zagreb", "--json").json
    assert once["next_at"] == "2099-12-01T07:00:00+00:00"
    assert {one["name"] for one in cli("schedule", "list", "--json").json} == {"nightly", "morning", "later", "once"}
    assert "1min after morning" in cli("schedule", "list").out
    assert (
        cli("schedule", "remove", "morning").err == "later would follow nothing: remove it first, or add --cascade.\n"
    )
    assert cli("schedule", "remove", "morning", "--cascade", "--json").json == {"removed": ["morning", "later"]}


def test_a_schedule_rests_goes_on_and_runs_now(cli):
    cli("schedule", "add", "hourly", *LETTER, "--cron", "@hourly")
    assert cli("schedule", "disable", "hourly", "--json").json["next_at"] is None
    task = cli("schedule", "run", "hourly", "--json").json["task"]
    assert cli("task", "show", task, "--json").json["task"]["payload"] == {"item": 1}
    assert cli("schedule", "enable", "hourly", "--json").json["next_at"] is not None
    assert "add --replace" in cli("schedule", "add", "hourly", *LETTER, "--cron", "@daily").err
    assert cli("schedule", "add", "hourly", *LETTER, "--cron", "@daily", "--replace", "--json").json["cron"] == "@daily"


def test_a_wrong_expression_is_pointed_at(cli):
    said = cli("schedule", "add", "x", *LETTER, "--cron", "0 25 * * *")
    assert said.code == 2
    assert said.err == "This schedule cannot be read:\n  0 25 * * *\n    ^ hour goes from 0 to 23\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "Give one of --cron, --daily, --at and --follow, not none."),
        (["--cron", "@daily", "--daily", "06:00"], "not --cron and --daily."),
        (["--daily", "06:00", "--delay", "5s"], "--delay needs --follow"),
        (["--daily", "06:00", "--zone", "Europe/Zagrb"], "Did you mean Europe/Zagreb"),
        (["--at", "tomorrow"], "“tomorrow” is not a time"),
        (["--at", "2099-01-01T00:00", "--zone", "Nowhere"], "no time zone “Nowhere”"),
    ],
)
def test_a_schedule_that_cannot_be_understood_is_wrong_usage(cli, words, sentence):
    said = cli("schedule", "add", "x", *LETTER, *words)
    assert said.code == 2
    assert sentence in said.err


def test_what_cannot_be_scheduled_is_refused(cli):
    said = cli("schedule", "add", "x", *LETTER, "--follow", "nobody")
    assert (said.code, said.err) == (1, "There is no schedule “nobody”.\n")
    said = cli("schedule", "add", "x", "demo-extract.fact", "--daily", "06:00")
    assert said.code == 1
    assert "answers demo-extract.fact. Did you mean demo-extract.facts" in said.err


def test_a_letter_that_nobody_could_read_is_refused(cli):
    said = cli("schedule", "add", "x", LETTER[0], '{"item": "one"}', "--daily", "06:00", "--app", MILL)
    assert said.code == 1
    assert "Expected `int`, got `str`" in said.err
