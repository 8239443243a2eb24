"""Finding tasks and what is known of them."""

from datetime import timedelta

import pytest
from engine import Bake, Grind, buried, claimed, ground, promote, registered, settled

from gristmill.db import Database
from gristmill.errors import Refused
from gristmill.ids import TaskId
from gristmill.queue.groups import open_group, seal
from gristmill.queue.operate.lookup import get_task, group_progress, history
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
