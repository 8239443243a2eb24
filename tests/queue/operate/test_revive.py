"""Retrying what has ended: one unit, a phase, a whole group."""

from datetime import timedelta

import pytest
from engine import Bake, Grind, audit, buried, claimed, ground, group, registered, status, statuses, task

from gristmill.db import Database
from gristmill.errors import Refused
from gristmill.ids import TaskId
from gristmill.queue.groups import open_group, seal
from gristmill.queue.letters import Unique
from gristmill.queue.operate.cancel import cancel
from gristmill.queue.operate.revive import RetryRefusal, Revived, retry
from gristmill.queue.outcome import Done
from gristmill.queue.send import send


async def test_a_dead_letter_is_pending_again_with_all_its_attempts(db: Database) -> None:
    async with db.transaction() as tx:
        dead = await send(tx, Grind())
        await buried(tx)
        assert await retry(tx, [dead]) == Revived((dead,))
        row = await task(tx, dead)
        assert (row.status, row.attempts, row.error, row.finished_at) == ("pending", 0, None, None)
        await audit(tx)
        assert await ground(tx) == [dead]
        await audit(tx)
        assert await tx.value("SELECT count(*) FROM task_failure WHERE task = %(id)s", id=dead) == 1


async def test_what_is_done_is_done_again_only_when_asked_for(db: Database) -> None:
    async with db.transaction() as tx:
        done = await send(tx, Grind())
        await ground(tx, 1, Done(result={"flour": 1}))
        assert (await retry(tx, [done])).refused == (RetryRefusal(done, "it is completed, not failed"),)
        assert (await retry(tx, [done], any_outcome=True)).tasks == (done,)
        assert (await task(tx, done)).result is None
        await audit(tx)
        assert (await retry(tx, [done])).refused == (RetryRefusal(done, "it has not ended yet"),)
        with pytest.raises(Refused, match="There is no task 99"):
            await retry(tx, [TaskId(99)])


async def test_a_cancelled_task_comes_back(db: Database) -> None:
    async with db.transaction() as tx:
        task_ = await send(tx, Grind(), delay=timedelta(hours=1))
        await cancel(tx, [task_])
        await retry(tx, [task_])
        assert await ground(tx) == [task_]
        await audit(tx)


async def test_a_unique_key_that_another_task_holds_now_is_respected(db: Database) -> None:
    async with db.transaction() as tx:
        first = await send(tx, Grind(), unique=Unique("one"))
        await buried(tx)
        second = await send(tx, Grind(), unique=Unique("one"))
        assert (await retry(tx, [first])).refused == (
            RetryRefusal(first, f"its unique key “one” is held by task {second} now"),
        )
        await buried(tx)
        revived = await retry(tx, [first, second])
        assert (revived.tasks, [one.id for one in revived.refused]) == ((first,), [second])
        await audit(tx)


async def test_a_payload_that_was_cleared_cannot_be_tried_again(db: Database) -> None:
    async with db.transaction() as tx:
        done = await send(tx, Grind())
        await ground(tx)
        await tx.execute("UPDATE task SET payload = NULL")
        assert (await retry(tx, [done], any_outcome=True)).refused == (
            RetryRefusal(done, "its payload was cleared when it ended"),
        )


async def test_it_waits_again_for_what_it_comes_after(db: Database) -> None:
    async with db.transaction() as tx:
        first = await send(tx, Grind(1))
        second = await send(tx, Bake(2), after=first)
        await ground(tx)
        await buried(tx, queues=["oven"])
        await retry(tx, [first, second], any_outcome=True)
        assert (await task(tx, second)).wait == "after"
        await audit(tx)
        await ground(tx)
        assert await ground(tx, queues=["oven"]) == [second]
        await audit(tx)


async def test_what_came_after_a_cancelled_task_is_retried_only_with_it(db: Database) -> None:
    async with db.transaction() as tx:
        first = await send(tx, Grind(1))
        second = await send(tx, Grind(2), after=first)
        await cancel(tx, [first])
        (refused,) = (await retry(tx, [second])).refused
        assert refused.reason == f"it comes after task {first}, which was cancelled: retry that first"
        assert (await retry(tx, [second, first])).tasks == (first, second)
        assert await ground(tx, 9) == [first]
        assert await ground(tx, 9) == [second]
        await audit(tx)


async def test_it_waits_its_turn_in_its_series(db: Database) -> None:
    async with db.transaction() as tx:
        first, second = [await send(tx, Grind(i), serial_key="wheel") for i in range(2)]
        await buried(tx)
        await retry(tx, [first])
        assert (await task(tx, first)).wait == "serial"
        assert await ground(tx) == [second]
        assert await ground(tx) == [first]
        await audit(tx)


async def test_a_group_is_retried_with_what_failed_in_it_at_any_depth(db: Database) -> None:
    async with db.transaction() as tx:
        outer = await open_group(tx)
        inner = await open_group(tx, parent=outer)
        done = await send(tx, Grind(1), parent=inner)
        await ground(tx)
        deep = await send(tx, Grind(2), parent=inner)
        other = await send(tx, Bake(3), parent=outer)
        await seal(tx, inner)
        await seal(tx, outer)
        await buried(tx, 2, queues=["mill", "oven"])
        assert await status(tx, outer) == "failed"
        assert (await retry(tx, [outer], queue="oven")).tasks == (other,)
        assert (await group(tx, outer), await status(tx, outer)) == ({"pending": 1, "failed": 1}, "pending")
        assert (await retry(tx, [outer], kind="mill.grind")).tasks == (deep,)
        assert (await group(tx, inner), await group(tx, outer)) == (
            {"pending": 1, "completed": 1},
            {"pending": 2},
        )
        await audit(tx)
        await ground(tx, 9, queues=["mill", "oven"])
        assert await status(tx, outer) == "completed"
        assert (await retry(tx, [outer])).refused == (RetryRefusal(outer, "nothing in it is to be retried"),)
        assert set((await retry(tx, [outer], any_outcome=True)).tasks) == {done, deep, other}
        await audit(tx)


async def test_what_waits_for_a_group_goes_when_its_retried_child_is_done(db: Database) -> None:
    async with db.transaction() as tx:
        outer = await open_group(tx)
        child = await send(tx, Grind(), parent=outer)
        await seal(tx, outer)
        follower = await send(tx, Bake(), after=outer)
        await buried(tx)
        assert await status(tx, follower) == "pending"
        assert await ground(tx, queues=["oven"]) == []
        await retry(tx, [child])
        await ground(tx)
        assert await ground(tx, queues=["oven"]) == [follower]
        await audit(tx)


async def test_a_retried_task_goes_first_where_its_queue_says_so(db: Database) -> None:
    async with db.transaction() as tx:
        dead = await send(tx, Grind(1))
        await buried(tx)
        await tx.execute("UPDATE queue SET retries_first = true")
        new = await send(tx, Grind(2))
        await retry(tx, [dead])
        worker = await registered(tx)
        assert [one.id for one in await claimed(tx, worker, 2)] == [dead, new]
        assert list((await statuses(tx)).values()) == ["processing"] * 2
