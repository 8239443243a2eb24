"""A worker at work: every kind of handler and every way a task can end, lost connections included."""

import asyncio
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar

import pytest
from crew import (
    QUICK,
    all_waiting,
    ask,
    ends,
    never,
    nothing,
    row,
    sent,
    sent_many,
    set_up,
    until,
    until_status,
    worked,
    working,
)
from engine import DAY, Bake, Grind, audit, later, statuses
from structlog.testing import capture_logs

from gristmill.db import Database, Tx
from gristmill.errors import Overloaded, Permanent, Refused, Transient
from gristmill.queue import (
    Done,
    Envelope,
    Skip,
    Snooze,
    bind,
    current,
    on,
    open_group,
    seal,
    send_many,
)
from gristmill.queue.operate.cancel import cancel
from gristmill.queue.upkeep.rescuer import rescue

SOON = timedelta(milliseconds=1)


# --- every kind of handler


def double(letter: Grind) -> int:
    return letter.grain * 2


async def double_soon(letter: Grind) -> int:
    return double(letter)


@pytest.mark.parametrize("handler", [on(Grind, double_soon), on(Grind, double), on(Grind, double, process=True)])
async def test_what_a_handler_returns_is_the_result(db: Database, handler: Any) -> None:
    ids = await sent_many(db, 5)
    await worked(db, handler)
    assert [(await row(db, id_)).result for id_ in ids] == [0, 2, 4, 6, 8]
    assert await ends(db) == {"completed": 5}


async def test_a_partial_is_run_as_what_it_wraps(db: Database) -> None:
    async def add(letter: Grind, *, to: int) -> int:
        return letter.grain + to

    task = await sent(db, Grind(1))
    await worked(db, on(Grind, partial(add, to=41)))
    assert (await row(db, task)).result == 42


def test_a_coroutine_cannot_be_bound_to_a_process_nor_a_kind_twice() -> None:
    with pytest.raises(ValueError, match=r"mill\.grind: a coroutine cannot run in a child process"):
        on(Grind, nothing, process=True)
    with pytest.raises(ValueError, match=r"two handlers answer mill\.grind"):
        bind(on(Grind, nothing), on(Grind, double))


async def test_a_handler_knows_its_task(db: Database) -> None:
    async def who(letter: Grind) -> list[Any]:
        return [current().id, current().attempt, current().idempotency_key]

    def who_in_a_thread(letter: Bake) -> list[Any]:
        return [current().id, current().attempt, current().idempotency_key]

    grind, bake = await sent(db, Grind()), await sent(db, Bake())
    await worked(db, on(Grind, who), on(Bake, who_in_a_thread))
    for task in (grind, bake):
        assert (await row(db, task)).result == [task, 1, f"gristmill-{task}"]


def who_in_a_process(letter: Grind) -> list[Any]:
    current().progress(1, 2, "in a process")
    return [current().id, current().attempt, current().idempotency_key]


async def test_a_handler_in_a_child_process_knows_its_task_and_tells_how_far_it_is(db: Database) -> None:
    task = await sent(db, Grind())
    await worked(db, on(Grind, who_in_a_process, process=True))
    assert (await row(db, task)).result == [task, 1, f"gristmill-{task}"]


def waits_in_a_process(letter: Grind) -> None:
    current().progress(1, 2, "in a process")
    time.sleep(1000)


async def test_progress_of_a_child_process_is_seen_while_it_runs(db: Database) -> None:
    task = await sent(db, Grind())
    async with working(db, on(Grind, waits_in_a_process, process=True)):
        await until(lambda: ask(db, "SELECT 1 FROM task_progress"))
        seen = await row(db, task)
        assert (seen.progress_current, seen.progress_total, seen.progress_message) == (1, 2, "in a process")
        await cancel_all(db, "mill")
        await until_status(db, task, "cancelled")


@pytest.mark.parametrize("batch", [None, 2])
async def test_calls_that_wait_for_something_scarce_leave_the_slots_to_other_queues(
    db: Database, batch: int | None
) -> None:
    here, most, scarce = 0, 0, asyncio.Event()

    async def wait(letters: Any) -> Any:
        nonlocal here, most
        here, most = here + 1, max(most, here + 1)
        await scarce.wait()
        here -= 1
        return [None for _ in letters] if batch else None

    await sent_many(db, 12)
    async with working(db, on(Grind, wait, at_once=2, batch=batch), on(Bake, double_bake), concurrency=4):
        await until(lambda: _true(here == 2))
        other = await sent(db, Bake())
        await until_status(db, other, "completed")
        scarce.set()
        await until(lambda: ask(db, "SELECT 1 HAVING NOT EXISTS (SELECT FROM tasks WHERE status <> 'completed')"))
    assert most == 2


async def _true(value: bool) -> bool:
    return value


async def test_a_batch_knows_all_its_tasks_and_none_as_the_only_one(db: Database) -> None:
    told: list[Any] = []

    async def all_of_them(letters: Sequence[Grind]) -> list[None]:
        told.append(current().ids)
        current().progress(1, 2)
        for name in ("id", "attempt", "idempotency_key"):
            with pytest.raises(Permanent, match=f"a batch has many tasks, and so no {name} of its own"):
                getattr(current(), name)
        return [None for _ in letters]

    ids = await sent_many(db, 3)
    await worked(db, on(Grind, all_of_them, batch=3), concurrency=1)
    assert told == [tuple(ids)]


def test_where_nothing_is_answered_there_is_no_current_task() -> None:
    with pytest.raises(Refused, match="Nothing is being answered here"):
        current()


async def test_a_handler_that_will_not_be_interrupted_keeps_neither_its_task_nor_the_worker(db: Database) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def stubborn(letter: Grind) -> None:
        begun.set()
        while not go.is_set():
            with suppress(asyncio.CancelledError):
                await go.wait()

    task = await sent(db, Grind())
    hurried = QUICK.model_copy(update={"stop": timedelta(milliseconds=50)})
    async with working(db, on(Grind, stubborn), settings=hurried):
        await begun.wait()
    left = await row(db, task)
    assert (left.status, left.attempts, left.worker) == ("pending", 0, None)
    go.set()
    await worked(db, on(Grind, nothing))
    assert (await row(db, task)).status == "completed"


@dataclass(frozen=True)
class Point:
    """A result that is not JSON by itself."""

    x: int


async def test_results_of_many_kinds_become_json_and_others_an_error(db: Database) -> None:
    answers: list[Any] = [Point(3), [Point(1)], {"a": SOON}, object(), Done(result=object()), Done(result=Point(4))]

    async def answer(letter: Grind) -> Any:
        return answers[letter.grain]

    ids = await sent_many(db, len(answers), max_attempts=1)
    await worked(db, on(Grind, answer))
    rows = [await row(db, id_) for id_ in ids]
    assert [one.status for one in rows] == ["completed"] * 3 + ["failed"] * 2 + ["completed"]
    assert [rows[0].result, rows[1].result, rows[5].result] == [{"x": 3}, [{"x": 1}], {"x": 4}]
    assert "object is unsupported" in rows[3].error


async def test_each_answer_ends_its_task_as_it_says(db: Database) -> None:
    answers: list[Any] = [Done(then=(Bake(1),)), Skip("nothing new"), Snooze(DAY), Permanent("torn"), Transient("busy")]

    async def answer(letter: Grind) -> Any:
        if isinstance(answers[letter.grain], Exception):
            raise answers[letter.grain]
        return answers[letter.grain]

    ids = await sent_many(db, len(answers))
    async with working(db, on(Grind, answer), on(Bake, never)):
        for task, status in zip(ids, ["completed", "skipped", "pending", "failed", "pending"], strict=True):
            await until_status(db, task, status)
        await until(lambda: ask(db, "SELECT 1 FROM task WHERE error = 'busy' AND wait = 'time'"))
        await until(lambda: ask(db, "SELECT 1 FROM ticket WHERE queue = 'oven' AND worker IS NOT NULL"))
        await cancel_all(db, "oven")


async def cancel_all(db: Database, queue: str) -> None:
    async with db.transaction() as tx:
        ids = [one.id for one in await tx.all("SELECT id FROM task WHERE queue = %(q)s AND outcome IS NULL", q=queue)]
        await cancel(tx, ids)


# --- what cannot be answered


async def test_an_unknown_kind_is_retried_with_a_sentence_for_whoever_deploys(db: Database) -> None:
    task = await sent(db, Bake(), queue="mill", max_attempts=2)
    await set_up(db, "mill", retry_base=SOON)
    await worked(db, on(Grind, nothing))
    failed = await row(db, task)
    assert (failed.status, failed.attempts) == ("failed", 2)
    assert failed.error == "no handler answers oven.bake: is this worker older than the sender?"


@pytest.mark.parametrize("payload", ['{"grain": "x"}', "[]", '"x"', "null", '{"grain": 1.5}'])
async def test_a_payload_that_does_not_fit_is_buried_at_once(db: Database, payload: str) -> None:
    task = await sent(db, Grind())
    await ask(db, "UPDATE task SET payload = %(p)s::jsonb WHERE id = %(id)s RETURNING id", id=task, p=payload)
    await worked(db, on(Grind, nothing))
    failed = await row(db, task)
    assert (failed.status, failed.attempts) == ("failed", 1)
    assert failed.error.startswith("the payload does not fit mill.grind: ")


@dataclass(frozen=True)
class Grown:
    """Grind as a later version knows it: with a field more."""

    kind: ClassVar[str] = "mill.grind"
    grain: int = 0
    fineness: int = 3


async def test_a_letter_of_an_older_sender_fits_where_the_new_field_has_a_default(db: Database) -> None:
    async def fine(letter: Grown) -> int:
        return letter.fineness

    task = await sent(db, Grind(1))
    await worked(db, on(Grown, fine))
    assert (await row(db, task)).result == 3


# --- errors and retries


async def test_a_task_is_retried_with_backoff_until_it_succeeds(db: Database) -> None:
    await set_up(db, "mill", retry_base=timedelta(milliseconds=40))
    times: list[float] = []

    async def third_time(letter: Grind) -> None:
        times.append(asyncio.get_running_loop().time())
        if len(times) < 3:
            raise ValueError(f"not yet {len(times)}")

    task = await sent(db, Grind())
    await worked(db, on(Grind, third_time))
    done = await row(db, task)
    assert (done.status, done.attempts, done.error) == ("completed", 3, None)
    assert times[1] - times[0] >= 0.8 * 0.04
    assert times[2] - times[1] >= 0.8 * 0.08
    failures = await ask(db, "SELECT attempt, error FROM task_failure ORDER BY attempt")
    assert [(one.attempt, one.error) for one in failures] == [
        (1, "ValueError: not yet 1"),
        (2, "ValueError: not yet 2"),
    ]


async def test_waits_are_spread(db: Database) -> None:
    async def busy(letter: Grind) -> None:
        raise Transient("busy")

    await sent_many(db, 20)
    async with working(db, on(Grind, busy)):
        await until(lambda: all_waiting(db))
    waits = await ask(db, "SELECT extract(epoch FROM run_at - started_at)::float8 AS wait FROM task")
    assert all(7.9 <= one.wait <= 13.0 for one in waits)
    assert len({round(one.wait, 2) for one in waits}) > 5


async def test_whoever_is_overloaded_says_when_to_come_back(db: Database) -> None:
    async def busy(letter: Grind) -> None:
        raise Overloaded("429", timedelta(hours=1))

    task = await sent(db, Grind())
    async with working(db, on(Grind, busy)):
        await until(lambda: ask(db, "SELECT 1 FROM task WHERE wait = 'time'"))
    waiting = await row(db, task)
    assert timedelta(minutes=59) < waiting.run_at - waiting.started_at < timedelta(minutes=61)


async def test_a_queue_that_never_gives_up_tries_again_and_again(db: Database) -> None:
    await set_up(db, "mill", max_attempts=None, retry_base=SOON, retry_cap=SOON)

    async def tenth_time(letter: Grind) -> None:
        if current().attempt < 10:
            raise Transient("busy")

    task = await sent(db, Grind())
    await worked(db, on(Grind, tenth_time))
    done = await row(db, task)
    assert (done.status, done.attempts) == ("completed", 10)


async def test_an_error_with_a_nul_in_it_is_kept_and_the_worker_lives(db: Database) -> None:
    async def odd(letter: Grind) -> None:
        raise ValueError(f"a\0b {letter.grain}")

    first = await sent(db, Grind(1), max_attempts=1)
    await worked(db, on(Grind, odd))
    assert (await row(db, first)).error == "ValueError: a\\0b 1"


# --- time-outs, cancelling, stopping


def hang(letter: Any, *, gate: threading.Event) -> None:
    gate.wait(30)


@pytest.mark.parametrize("mode", ["async", "thread", "process"])
async def test_a_handler_that_takes_too_long_is_retried_with_a_sentence(db: Database, mode: str) -> None:
    gate = threading.Event()
    handler = {
        "async": on(Grind, never, timeout=timedelta(milliseconds=50)),
        "thread": on(Grind, partial(hang, gate=gate), timeout=timedelta(milliseconds=50)),
        "process": on(Grind, hang_for_long, process=True, timeout=timedelta(milliseconds=50)),
    }[mode]
    task = await sent(db, Grind(), max_attempts=1)
    await worked(db, handler)
    gate.set()
    failed = await row(db, task)
    assert failed.status == "failed"
    assert ("after 0.05 s" if mode == "process" else "longer than 0.05 s") in failed.error


def hang_for_long(letter: Any) -> None:
    threading.Event().wait(60)


async def test_a_thread_that_hangs_blocks_neither_its_slot_nor_the_stop(db: Database) -> None:
    gate = threading.Event()
    ids = await sent_many(db, 3, max_attempts=1)
    after = await sent(db, Bake())
    handler = on(Grind, partial(hang, gate=gate), timeout=timedelta(milliseconds=50))
    async with working(db, handler, on(Bake, double_bake), concurrency=1):
        for task in ids:
            await until_status(db, task, "failed")
        await until_status(db, after, "completed")
    gate.set()


def double_bake(letter: Bake) -> int:
    return letter.loaf * 2


@pytest.mark.parametrize("mode", ["async", "thread", "process"])
async def test_a_running_task_is_cancelled(db: Database, mode: str) -> None:
    begun, seen = threading.Event(), threading.Event()

    def looks(letter: Grind) -> None:
        begun.set()
        try:
            while not seen.wait(0.01):
                current().check()
        finally:
            seen.set()

    async def waits(letter: Grind) -> None:
        begun.set()
        await asyncio.Event().wait()

    handler = {"async": on(Grind, waits), "thread": on(Grind, looks), "process": on(Grind, hang_for_long, process=True)}
    task = await sent(db, Grind())
    async with working(db, handler[mode]):
        await until_status(db, task, "processing")
        async with db.transaction() as tx:
            assert (await cancel(tx, [task])).asked == (task,)
        ended = await until_status(db, task, "cancelled")
        assert ended.error == "cancelled while it ran"
    if mode == "thread" and begun.is_set():
        assert await asyncio.to_thread(seen.wait, 10)


async def test_a_stop_finishes_what_runs_and_gives_back_what_has_not_begun(db: Database) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def slow(letter: Grind) -> int:
        begun.set()
        await go.wait()
        return letter.grain

    first, *others = await sent_many(db, 4)
    async with working(db, on(Grind, slow), concurrency=1) as worker:
        await begun.wait()
        worker.stop()
        assert not worker.ready
        await until(lambda: ask(db, "SELECT 1 FROM worker WHERE state = 'stopping'"))
        go.set()
    assert (await row(db, first)).status == "completed"
    assert [(one.status, one.attempts) for one in [await row(db, id_) for id_ in others]] == [("pending", 0)] * 3
    assert [one.state for one in await ask(db, "SELECT state FROM worker")] == ["stopped"]
    await ends(db)


@pytest.mark.parametrize("mode", ["async", "thread", "process"])
async def test_a_stop_interrupts_after_its_bound_without_using_an_attempt(db: Database, mode: str) -> None:
    gate = threading.Event()
    handler = {
        "async": on(Grind, never),
        "thread": on(Grind, partial(hang, gate=gate)),
        "process": on(Grind, hang_for_long, process=True),
    }[mode]
    task = await sent(db, Grind(), max_attempts=1)
    hurried = QUICK.model_copy(update={"stop": timedelta(milliseconds=50)})
    async with working(db, handler, settings=hurried):
        await until_status(db, task, "processing")
    gate.set()
    given_back = await row(db, task)
    assert (given_back.status, given_back.attempts, given_back.error) == ("pending", 0, None)
    await worked(db, on(Grind, nothing))
    assert (await row(db, task)).status == "completed"


async def test_progress_is_seen_while_a_task_runs(db: Database) -> None:
    go = asyncio.Event()

    async def slow(letter: Grind) -> None:
        current().progress(3, 10, "page 3")
        await go.wait()

    task = await sent(db, Grind())
    async with working(db, on(Grind, slow)):
        await until(lambda: ask(db, "SELECT 1 FROM task_progress"))
        seen = await row(db, task)
        assert (seen.progress_current, seen.progress_total, seen.progress_message) == (3, 10, "page 3")
        go.set()
        await until_status(db, task, "completed")


@pytest.mark.parametrize("said", [(1, None, "a\0b"), (2**70, None, None), (1, 2**70, "x")])
async def test_progress_that_cannot_be_written_costs_nobody_anything(db: Database, said: Any) -> None:
    go = asyncio.Event()

    async def odd(letter: Grind) -> None:
        current().progress(*said)
        await go.wait()

    task, other = await sent_many(db, 2)
    with capture_logs() as logs:
        async with working(db, on(Grind, odd)):
            await until(lambda: _said(logs, "progress.unwritable"))
            go.set()
            await until_status(db, task, "completed")
            await until_status(db, other, "completed")


async def _said(logs: Sequence[Any], event: str) -> bool:
    return any(entry["event"] == event for entry in logs)


# --- several workers, and coming back


async def test_two_workers_share_the_work_and_do_each_task_once(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.execute("CREATE TABLE ledger (grain int PRIMARY KEY, worker text)")

    def grind(name: str) -> Any:
        async def run(letter: Grind) -> Done:
            await asyncio.sleep(0)
            return Done(partial(_enter, grain=letter.grain, worker=name))

        return on(Grind, run)

    await sent_many(db, 400)
    few = QUICK.model_copy(update={"batch": 10})
    await asyncio.gather(*(worked(db, grind(name), name=name, settings=few) for name in ("one", "two")))
    rows = await ask(db, "SELECT worker, count(*) AS n FROM ledger GROUP BY worker")
    assert sum(one.n for one in rows) == 400
    assert {one.worker for one in rows} == {"one", "two"}
    assert await ends(db) == {"completed": 400}


async def _enter(tx: Tx, *, grain: int, worker: str) -> None:
    await tx.execute("INSERT INTO ledger VALUES (%(grain)s, %(worker)s)", grain=grain, worker=worker)


async def test_until_idle_waits_for_retries_followers_and_groups(db: Database) -> None:
    await set_up(db, "mill", retry_base=SOON)
    async with db.transaction() as tx:
        group = await open_group(tx)
        await send_many(tx, [Envelope(Grind(i), parent=group, serial_key="key") for i in range(3)])
        await seal(tx, group)
        await send_many(tx, [Envelope(Bake(), after=group, delay=timedelta(milliseconds=30))])

    async def second_time(letter: Grind) -> Done:
        if current().attempt == 1:
            raise Transient("busy")
        return Done(then=(Bake(letter.grain),))

    await worked(db, on(Grind, second_time), on(Bake, double_bake))
    assert await ends(db) == {"completed": 8}


async def test_a_worker_whose_leases_were_taken_back_registers_anew_and_its_old_answers_are_not_written(
    db: Database,
) -> None:
    async with db.transaction() as tx:
        await tx.execute("CREATE TABLE ledger (grain int, worker text)")
    begun, go = asyncio.Event(), asyncio.Event()
    attempts: list[int] = []

    async def slow(letter: Grind) -> Done:
        attempts.append(current().attempt)
        if len(attempts) == 1:
            begun.set()
            while not go.is_set():  # it does not stop when told to
                try:
                    await go.wait()
                except asyncio.CancelledError:
                    continue
        return Done(partial(_enter, grain=letter.grain, worker=str(current().attempt)))

    task = await sent(db, Grind(7))
    async with working(db, on(Grind, slow)) as worker:
        await begun.wait()
        first = worker.id
        async with later(db, DAY) as tx:
            (rescued,) = await rescue(tx, read=lambda _: frozenset())
            assert rescued.back == (task,)
        await until_status(db, task, "completed")
        assert worker.id != first
        go.set()
    rows = await ask(db, "SELECT grain FROM ledger")
    assert [one.grain for one in rows] == [7]
    assert len(attempts) == 2
    assert [one.state for one in await ask(db, "SELECT state FROM worker ORDER BY id")] == ["lost", "stopped"]


async def test_all_connections_are_cut_again_and_again_and_everything_is_done_exactly_once(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.execute("CREATE TABLE ledger (grain int, worker text)")
    done = 0

    async def grind(letter: Grind) -> Done:
        nonlocal done
        done += 1
        await asyncio.sleep(0.001)
        return Done(partial(_enter, grain=letter.grain, worker=""))

    await sent_many(db, 600)
    few = QUICK.model_copy(update={"batch": 20})
    admin = await db.connect("cutter")
    try:
        async with working(db, on(Grind, grind), settings=few):
            for part in range(1, 6):
                await until(lambda part=part: _reached(lambda: done, part * 90))
                await admin.execute(
                    """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                        WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name <> ''"""
                )
            await until(lambda: _all_done(admin))
    finally:
        await admin.close()
    async with db.transaction() as tx:
        rows = await tx.all("SELECT grain FROM ledger ORDER BY grain")
        assert [one.grain for one in rows] == list(range(600))
        assert set((await statuses(tx)).values()) == {"completed"}
        assert await tx.value("SELECT sum(completed) FROM queue_tally") == 600
        await audit(tx)


async def _reached(counted: Any, n: int) -> bool:
    return counted() >= n


async def _all_done(admin: Any) -> bool:
    return (await (await admin.execute("SELECT count(*) FROM task WHERE outcome IS NULL")).fetchone())[0] == 0
