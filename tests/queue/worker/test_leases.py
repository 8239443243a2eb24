"""The row of a lease is deleted when all its tasks are settled or given back, and never before."""

from datetime import timedelta

from engine import Grind, audit, claimed, registered, settled

from gristmill.db import Database, array
from gristmill.ids import TaskId
from gristmill.queue import send_many
from gristmill.queue.claim import Claim
from gristmill.queue.outcome import Snooze
from gristmill.queue.upkeep.rescuer import rescue
from gristmill.queue.worker.claimer import SQL
from gristmill.queue.worker.leases import ENOUGH, Leases


def claim(task: int, lease: int) -> Claim:
    return Claim(TaskId(task), task, 1203, "mill", 1, "mill.grind", "{}", None, True, lease=lease)


def test_a_lease_is_spent_with_the_last_of_its_claims() -> None:
    leases = Leases()
    for lease in range(ENOUGH):
        leases.add(lease, 2)
        leases.release([claim(1, lease)])
    assert leases.take_spent() == []
    for lease in range(ENOUGH):
        leases.release([claim(2, lease)])
    assert leases.take_spent() == list(range(ENOUGH))
    assert leases.take_spent() == []


def test_a_lease_that_found_nothing_or_is_not_known_is_never_spent() -> None:
    leases = Leases()
    for lease in range(2 * ENOUGH):
        leases.add(lease, 0)
        leases.release([claim(1, lease)])
    assert leases.take_spent() == []


async def test_a_worker_deletes_the_leases_that_it_names(db: Database) -> None:
    async with db.transaction() as tx:
        await send_many(tx, [Grind(i) for i in range(4)])
        worker = await registered(tx)
        first, second = await claimed(tx, worker, 2), await claimed(tx, worker, 2)
        await settled(tx, worker, first)
        await tx.execute(SQL["delete_leases"], worker=worker, leases=array([first[0].lease]))
        assert await tx.all("SELECT worker, number, tasks FROM lease") == [
            (worker, second[0].lease, [one.id for one in second])
        ]
        await audit(tx)


async def test_the_hands_of_a_dead_worker_are_kept_until_they_are_empty(db: Database) -> None:
    async with db.transaction() as tx:
        await send_many(tx, [Grind(i) for i in range(3)])
        dead, live = await registered(tx), await registered(tx)
        await claimed(tx, dead, 1)
        (held,) = await claimed(tx, live, 1)
        await settled(tx, dead, await claimed(tx, dead, 1), Snooze(timedelta(0)))
        await tx.execute("UPDATE worker SET state = 'lost' WHERE id = %(id)s", id=dead)
        await rescue(tx)
        assert await tx.all("SELECT worker, tasks FROM lease") == [(live, [held.id])]
        assert await tx.value("SELECT count(*) FROM ticket WHERE worker = %(id)s", id=dead) == 0
        await audit(tx)
