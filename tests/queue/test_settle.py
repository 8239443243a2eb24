"""Settling: rows, letters, counters and completion commit together, fenced by the lease, or not at all."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
import pytest
from engine import (
    LEASE,
    MINUTE,
    Bake,
    Grind,
    audit,
    claimed,
    group,
    later,
    promote,
    registered,
    settled,
    status,
    statuses,
    task,
)

from gristmill.db import Database, Tx
from gristmill.errors import LeaseLost, Permanent, Refused
from gristmill.ids import TaskId, WorkerId
from gristmill.queue import Envelope, JointWrite, Skip, Snooze, Unique, open_group, seal, send, send_many
from gristmill.queue.claim import Claim
from gristmill.queue.config import QueueConfig
from gristmill.queue.fingerprint import fingerprint
from gristmill.queue.journal import Journal
from gristmill.queue.operate.cancel import cancel
from gristmill.queue.outcome import Bury, Done, Outcome, Retry, Stop
from gristmill.queue.settle import settle
from gristmill.queue.upkeep.rescuer import rescue
from gristmill.queue.worker.give_back import give_back_claims
from gristmill.queue.worker.settler import Settler
from gristmill.queue.worker.workload import Workload
from gristmill.telemetry import WorkerMetrics


@pytest.fixture
async def ledger(db: Database) -> str:
    """A table that tasks write into; what a task did is what stands there."""
    async with db.transaction() as tx:
        await tx.execute("CREATE TABLE ledger (entry text)")
    return "INSERT INTO ledger VALUES (%(entry)s)"


def writes(entry: str) -> Callable[[Tx], Awaitable[None]]:
    async def write(tx: Tx) -> None:
        await tx.execute("INSERT INTO ledger VALUES (%(entry)s)", entry=entry)

    return write


async def entries(tx: Tx) -> list[str]:
    return [row.entry for row in await tx.all("SELECT entry FROM ledger ORDER BY entry")]


async def tally(tx: Tx, queue: str = "mill") -> dict[str, int]:
    """The counters of a queue that are not zero, over all workers."""
    row = await tx.one(
        """SELECT sum(completed) AS completed, sum(failed) AS failed, sum(skipped) AS skipped,
                  sum(cancelled) AS cancelled, sum(retried) AS retried, sum(prunable) AS prunable
             FROM queue_tally WHERE queue = %(queue)s""",
        queue=queue,
    )
    assert row is not None
    return {name: int(n) for name, n in row._asdict().items() if n}


async def history(tx: Tx, id_: TaskId) -> list[tuple[int, str]]:
    rows = await tx.all("SELECT attempt, error FROM task_failure WHERE task = %(id)s ORDER BY attempt", id=id_)
    return [(row.attempt, row.error) for row in rows]


async def one_claimed(tx: Tx, letter: Any = None, **outside: Any) -> tuple[WorkerId, Claim]:
    await send(tx, letter or Grind(), **outside)
    worker = await registered(tx)
    (claim,) = await claimed(tx, worker)
    return worker, claim


# --- what each outcome means


async def test_done_writes_sends_and_completes_at_once(db: Database, ledger: str) -> None:
    async with db.transaction() as tx:
        worker, claim = await one_claimed(tx)
        await settled(
            tx, worker, [claim], Done(writes("x"), then=(Bake(1), Envelope(Bake(2), priority=3)), result={"a": [1]})
        )
        row = await task(tx, claim.id)
        assert (row.status, row.result, row.attempts, row.worker, row.error) == (
            "completed",
            {"a": [1]},
            1,
            worker,
            None,
        )
        assert row.created_at <= row.started_at <= row.finished_at
        assert await entries(tx) == ["x"]
        sent = await tx.all("SELECT kind, priority FROM task WHERE queue = 'oven' ORDER BY id")
        assert [(one.kind, one.priority) for one in sent] == [("oven.bake", 0), ("oven.bake", 3)]
        assert await tally(tx) == {"completed": 1, "prunable": 1}
        await audit(tx)


@pytest.mark.parametrize("result", [None, 0, "", False, [], {}, 1.5, "ž\\\"'\n", {"a": None}])
async def test_any_result_comes_back_as_it_was(db: Database, result: Any) -> None:
    async with db.transaction() as tx:
        worker, claim = await one_claimed(tx)
        await settled(tx, worker, [claim], Done(result=result))
        assert (await task(tx, claim.id)).result == result


async def test_skip_counts_as_done_with_its_reason(db: Database, ledger: str) -> None:
    async with db.transaction() as tx:
        worker, claim = await one_claimed(tx)
        after = await send(tx, Bake(), after=claim.id)
        await settled(tx, worker, [claim], Skip("nothing new", writes("seen")))
        row = await task(tx, claim.id)
        assert (row.status, row.error, row.fingerprint) == ("skipped", "nothing new", None)
        assert await entries(tx) == ["seen"]
        assert (await task(tx, after)).wait is None
        assert await tally(tx) == {"skipped": 1, "prunable": 1}
        await audit(tx)


async def test_what_is_skipped_may_still_be_followed_by_letters(db: Database) -> None:
    async with db.transaction() as tx:
        worker, claim = await one_claimed(tx)
        await settled(tx, worker, [claim], Skip("it has its text already", then=(Bake(),)))
        assert (await task(tx, claim.id)).status == "skipped"
        assert await tx.value("SELECT count(*) FROM task WHERE id > %(id)s", id=claim.id) == 1
        await audit(tx)


async def test_snooze_comes_back_later_and_uses_no_attempt(db: Database) -> None:
    async with db.transaction() as tx:
        worker, claim = await one_claimed(tx, max_attempts=1)
        await settled(tx, worker, [claim], Snooze(MINUTE))
        row = await task(tx, claim.id)
        assert (row.status, row.wait, row.attempts, row.error) == ("pending", "time", 0, None)
        assert await tally(tx) == {}
        assert await history(tx, claim.id) == []
    async with later(db, 2 * MINUTE) as tx:
        await promote(tx, 9)
        (again,) = await claimed(tx, await registered(tx))
        assert again.attempt == 1


async def test_retry_keeps_the_attempt_and_its_error(db: Database) -> None:
    async with db.transaction() as tx:
        worker, claim = await one_claimed(tx)
        await settled(tx, worker, [claim], Retry(MINUTE, "busy 17"))
        row = await task(tx, claim.id)
        assert (row.status, row.wait, row.attempts, row.error) == ("pending", "time", 1, "busy 17")
        assert row.run_at - row.created_at >= MINUTE
        assert row.fingerprint == fingerprint("busy 99")
        assert await tally(tx) == {"retried": 1}
    async with later(db, 2 * MINUTE) as tx:
        await promote(tx, 9)
        worker = await registered(tx)
        (again,) = await claimed(tx, worker)
        assert again.attempt == 2
        await settled(tx, worker, [again])
        row = await task(tx, claim.id)
        assert (row.status, row.attempts, row.error, row.fingerprint) == ("completed", 2, None, None)
        assert await history(tx, claim.id) == [(1, "busy 17")]
        assert await tally(tx) == {"retried": 1, "completed": 1, "prunable": 1}
        await audit(tx)


async def test_bury_keeps_payload_fingerprint_and_the_whole_history(db: Database) -> None:
    async with db.transaction() as tx:
        worker, claim = await one_claimed(tx, Grind(7))
        await settled(tx, worker, [claim], Retry(timedelta(0), "page 1 is torn"))
        await promote(tx, 9)
        (claim,) = await claimed(tx, worker)
        await settle(tx, worker, [(claim, Bury("page 2 is torn"))], clears=frozenset({"mill"}))
        row = await task(tx, claim.id)
        assert (row.status, row.attempts, row.payload, row.error) == ("failed", 2, {"grain": 7}, "page 2 is torn")
        assert row.fingerprint == fingerprint("page 99 is torn")
        assert await tx.value("SELECT died_at = finished_at FROM task WHERE id = %(id)s", id=claim.id)
        assert await history(tx, claim.id) == [(1, "page 1 is torn"), (2, "page 2 is torn")]
        assert await tally(tx) == {"retried": 1, "failed": 1}
        await audit(tx)


async def test_stop_is_cancelled_and_takes_those_after_it_along(db: Database) -> None:
    async with db.transaction() as tx:
        worker, claim = await one_claimed(tx, unique=Unique("key", period=LEASE))
        after = await send(tx, Bake(), after=claim.id)
        await settled(tx, worker, [claim], Stop())
        assert await statuses(tx) == {claim.id: "cancelled", after: "cancelled"}
        assert await tally(tx) == {"cancelled": 1, "prunable": 1}
        assert await tally(tx, "oven") == {"cancelled": 1, "prunable": 1}
        await audit(tx)


@pytest.mark.parametrize("outcome", [Done(), Done(result=1), Skip("no")])
async def test_a_payload_is_cleared_where_asked(db: Database, outcome: Outcome) -> None:
    async with db.transaction() as tx:
        worker, claim = await one_claimed(tx)
        await settle(tx, worker, [(claim, outcome)], clears=frozenset({"mill"}))
        assert (await task(tx, claim.id)).payload is None


async def test_a_payload_is_kept_for_the_next_attempt(db: Database) -> None:
    async with db.transaction() as tx:
        worker, claim = await one_claimed(tx)
        await settle(tx, worker, [(claim, Retry(MINUTE, "busy"))], clears=frozenset({"mill"}))
        assert (await task(tx, claim.id)).payload == {"grain": 0}


@pytest.mark.parametrize("outcome", [Retry(MINUTE, "busy"), Snooze(MINUTE)])
@pytest.mark.parametrize("parent", [False, True])
async def test_what_would_come_back_is_cancelled_if_somebody_asked_meanwhile(
    db: Database, outcome: Outcome, parent: bool
) -> None:
    async with db.transaction() as tx:
        within = await open_group(tx) if parent else None
        worker, claim = await one_claimed(tx, parent=within)
        assert (await cancel(tx, [claim.id])).asked == (claim.id,)
        await settled(tx, worker, [claim], outcome)
        assert await status(tx, claim.id) == "cancelled"
        assert await tally(tx) == {"cancelled": 1} | ({} if parent else {"prunable": 1})
        await audit(tx)


async def test_what_fails_after_somebody_cancelled_it_is_cancelled_and_no_dead_letter(db: Database) -> None:
    async with db.transaction() as tx:
        worker, claim = await one_claimed(tx, unique=Unique("key"))
        await cancel(tx, [claim.id])
        await settled(tx, worker, [claim], Bury("its group is sealed"))
        row = await task(tx, claim.id)
        assert (row.status, row.error, row.fingerprint) == ("cancelled", "cancelled while it ran", None)
        assert await tx.value("SELECT died_at FROM task WHERE id = %(id)s", id=claim.id) is None
        assert await history(tx, claim.id) == [(1, "its group is sealed")]
        assert await tally(tx) == {"cancelled": 1, "prunable": 1}
        await audit(tx)


async def test_tallies_are_exact_over_a_mixed_batch_of_several_queues(db: Database, ledger: str) -> None:
    outcomes: list[Outcome] = [
        Done(),
        Done(writes("a")),
        Done(result=1),
        Skip("no"),
        Stop(),
        Bury("bad"),
        Retry(MINUTE, "busy"),
        Snooze(MINUTE),
    ]
    async with db.transaction() as tx:
        owned = [
            Envelope(letter(i), owner=owner) for letter in (Grind, Bake) for i in range(8) for owner in (None, "me")
        ]
        await send_many(tx, owned)
        worker = await registered(tx, "mill", "oven")
        claims = await claimed(tx, worker, 99, queues=["mill", "oven"])
        assert len(claims) == 32
        await settle(tx, worker, [(claim, outcomes[i // 2 % 8]) for i, claim in enumerate(claims)])
        expected = {"completed": 6, "skipped": 2, "cancelled": 2, "failed": 2, "retried": 2, "prunable": 5}
        assert await tally(tx) == expected
        assert await tally(tx, "oven") == expected
        assert len(await entries(tx)) == 4
        await audit(tx)


# --- fencing


OUTCOMES: list[Outcome] = [
    Done(writes("zombie"), then=(Bake(),)),
    Done(writes("zombie"), then=(Bake(),), result=1),
    Skip("no", writes("zombie")),
    Bury("bad"),
    Retry(MINUTE, "busy"),
    Snooze(MINUTE),
    Stop(),
]


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("retaken", [True, False])
async def test_a_worker_that_lost_its_lease_writes_nothing(
    db: Database, ledger: str, outcome: Outcome, retaken: bool
) -> None:
    async with db.transaction() as tx:
        parent = await open_group(tx)
        zombie, claim = await one_claimed(tx, parent=parent)
        kept = await send(tx, Grind(2))
        (other,) = await claimed(tx, zombie)
    async with later(db, LEASE * 2) as tx:
        await rescue(tx, read=lambda _: frozenset())
        taken = await claimed(tx, await registered(tx)) if retaken else []
    before = await _books(db)
    with pytest.raises(LeaseLost):
        async with db.transaction() as tx:
            await settle(tx, zombie, [(other, Done(writes("innocent"))), (claim, outcome)])
    assert await _books(db) == before
    async with db.transaction() as tx:
        assert await entries(tx) == []
        assert await status(tx, claim.id) == ("processing" if taken else "pending")
        assert await status(tx, kept) == "pending"
        await audit(tx)


async def _books(db: Database) -> dict[str, list[Any]]:
    async with db.transaction() as tx:
        return {
            table: await tx.all(f"SELECT * FROM {table} ORDER BY 1")
            for table in ("task", "ticket", "task_group", "queue_tally", "task_failure", "serial_head", "ledger")
        }


async def test_a_lease_of_an_earlier_claim_of_the_same_worker_is_no_lease(db: Database) -> None:
    async with db.transaction() as tx:
        worker, first = await one_claimed(tx)
        await give_back_claims(tx, worker, [first])
        (second,) = await claimed(tx, worker)
        assert (second.id, second.attempt) == (first.id, 1)
    with pytest.raises(LeaseLost, match="1 of 1 leases are lost"):
        async with db.transaction() as tx:
            await settled(tx, worker, [first])
    async with db.transaction() as tx:
        await settled(tx, worker, [second])
        await audit(tx)


async def test_handing_back_what_is_not_ours_changes_nothing(db: Database) -> None:
    async with db.transaction() as tx:
        worker, claim = await one_claimed(tx)
        await give_back_claims(tx, WorkerId(worker + 1), [claim])
        assert await status(tx, claim.id) == "processing"
        await give_back_claims(tx, worker, [claim])
        await give_back_claims(tx, worker, [claim])
        row = await task(tx, claim.id)
        assert (row.status, row.attempts) == ("pending", 0)
        await audit(tx)


async def test_a_worker_that_does_not_live_claims_nothing(db: Database) -> None:
    async with db.transaction() as tx:
        await send(tx, Grind())
        worker = await registered(tx)
        for state in ("stopping", "stopped", "lost"):
            await tx.execute("UPDATE worker SET state = %(state)s WHERE id = %(id)s", state=state, id=worker)
            assert await claimed(tx, worker) == []


# --- batches in which one spoils it for all


@asynccontextmanager
async def settling(db: Database, worker: WorkerId, *batch: tuple[Claim, Outcome]) -> AsyncIterator[tuple[Settler, Any]]:
    """A settler with these answers waiting, and its connection."""
    workload, journal = Workload(4, 500), Journal()
    workload.answers += batch
    metrics = WorkerMetrics("test")
    connection = await db.connect("test")
    try:
        settler = Settler(worker, workload, {name: QueueConfig(name) for name in ("mill", "oven")}, metrics, journal)
        settler.metrics, settler.workload = metrics, workload  # type: ignore[attr-defined] for the test to look at
        yield settler, connection
    finally:
        journal.close()
        await connection.close()


async def flushed(db: Database, worker: WorkerId, *batch: tuple[Claim, Outcome]) -> dict[str, float]:
    """Settle these; what the metrics counted by status."""
    async with settling(db, worker, *batch) as (settler, connection):
        await settler.flush(connection)
        assert settler.workload.answers == []  # type: ignore[attr-defined]
        samples = [s for m in settler.metrics.registry.collect() for s in m.samples]  # type: ignore[attr-defined]
    return {s.labels["status"]: s.value for s in samples if s.name == "worker_jobs_processed_total"}


async def _three(db: Database, **outside: Any) -> tuple[WorkerId, list[Claim]]:
    async with db.transaction() as tx:
        await send_many(tx, [Envelope(Grind(i), **outside) for i in range(3)])
        worker = await registered(tx)
        return worker, await claimed(tx, worker, 3)


async def fails(tx: Tx, error: BaseException) -> None:
    await tx.execute("INSERT INTO ledger VALUES ('never')")
    raise error


async def divides(tx: Tx) -> None:
    await tx.execute("INSERT INTO ledger VALUES ('never')")
    await tx.one("SELECT 1 / 0")


async def too_long_for_an_index(tx: Tx) -> None:
    await tx.execute("CREATE TABLE IF NOT EXISTS narrow (x text UNIQUE)")
    await tx.one("INSERT INTO narrow SELECT string_agg(md5(i::text), '') FROM generate_series(1, 9000) i RETURNING 1")


SPOILERS: dict[str, Callable[[Tx], Awaitable[None]]] = {
    "ZeroDivisionError: oh": partial(fails, error=ZeroDivisionError("oh")),
    "FileNotFoundError: gone": partial(fails, error=FileNotFoundError("gone")),
    "TimeoutError: slow": partial(fails, error=TimeoutError("slow")),
    "division by zero": divides,
    "index row requires": too_long_for_an_index,
}


@pytest.mark.parametrize("said", SPOILERS)
async def test_where_one_write_fails_the_others_commit_and_it_is_retried_with_its_error(
    db: Database, ledger: str, said: str
) -> None:
    worker, (a, b, c) = await _three(db)
    counted = await flushed(
        db, worker, (a, Done(writes("a"))), (b, Done(SPOILERS[said], then=(Bake(),))), (c, Done(writes("c")))
    )
    assert counted == {"completed": 2, "retried": 1}
    async with db.transaction() as tx:
        assert await statuses(tx) == {a.id: "completed", b.id: "pending", c.id: "completed"}
        assert await entries(tx) == ["a", "c"]
        assert said in (await task(tx, b.id)).error
        assert await tally(tx) == {"completed": 2, "retried": 1, "prunable": 2}
        await audit(tx)


async def test_a_write_that_fails_for_good_is_buried(db: Database, ledger: str) -> None:
    worker, (a, b, c) = await _three(db)
    sealed_then = Done(partial(fails, error=Permanent("no such page")))
    await flushed(db, worker, (a, Done()), (b, sealed_then), (c, Done()))
    async with db.transaction() as tx:
        assert await statuses(tx) == {a.id: "completed", b.id: "failed", c.id: "completed"}
        assert (await task(tx, b.id)).error == "no such page"


async def test_a_write_that_fails_on_the_last_of_its_own_attempts_is_buried(db: Database, ledger: str) -> None:
    worker, claims = await _three(db, max_attempts=1)
    await flushed(db, worker, *((claim, Done(divides)) for claim in claims))
    async with db.transaction() as tx:
        assert set((await statuses(tx)).values()) == {"failed"}
        assert await entries(tx) == []
        await audit(tx)


async def writes_all(tx: Tx, parts: Sequence[Any]) -> None:
    """One entry for all parts; a part that is no number cannot be written."""
    await tx.execute("INSERT INTO ledger VALUES (%(entry)s)", entry="+".join(str(10 // part) for part in parts))


async def test_answers_that_are_written_together_are_written_in_one_call(db: Database, ledger: str) -> None:
    worker, (a, b, c) = await _three(db)
    joint = [
        (a, Done(JointWrite(writes_all, 1))),
        (b, Done(writes("alone"))),
        (c, Skip("x", JointWrite(writes_all, 2))),
    ]
    await flushed(db, worker, *joint)
    async with db.transaction() as tx:
        assert await entries(tx) == ["10+5", "alone"]
        await audit(tx)


async def test_of_answers_that_are_written_together_a_bad_one_fails_alone(db: Database, ledger: str) -> None:
    worker, (a, b, c) = await _three(db, max_attempts=1)
    await flushed(
        db, worker, *((claim, Done(JointWrite(writes_all, part))) for claim, part in ((a, 1), (b, 0), (c, 5)))
    )
    async with db.transaction() as tx:
        assert [await status(tx, one.id) for one in (a, b, c)] == ["completed", "failed", "completed"]
        assert await entries(tx) == ["10", "2"]
        await audit(tx)


async def test_a_letter_that_cannot_be_sent_fails_its_sender_alone(db: Database) -> None:
    async with db.transaction() as tx:
        closed = await open_group(tx)
        await seal(tx, closed)
    worker, (a, b, c) = await _three(db)
    await flushed(
        db, worker, (a, Done(then=(Bake(1),))), (b, Done(then=(Envelope(Bake(2), parent=closed),))), (c, Done())
    )
    async with db.transaction() as tx:
        assert [await status(tx, one.id) for one in (a, b, c)] == ["completed", "failed", "completed"]
        assert f"Group {closed} is sealed" in (await task(tx, b.id)).error
        assert await tx.value("SELECT count(*) FROM task WHERE queue = 'oven'") == 1
        await audit(tx)


@pytest.mark.parametrize("result", ["a\0b", {"\0": 1}])
async def test_a_result_that_postgresql_cannot_hold_is_an_error_of_its_task_alone(db: Database, result: Any) -> None:
    worker, (a, b, c) = await _three(db)
    await flushed(db, worker, (a, Done(result=1)), (b, Done(result=result)), (c, Done(result=3)))
    async with db.transaction() as tx:
        assert await statuses(tx) == {a.id: "completed", b.id: "pending", c.id: "completed"}


async def test_a_lost_lease_costs_its_neighbours_nothing(db: Database, ledger: str) -> None:
    worker, (a, b, c) = await _three(db)
    async with db.transaction() as tx:
        await give_back_claims(tx, worker, [b])
    counted = await flushed(db, worker, *((claim, Done(writes(str(claim.id)))) for claim in (a, b, c)))
    assert counted == {"completed": 2}
    async with db.transaction() as tx:
        assert await statuses(tx) == {a.id: "completed", b.id: "pending", c.id: "completed"}
        assert await entries(tx) == sorted([str(a.id), str(c.id)])
        await audit(tx)


async def test_an_answer_whose_commit_was_not_heard_of_is_not_written_twice(db: Database, ledger: str) -> None:
    worker, claims = await _three(db)
    batch = [(claim, Done(writes(str(claim.id)))) for claim in claims]
    await flushed(db, worker, *batch)
    assert await flushed(db, worker, *batch) == {}
    async with db.transaction() as tx:
        assert len(await entries(tx)) == 3
        assert await tally(tx) == {"completed": 3, "prunable": 3}
        await audit(tx)


async def test_a_connection_that_breaks_while_settling_leaves_the_batch_to_be_settled_again(
    db: Database, ledger: str
) -> None:
    worker, claims = await _three(db)

    async def cut(tx: Tx) -> None:
        await tx.one("SELECT pg_terminate_backend(pg_backend_pid())")

    batch: list[tuple[Claim, Outcome]] = [(claims[0], Done(cut)), *((claim, Done(writes("x"))) for claim in claims[1:])]
    async with settling(db, worker, *batch) as (settler, connection):
        with pytest.raises(psycopg.OperationalError):
            await settler.flush(connection)
        assert settler.workload.answers == batch  # type: ignore[attr-defined]
    async with db.transaction() as tx:
        assert set((await statuses(tx)).values()) == {"processing"}
        assert await entries(tx) == []


async def test_an_error_that_postgresql_cannot_hold_does_not_end_the_worker(db: Database, ledger: str) -> None:
    worker, (a, b, c) = await _three(db)
    await flushed(db, worker, (a, Done()), (b, Done(partial(fails, error=ValueError("a\0b \ud800")))), (c, Done()))
    async with db.transaction() as tx:
        assert (await task(tx, b.id)).error == "ValueError: a\\0b \\ud800"


async def test_settling_a_child_counts_in_its_group_in_the_same_transaction(db: Database) -> None:
    async with db.transaction() as tx:
        parent = await open_group(tx)
        worker, claim = await one_claimed(tx, parent=parent)
        await seal(tx, parent)
        assert await group(tx, parent) == {"processing": 1}
    with pytest.raises(Refused):
        async with db.transaction() as tx:
            await settled(tx, worker, [claim], Done(then=(Envelope(Bake(), parent=parent),)))
    async with db.transaction() as tx:
        assert await group(tx, parent) == {"processing": 1}
        await settled(tx, worker, [claim])
        assert await group(tx, parent) == {"completed": 1}
        assert await status(tx, parent) == "completed"


async def test_a_group_that_an_answer_seals_ends_in_the_same_transaction(db: Database) -> None:
    async with db.transaction() as tx:
        sealed, open_ = await open_group(tx), await open_group(tx)
        await send_many(tx, [Grind(1), Envelope(Grind(2), parent=sealed), Envelope(Grind(3), parent=open_)])
        worker = await registered(tx)
        claims = await claimed(tx, worker, 3)
    await flushed(db, worker, (claims[0], Done(seals=[sealed])), *((claim, Done()) for claim in claims[1:]))
    async with db.transaction() as tx:
        assert (await status(tx, sealed), await status(tx, open_)) == ("completed", "pending")
        await audit(tx)


async def test_answers_that_seal_the_groups_of_each_others_tasks_do_not_meet_in_a_deadlock(db: Database) -> None:
    async with db.transaction() as tx:
        groups = [await open_group(tx) for _ in range(20)]
        await send_many(tx, [Grind(), Grind(), *(Envelope(Grind(), parent=one) for one in groups)])
        worker, other = await registered(tx), await registered(tx)
        sealers, children = await claimed(tx, worker, 2), await claimed(tx, other, len(groups))
    upwards, downwards = (Done(seals=order) for order in (groups, groups[::-1]))

    async def settle_as(who: WorkerId, *batch: tuple[Claim, Outcome]) -> None:
        async with db.transaction() as tx:
            await settle(tx, who, batch)

    await asyncio.gather(
        settle_as(worker, (sealers[0], upwards)),
        settle_as(worker, (sealers[1], downwards)),
        settle_as(other, *((claim, Done()) for claim in children)),
    )
    async with db.transaction() as tx:
        assert {await status(tx, one) for one in groups} == {"completed"}
        await audit(tx)


async def test_letters_that_follow_are_held_to_the_limit_of_the_settings(db: Database) -> None:
    async with db.transaction() as tx:
        await send(tx, Grind())
        worker = await registered(tx)
        (claim,) = await claimed(tx, worker)
        with pytest.raises(Refused, match="too large"):
            await settle(tx, worker, [(claim, Done(then=(Grind(12345),)))], max_payload=10)
