"""Moving pending tasks in the order of claim."""

from datetime import timedelta

import pytest
from engine import LEASE, Grind, audit, claimed, ground, later, promote, registered

from gristmill.db import Database, Tx
from gristmill.errors import Refused
from gristmill.ids import TaskId
from gristmill.queue.groups import open_group
from gristmill.queue.letters import Envelope
from gristmill.queue.operate.order import set_foreground, set_position, set_priority
from gristmill.queue.send import send, send_many
from gristmill.queue.worker.give_back import give_back_claims


async def order(tx: Tx) -> list[TaskId]:
    """All that is ready, as it would be claimed; handed back."""
    worker = await registered(tx)
    claims = await claimed(tx, worker, 99)
    await give_back_claims(tx, worker, claims)
    return [one.id for one in claims]


async def test_position_then_foreground_then_priority_then_age(db: Database) -> None:
    async with db.transaction() as tx:
        a, b, c, d, e = await send_many(tx, [Grind(i) for i in range(5)])
        await set_priority(tx, c, 5)
        await set_foreground(tx, d)
        await set_position(tx, e, 7)
        assert await order(tx) == [e, d, c, a, b]
        await set_position(tx, b, 6)
        assert await order(tx) == [b, e, d, c, a]
        await set_position(tx, b, None)
        await set_position(tx, e, None)
        await set_foreground(tx, d, False)
        await set_priority(tx, c, 0)
        assert await order(tx) == [a, b, c, d, e]
        await audit(tx)


async def test_equal_positions_go_by_age(db: Database) -> None:
    async with db.transaction() as tx:
        tasks = await send_many(tx, [Envelope(Grind(i), position=5) for i in range(4)])
        for task in reversed(tasks):  # written anew, the youngest first
            await set_position(tx, task, 6)
        worker = await registered(tx)
        assert [(await claimed(tx, worker))[0].id for _ in tasks] == tasks


async def test_a_task_that_waits_takes_its_new_place_when_it_enters_the_line(db: Database) -> None:
    async with db.transaction() as tx:
        scheduled = await send(tx, Grind(1), delay=timedelta(minutes=1))
        await set_foreground(tx, scheduled)
        ready = await send(tx, Grind(2))
    async with later(db, LEASE) as tx:
        await promote(tx, 10)
        assert await order(tx) == [scheduled, ready]


async def test_the_workers_are_told_where_it_stands_now(db: Database) -> None:
    async with db.transaction() as tx:
        task = await send(tx, Grind())
    listener = await db.connect("test")
    await listener.execute("LISTEN gristmill")
    async with db.transaction() as tx:
        await set_position(tx, task, 3)
    heard = [note.payload async for note in listener.notifies(timeout=60, stop_after=1)]
    await listener.close()
    assert heard == ["ready mill 0 3"]


async def test_only_pending_tasks_can_be_moved(db: Database) -> None:
    async with db.transaction() as tx:
        running, done = await send_many(tx, [Grind(1), Grind(2)])
        await claimed(tx, await registered(tx), 1)
        with pytest.raises(Refused, match=f"Task {running} is processing"):
            await set_foreground(tx, running)
        await ground(tx)
        with pytest.raises(Refused, match=f"Task {done} is completed"):
            await set_position(tx, done, 1)
        with pytest.raises(Refused, match="There is no task 99"):
            await set_position(tx, TaskId(99), 1)
        with pytest.raises(Refused, match="is a group"):
            await set_position(tx, await open_group(tx), 1)
        with pytest.raises(Refused, match="out of range"):
            await set_priority(tx, running, 101)
