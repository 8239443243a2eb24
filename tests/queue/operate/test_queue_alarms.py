"""Alarms about queues: starved is told apart from stalled, and the reason is named."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from engine import Bake, Grind, buried, claimed, registered, settled

from gristmill.db import Database
from gristmill.ids import ScopeId, WorkerId
from gristmill.queue import Envelope, pause, send, send_many, set_queue
from gristmill.queue.operate.alarms import (
    DeadCount,
    IdleWorker,
    Stage,
    Thresholds,
    find_dead_letters,
    find_idle_workers,
    find_queue_troubles,
    judge_stage,
)
from gristmill.scopes import Scope, scope_id

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
LIMITS = Thresholds()
STAGE = Stage(
    name="ocr",
    paused=False,
    concurrency=None,
    rate_count=None,
    rate_period=None,
    recent_at=[],
    recent_n=[],
    breaker_state="closed",
    breaker_since=None,
    breaker_reason=None,
    breaker_until=None,
    now=NOW,
    ready=5,
    suspects=0,
    later=0,
    running=0,
    settled=40,
    workers=2,
)


@pytest.mark.parametrize(
    ("changes", "rule", "words"),
    [
        ({}, "stage-stalled", "ocr is stalled: 5 tasks wait, 0 run, and none ended for 5min"),
        ({"running": 2}, "stage-stalled", "2 run"),
        ({"ready": 0, "suspects": 1}, "stage-stalled", "1 task wait"),
        ({"paused": True}, "stage-starved", "none ran for 10min: it is paused"),
        ({"workers": 0}, "stage-starved", "no worker serves it"),
        (
            {"breaker_state": "open", "breaker_until": NOW + timedelta(minutes=3)},
            "stage-starved",
            "its breaker is open until 12:03:00",
        ),
        (
            {"rate_count": 1, "rate_period": timedelta(minutes=5), "recent_at": [NOW], "recent_n": [1]},
            "stage-starved",
            "it is rate-limited (1/5min) until 12:05:00",
        ),
        (
            {"rate_count": 2, "rate_period": timedelta(minutes=5), "recent_at": [NOW], "recent_n": [1]},
            "stage-stalled",
            "stalled",
        ),
    ],
)
def test_starved_is_told_apart_from_stalled(changes: dict[str, Any], rule: str, words: str) -> None:
    found = [one for one in judge_stage(replace(STAGE, **changes), LIMITS) if one.rule.startswith("stage")]
    assert [one.rule for one in found] == [rule]
    assert words in found[0].sentence
    assert found[0].mark == "40", "it lasts as long as nothing is settled"
    assert found[0].lasting == (LIMITS.stall if rule == "stage-stalled" else LIMITS.idle)


@pytest.mark.parametrize("changes", [{"ready": 0}, {"ready": 0, "later": 900}, {"ready": 0, "paused": True}])
def test_a_queue_without_work_raises_nothing(changes: dict[str, Any]) -> None:
    assert judge_stage(replace(STAGE, **changes), LIMITS) == []


@pytest.mark.parametrize(("ready", "later", "found"), [(1000, 0, False), (1001, 0, True), (600, 401, True)])
def test_more_than_a_thousand_waiting_tasks_raise_an_alarm(ready: int, later: int, found: bool) -> None:
    rules = [one.rule for one in judge_stage(replace(STAGE, ready=ready, later=later), LIMITS)]
    assert ("queue-depth" in rules) == found


def test_a_deep_queue_is_not_counted_to_its_end() -> None:
    (depth, _) = judge_stage(replace(STAGE, ready=10_000, later=10_000), LIMITS)
    assert depth.sentence == "More than 10,000 tasks wait in ocr; 1,000 are the limit."


@pytest.mark.parametrize("state", ["open", "half-open"])
def test_a_breaker_that_is_not_closed_raises_an_alarm(state: str) -> None:
    stage = replace(STAGE, ready=0, breaker_state=state, breaker_reason="9 of 20 failed")
    (found,) = judge_stage(stage, LIMITS)
    assert (found.rule, found.sentence) == ("breaker-open", f"The breaker of ocr is {state}: 9 of 20 failed.")


def test_dead_letters_are_told_to_the_operator_and_shown_to_each_client() -> None:
    counts = [DeadCount(ScopeId(1), 3), DeadCount(ScopeId(2), 8), DeadCount(ScopeId(3), 12)]
    found = find_dead_letters(counts, 10)
    assert [(one.scope, one.subject, one.quiet) for one in found] == [(1, "all", False), (3, "own", True)]
    assert found[0].sentence.startswith("23 dead letters")
    assert find_dead_letters(counts[:1], 10) == []
    assert find_dead_letters([DeadCount(ScopeId(1), 10)], 10) == [], "ten are allowed"


def test_a_worker_that_does_nothing_while_work_waits_is_found() -> None:
    idle = IdleWorker(WorkerId(7), "mill-1", ["graph", "ocr"], 5)
    (found,) = find_idle_workers([idle], [STAGE], LIMITS.idle)
    assert "Worker 7 on mill-1 did nothing for 10min, although work waits in ocr." in found.sentence
    assert found.mark == "5"


@pytest.mark.parametrize(
    "changes", [{"ready": 0}, {"paused": True}, {"name": "other"}, {"concurrency": 1, "running": 1}]
)
def test_a_worker_that_may_not_do_more_is_not_blamed(changes: dict[str, Any]) -> None:
    idle = IdleWorker(WorkerId(7), "mill-1", ["graph", "ocr"], 5)
    assert find_idle_workers([idle], [replace(STAGE, **changes)], LIMITS.idle) == []


async def test_the_facts_come_from_the_database(db: Database) -> None:
    async with db.transaction() as tx:
        acme = await scope_id(tx, Scope("acme"))
        await send_many(tx, [Envelope(Grind(n), scope=acme) for n in range(12)])
        await send(tx, Bake())
        await send(tx, Bake(), delay=timedelta(days=1))
        await buried(tx, 11)
        await pause(tx, "oven")
        found = await find_queue_troubles(tx, LIMITS)
    told = {(one.rule, one.subject) for one in found}
    assert ("dead-letters", "all") in told
    assert ("dead-letters", "own") in told
    assert ("stage-starved", "oven") in told
    assert ("stage-stalled", "mill") in told
    assert not any(rule == "queue-depth" for rule, _ in told)


async def test_what_is_settled_changes_the_mark(db: Database) -> None:
    async with db.transaction() as tx:
        await send_many(tx, [Grind(n) for n in range(3)])
        worker = await registered(tx)
        before = {one.mark for one in await find_queue_troubles(tx, LIMITS) if one.rule == "stage-stalled"}
        await settled(tx, worker, await claimed(tx, worker))
        after = {one.mark for one in await find_queue_troubles(tx, LIMITS) if one.rule == "stage-stalled"}
        idle = [one for one in await find_queue_troubles(tx, LIMITS) if one.rule == "worker-idle"]
        await claimed(tx, worker)
        busy = [one for one in await find_queue_troubles(tx, LIMITS) if one.rule == "worker-idle"]
    assert before != after
    assert [one.subject for one in idle] == [f"worker {worker}"]
    assert busy == []


async def test_a_full_rate_is_named_as_the_reason(db: Database) -> None:
    async with db.transaction() as tx:
        await send_many(tx, [Grind(n) for n in range(3)])
        await set_queue(tx, "mill", rate="1/1h")
        await registered(tx)
        await tx.execute("UPDATE queue SET recent_at = ARRAY[clock()], recent_n = '{1}' WHERE name = 'mill'")
        (found,) = [one for one in await find_queue_troubles(tx, LIMITS) if one.subject == "mill"]
    assert found.rule == "stage-starved"
    assert "it is rate-limited (1/1h) until" in found.sentence
