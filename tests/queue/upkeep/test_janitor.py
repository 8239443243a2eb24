"""Retention: the old and the many go, in small batches, at a cost that does not grow with what is stored."""

from datetime import timedelta
from typing import Any

import pytest
from engine import (
    DAY,
    MINUTE,
    Bake,
    Grind,
    audit,
    buried,
    claimed,
    ground,
    group,
    later,
    registered,
    settled,
    status,
    statuses,
)

from gristmill.db import Database, Tx
from gristmill.errors import LeaseLost
from gristmill.ids import TaskId
from gristmill.queue import Limit, Limiters, list_limiters, set_limit
from gristmill.queue.groups import open_group, seal
from gristmill.queue.letters import Unique
from gristmill.queue.operate.cancel import cancel
from gristmill.queue.operate.queues import set_queue
from gristmill.queue.operate.revive import retry
from gristmill.queue.send import send, send_many
from gristmill.queue.upkeep import janitor
from gristmill.queue.upkeep.janitor import Cleaned, clean, forget_owners
from gristmill.settings import QueueSettings

SETTINGS = QueueSettings(keep_for=timedelta(days=7), keep=1_000)
WEEK = timedelta(days=8)


def kept(n: int) -> QueueSettings:
    return QueueSettings(keep=n)


async def done(tx: Tx, n: int, letter: type = Grind) -> list[TaskId]:
    ids = await send_many(tx, [letter(i) for i in range(n)])
    await ground(tx, n, queues=[letter.kind.partition(".")[0]])
    return ids


async def test_what_is_young_and_few_is_kept(db: Database) -> None:
    async with db.transaction() as tx:
        await done(tx, 5)
        assert await clean(tx, SETTINGS) == Cleaned()
        assert len(await statuses(tx)) == 5


async def test_what_is_older_than_it_is_kept_goes(db: Database) -> None:
    async with db.transaction() as tx:
        await done(tx, 5)
        pending = await send(tx, Grind(9))
    async with later(db, WEEK) as tx:
        assert (await clean(tx, SETTINGS)).tasks == 5
        assert list(await statuses(tx)) == [pending]
        await audit(tx)


async def test_of_what_is_more_than_is_kept_the_oldest_go(db: Database) -> None:
    async with db.transaction() as tx:
        ids = await done(tx, 10)
        other = await done(tx, 3, Bake)
        assert (await clean(tx, kept(4))).tasks == 6
        assert list(await statuses(tx)) == ids[6:] + other
        await audit(tx)
        assert await clean(tx, kept(4)) == Cleaned()


async def test_a_queue_may_say_otherwise(db: Database) -> None:
    async with db.transaction() as tx:
        await set_queue(tx, "mill", keep=1)
        await set_queue(tx, "oven", keep_for="30d")
        await done(tx, 3)
        baked = await done(tx, 3, Bake)
    async with later(db, WEEK - 2 * DAY) as tx:
        assert (await clean(tx, SETTINGS)).tasks == 2
    async with later(db, WEEK) as tx:
        assert (await clean(tx, SETTINGS)).tasks == 1
        assert list(await statuses(tx)) == baked
        await audit(tx)


async def test_it_works_in_batches_and_says_when_there_is_more(db: Database) -> None:
    async with db.transaction() as tx:
        await done(tx, 10)
        await done(tx, 3, Bake)
        calls: list[tuple[int, bool]] = []
        while not calls or calls[-1][1]:
            cleaned = await clean(tx, kept(0), batch=4)
            calls.append((cleaned.tasks, cleaned.more))
        assert sum(n for n, _ in calls) == 13
        assert max(n for n, _ in calls) == 4
        assert await statuses(tx) == {}
        await audit(tx)


async def test_it_gets_past_what_it_may_not_touch_and_comes_back_to_it(db: Database) -> None:
    async with db.transaction() as tx:
        first = await send(tx, Grind(0))
        for i in range(9):
            await send(tx, Grind(i), owner="document 1")
        worker = await registered(tx)
        slow, *rest = await claimed(tx, worker, 10)
        await settled(tx, worker, rest)
        await done(tx, 3)
        removed = [(await clean(tx, kept(0), batch=3)).tasks for _ in range(5)]
        assert sum(removed) == 3
        await settled(tx, worker, [slow])
        removed = [(await clean(tx, kept(0), batch=3)).tasks for _ in range(5)]
        assert sum(removed) == 1
        assert first not in await statuses(tx)
        await audit(tx)


async def test_dead_letters_and_open_tasks_are_not_finished_tasks(db: Database) -> None:
    async with db.transaction() as tx:
        await send_many(tx, [Grind(i) for i in range(3)])
        await buried(tx, 1)
        await claimed(tx, await registered(tx), 1)
        assert (await clean(tx, kept(0))).total == 0
        assert len(await statuses(tx)) == 3


async def test_a_unique_key_that_is_still_held_keeps_its_task(db: Database) -> None:
    async with db.transaction() as tx:
        held = await send(tx, Grind(), unique=Unique("one", period=DAY))
        await ground(tx)
        assert (await clean(tx, kept(0))).tasks == 0
        assert await send(tx, Grind(), unique=Unique("one")) == held
    async with later(db, 2 * DAY) as tx:
        assert (await clean(tx, kept(0))).tasks == 1
        await audit(tx)


async def test_what_is_kept_of_a_task_goes_with_it(db: Database) -> None:
    async with db.transaction() as tx:
        (id_,) = await done(tx, 1)
        await tx.execute("INSERT INTO task_progress VALUES (%(id)s, 1, clock(), 1, 1)", id=id_)
        await tx.execute("INSERT INTO task_failure VALUES (%(id)s, 1, 1, clock(), 1, 'busy', 'f')", id=id_)
        await clean(tx, kept(0))
        await audit(tx)


async def test_the_count_of_what_may_go_is_exact_through_cancel_and_retry(db: Database) -> None:
    async with db.transaction() as tx:
        ids = await done(tx, 4)
        waiting = await send(tx, Grind(9), delay=DAY)
        await send(tx, Grind(10), after=waiting)
        await cancel(tx, [waiting])
        await audit(tx)
        await retry(tx, [ids[0]], any_outcome=True)
        await audit(tx)
        assert (await clean(tx, kept(0))).tasks == 5
        await audit(tx)


async def test_the_counts_of_ended_workers_are_folded_together(db: Database) -> None:
    async with db.transaction() as tx:
        for _ in range(3):
            await done(tx, 2)
        await tx.execute("UPDATE worker SET state = 'stopped' WHERE id <> (SELECT max(id) FROM worker)")
        await clean(tx, SETTINGS)
        rows = await tx.all("SELECT worker, completed, prunable FROM queue_tally ORDER BY worker")
        assert [tuple(row)[1:] for row in rows] == [(4, 4), (2, 2)]
        await audit(tx)


async def grown(tx: Tx) -> tuple[TaskId, TaskId]:
    """A tree: an outer group with an inner one, five leaves, all done."""
    outer = await open_group(tx)
    inner = await open_group(tx, parent=outer)
    for i in range(3):
        await send(tx, Grind(i), parent=inner)
    for i in range(2):
        await send(tx, Bake(i), parent=outer)
    await seal(tx, inner)
    await seal(tx, outer)
    return outer, inner


async def test_an_ended_group_goes_with_its_whole_tree_in_batches(db: Database) -> None:
    async with db.transaction() as tx:
        outer, _ = await grown(tx)
        await ground(tx, 9, queues=["mill", "oven"])
        assert await status(tx, outer) == "completed"
        young, _ = await grown(tx)
        assert await clean(tx, kept(0)) == Cleaned()
    async with later(db, WEEK) as tx:
        calls = [await clean(tx, SETTINGS, batch=2) for _ in range(5)]
        assert [one.grouped for one in calls] == [2, 2, 2, 1, 0]
        assert calls[0].more
        assert min(await statuses(tx)) == young
        assert await tx.value("SELECT count(*) FROM task_group") == 2
        await audit(tx)


async def test_a_group_in_which_something_failed_is_kept_as_long_as_dead_letters(db: Database) -> None:
    async with db.transaction() as tx:
        outer, inner = await grown(tx)
        await ground(tx, 2, queues=["oven"])
        await buried(tx, 3)
        assert await group(tx, inner) == {"failed": 3}
    async with later(db, WEEK) as tx:
        assert (await clean(tx, SETTINGS)).grouped == 0
        assert await status(tx, outer) == "failed"
    async with later(db, 31 * DAY) as tx:
        assert (await clean(tx, SETTINGS)).grouped == 7
        await audit(tx)


async def test_dead_letters_go_by_age_and_number(db: Database) -> None:
    async with db.transaction() as tx:
        await send_many(tx, [Grind(i) for i in range(5)])
        await buried(tx, 5)
        assert (await clean(tx, QueueSettings(dead_keep=3))).dead == 2
    async with later(db, 31 * DAY) as tx:
        assert (await clean(tx, SETTINGS)).dead == 3
        await audit(tx)


async def test_what_is_left_of_workers_and_health_goes_after_a_day(db: Database) -> None:
    async with db.transaction() as tx:
        gone, holding, living = [await registered(tx, lease=9 * DAY) for _ in range(3)]
        await send(tx, Grind())
        await claimed(tx, holding)
        await tx.execute("UPDATE worker SET state = 'lost' WHERE id = ANY (%(ids)s)", ids=[gone, holding])
        await tx.execute("INSERT INTO queue_health VALUES ('mill', clock(), 1, 1)")
        assert (await clean(tx, SETTINGS)).workers == 0
    async with later(db, 2 * DAY) as tx:
        assert (await clean(tx, SETTINGS)).workers == 1
        assert {row.id for row in await tx.all("SELECT id FROM worker")} == {holding, living}
        assert await tx.value("SELECT count(*) FROM queue_health") == 0


async def test_two_janitors_do_not_wait_for_each_other(db: Database) -> None:
    async with db.transaction() as tx:
        await done(tx, 4)
        await clean(tx, SETTINGS)
    async with db.transaction() as one, db.transaction() as other:
        assert (await clean(one, kept(0))).tasks == 4
        assert (await clean(other, kept(0))).tasks == 0
    async with db.transaction() as tx:
        await audit(tx)


async def test_owned_tasks_stay_until_their_owner_is_forgotten(db: Database) -> None:
    async with db.transaction() as tx:
        root = await open_group(tx, owner="document 1")
        inner = await open_group(tx, parent=root)
        leaves = [await send(tx, Grind(i), parent=inner) for i in range(2)]
        alone = await send(tx, Grind(2), owner="document 1")
        await ground(tx, 1)
        worker = await registered(tx)
        running = await claimed(tx, worker, 1)
        other = await send(tx, Grind(3), owner="document 2")
        follower = await send(tx, Bake(), after=alone)
    async with later(db, WEEK) as tx:
        assert (await clean(tx, kept(0))).total == 0
    async with db.transaction() as tx:
        assert await forget_owners(tx, ["document 1"]) == 5
        assert await forget_owners(tx, ["document 1"]) == 0
        assert not {root, inner, alone, *leaves} & set(await statuses(tx))
        assert (await status(tx, other), await status(tx, follower)) == ("pending", "cancelled")
        await audit(tx)
    with pytest.raises(LeaseLost, match="1 of 1 leases are lost"):
        async with db.transaction() as tx:
            await settled(tx, worker, running)


async def test_a_sweep_reads_no_more_however_much_is_stored(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.execute("INSERT INTO queue (name) VALUES ('mill')")
        await tx.execute("INSERT INTO sweep VALUES ('mill', 0)")
        await tx.execute("INSERT INTO queue_tally (queue, worker, prunable) VALUES ('mill', 1, 30000)")
        await tx.execute(
            "INSERT INTO task (id, created_at, finished_at, lane, outcome, queue, kind)"
            " SELECT i, clock(), clock(), 1, 'completed', 'mill', 'mill.grind' FROM generate_series(1, 30000) i"
        )
        await tx.execute("ANALYZE task")
        plan = await tx.value(
            "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + janitor.SQL["sweep_queue"],
            queue="mill",
            keep_for=DAY,
            keep=1_000,
            n=200,
            look=200,
        )
    nodes = list(walked(plan[0]["Plan"]))
    assert "task_by_queue" in {node.get("Index Name") for node in nodes}
    assert "Seq Scan" not in {node["Node Type"] for node in nodes if node.get("Relation Name") == "task"}
    assert max(node["Actual Rows"] for node in nodes) <= 200
    assert plan[0]["Plan"]["Shared Hit Blocks"] + plan[0]["Plan"]["Shared Read Blocks"] < 3_000


def walked(node: dict[str, Any]) -> list[dict[str, Any]]:
    return [node] + [below for child in node.get("Plans", []) for below in walked(child)]


async def test_a_limiter_that_only_handlers_made_goes_when_nobody_takes_from_it(db: Database) -> None:
    limiters = Limiters(db)
    for name in ("domain:a.example", "domain:b.example"):
        async with limiters.take(name, Limit(gap=(MINUTE, MINUTE))):
            pass
    async with db.transaction() as tx:
        await set_limit(tx, "llm", Limit(concurrency=5))
        await set_limit(tx, "domain:b.example", Limit(gap=(MINUTE, MINUTE)))
        assert (await clean(tx, SETTINGS)).limiters == 0
    async with later(db, 2 * DAY) as tx:
        assert (await clean(tx, SETTINGS)).limiters == 1
        assert [one.name for one in await list_limiters(tx)] == ["domain:b.example", "llm"]


async def test_a_limiter_that_is_held_stays_however_long_that_takes(db: Database) -> None:
    async with Limiters(db).take("slow", Limit(concurrency=1), hold=3 * DAY), later(db, 2 * DAY) as tx:
        assert (await clean(tx, SETTINGS)).limiters == 0
    async with later(db, 2 * DAY) as tx:
        assert (await clean(tx, SETTINGS)).limiters == 1


async def test_some_queues_are_cleaned_sooner_and_the_others_keep_their_dead_letters(db: Database) -> None:
    async with db.transaction() as tx:
        await send(tx, Grind(1))
        await send(tx, Bake(1))
        (stays,) = await buried(tx, 1, "stone", queues=["mill"])
        await buried(tx, 1, "burnt", queues=["oven"])
    async with later(db, WEEK) as tx:
        assert (await clean(tx, SETTINGS, sooner={"oven": timedelta(days=7)})).dead == 1
        assert await status(tx, stays) == "failed"
        await audit(tx)
