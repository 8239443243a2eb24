"""One can always ask why."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

import pytest
from engine import (
    DAY,
    LEASE,
    MINUTE,
    Bake,
    Grind,
    buried,
    claimed,
    ground,
    later,
    registered,
    settled,
)

from gristmill.db import Database, Tx
from gristmill.errors import Refused
from gristmill.ids import TaskId, WorkerId
from gristmill.queue.groups import open_group, seal
from gristmill.queue.operate.cancel import cancel
from gristmill.queue.operate.queues import pause, set_queue
from gristmill.queue.operate.why import SQL, TaskFacts, Why, explain, why
from gristmill.queue.outcome import Done, Retry, Skip
from gristmill.queue.send import send, send_many

NOW = datetime(2024, 5, 1, 12, tzinfo=UTC)
FACTS: dict[str, Any] = {
    "now": NOW,
    "id": 7,
    "queue": "mill",
    "kind": "mill.grind",
    "status": "pending",
    "wait": None,
    "created_at": NOW - MINUTE,
    "run_at": None,
    "started_at": None,
    "finished_at": None,
    "attempts": 0,
    "max_attempts": 3,
    "suspect": False,
    "cancel_requested": False,
    "result": None,
    "error": None,
    "fingerprint": None,
    "progress_current": None,
    "progress_total": None,
    "progress_message": None,
    "serial_key": None,
    "worker": None,
    "worker_name": None,
    "worker_state": None,
    "heartbeat_at": None,
    "lease_expires_at": None,
    "after": None,
    "after_status": None,
    "after_error": None,
    "head": None,
    "head_status": None,
    "paused": False,
    "concurrency": None,
    "rate_count": None,
    "rate_period": None,
    "recent_at": [],
    "recent_n": [],
    "breaker_state": "closed",
    "breaker_since": None,
    "breaker_until": None,
    "breaker_reason": None,
    "ahead": 0,
    "running": None,
    "workers": 1,
    "solos": 0,
    "sealed": None,
    "pending": None,
    "processing": None,
    "completed": None,
    "failed": None,
    "skipped": None,
    "cancelled": None,
    "failing": [],
}
HELD = {
    "status": "processing",
    "worker": 12,
    "worker_name": "emmer",
    "worker_state": "live",
    "attempts": 1,
    "started_at": NOW - MINUTE,
    "heartbeat_at": NOW - timedelta(seconds=3),
    "lease_expires_at": NOW + MINUTE,
}
ENDED = {"finished_at": NOW - MINUTE, "worker": 12, "worker_name": "emmer", "attempts": 2}
OPEN = {"breaker_state": "open", "breaker_since": NOW - MINUTE, "breaker_until": NOW + MINUTE}
GROUP = {
    "queue": None,
    "wait": "children",
    "sealed": True,
    "pending": 1,
    "processing": 2,
    "completed": 3,
    "failed": 0,
    "skipped": 1,
    "cancelled": 0,
}
BUSY = {"error": "busy", "fingerprint": "0123456789ab"}
START = "start one with gristmill worker --queues mill"


@pytest.mark.parametrize(
    ("facts", "state", "sentence"),
    [
        ({}, "queued", "next in line in mill; 1 worker serves this queue"),
        ({"ahead": 1}, "queued", "queued in mill behind 1 other; 1 worker serves this queue"),
        ({"ahead": 9999, "workers": 2}, "queued", "queued in mill behind 9,999 others; 2 workers serve this queue"),
        ({"ahead": 10_001}, "queued", "queued in mill behind more than 10,000 others; 1 worker serves this queue"),
        ({"workers": 0, "ahead": 4}, "no worker", f"no worker serves this queue: {START}"),
        (
            {"paused": True, "workers": 0},
            "paused",
            "the queue mill is paused: resume it with gristmill queue resume mill",
        ),
        (
            {**OPEN, "breaker_reason": "9 of 10 failed"},
            "breaker open",
            "the breaker of mill is open since 2024-05-01 11:59:00+00:00 because 9 of 10 failed;"
            " one task may try from 2024-05-01 12:01:00+00:00 on",
        ),
        (
            {**OPEN, "breaker_until": NOW},
            "queued",
            "next in line in mill; 1 worker serves this queue; its breaker is half-open: one task at a time may try",
        ),
        (
            {"breaker_state": "half-open"},
            "queued",
            "next in line in mill; 1 worker serves this queue; its breaker is half-open: one task at a time may try",
        ),
        (
            {"rate_count": 2, "rate_period": MINUTE, "recent_at": [NOW - MINUTE / 2], "recent_n": [2], "ahead": 3},
            "rate-limited",
            "rate-limited until 2024-05-01 12:00:30+00:00 (2 starts within 1min in mill), behind 3 others",
        ),
        (
            {"rate_count": 2, "rate_period": MINUTE, "recent_at": [NOW - 2 * MINUTE], "recent_n": [2]},
            "queued",
            "next in line in mill; 1 worker serves this queue",
        ),
        (
            {"concurrency": 2, "running": 2},
            "at its limit",
            "as many of mill run as may run at once (2 of 2); behind 0 others",
        ),
        ({"concurrency": 2, "running": 1}, "queued", "next in line in mill; 1 worker serves this queue"),
        ({"suspect": True}, "suspect", "it was running when a worker died, so it waits to be run alone"),
        (
            {"suspect": True, "workers": 0},
            "suspect",
            f"it was running when a worker died, so it waits to be run alone; no worker serves this queue: {START}",
        ),
        ({"wait": "time", "run_at": NOW + 2 * MINUTE}, "scheduled", "scheduled for 2024-05-01 12:02:00+00:00, in 2min"),
        ({"wait": "time", "run_at": NOW - MINUTE, "workers": 0}, "no worker", f"no worker serves this queue: {START}"),
        (
            {"wait": "time", "run_at": NOW + MINUTE, "attempts": 2, **BUSY},
            "backing off",
            "backing off until 2024-05-01 12:01:00+00:00 after attempt 2 of 3 failed: busy",
        ),
        (
            {"wait": "time", "run_at": NOW, "attempts": 2, "max_attempts": None, **BUSY},
            "backing off",
            "backing off until 2024-05-01 12:00:00+00:00 after attempt 2 of as many as it takes failed: busy",
        ),
        (
            {"wait": "time", "run_at": NOW + MINUTE, "attempts": 2, "error": "the shop is closed"},
            "snoozed",
            "snoozed until 2024-05-01 12:01:00+00:00: the shop is closed",
        ),
        (
            {"wait": "after", "after": 5, "after_status": "processing"},
            "blocked",
            "blocked by task 5, which is processing",
        ),
        (
            {"wait": "after", "after": 5, "after_status": "failed", "after_error": "stone"},
            "blocked",
            "blocked by task 5, which is dead (stone): retry or cancel that one",
        ),
        (
            {"wait": "serial", "serial_key": "wheel", "head": 5, "head_status": "pending"},
            "in series",
            "waits its turn in the series “wheel” behind task 5, which is pending",
        ),
        (
            HELD,
            "running",
            "running since 2024-05-01 11:59:00+00:00 by worker 12 on emmer, attempt 1 of 3, last heartbeat 3s ago",
        ),
        (
            {**HELD, "progress_current": 3, "progress_total": 9, "progress_message": "pages", "cancel_requested": True},
            "running",
            "running since 2024-05-01 11:59:00+00:00 by worker 12 on emmer, attempt 1 of 3, last heartbeat 3s ago,"
            " 3 of 9 done (pages); it has been asked to stop",
        ),
        (
            {**HELD, "heartbeat_at": NOW - 3 * MINUTE, "lease_expires_at": NOW - MINUTE},
            "stale",
            "held by worker 12 on emmer, which was last heard of 3min ago: it will be taken back from it shortly",
        ),
        (
            {**HELD, "worker_name": None, "worker_state": None, "heartbeat_at": None, "lease_expires_at": None},
            "stale",
            "held by worker 12, which is not known any more: it will be taken back from it shortly",
        ),
        ({**ENDED, "status": "completed"}, "done", "done 1min ago by worker 12 on emmer"),
        (
            {**ENDED, "status": "completed", "result": {"flour": 1}},
            "done",
            'done 1min ago by worker 12 on emmer, with the result {"flour":1}',
        ),
        (
            {**ENDED, "status": "skipped", "error": "no grain"},
            "skipped",
            "skipped 1min ago by worker 12 on emmer: no grain",
        ),
        (
            {**ENDED, "status": "cancelled", "error": "cancelled by request"},
            "cancelled",
            "cancelled 1min ago: cancelled by request",
        ),
        (
            {**ENDED, "status": "failed", "error": "stone"},
            "dead",
            "dead since 2024-05-01 11:59:00+00:00 after 2 attempts: stone",
        ),
        ({**GROUP, "status": "processing"}, "processing", "a group, processing: 4 of 7 children done; 2 running"),
        (
            {**GROUP, "status": "pending", "processing": 0, "sealed": False},
            "pending",
            "a group, pending: 4 of 5 children done; not sealed yet, so more may come",
        ),
        (
            {**GROUP, "status": "failed", "processing": 0, "pending": 0, "failed": 2, "failing": [8, 9]},
            "dead",
            "a group, failed: 4 of 6 children done; 2 failed (8, 9)",
        ),
        (
            {**GROUP, "status": "completed", "processing": 0, "pending": 0, "cancelled": 1},
            "done",
            "a group, completed: 4 of 5 children done; 1 cancelled",
        ),
    ],
)
def test_the_explanation(facts: dict[str, Any], state: str, sentence: str) -> None:
    given = FACTS | facts
    answer = explain(TaskFacts(**given))
    assert (answer.state, answer.sentence) == (state, sentence)


async def asked(tx: Tx, task: TaskId) -> str:
    return (await why(tx, task)).state


async def test_the_facts_come_in_one_query(db: Database) -> None:
    async with db.transaction() as tx:
        first, second = await send_many(tx, [Grind(1), Grind(2)])
        assert await asked(tx, first) == "no worker"
        await registered(tx, solo=True)
        assert await asked(tx, first) == "no worker"
        worker = await registered(tx)
        answer = await why(tx, second)
        assert isinstance(answer, Why)
        assert (answer.state, answer.facts["ahead"], answer.facts["workers"]) == ("queued", 1, 1)
        await claimed(tx, worker)
        assert (await why(tx, first)).facts["worker"] == worker
        assert await asked(tx, first) == "running"
        with pytest.raises(Refused, match="There is no task 99"):
            await why(tx, TaskId(99))


async def test_a_silent_worker_is_said_to_be_silent(db: Database) -> None:
    async with db.transaction() as tx:
        task = await send(tx, Grind())
        await claimed(tx, await registered(tx))
    async with later(db, LEASE + MINUTE) as tx:
        assert await asked(tx, task) == "stale"


async def test_a_starved_task_is_queued_not_stalled(db: Database) -> None:
    async with db.transaction() as tx:
        task = await send(tx, Grind(), priority=-100)
        worker = await registered(tx, lease=9 * DAY)
        await send_many(tx, [Grind(i) for i in range(5)])
        await settled(tx, worker, await claimed(tx, worker, 2))
    async with later(db, DAY) as tx:
        answer = await why(tx, task)
        assert (answer.state, answer.facts["ahead"]) == ("queued", 3)


async def test_the_count_of_those_ahead_is_bounded(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    # by name: in its room, `why` is the function
    monkeypatch.setattr(import_module("gristmill.queue.operate.why"), "MOST", 10)
    async with db.transaction() as tx:
        ids = await send_many(tx, [Grind(i) for i in range(30)])
        await registered(tx)
        assert (await why(tx, ids[-1])).facts["ahead"] == 11
        assert "more than 10 others" in (await why(tx, ids[-1])).sentence


async def held_back(tx: Tx, **changes: Any) -> tuple[WorkerId, TaskId]:
    task = (await send_many(tx, [Grind(i) for i in range(2)]))[1]
    await set_queue(tx, "mill", **changes)
    return await registered(tx), task


async def test_limits_pauses_and_breakers_are_named(db: Database) -> None:
    async with db.transaction() as tx:
        worker, task = await held_back(tx, concurrency=1)
        await claimed(tx, worker)
        assert await asked(tx, task) == "at its limit"
        await set_queue(tx, "mill", concurrency=None, rate="1/60s")
        await tx.execute("UPDATE queue SET recent_at = ARRAY[clock()], recent_n = ARRAY[1]")
        assert await asked(tx, task) == "rate-limited"
        await set_queue(tx, "mill", breaker="30%")
        await tx.execute("UPDATE queue SET breaker_state = 'open', breaker_since = clock()")
        assert await asked(tx, task) == "breaker open"
        await pause(tx, "mill")
        assert await asked(tx, task) == "paused"


async def test_every_wait_is_named(db: Database) -> None:
    async with db.transaction() as tx:
        scheduled = await send(tx, Grind(1), delay=MINUTE)
        blocked = await send(tx, Grind(2), after=scheduled)
        head = await send(tx, Bake(3), serial_key="wheel")
        behind = await send(tx, Bake(4), serial_key="wheel")
        retried = await send(tx, Grind(5))
        worker = await registered(tx)
        await settled(tx, worker, await claimed(tx, worker), Retry(MINUTE, "busy"))
        assert [await asked(tx, one) for one in (scheduled, blocked, behind, retried)] == [
            "scheduled",
            "blocked",
            "in series",
            "backing off",
        ]
        assert (await why(tx, blocked)).facts["after_status"] == "pending"
        assert (await why(tx, behind)).facts["head"] == head


async def test_every_end_is_named(db: Database) -> None:
    async with db.transaction() as tx:
        ids = await send_many(tx, [Grind(i) for i in range(5)])
        await ground(tx, 1, Done(result=1))
        await ground(tx, 1, Skip("no grain"))
        await buried(tx, 1)
        await cancel(tx, [ids[3]])
        await tx.execute("UPDATE ticket SET suspect = true")
        assert [await asked(tx, one) for one in ids] == ["done", "skipped", "dead", "cancelled", "suspect"]
        follower = await send(tx, Bake(), after=ids[2])
        assert f"task {ids[2]}, which is dead (too hard)" in (await why(tx, follower)).sentence


async def test_a_group_names_those_that_failed(db: Database) -> None:
    async with db.transaction() as tx:
        group = await open_group(tx)
        children = [await send(tx, Grind(i), parent=group) for i in range(2)]
        await seal(tx, group)
        await ground(tx, 1)
        await buried(tx, 1)
        assert (await why(tx, group)).sentence == f"a group, failed: 1 of 2 children done; 1 failed ({children[1]})"


@pytest.mark.parametrize("suspect", [False, True])
async def test_who_stands_before_is_counted_from_the_index_of_ones_line(db: Database, suspect: bool) -> None:
    async with db.transaction() as tx:
        tasks = await send_many(tx, [Grind(i) for i in range(3000)])
        await tx.execute("UPDATE ticket SET suspect = true WHERE id = ANY (%(ids)s)", ids=tasks[1000:][::999])
    async with await db.connect("test") as connection:
        await connection.execute("VACUUM ANALYZE ticket")
    async with db.transaction() as tx:
        asked = tasks[1000:][::999][2] if suspect else tasks[2]
        plan = await tx.value("EXPLAIN (ANALYZE, FORMAT JSON) " + SQL["facts"], id=asked, most=1000)
        ahead = (await tx.one(SQL["facts"], id=asked, most=1000)).ahead
    used = [node for node in nodes(plan[0]["Plan"]) if node.get("Relation Name") == "ticket" and node["Actual Loops"]]
    assert ahead == 2
    assert ("ticket_suspect" if suspect else "ticket_ready") in {node.get("Index Name") for node in used}
    assert max(node["Actual Rows"] + node.get("Rows Removed by Filter", 0) for node in used) < 10


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)
