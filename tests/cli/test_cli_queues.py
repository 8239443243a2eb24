"""`gristmill queue`, `gristmill limiter`: how things stand and how they are set."""

import json
from dataclasses import dataclass
from typing import ClassVar

import pytest
from desk import within

from gristmill.ids import TaskId
from gristmill.queue import send
from mill import Extract


@dataclass(frozen=True)
class Reported:
    kind: ClassVar[str] = "test.reported"
    queue: ClassVar[str] = "reports"
    n: int


def test_without_queues_it_says_so(cli):
    assert "no queues yet" in cli("queue", "list").out
    assert cli("queue", "list", "--json").json == []


def test_a_queue_is_set_and_shown(cli):
    words = [
        "--rate",
        "10/60s",
        "--concurrency",
        4,
        "--breaker",
        "30%",
        "--max-attempts",
        "never",
        "--retry-base",
        "1s",
    ]
    words += [
        "--retry-cap",
        "1h",
        "--retries-first",
        "--timeout",
        "10s",
        "--keep",
        5,
        "--keep-for",
        "7d",
        "--clear-payload",
    ]
    settings = cli("queue", "set", "extract", *words, "--json").json["settings"]
    assert (settings["rate_count"], settings["rate_period"], settings["concurrency"]) == (10, 60.0, 4)
    assert (settings["max_attempts"], settings["retry_base"], settings["retry_cap"]) == (None, 1.0, 3600.0)
    assert (settings["retries_first"], settings["timeout"], settings["clear_payload"]) == (True, 10.0, True)
    assert settings["breaker_threshold"] == pytest.approx(0.3)
    cleared = cli(
        "queue", "set", "extract", "--rate", "none", "--concurrency", "none", "--breaker", "none", "--json"
    ).json
    assert (cleared["settings"]["rate_count"], cleared["settings"]["concurrency"], cleared["breaker"]) == (
        None,
        None,
        None,
    )
    assert "as many as it takes" in cli("queue", "show", "extract").out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--rate", "often"], "--rate is wrong: “often” is not a rate"),
        (["--breaker", "130%"], "is not a share of errors"),
        (["--retry-base", "soon"], "--retry-base is wrong: “soon” is not a duration"),
        (["--timeout", "0s"], "not a duration longer than zero"),
        ([], "Nothing to change in extract"),
    ],
)
def test_a_wrong_value_is_refused(cli, words, sentence):
    said = cli("queue", "set", "extract", *words)
    assert said.code == 2
    assert sentence in said.err


def test_a_number_that_is_none_is_a_mistake_in_use(cli):
    assert cli("queue", "set", "extract", "--concurrency", "many").code == 2


def test_a_queue_is_paused_and_resumed(cli, sent):
    sent(Extract(1))
    assert cli("queue", "pause", "demo-extract", "--json").json["paused"] is True
    assert "paused" in cli("queue", "list").out
    assert "resume it with" in cli("task", "why", 1).out
    assert cli("queue", "resume", "demo-extract").out == "demo-extract goes on; 1 wait.\n"


def test_a_queue_that_is_not_there_has_a_near_one(cli, sent):
    sent(Extract(1))
    for command in ("show", "pause", "resume"):
        said = cli("queue", command, "demo-extrat")
        assert (said.code, said.err) == (1, "There is no queue “demo-extrat”. Did you mean demo-extract?\n")


def test_what_is_blocked_is_told_apart_from_what_waits_for_a_worker(cli, sent, url):
    sent(Extract(1))
    within(url, lambda tx: send(tx, Reported(1), after=TaskId(1)))
    found = {one["name"]: one for one in cli("queue", "list", "--json").json}
    assert {name: (one["waiting"]["n"], one["blocked"]["n"]) for name, one in found.items()} == {
        "demo-extract": (1, 0),
        "reports": (0, 1),
    }
    head, extract, reports = cli("queue", "list").out.splitlines()
    assert head.split()[:4] == ["queue", "state", "waiting", "blocked"]
    assert (extract.split()[:5], reports.split()[:4]) == (
        ["demo-extract", "no", "worker", "1", "0"],
        ["reports", "ok", "0", "1"],
    )
    assert "nobody serves: demo-extract." in " ".join(cli("doctor").out.split())


def test_watching_tells_one_document_a_line(cli, sent):
    sent(Extract(1), Extract(2))
    looks = [
        json.loads(line)
        for line in cli("queue", "watch", "--for", "300ms", "--every", "100ms", "--json").out.splitlines()
    ]
    assert len(looks) >= 2
    assert looks[0][0]["pending"] == 2
    assert (looks[0][0]["per_second"], looks[1][0]["per_second"]) == (None, 0.0)
    assert "no worker serves it" in cli("queue", "watch", "--for", "100ms").out


def test_a_limiter_is_set_and_listed(cli):
    assert "no limiters yet" in cli("limiter", "list").out
    cli("limiter", "set", "llm", "--concurrency", 5, "--rate", "5/60s", "--gap", "1s")
    cli("limiter", "set", "llm", "--rate", "none", "--gap", "3s-5s")
    (found,) = cli("limiter", "list", "--json").json
    assert found["limit"] == {"concurrency": 5, "rate": None, "gap": [3.0, 5.0]}
    assert "3s-5s" in cli("limiter", "list").out


def test_a_wrong_limiter_is_refused(cli):
    assert cli("limiter", "set", "llm", "--rate", "fast").code == 2
    assert "Nothing to set for llm: give" in cli("limiter", "set", "llm").err
    assert "shorter to a longer" in cli("limiter", "set", "llm", "--gap", "5s-3s").err
    assert "no blanks" in cli("limiter", "set", "two words", "--gap", "5s").err
