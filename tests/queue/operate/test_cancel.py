"""Cancelling: what is pending at once, what runs by asking, groups with all in them."""

from datetime import timedelta

import pytest
from engine import (
    Bake,
    Grind,
    audit,
    buried,
    claimed,
    ground,
    group,
    registered,
    settled,
    status,
    statuses,
)

from gristmill.db import Database
from gristmill.errors import Refused
from gristmill.ids import TaskId
from gristmill.queue.groups import open_group, seal
from gristmill.queue.letters import Unique
from gristmill.queue.operate.cancel import Cancelling, cancel
from gristmill.queue.outcome import Retry, Stop
from gristmill.queue.send import send

HOUR = timedelta(hours=1)


async def test_a_pending_task_is_cancelled_at_once_whatever_it_waits_for(db: Database) -> None:
    async with db.transaction() as tx:
        ready = await send(tx, Grind(1))
        scheduled = await send(tx, Grind(2), delay=HOUR)
        blocked = await send(tx, Grind(3), after=scheduled)
        head = await send(tx, Bake(4), serial_key="wheel")
        behind = await send(tx, Bake(5), serial_key="wheel")
        assert await cancel(tx, [blocked, scheduled, ready, behind]) == Cancelling((ready, scheduled, blocked, behind))
        assert [await status(tx, one) for one in (ready, scheduled, blocked, behind)] == ["cancelled"] * 4
        assert await status(tx, head) == "pending"
        await audit(tx)
        await cancel(tx, [head])
        await audit(tx)


async def test_the_next_of_a_series_goes_when_its_head_is_cancelled(db: Database) -> None:
    async with db.transaction() as tx:
        head, behind = [await send(tx, Grind(i), serial_key="wheel") for i in range(2)]
        await cancel(tx, [head])
        assert await ground(tx, 2) == [behind]
        await audit(tx)


async def test_what_waited_for_a_cancelled_task_is_cancelled_with_it(db: Database) -> None:
    async with db.transaction() as tx:
        first = await send(tx, Grind(1))
        second = await send(tx, Grind(2), after=first)
        third = await send(tx, Grind(3), after=second)
        assert await cancel(tx, [first]) == Cancelling((first,))
        assert [await status(tx, one) for one in (second, third)] == ["cancelled", "cancelled"]
        await audit(tx)


async def test_a_running_task_is_asked_and_its_answer_ends_it(db: Database) -> None:
    async with db.transaction() as tx:
        task = await send(tx, Grind())
        worker = await registered(tx)
        claims = await claimed(tx, worker)
    listener = await db.connect("test")
    await listener.execute("LISTEN gristmill")
    async with db.transaction() as tx:
        assert await cancel(tx, [task]) == Cancelling(asked=(task,))
        assert await status(tx, task) == "processing"
    heard = [note.payload async for note in listener.notifies(timeout=60, stop_after=1)]
    await listener.close()
    assert heard == [f"cancel {task}"]
    async with db.transaction() as tx:
        await settled(tx, worker, claims, Stop())
        assert await status(tx, task) == "cancelled"
        await audit(tx)


async def test_a_running_task_that_fails_after_it_was_asked_is_not_tried_again(db: Database) -> None:
    async with db.transaction() as tx:
        task = await send(tx, Grind())
        worker = await registered(tx)
        claims = await claimed(tx, worker)
        await cancel(tx, [task])
        await settled(tx, worker, claims, Retry(timedelta(0), "busy"))
        assert await status(tx, task) == "cancelled"


async def test_what_has_ended_stays_as_it_is(db: Database) -> None:
    async with db.transaction() as tx:
        done, dead = await send(tx, Grind(1)), await send(tx, Grind(2))
        await ground(tx, 1)
        await buried(tx, 1)
        assert await cancel(tx, [done, dead]) == Cancelling()
        assert list((await statuses(tx)).values()) == ["completed", "failed"]
        with pytest.raises(Refused, match="There is no task 99"):
            await cancel(tx, [TaskId(99)])


async def test_a_cancelled_task_gives_its_unique_key_free(db: Database) -> None:
    async with db.transaction() as tx:
        first = await send(tx, Grind(), unique=Unique("one", period=HOUR))
        await cancel(tx, [first])
        assert await send(tx, Grind(), unique=Unique("one")) != first


async def test_a_group_is_cancelled_with_all_in_it_and_takes_no_more(db: Database) -> None:
    async with db.transaction() as tx:
        outer = await open_group(tx)
        inner = await open_group(tx, parent=outer)
        empty = await open_group(tx, parent=inner)
        leaves = [await send(tx, Grind(i), parent=inner) for i in range(3)]
        top = await send(tx, Grind(9), parent=outer)
        worker = await registered(tx)
        claims = await claimed(tx, worker)
        assert await cancel(tx, [outer]) == Cancelling((leaves[1], leaves[2], top), (leaves[0],))
        assert await group(tx, inner) == {"processing": 1, "cancelled": 2, "completed": 1}
        assert await status(tx, empty) == "completed"
        for one in (outer, inner, empty):
            with pytest.raises(Refused, match="sealed"):
                await send(tx, Grind(), parent=one)
        await audit(tx)
        await settled(tx, worker, claims, Stop())
        assert await status(tx, outer) not in ("pending", "processing")
        await audit(tx)


async def test_a_group_whose_children_ended_before_it_was_sealed_ends(db: Database) -> None:
    async with db.transaction() as tx:
        outer = await open_group(tx)
        await send(tx, Grind(), parent=outer)
        await ground(tx)
        assert await status(tx, outer) == "pending"
        await cancel(tx, [outer])
        assert await status(tx, outer) == "completed"
        await audit(tx)


async def test_what_comes_after_a_cancelled_group_never_starts(db: Database) -> None:
    async with db.transaction() as tx:
        outer = await open_group(tx)
        await send(tx, Grind(), parent=outer)
        await seal(tx, outer)
        follower = await send(tx, Bake(), after=outer)
        await cancel(tx, [outer])
        assert await status(tx, follower) == "cancelled"
        await audit(tx)
