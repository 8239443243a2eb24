"""Finding tasks and what is known of them."""

from datetime import timedelta
from typing import Any

import pytest
from engine import Bake, Grind, buried, claimed, ground, promote, registered, settled

from gristmill.db import Database, Tx
from gristmill.errors import Refused
from gristmill.ids import TaskId
from gristmill.queue.groups import open_group, seal
from gristmill.queue.letters import Envelope
from gristmill.queue.operate.lookup import SQL as LOOKUP
from gristmill.queue.operate.lookup import get_task, group_progress, history, list_tasks
from gristmill.queue.outcome import Done, Retry
from gristmill.queue.send import send, send_many


async def test_a_task_is_found_with_its_payload_and_result(db: Database) -> None:
    async with db.transaction() as tx:
        id_ = await send(tx, Grind(7), owner="document 1")
        await ground(tx, 1, Done(result={"flour": 1}))
        found = await get_task(tx, id_)
        assert (found.id, found.queue, found.kind, found.status) == (id_, "mill", "mill.grind", "completed")
        assert (found.payload, found.result, found.owner) == ({"grain": 7}, {"flour": 1}, "document 1")
        with pytest.raises(Refused, match="There is no task 99"):
            await get_task(tx, TaskId(99))


async def ids(tx: Tx, **given: object) -> list[TaskId]:
    return [one.id for one in await list_tasks(tx, **given)]  # type: ignore[arg-type]


async def test_tasks_are_listed_newest_first_by_what_one_asks_for(db: Database) -> None:
    async with db.transaction() as tx:
        a, b, c = await send_many(tx, [Grind(i) for i in range(3)])
        group = await open_group(tx)
        child = await send(tx, Bake(1), parent=group)
        await ground(tx, 1)
        await buried(tx, 1)
        worker = await registered(tx)
        await claimed(tx, worker, 1)
        assert await ids(tx) == [child, group, c, b, a]
        assert await ids(tx, limit=2) == [child, group]
        assert await ids(tx, limit=2, before=group) == [c, b]
        assert await ids(tx, queue="mill") == [c, b, a]
        assert await ids(tx, kind="oven.bake") == [child]
        assert await ids(tx, parent=group) == [child]
        assert await ids(tx, parent=group, status="failed") == []
        for status, expected in (("completed", a), ("failed", b), ("processing", c)):
            assert await ids(tx, status=status) == [expected]
            assert await ids(tx, status=status, queue="oven") == []
        assert await ids(tx, status="pending") == [child, group]
        with pytest.raises(Refused, match="“lost” is no status"):
            await ids(tx, status="lost")


async def test_whatever_it_waits_for_it_is_listed_as_pending(db: Database) -> None:
    async with db.transaction() as tx:
        first = await send(tx, Grind(1), serial_key="mill 7")
        second = await send(tx, Grind(2), serial_key="mill 7")
        later = await send(tx, Bake(3), delay=timedelta(hours=1))
        after = await send(tx, Bake(4), after=first)
        group = await open_group(tx)
        assert await ids(tx, status="pending") == [group, after, later, second, first]
        assert await ids(tx, status="pending", limit=2, before=after) == [later, second]
        assert await ids(tx, status="pending", queue="mill") == [second, first]
        assert await ids(tx, status="pending", kind="oven.bake") == [after, later]
        assert await ids(tx, status="pending", kind="group") == [group]


@pytest.mark.parametrize("given", [{}, {"queue": "mill"}, {"kind": "mill.grind"}])
async def test_what_is_done_is_not_passed_over_to_find_what_is_pending(db: Database, given: dict[str, str]) -> None:
    async with db.transaction() as tx:
        await send_many(tx, [Grind(1), Bake(1)])
        await send(tx, Grind(2), delay=timedelta(hours=1))
        await send_many(tx, [Envelope(Grind(i), foreground=True) for i in range(3000)])
        await ground(tx, 3000)
    async with await db.connect("test") as connection:
        await connection.execute("VACUUM ANALYZE task, ticket")
    async with db.transaction() as tx:
        asked = {"queue": None, "kind": None, "before": None, "limit": 50, **given}
        plan = await tx.value("EXPLAIN (ANALYZE, FORMAT JSON) " + LOOKUP["newest_pending"], **asked)
        assert passed_over(plan[0]["Plan"]) < 100


def passed_over(plan: dict[str, Any]) -> float:
    """How many rows were looked at in all."""
    here = (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"]
    return here + sum(passed_over(child) for child in plan.get("Plans", []))


async def test_a_groups_progress_shows_its_counters_and_the_errors_deep_within(db: Database) -> None:
    async with db.transaction() as tx:
        outer = await open_group(tx, label="a book")
        inner = await open_group(tx, parent=outer)
        (deep,) = await send_many(tx, [Grind()]) and [await send(tx, Bake(1), parent=inner)]
        await seal(tx, inner)
        await send(tx, Grind(2), parent=outer)
        await buried(tx, 1, "burnt", queues=["oven"])
        progress = await group_progress(tx, outer)
        assert (progress.label, progress.status, progress.sealed) == ("a book", "pending", False)
        assert (progress.total, progress.done, progress.failed, progress.pending) == (2, 1, 1, 1)
        assert [(one.id, one.error) for one in progress.errors] == [(deep, "burnt")]
        with pytest.raises(Refused, match=f"There is no group {deep}"):
            await group_progress(tx, deep)


async def test_the_history_tells_every_attempt(db: Database) -> None:
    async with db.transaction() as tx:
        id_ = await send(tx, Grind())
        worker = await registered(tx)
        await settled(tx, worker, await claimed(tx, worker), Retry(timedelta(0), "busy"))
        await promote(tx, 9)
        await settled(tx, worker, await claimed(tx, worker))
        events = await history(tx, id_)
        assert [(one.what, one.attempt, one.text) for one in events] == [
            ("sent", None, None),
            ("failed", 1, "busy"),
            ("claimed", 2, None),
            ("ended completed", 2, None),
        ]
        with pytest.raises(Refused, match="There is no task 99"):
            await history(tx, TaskId(99))
