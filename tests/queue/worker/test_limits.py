"""Limits hold over all workers together: rates, concurrency, pauses, serial keys and breakers."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from crew import ask, sent, set_up, until, until_status, worked, working
from engine import DAY, MINUTE, Grind, audit, later, registered, settled, statuses

from gristmill.db import Database, Tx
from gristmill.errors import Permanent, Transient
from gristmill.ids import TaskId
from gristmill.queue import Envelope, on, send_many
from gristmill.queue.claim import Claim
from gristmill.queue.config import SQL as CONFIG
from gristmill.queue.config import QueueConfig, QueueLimits, load_configs
from gristmill.queue.operate.cancel import cancel
from gristmill.queue.operate.queues import list_queues, pause, resume
from gristmill.queue.upkeep.breaker import HealthReporter, half_open, judge
from gristmill.queue.worker import claimer
from gristmill.queue.worker.claimer import CLAIM_SESSION, SQL, Claimer
from gristmill.queue.worker.lane_marks import LaneMarks
from gristmill.queue.worker.workload import Workload


async def nothing(letter: Grind) -> None:
    pass


async def sent_many(db: Database, n: int, **outside: Any) -> list[Any]:
    async with db.transaction() as tx:
        return await send_many(tx, [Envelope(Grind(i), **outside) for i in range(n)])


class OneWorker:
    """One worker's way to claims, without the worker."""

    def __init__(self, db: Database, concurrency: int = 100, *, solo: bool = False) -> None:
        self.db = db
        self.solo = solo
        self.workload = Workload(concurrency, 500)
        self.lane_marks = LaneMarks()

    async def claim(self, n: int = 100) -> list[Claim]:
        async with self.db.transaction() as tx:
            self.worker = await registered(tx)
            self.claimer = Claimer(self.worker, self.workload, self.lane_marks, lambda _: 100, solo=self.solo)
            await self.claimer.look(tx, ["mill"])
            configs = await load_configs(tx, ["mill"])
        connection = await self.db.connect("test", **CLAIM_SESSION)
        try:
            return await self.claimer.claim(connection, list(configs.values()), n)
        finally:
            await connection.close()


# --- rate and concurrency


async def test_no_window_holds_more_starts_than_the_rate_allows_over_several_workers(db: Database) -> None:
    count, period = 5, 0.3
    await set_up(db, "mill", rate=(count, timedelta(seconds=period)))
    await sent_many(db, 18)
    await asyncio.gather(*(worked(db, on(Grind, nothing), name=f"w{i}") for i in range(3)))
    starts = [row.started_at for row in await ask(db, "SELECT started_at FROM task ORDER BY started_at")]
    assert len(starts) == 18
    for first, beyond in zip(starts, starts[count:], strict=False):
        assert beyond - first >= timedelta(seconds=period)


async def test_suspects_start_within_the_limits_of_their_queue(db: Database) -> None:
    await sent_many(db, 3)
    await ask(db, "UPDATE ticket SET suspect = true RETURNING 1")
    await set_up(db, "mill", concurrency=1)
    assert [len(await OneWorker(db, solo=True).claim()) for _ in range(2)] == [1, 0]
    await set_up(db, "mill", concurrency=None, rate=(1, DAY))
    assert [len(await OneWorker(db, solo=True).claim()) for _ in range(2)] == [1, 0]
    await set_up(db, "mill", rate=None)
    assert len(await OneWorker(db, solo=True).claim()) == 1


async def test_several_workers_together_never_run_more_than_the_concurrency(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await set_up(db, "mill", concurrency=3)
    await sent_many(db, 30)
    running = most = begun = refused = 0
    allowance = claimer._allowance

    async def counting(tx: Tx, limits: QueueLimits) -> int:
        nonlocal refused
        allowed = await allowance(tx, limits)
        refused += begun >= 3 and allowed <= 0
        return allowed

    async def more_were_refused() -> bool:
        return begun >= 3 and refused >= 2

    async def busy(letter: Grind) -> None:
        nonlocal running, most, begun
        running += 1
        begun += 1
        most = max(most, running)
        if begun <= 3:
            await until(more_were_refused, "three run, and more are refused")
        await asyncio.sleep(0)
        running -= 1

    monkeypatch.setattr(claimer, "_allowance", counting)
    await asyncio.gather(*(worked(db, on(Grind, busy), name=f"w{i}", concurrency=8) for i in range(2)))
    assert most == 3
    async with db.transaction() as tx:
        assert set((await statuses(tx)).values()) == {"completed"}


async def test_a_claim_that_waited_for_another_sees_what_that_one_took(db: Database) -> None:
    """The count of what runs is of after the lock: one statement for both would see the tickets of before."""
    await set_up(db, "mill", concurrency=2)
    await sent_many(db, 10)
    async with db.transaction() as first:
        await first.one(CONFIG["lock_queue"], name="mill")
        second = asyncio.create_task(OneWorker(db).claim())
        await until(
            lambda: ask(
                db, "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
            )
        )
        lanes = await first.all(SQL["lanes"], queues=["mill"])
        await first.one(
            SQL["claim"],
            worker=await registered(first),
            lease=1,
            n=2,
            queues=["mill"],
            lanes=[lanes[0].lane],
            marks=[0],
            limits=[2],
        )
    assert await second == []


async def test_a_limited_queue_is_never_claimed_ahead(db: Database) -> None:
    await set_up(db, "mill", concurrency=50)
    await sent_many(db, 40)
    worker = OneWorker(db, concurrency=4)
    worker.workload.pace.note(1_000_000)
    assert len(await worker.claim()) == 4


async def test_an_unlimited_queue_never_touches_its_row(db: Database) -> None:
    await sent_many(db, 40)
    async with db.transaction() as other:
        await other.one("SELECT 1 FROM queue WHERE name = 'mill' FOR UPDATE")
        async with asyncio.timeout(60):
            assert len(await OneWorker(db).claim()) == 40


@pytest.mark.parametrize(
    ("config", "limited"),
    [
        (QueueConfig("mill"), False),
        (QueueConfig("mill", breaker=True), False),
        (QueueConfig("mill", breaker=True, breaker_state="open"), True),
        (QueueConfig("mill", breaker=True, breaker_state="half-open"), True),
        (QueueConfig("mill", concurrency=1), True),
    ],
)
def test_only_what_is_limited_pays_for_limits(config: QueueConfig, limited: bool) -> None:
    assert config.is_limited is limited


async def test_a_limit_that_is_taken_away_is_gone_for_running_workers_at_once(db: Database) -> None:
    await set_up(db, "mill", rate=(1, DAY))
    ids = await sent_many(db, 5)
    async with working(db, on(Grind, nothing)):
        await until_status(db, ids[0], "completed")
        await set_up(db, "mill", rate=None)
        for id_ in ids:
            await until_status(db, id_, "completed")


# --- pause and resume


async def hold(letter: Grind) -> None:
    if letter.grain == 0:
        await asyncio.Event().wait()


async def heard(db: Database, running: TaskId) -> None:
    """The workers have heard all that was said so far: they hear of this cancellation after it."""
    async with db.transaction() as tx:
        await cancel(tx, [running])
    await until_status(db, running, "cancelled")


async def test_a_paused_queue_is_not_claimed_and_a_resumed_one_is(db: Database) -> None:
    running = await sent(db, Grind(0))
    async with working(db, on(Grind, hold)):
        await until_status(db, running, "processing")
        async with db.transaction() as tx:
            await pause(tx, "mill")
        await heard(db, running)
        held = [await sent(db, Grind(2), foreground=True), await sent(db, Grind(3), position=1)]
        assert await OneWorker(db).claim() == []
        async with db.transaction() as tx:
            assert [(await statuses(tx))[id_] for id_ in held] == ["pending"] * 2
            await resume(tx, "mill")
        for id_ in held:
            await until_status(db, id_, "completed")


# --- serial keys


TICKETS = "SELECT (payload ->> 'grain')::int FROM task JOIN ticket USING (id) WHERE serial_key = %(key)s"


async def test_a_serial_key_runs_one_at_a_time_in_order_over_two_workers(db: Database) -> None:
    running: dict[int, int] = {}
    order: dict[int, list[int]] = {0: [], 1: []}

    async def alone(letter: Grind) -> None:
        key = letter.grain % 2
        assert key not in running
        running[key] = letter.grain
        order[key].append(letter.grain)
        assert await ask(db, TICKETS, key=f"key {key}") == [(letter.grain,)]
        del running[key]

    async with db.transaction() as tx:
        await send_many(tx, [Envelope(Grind(i), serial_key=f"key {i % 2}") for i in range(30)])
    await asyncio.gather(*(worked(db, on(Grind, alone), name=f"w{i}") for i in range(2)))
    assert order == {0: list(range(0, 30, 2)), 1: list(range(1, 30, 2))}
    async with db.transaction() as tx:
        await audit(tx)


async def test_a_task_that_is_retried_keeps_its_turn(db: Database) -> None:
    order: list[int] = []
    await set_up(db, "mill", retry_base=timedelta(milliseconds=1))

    async def once(letter: Grind) -> None:
        order.append(letter.grain)
        if letter.grain == 0 and len(order) == 1:
            raise Transient("busy")

    async with db.transaction() as tx:
        await send_many(tx, [Envelope(Grind(i), serial_key="key") for i in range(3)])
    await worked(db, on(Grind, once))
    assert order == [0, 0, 1, 2]


# --- breakers: closed, open, half-open


@pytest.mark.parametrize(
    ("state", "ok", "failed", "expected"),
    [
        ("closed", 7, 3, "open"),
        ("closed", 8, 3, None),
        ("closed", 0, 9, None),
        ("closed", 0, 10, "open"),
        ("closed", 100, 0, None),
        ("closed", 0, 0, None),
        ("half-open", 1, 0, "closed"),
        ("half-open", 0, 1, "open"),
        ("half-open", 1, 1, "open"),
        ("half-open", 0, 0, None),
        ("open", 10, 0, None),
        ("open", 0, 10, None),
    ],
)
def test_when_a_breaker_moves(state: str, ok: int, failed: int, expected: str | None) -> None:
    assert judge(state, ok=ok, failed=failed, threshold=0.3, minimum=10) == expected


async def breaker(db: Database) -> tuple[str, str | None]:
    (row,) = await ask(db, "SELECT breaker_state, breaker_reason FROM queue WHERE name = 'mill'")
    return row.breaker_state, row.breaker_reason


async def reported(db: Database, *, ok: int = 0, failed: int = 0, timed_out: int = 0) -> None:
    health = HealthReporter()
    for _ in range(ok):
        health.count("mill", ok=True)
    for _ in range(failed):
        health.count("mill", ok=False)
    for _ in range(timed_out):
        health.count_time_out("mill")
    async with db.transaction() as tx:
        await health.report(tx)


async def test_a_breaker_opens_at_its_share_of_errors_seen_by_all_workers_together(db: Database) -> None:
    await set_up(db, "mill", breaker="30%", breaker_minimum=10)
    await reported(db, ok=7, failed=2)
    assert await breaker(db) == ("closed", None)
    await reported(db, failed=1)
    assert await breaker(db) == ("open", "3 of 10 failed")
    await sent_many(db, 3)
    assert await OneWorker(db).claim() == []
    async with db.transaction() as tx:
        (report,) = await list_queues(tx)
        assert report.breaker is not None
        assert report.breaker.until == report.breaker.since + timedelta(minutes=5)  # type: ignore[operator]


async def test_old_errors_are_forgotten(db: Database) -> None:
    await set_up(db, "mill", breaker="30%", breaker_minimum=10)
    await reported(db, failed=9)
    async with later(db, 2 * MINUTE) as tx:
        health = HealthReporter()
        health.count("mill", ok=False)
        await health.report(tx)
    assert (await breaker(db))[0] == "closed"


@pytest.mark.parametrize(
    ("ok", "timed_out", "then"),
    [
        (0, 2, ("closed", None)),
        (0, 3, ("open", "3 tasks in a row took too long")),
        (1, 3, ("closed", None)),
    ],
)
async def test_a_stage_that_stands_still_opens_its_breaker_however_few_its_tasks(
    db: Database, ok: int, timed_out: int, then: Any
) -> None:
    await set_up(db, "mill", timeout="300s")
    async with later(db, -10 * MINUTE) as tx:  # one after the other, each as long as its time-out
        health = HealthReporter()
        health.count("mill", ok=False)
        health.count_time_out("mill")
        if ok:
            health.count("mill", ok=True)
        await health.report(tx)
    await reported(db, failed=timed_out - 1, timed_out=timed_out - 1)
    assert await breaker(db) == then


@pytest.mark.parametrize(("ok", "failed", "then"), [(0, 19, "closed"), (14, 6, "open"), (15, 5, "closed")])
async def test_every_queue_has_a_breaker_that_few_errors_do_not_open(
    db: Database, ok: int, failed: int, then: str
) -> None:
    await sent(db, Grind())
    await reported(db, ok=ok, failed=failed)
    assert (await breaker(db))[0] == then


async def test_a_queue_that_is_well_is_not_locked_by_its_breaker(db: Database) -> None:
    await sent(db, Grind())
    async with db.transaction() as tx:
        await tx.one("SELECT FROM queue WHERE name = 'mill' FOR NO KEY UPDATE")
        await reported(db, ok=10, failed=1)
    assert await ask(db, "SELECT ok, failed FROM queue_health") == [(10, 1)]


async def test_without_a_breaker_nothing_is_counted(db: Database) -> None:
    await set_up(db, "mill", breaker=None)
    await reported(db, failed=100, timed_out=100)
    assert (await breaker(db))[0] == "closed"
    assert await ask(db, "SELECT 1 FROM queue_health") == []


@pytest.mark.parametrize(("good", "then"), [(True, "closed"), (False, "open")])
async def test_after_its_pause_a_breaker_lets_one_task_try(db: Database, good: bool, then: str) -> None:
    await set_up(db, "mill", breaker="30%", breaker_minimum=10, breaker_reset=MINUTE)
    await sent_many(db, 5)
    await reported(db, failed=10)
    assert (await breaker(db))[0] == "open"
    async with db.transaction() as tx:
        await tx.execute("UPDATE queue SET breaker_since = breaker_since - breaker_reset")
    worker = OneWorker(db)
    (probe,) = await worker.claim()
    assert await breaker(db) == ("half-open", "trying one task")
    assert await OneWorker(db).claim() == []
    async with db.transaction() as tx:
        await settled(tx, worker.worker, [probe])
    await set_up(db, "mill", breaker_reset="5min")
    await reported(db, ok=int(good), failed=int(not good))
    assert (await breaker(db))[0] == then
    assert len(await OneWorker(db).claim()) == (4 if good else 0)
    if good:  # the errors of before are forgotten: one more does not open it
        await reported(db, failed=1)
        assert (await breaker(db))[0] == "closed"


async def test_a_breaker_that_was_taken_away_does_not_move(db: Database) -> None:
    await set_up(db, "mill", breaker=None)
    async with db.transaction() as tx:
        await half_open(tx, "mill")
    assert (await breaker(db))[0] == "closed"


async def test_workers_open_the_breaker_hold_back_and_come_back_by_themselves(db: Database) -> None:
    broken = True
    calls = 0
    await set_up(
        db,
        "mill",
        breaker="30%",
        breaker_minimum=5,
        breaker_reset="1d",
        max_attempts=None,
        retry_base=timedelta(milliseconds=1),
        retry_cap=timedelta(milliseconds=2),
    )

    async def outside(letter: Grind) -> None:
        nonlocal calls
        calls += 1
        if broken:
            raise Transient("the world is broken")

    await sent_many(db, 8)
    async with working(db, on(Grind, outside), name="one"), working(db, on(Grind, outside), name="two"):

        async def is_open() -> bool:
            return (await breaker(db))[0] == "open"

        async def rests() -> bool:
            held = await ask(db, "SELECT 1 FROM ticket WHERE worker IS NOT NULL")
            return not held

        async def told() -> bool:
            (row,) = await ask(db, "SELECT coalesce(sum(failed), 0) AS failed FROM queue_health")
            return row.failed == calls

        await until(is_open)
        await until(rests)
        await until(told, "both workers have told what they saw")
        broken = False
        await set_up(db, "mill", breaker_reset=timedelta(milliseconds=1))

        async def all_done() -> bool:
            return not await ask(db, "SELECT 1 FROM task WHERE outcome IS NULL")

        await until(all_done, "all tasks are done")
    assert (await breaker(db))[0] == "closed"


async def test_errors_of_the_input_do_not_open_the_breaker(db: Database) -> None:
    await set_up(db, "mill", breaker="30%", breaker_minimum=5)

    async def torn(letter: Grind) -> None:
        raise Permanent("torn")

    await sent_many(db, 20)
    async with working(db, on(Grind, torn)):

        async def counted() -> bool:
            (row,) = await ask(
                db, "SELECT coalesce(sum(ok), 0) AS ok, coalesce(sum(failed), 0) AS failed FROM queue_health"
            )
            assert row.failed == 0
            return row.ok == 20

        await until(counted)
    assert (await breaker(db))[0] == "closed"
