"""The head of a line, and putting a task somewhere else in it."""

import pytest
from engine import Grind, audit, claimed, registered

from gristmill.db import Database, Tx
from gristmill.errors import Refused
from gristmill.ids import TaskId
from gristmill.queue.operate.line import list_line, put_in_line
from gristmill.queue.operate.order import set_position
from gristmill.queue.operate.workers import list_workers
from gristmill.queue.send import send, send_many


async def test_the_line_is_the_order_of_claim(db: Database) -> None:
    async with db.transaction() as tx:
        a, b, c = await send_many(tx, [Grind(i) for i in range(3)])
        await set_position(tx, c, 4)
        assert [one.id for one in await list_line(tx, "mill")] == [c, a, b]
        assert [one.id for one in await claimed(tx, await registered(tx), 3)] == [c, a, b]


async def test_a_task_is_put_before_after_and_first(db: Database) -> None:
    async with db.transaction() as tx:
        a, b, c, d = await send_many(tx, [Grind(i) for i in range(4)])
        await put_in_line(tx, "mill", d, before=b)
        assert await ids(tx) == [a, d, b, c]
        await put_in_line(tx, "mill", a, after=b)
        assert await ids(tx) == [d, b, a, c]
        await put_in_line(tx, "mill", c)
        assert await ids(tx) == [c, d, b, a]
        await audit(tx)


async def test_many_moves_to_the_same_gap_end_in_the_order_that_was_asked_for(db: Database) -> None:
    async with db.transaction() as tx:
        first, second, *others = await send_many(tx, [Grind(i) for i in range(16)])
        for one in others:  # each halves the gap between two positions, until it is used up
            await put_in_line(tx, "mill", one, after=first)
        assert await ids(tx) == [first, *reversed(others), second]


async def test_only_one_task_changes_while_there_is_room(db: Database) -> None:
    async with db.transaction() as tx:
        a, b, c = await send_many(tx, [Grind(i) for i in range(3)])
        await set_position(tx, a, 1_000)
        await set_position(tx, b, 3_000)
        await put_in_line(tx, "mill", c, before=b)
        assert [one.position for one in await list_line(tx, "mill")] == [1_000, 2_000, 3_000]


async def test_a_neighbour_that_has_left_the_line_is_named(db: Database) -> None:
    async with db.transaction() as tx:
        gone, stays = await send_many(tx, [Grind(1), Grind(2)])
        await claimed(tx, await registered(tx), 1)
        with pytest.raises(Refused, match=f"Task {gone} is not among the first"):
            await put_in_line(tx, "mill", stays, before=gone)


async def test_workers_are_listed_with_what_they_hold(db: Database) -> None:
    async with db.transaction() as tx:
        await send(tx, Grind(1))
        worker = await registered(tx, "mill", name="host-1")
        await claimed(tx, worker, 5)
        (found,) = await list_workers(tx)
        assert (found.id, found.name, found.queues, found.tasks, found.silent) == (worker, "host-1", ["mill"], 1, False)


async def ids(tx: Tx) -> list[TaskId]:
    return [one.id for one in await list_line(tx, "mill")]
