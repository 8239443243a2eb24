"""What dead workers held goes on, exactly once, and no innocent is buried."""

import subprocess
import sys
from datetime import timedelta

import pytest
from engine import (
    LEASE,
    MINUTE,
    Bake,
    Grind,
    audit,
    buried,
    claimed,
    claimed_suspect,
    group,
    journal_of,
    later,
    registered,
    settled,
    status,
    statuses,
    task,
    travel,
)

from gristmill.db import Database, Tx
from gristmill.ids import TaskId, WorkerId
from gristmill.processes.presence import find_gone_processes, process_key
from gristmill.queue.claim import Claim
from gristmill.queue.groups import open_group, seal
from gristmill.queue.outcome import Retry
from gristmill.queue.send import send, send_many
from gristmill.queue.upkeep.rescuer import Rescued, list_processes, rescue, verdict

DEAD = LEASE + MINUTE


@pytest.mark.parametrize(
    ("facts", "attempts", "expected"),
    [
        ("", 3, "back"),
        ("cancel", 1, "cancel"),
        ("started alone", 1, "suspect"),
        ("started alone seen_dead", 3, "suspect"),  # nobody suspected it yet
        ("started alone seen_dead suspect", 2, "suspect"),
        ("started alone seen_dead suspect", 3, "bury"),
        ("started alone seen_dead suspect", 4, "bury"),
        ("started alone suspect", 3, "suspect"),  # its worker only fell silent
        ("started alone suspect", 6, "bury"),
        ("started seen_dead suspect", 99, "suspect"),
        ("started alone seen_dead suspect cancel", 3, "cancel"),
        ("started cancel", 1, "cancel"),
    ],
)
def test_the_verdict(facts: str, attempts: int, expected: str) -> None:
    known = {name: name in facts.split() for name in ("started", "alone", "suspect", "seen_dead", "cancel")}
    assert verdict(**known, attempts=attempts, max_attempts=3) == expected


async def dying(tx: Tx, n: int, *, name: str = "host") -> tuple[WorkerId, list[Claim]]:
    """A worker that holds `n` new tasks and will not be heard of again."""
    await send_many(tx, [Grind(i) for i in range(n)])
    worker = await registered(tx, name=name)
    return worker, await claimed(tx, worker, n)


async def test_a_worker_that_still_beats_keeps_its_leases(db: Database) -> None:
    async with db.transaction() as tx:
        await dying(tx, 2)
    async with later(db, LEASE - MINUTE) as tx:
        assert await rescue(tx) == []
        assert list((await statuses(tx)).values()) == ["processing", "processing"]


async def test_what_was_not_started_goes_back_to_its_place_and_loses_no_attempt(db: Database) -> None:
    async with db.transaction() as tx:
        worker, claims = await dying(tx, 3)
        await send(tx, Grind(99))
    async with later(db, DEAD) as tx:
        ids = tuple(claim.id for claim in claims)
        assert await rescue(tx, read=journal_of()) == [Rescued(worker, "host", True, back=ids)]
        other = await registered(tx)
        again = await claimed(tx, other, 4)
        assert [(one.id, one.seq, one.attempt) for one in again[:3]] == [(one.id, one.seq, 1) for one in claims]
        assert await tx.value("SELECT state FROM worker WHERE id = %(id)s", id=worker) == "lost"
        await audit(tx)


async def test_what_ran_alone_is_a_suspect_and_the_rest_of_the_buffer_is_not(db: Database) -> None:
    async with db.transaction() as tx:
        _, (culprit, *rest) = await dying(tx, 3)
    async with later(db, DEAD) as tx:
        (rescued,) = await rescue(tx, read=journal_of(culprit))
        assert (rescued.suspects, rescued.back) == ((culprit.id,), tuple(one.id for one in rest))
        row = await task(tx, culprit.id)
        assert (row.status, row.suspect, row.attempts) == ("pending", True, 1)
        other = await registered(tx)
        assert [one.id for one in await claimed(tx, other, 9)] == [one.id for one in rest]
        await audit(tx)


async def killed_alone(db: Database, id: TaskId, days: int) -> tuple[Rescued, int]:
    """A solo worker runs the suspect and dies of it; each death a day after the one before."""
    async with later(db, timedelta(days=days)) as tx:
        solo = await registered(tx, solo=True, process=f"solo {days}")
        claim = await claimed_suspect(tx, solo)
        assert claim is not None
        assert claim.id == id
    async with later(db, timedelta(days=days) + DEAD) as tx:
        (rescued,) = [one for one in await rescue(tx, gone=[f"solo {days}"]) if one.worker == solo]
        return rescued, claim.attempt


async def test_a_task_that_kills_every_worker_is_buried_when_its_attempts_are_used_up(db: Database) -> None:
    async with db.transaction() as tx:
        _, (poison,) = await dying(tx, 1)
    async with later(db, DEAD) as tx:
        assert (await rescue(tx))[0].suspects == (poison.id,)
    second, attempt = await killed_alone(db, poison.id, 1)
    assert (second.suspects, attempt) == ((poison.id,), 2)
    third, attempt = await killed_alone(db, poison.id, 2)
    assert (third.buried, attempt) == ((poison.id,), 3)
    async with later(db, timedelta(days=3)) as tx:
        row = await task(tx, poison.id)
        assert (row.status, row.attempts, row.worker) == ("failed", 3, third.worker)
        assert row.error.startswith(f"killed its worker (worker {third.worker} on host) on attempt 3 of 3")
        failures = await tx.all("SELECT attempt, fingerprint FROM task_failure ORDER BY attempt")
        assert [one.attempt for one in failures] == [1, 2, 3]
        assert failures[2].fingerprint == row.fingerprint
        assert tuple(await tx.one("SELECT sum(failed) AS failed, sum(retried) AS retried FROM queue_tally") or ()) == (
            1,
            2,
        )
        await audit(tx)


async def test_an_innocent_survives_even_with_a_single_attempt(db: Database) -> None:
    async with db.transaction() as tx:
        ids = [await send(tx, Grind(i), max_attempts=1) for i in range(2)]
        worker = await registered(tx)
        await claimed(tx, worker, 2)
    async with later(db, DEAD) as tx:
        (rescued,) = await rescue(tx)
        assert (rescued.suspects, rescued.buried) == (tuple(ids), ())
        solo = await registered(tx, solo=True)
        first = await claimed_suspect(tx, solo)
        assert first is not None
        await settled(tx, solo, [first])
        assert await status(tx, ids[0]) == "completed"
    guilty, _ = await killed_alone(db, ids[1], 1)
    assert guilty.buried == (ids[1],)
    async with db.transaction() as tx:
        await audit(tx)


async def test_a_task_that_a_queue_never_gives_up_on_is_still_buried_when_it_kills(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.execute("INSERT INTO queue (name, max_attempts) VALUES ('mill', NULL)")
        _, (poison,) = await dying(tx, 1)
        await tx.execute("UPDATE ticket SET attempts = 3, suspect = true")
    async with later(db, DEAD) as tx:
        assert (await rescue(tx, gone=["unseen"]))[0].buried == (poison.id,)


async def test_the_buried_one_is_of_one_cluster_on_any_machine(db: Database) -> None:
    async with db.transaction() as tx:
        for name in ("emmer", "spelt"):
            _, (poison,) = await dying(tx, 1, name=name)
            await tx.execute("UPDATE ticket SET attempts = 3, suspect = true WHERE id = %(id)s", id=poison.id)
    async with later(db, DEAD) as tx:
        await rescue(tx, gone=["unseen"])
        assert await tx.value("SELECT count(DISTINCT fingerprint) FROM task WHERE died_at IS NOT NULL") == 1


async def test_a_cancelled_one_ends_cancelled_whether_it_was_started_or_not(db: Database) -> None:
    async with db.transaction() as tx:
        _, (a, b, c) = await dying(tx, 3)
        await tx.execute("UPDATE ticket SET cancel = true WHERE id = ANY (%(ids)s)", ids=[a.id, c.id])
    async with later(db, DEAD) as tx:
        (rescued,) = await rescue(tx, read=journal_of(a, b))
        assert (set(rescued.cancelled), rescued.suspects) == ({a.id, c.id}, (b.id,))
        assert (await statuses(tx)) == {a.id: "cancelled", b.id: "pending", c.id: "cancelled"}
        await audit(tx)


async def test_groups_count_what_was_taken_back_and_what_was_buried(db: Database) -> None:
    async with db.transaction() as tx:
        outer = await open_group(tx)
        inner = await open_group(tx, parent=outer)
        for i in range(2):
            await send(tx, Grind(i), parent=inner, max_attempts=1)
        await seal(tx, inner)
        await seal(tx, outer)
        first, second = await registered(tx), await registered(tx)
        (culprit,) = await claimed(tx, first, 1)
        await claimed(tx, second, 1)
        assert await group(tx, inner) == {"processing": 2}
        await tx.execute("UPDATE ticket SET suspect = true WHERE id = %(id)s", id=culprit.id)
    async with later(db, DEAD) as tx:
        await rescue(tx, gone=["unseen"], read=journal_of(culprit))
        assert (await group(tx, inner), await group(tx, outer)) == (
            {"pending": 1, "failed": 1},
            {"pending": 1},
        )
        await audit(tx)
        other = await registered(tx)
        await settled(tx, other, await claimed(tx, other, 1))
        assert await status(tx, outer) == "failed"
        await audit(tx)


async def test_what_follows_a_buried_task_in_its_series_may_go(db: Database) -> None:
    async with db.transaction() as tx:
        first = await send(tx, Grind(1), serial_key="wheel", max_attempts=1)
        second = await send(tx, Grind(2), serial_key="wheel")
        worker = await registered(tx)
        assert [one.id for one in await claimed(tx, worker, 2)] == [first]
        await tx.execute("UPDATE ticket SET suspect = true")
    async with later(db, DEAD) as tx:
        await rescue(tx, gone=["unseen"])
        other = await registered(tx)
        assert [one.id for one in await claimed(tx, other, 2)] == [second]
        await audit(tx)


async def test_two_rescuers_never_take_back_the_same_worker(db: Database) -> None:
    async with db.transaction() as tx:
        _, (begun, _) = await dying(tx, 2)
        await dying(tx, 2)
    async with later(db, DEAD) as one, later(db, DEAD) as other:
        assert len(await rescue(one, read=journal_of(begun))) == 2
        assert await rescue(other) == []
    async with later(db, DEAD) as tx:
        assert await rescue(tx) == []
        assert await tx.value("SELECT max(attempts) FROM ticket WHERE NOT suspect") == 0
        await audit(tx)


async def test_what_a_zombie_is_settling_is_left_to_it(db: Database) -> None:
    async with db.transaction() as tx:
        worker, (a, b) = await dying(tx, 2)
        await tx.execute("UPDATE ticket SET attempts = 3")
    async with db.transaction() as zombie:
        await settled(zombie, worker, [a])
        async with later(db, DEAD) as tx:
            (rescued,) = await rescue(tx)
            # it had company: the one that is just being settled
            assert (rescued.suspects, rescued.buried) == ((b.id,), ())
    async with db.transaction() as tx:
        assert (await statuses(tx)) == {a.id: "completed", b.id: "pending"}
        await audit(tx)


async def test_a_lease_taken_while_its_worker_was_being_lost_is_found_later(db: Database) -> None:
    async with db.transaction() as tx:
        worker, (a, b) = await dying(tx, 2)
        await tx.execute("UPDATE ticket SET attempts = 3")
        await tx.execute("UPDATE worker SET state = 'stopped'")
        (rescued,) = await rescue(tx)
        # nobody knows what ran, nor beside what, so none is buried
        assert rescued == Rescued(worker, "host", False, suspects=(a.id, b.id))
        await audit(tx)


async def test_a_lease_of_a_worker_nobody_remembers_is_found_too(db: Database) -> None:
    async with db.transaction() as tx:
        worker, (a,) = await dying(tx, 1)
        await tx.execute("DELETE FROM worker")
        (rescued,) = await rescue(tx)
        assert (rescued.worker, rescued.suspects) == (worker, (a.id,))


async def test_a_process_seen_dead_is_rescued_at_once(db: Database) -> None:
    async with db.transaction() as tx:
        await send_many(tx, [Grind(), Bake()])
        dead = await registered(tx, process="this 7 1")
        await registered(tx, process="that 7 1")
        await claimed(tx, dead, 1)
        assert sorted(await list_processes(tx)) == ["that 7 1", "this 7 1"]
        assert [one.worker for one in await rescue(tx, gone=["this 7 1"])] == [dead]
        assert await list_processes(tx) == ["that 7 1"]


async def test_the_holds_of_a_lost_worker_are_free(db: Database) -> None:
    async with db.transaction() as tx:
        worker, _ = await dying(tx, 1)
        living = await registered(tx, lease=timedelta(days=1))
        await tx.execute("INSERT INTO limiter (name, concurrency) VALUES ('llm', 5)")
        for holder in (worker, living):
            await tx.execute(
                "INSERT INTO limiter_hold (limiter, worker, until) VALUES ('llm', %(w)s, clock() + '1 day')",
                w=holder,
            )
        await travel(tx, DEAD)
        await rescue(tx)
        assert [row.worker for row in await tx.all("SELECT worker FROM limiter_hold")] == [living]


async def test_the_freed_lines_are_told_with_their_lowest_place(db: Database) -> None:
    async with db.transaction() as tx:
        _, claims = await dying(tx, 3)
        begun, first = claims[:2]
    listener = await db.connect("test")
    await listener.execute("LISTEN gristmill")
    async with later(db, DEAD) as tx:
        await rescue(tx, read=journal_of(begun))
    heard = {note.payload async for note in listener.notifies(timeout=60, stop_after=2)}
    await listener.close()
    assert heard == {f"ready mill {first.lane} {first.seq}", "suspects"}


async def test_a_suspect_that_answers_is_cleared(db: Database) -> None:
    async with db.transaction() as tx:
        _, (one,) = await dying(tx, 1)
    async with later(db, DEAD) as tx:
        await rescue(tx)
        solo = await registered(tx, solo=True)
        claim = await claimed_suspect(tx, solo)
        assert claim is not None
        await settled(tx, solo, [claim], Retry(timedelta(0), "busy"))
        assert not (await task(tx, one.id)).suspect


async def test_the_dead_stay_dead(db: Database) -> None:
    async with db.transaction() as tx:
        await send(tx, Grind())
        (dead,) = await buried(tx)
    async with later(db, DEAD) as tx:
        await rescue(tx)
        assert await status(tx, dead) == "failed"


def test_this_process_is_not_gone_and_an_ended_one_is() -> None:
    script = "from gristmill.processes.presence import process_key; print(process_key())"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()
    assert find_gone_processes([process_key(), ended]) == [ended]


def test_a_pid_that_is_used_again_is_another_process() -> None:
    machine, _, _ = process_key().rpartition(" ")
    assert find_gone_processes([f"{machine} 1"]) == [f"{machine} 1"]


def test_of_other_machines_and_odd_keys_nothing_is_said() -> None:
    assert find_gone_processes(["", "unseen", "other-boot pid:[1] 7 1", "unseen 0123"]) == []
