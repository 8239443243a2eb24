"""Setting, pausing and listing queues."""

from datetime import timedelta
from typing import Any

import pytest
from engine import MINUTE, Bake, Grind, buried, claimed, ground, later, registered

from gristmill.db import Database
from gristmill.errors import Refused
from gristmill.queue.operate.queues import Bounded, QueueReport, list_queues, pause, resume, set_queue
from gristmill.queue.send import send, send_many


async def report(db: Database, name: str = "mill", **more: Any) -> QueueReport:
    async with later(db, MINUTE) as tx:
        return {one.name: one for one in await list_queues(tx, **more)}[name]


async def test_a_queue_is_set_before_anything_was_sent_to_it(db: Database) -> None:
    async with db.transaction() as tx:
        await set_queue(
            tx,
            "mill",
            rate="10/60s",
            concurrency=4,
            max_attempts=5,
            retry_base="1s",
            retry_cap=MINUTE,
            retries_first=True,
            timeout="5min",
            clear_payload=True,
            keep=10,
            keep_for="2d",
            breaker="30%",
            breaker_window="2min",
            breaker_minimum=3,
            breaker_reset="1min",
        )
    settings = (await report(db)).settings
    assert settings == {
        "rate_count": 10,
        "rate_period": MINUTE,
        "concurrency": 4,
        "max_attempts": 5,
        "retry_base": timedelta(seconds=1),
        "retry_cap": MINUTE,
        "retries_first": True,
        "timeout": 5 * MINUTE,
        "clear_payload": True,
        "keep": 10,
        "keep_for": timedelta(days=2),
        "breaker_threshold": pytest.approx(0.3),
        "breaker_window": 2 * MINUTE,
        "breaker_minimum": 3,
        "breaker_reset": MINUTE,
    }


async def test_a_breaker_whose_pause_is_over_is_half_open_before_anybody_tries(db: Database) -> None:
    async with db.transaction() as tx:
        await set_queue(tx, "mill", breaker_reset="5min")
        await tx.execute("UPDATE queue SET breaker_state = 'open', breaker_since = clock() - interval '5 min'")
    shown = (await report(db)).breaker
    assert shown is not None
    assert (shown.state, shown.until) == ("half-open", None)


async def test_what_is_not_named_stays_and_none_takes_a_limit_away(db: Database) -> None:
    async with db.transaction() as tx:
        await set_queue(tx, "mill", rate="10/60s", concurrency=4, breaker=0.5)
        await tx.execute("UPDATE queue SET breaker_state = 'open', breaker_since = clock()")
        await set_queue(tx, "mill", rate=None, max_attempts=None)
    one = await report(db)
    assert (one.settings["rate_count"], one.settings["rate_period"]) == (None, None)
    assert (one.settings["concurrency"], one.settings["max_attempts"]) == (4, None)
    assert one.breaker is not None
    assert (one.breaker.state, one.breaker.until) == ("open", (one.breaker.since or 0) + 5 * MINUTE)  # type: ignore[operator]
    async with db.transaction() as tx:
        await set_queue(tx, "mill", breaker=None)
        assert await tx.value("SELECT breaker_state FROM queue") == "closed"
    assert (await report(db)).breaker is None


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"speed": 9}, "A queue has no setting “speed”; it has breaker, "),
        ({"concurrency": 0}, "concurrency is wrong: “0” is not a whole number of 1 or more."),
        ({"concurrency": True}, "concurrency is wrong: “True” is not a whole number"),
        ({"rate": "fast"}, "rate is wrong: “fast” is not a rate"),
        ({"timeout": "0s"}, "timeout is wrong: “0s” is not a duration longer than zero."),
        ({"timeout": None}, "timeout is wrong"),
        ({"retry_base": "soon"}, "retry_base is wrong: “soon” is not a duration"),
        ({"breaker": "300%"}, "breaker is wrong"),
        ({"retries_first": "yes"}, "retries_first is wrong: “yes” is neither true nor false."),
        ({"keep": -1}, "keep is wrong"),
    ],
)
async def test_a_wrong_setting_is_refused_in_one_sentence(changes: dict[str, Any], sentence: str, db: Database) -> None:
    async with db.transaction() as tx:
        with pytest.raises(Refused) as refused:
            await set_queue(tx, "mill", **changes)
        assert str(refused.value).startswith(sentence)
        assert await list_queues(tx) == []


async def test_a_wrong_name_is_refused(db: Database) -> None:
    async with db.transaction() as tx:
        with pytest.raises(Refused, match="no name for a queue"):
            await set_queue(tx, "The Mill", keep=1)
        with pytest.raises(Refused, match="There is no queue mill"):
            await pause(tx, "mill")


async def test_pause_and_resume_are_told_to_the_workers(db: Database) -> None:
    async with db.transaction() as tx:
        await set_queue(tx, "mill")
    listener = await db.connect("test")
    await listener.execute("LISTEN gristmill")
    async with db.transaction() as tx:
        await pause(tx, "mill")
    assert (await report(db)).paused
    async with db.transaction() as tx:
        await resume(tx, "mill")
        await set_queue(tx, "mill", concurrency=1)
    heard = [note.payload async for note in listener.notifies(timeout=60, stop_after=2)]
    await listener.close()
    assert heard == ["queue mill", "queue mill"]
    assert not (await report(db)).paused


async def test_the_report_counts_every_kind_of_task(db: Database) -> None:
    async with db.transaction() as tx:
        await send_many(tx, [Grind(i) for i in range(6)])
        await ground(tx, 1)
        await buried(tx, 1)
        worker = await registered(tx, "mill", name="miller")
        await claimed(tx, worker, 1)
        await registered(tx, "mill", solo=True)
        await registered(tx, "mill", name="silent", lease=timedelta(seconds=1))
        await tx.execute("UPDATE ticket SET suspect = true WHERE id = (SELECT max(id) FROM ticket)")
        later_ = await send(tx, Grind(7), delay=10 * MINUTE)
        await send(tx, Grind(8), after=later_)
        await send(tx, Bake(9))
        await tx.execute("DELETE FROM worker WHERE id < %(id)s", id=worker)
    one = await report(db)
    assert (one.ready, one.scheduled, one.blocked, one.suspects) == (Bounded(2), Bounded(1), Bounded(1), Bounded(1))
    assert (one.pending, one.processing, one.dead) == (5, 1, 1)
    assert one.finished == {"completed": 1, "failed": 1, "skipped": 0, "cancelled": 0, "retried": 0}
    assert one.kept == {"completed": 1, "failed": 1, "skipped": 0, "cancelled": 0}
    assert one.workers == ("miller",)
    assert one.oldest is not None
    assert MINUTE <= one.oldest < 2 * MINUTE
    assert (await report(db, "oven")).workers == ()


async def test_only_what_tasks_wait_for_is_counted_to_a_bound(db: Database) -> None:
    async with db.transaction() as tx:
        first, *_ = await send_many(tx, [Grind(i) for i in range(30)])
    one = await report(db, most=20)
    assert (one.ready, one.pending, one.waiting) == (Bounded(30), 30, Bounded(30))
    async with db.transaction() as tx:
        for i in range(30):
            await send(tx, Grind(i), after=first)
    one = await report(db, most=20)
    assert (one.ready, one.blocked, one.pending, one.waiting) == (
        Bounded(20, True),
        Bounded(20, True),
        60,
        Bounded(20, True),
    )
    assert str((await report(db, most=60)).blocked) == "30"
