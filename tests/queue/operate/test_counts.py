"""Exact numbers of tasks from counters, whatever happens to the tasks."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from engine import DAY, Bake, Grind, audit, buried, claimed, ground, journal_of, later, promote, registered, settled

from gristmill.db import Database, Tx
from gristmill.ids import TaskId
from gristmill.queue.groups import open_group, seal
from gristmill.queue.letters import Envelope, Unique
from gristmill.queue.operate import dead
from gristmill.queue.operate.cancel import cancel
from gristmill.queue.operate.counts import SQL, StatusCounts, add_up, count_tasks
from gristmill.queue.operate.revive import retry
from gristmill.queue.outcome import Bury, Retry, Skip, Snooze
from gristmill.queue.send import send, send_many
from gristmill.queue.upkeep.janitor import FOLD_FROM, clean, forget_owners
from gristmill.queue.upkeep.rescuer import rescue
from gristmill.scopes import Scope, scope_id
from gristmill.settings import QueueSettings

ACME, BETA = Scope("acme"), Scope("beta")
AT_ONCE = QueueSettings(keep=0, keep_for=timedelta(0), dead_keep=0)


async def counts(tx: Tx, queue: str = "mill") -> dict[str, int]:
    """The numbers of a queue that are not zero."""
    (one,) = [one for one in await count_tasks(tx) if one.queue == queue]
    return {name: getattr(one, name) for name in StatusCounts.__dataclass_fields__ if getattr(one, name)}


async def test_every_status_is_counted(db: Database) -> None:
    async with db.transaction() as tx:
        await send_many(tx, [Grind(i) for i in range(150)])  # by COPY
        await send_many(tx, [Grind(i) for i in range(50)])  # by INSERT
        await send(tx, Grind(1), delay=timedelta(hours=1))
        await ground(tx, 3)
        await buried(tx, 2)
        await ground(tx, 4, Skip("no grain"))
        await ground(tx, 5, Retry(timedelta(hours=1), "later"))
        await claimed(tx, await registered(tx), 6)
        await cancel(tx, (await send_many(tx, [Grind(1)]))[:1])
        assert await counts(tx) == {
            "pending": 201 - 3 - 2 - 4 - 6,
            "processing": 6,
            "completed": 3,
            "failed": 2,
            "skipped": 4,
            "cancelled": 1,
        }
        await audit(tx)
        assert add_up(await count_tasks(tx)).total == 202


async def replaced_in_another_queue(tx: Tx) -> None:
    await send(tx, Grind(1), unique=Unique("key"))
    await send(tx, Bake(1), unique=Unique("key", "replace"))
    assert (await counts(tx), await counts(tx, "oven")) == ({}, {"pending": 1})


async def sent_twice_under_one_key(tx: Tx) -> None:
    await send(tx, Grind(1), unique=Unique("key"))
    await send(tx, Grind(1), unique=Unique("key"))
    assert await counts(tx) == {"pending": 1}


async def retried_and_removed(tx: Tx) -> None:
    await send_many(tx, [Grind(i) for i in range(6)])
    done, *_ = await ground(tx, 2)
    died = await buried(tx, 3)
    await retry(tx, [done, died[0]], any_outcome=True)
    assert await counts(tx) == {"pending": 3, "completed": 1, "failed": 2}
    await dead.purge(tx, older_than=timedelta(0), keep=1, batch=10)
    await clean(tx, AT_ONCE)
    assert await counts(tx) == {"pending": 3}


async def cancelled_while_it_ran(tx: Tx) -> None:
    tasks = await send_many(tx, [Grind(i) for i in range(3)])
    worker = await registered(tx)
    claims = await claimed(tx, worker, 3)
    await cancel(tx, tasks)
    await settled(tx, worker, claims[:1], Bury("stopped"))
    await settled(tx, worker, claims[1:2], Retry(timedelta(1), "stopped"))
    await settled(tx, worker, claims[2:], Snooze(timedelta(1)))
    assert await counts(tx) == {"cancelled": 3}


async def stranded_behind_a_cancelled_one(tx: Tx) -> None:
    first = await send(tx, Grind(1))
    await send(tx, Grind(2), after=first)
    await cancel(tx, [first])
    assert await counts(tx) == {"cancelled": 2}


async def held_by_a_dead_worker(tx: Tx) -> None:
    await send_many(tx, [Envelope(Grind(i), max_attempts=1) for i in range(3)])
    worker = await registered(tx, process="dead")
    claims = await claimed(tx, worker, 3)
    await rescue(tx, gone=["dead"], read=journal_of(claims[0]))
    assert sum((await counts(tx)).values()) == 3


async def forgotten_with_its_owner(tx: Tx) -> None:
    group = await open_group(tx, owner="document:1")
    await send_many(tx, [Envelope(Grind(i), parent=group) for i in range(4)])
    await send(tx, Grind(9), owner="document:1")
    await seal(tx, group)
    await claimed(tx, await registered(tx), 2)
    await forget_owners(tx, ["document:1"])
    assert await counts(tx) == {}


async def promoted_in_series(tx: Tx) -> None:
    await send_many(tx, [Envelope(Grind(i), serial_key="one") for i in range(3)])
    await ground(tx, 1)
    await promote(tx)
    assert await counts(tx) == {"pending": 2, "completed": 1}


HAPPENINGS = (
    replaced_in_another_queue,
    sent_twice_under_one_key,
    retried_and_removed,
    cancelled_while_it_ran,
    stranded_behind_a_cancelled_one,
    held_by_a_dead_worker,
    forgotten_with_its_owner,
    promoted_in_series,
)


@pytest.mark.parametrize("happening", HAPPENINGS)
async def test_the_counters_follow_whatever_happens(db: Database, happening: Callable[[Tx], Awaitable[Any]]) -> None:
    async with db.transaction() as tx:
        await happening(tx)
        await audit(tx)


async def test_a_client_is_told_its_own_numbers_alone(db: Database) -> None:
    async with db.transaction() as tx:
        await send_many(tx, [Grind(i) for i in range(7)])
        for scope, n in ((ACME, 3), (Scope("acme", "mill"), 2), (BETA, 4)):
            own = await scope_id(tx, scope)
            await send_many(tx, [Envelope(Grind(i), scope=own) for i in range(n)])
        await ground(tx, 16, Bury("too hard"))
    async with db.reading(seen_from=ACME) as tx:
        assert await counts(tx) == {"failed": 5}
        assert (await dead.stats(tx, threshold=1)).total == 5
        assert [one.count for one in await dead.clusters(tx)] == [5]
    async with db.reading(seen_from=Scope("acme", "mill")) as tx:
        assert await counts(tx) == {"failed": 2}
    async with db.transaction() as tx:
        assert await counts(tx) == {"failed": 16}
        assert [one.count for one in await dead.clusters(tx)] == [16]


async def test_many_rows_of_counters_are_folded_into_one(db: Database) -> None:
    for i in range(FOLD_FROM + 5):
        async with db.transaction() as tx:
            await send(tx, Grind(i))
            await buried(tx, 1, f"error {chr(97 + i % 3)}")
    async with later(db, timedelta(minutes=1)) as tx:
        before = await counts(tx), await dead.clusters(tx)
        await clean(tx, QueueSettings())
        assert await tx.value("SELECT count(*) FROM queue_depth") == 1
        assert await tx.value("SELECT count(*) FROM dead_tally") == 3
        assert (await counts(tx), await dead.clusters(tx)) == before
        await audit(tx)


async def test_a_cluster_knows_when_it_was_seen_and_shows_those_that_are_still_dead(db: Database) -> None:
    async with db.transaction() as tx:
        await send_many(tx, [Grind(i) for i in range(8)])
        first = await buried(tx, 4, "no water in 12")
    async with later(db, DAY) as tx:
        second = await buried(tx, 4, "no water in 99")
        await retry(tx, [second[-1], first[0]])
        (one,) = await dead.clusters(tx)
        assert (one.count, one.last - one.first >= DAY) == (6, True)
        assert set(one.examples) < {*first[1:], *second[:-1]}
        assert one.examples[0] == TaskId(max(second[:-1]))


async def test_asking_costs_the_same_however_many_tasks_there_are(db: Database) -> None:
    async with db.transaction() as tx:
        await send_many(tx, [Grind(i) for i in range(3000)])
        await ground(tx, 2000)
    async with await db.connect("test") as connection:
        await connection.execute("VACUUM ANALYZE task, ticket")
    async with db.transaction() as tx:
        plan = str(await tx.all("EXPLAIN " + SQL["counts"], scopes=None))
        assert "Seq Scan on task" not in plan
