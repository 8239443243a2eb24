"""Operators and workers at the same tasks at the same time: whatever happens, the books balance."""

import asyncio
from contextlib import suppress

from engine import Grind, audit, claimed, registered, settled
from psycopg.errors import DeadlockDetected

from gristmill.db import Database
from gristmill.ids import TaskId
from gristmill.queue.cancel import cancel
from gristmill.queue.janitor import clean
from gristmill.queue.letters import Envelope
from gristmill.queue.outcome import Bury, Done, Outcome, Stop
from gristmill.queue.revive import retry
from gristmill.queue.send import open_group, send_many
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
