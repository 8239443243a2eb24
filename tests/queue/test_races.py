"""Operators and workers at the same tasks at the same time: whatever happens, the books balance."""

import asyncio
from contextlib import suppress

from crew import ask, until
from engine import Grind, audit, claimed, registered, settled
from psycopg.errors import DeadlockDetected

from gristmill.db import Database
from gristmill.ids import TaskId
from gristmill.queue.groups import open_group
from gristmill.queue.letters import Envelope
from gristmill.queue.operate.cancel import cancel
from gristmill.queue.operate.revive import retry
from gristmill.queue.outcome import Bury, Done, Outcome, Skip, Stop
from gristmill.queue.send import send, send_many
from gristmill.queue.settle import settle
from gristmill.queue.upkeep.janitor import clean
from gristmill.settings import QueueSettings

ROUNDS = 40


async def worked(db: Database, outcomes: list[Outcome]) -> int:
    """Claim and settle again and again, each task with another outcome; a deadlock is one more try, as in a worker."""
    async with db.transaction() as tx:
        worker = await registered(tx)
    deadlocks = 0
    for turn in range(ROUNDS):
        async with db.transaction() as tx:
            claims = await claimed(tx, worker, 20)
        while claims:
            try:
                async with db.transaction() as tx:
                    await settled(tx, worker, claims, outcomes[turn % len(outcomes)])
                break
            except DeadlockDetected:
                deadlocks += 1
    return deadlocks


async def operated(db: Database, group: TaskId) -> None:
    for turn in range(ROUNDS // 4):
        with suppress(DeadlockDetected):
            async with db.transaction() as tx:
                if turn % 2:
                    await cancel(tx, [group])
                else:
                    await retry(tx, [group], any_outcome=True)
        with suppress(DeadlockDetected):
            async with db.transaction() as tx:
                await clean(tx, QueueSettings(keep=10), batch=50)


async def test_cancel_retry_and_retention_beside_busy_workers(db: Database) -> None:
    async with db.transaction() as tx:
        outer = await open_group(tx)
        inner = await open_group(tx, parent=outer)
        await send_many(tx, [Grind(i) for i in range(200)])
        children = await send_many(tx, [Envelope(Grind(i), parent=inner) for i in range(200)])
    await asyncio.gather(worked(db, [Done(), Bury("stone")]), worked(db, [Done(result=1), Stop()]), operated(db, outer))
    async with db.transaction() as tx:
        assert await tx.value("SELECT count(*) FROM task WHERE id = ANY (%(ids)s)", ids=children) == 200
        await audit(tx)


async def test_settling_and_sending_lock_the_same_task_and_group_in_one_order(db: Database) -> None:
    """Both wait for the group: whoever came first must not want what the other took on its way there."""
    async with db.transaction() as tx:
        group = await open_group(tx)
        await send_many(tx, [Envelope(Grind(i), parent=group) for i in range(2)])
        worker = await registered(tx)
        first, second = await claimed(tx, worker, 2)

    async def settling() -> None:
        async with db.transaction() as tx:
            await settle(tx, worker, [(second, Skip("nothing in it")), (first, Done())])

    async def sending() -> TaskId:
        async with db.transaction() as tx:
            return await send(tx, Grind(3), after=first.id, parent=group)

    async def waiting(n: int) -> bool:
        query = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        return len(await ask(db, query)) == n

    async with db.transaction() as holder:
        await holder.one("SELECT id FROM task_group WHERE id = %(id)s FOR NO KEY UPDATE", id=group)
        settler = asyncio.create_task(settling())
        await until(lambda: waiting(1), "the settler waits")
        sender = asyncio.create_task(sending())
        await until(lambda: waiting(2), "the sender waits")
    await settler
    follower = await sender
    async with db.transaction() as tx:
        assert [claim.id for claim in await claimed(tx, worker)] == [follower]
        await audit(tx)
