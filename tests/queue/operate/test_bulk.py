"""Bulk actions: previewed, run in portions that are each done once, stopped, and undone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from engine import DAY, Bake, Grind, audit, buried, claimed, ground, later, registered, settled, statuses

from gristmill.db import Database, Tx
from gristmill.errors import Refused, Unknown
from gristmill.ids import TaskId
from gristmill.queue.groups import open_group, seal
from gristmill.queue.letters import Envelope
from gristmill.queue.operate import bulk as module
from gristmill.queue.operate.bulk import (
    Bulk,
    RunBulk,
    find_runner,
    get_bulk,
    list_bulks,
    preview_bulk,
    run_portion,
    start_bulk,
    stop_bulk,
    undo_bulk,
)
from gristmill.queue.operate.counts import add_up, count_tasks
from gristmill.queue.operate.search import TaskFilter
from gristmill.queue.outcome import Done, Retry
from gristmill.queue.send import send, send_many
from gristmill.queue.upkeep.sampler import sample
from gristmill.scopes import Scope
from gristmill.settings import QueueSettings

ACME, BETA = Scope("acme"), Scope("beta")
MILL = TaskFilter(queue="mill")


@pytest.fixture(autouse=True)
def small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PORTION", 4)


async def begin(db: Database, action: Any, wanted: TaskFilter = MILL, **more: Any) -> int:
    async with db.transaction() as tx:
        return await start_bulk(tx, action, wanted, by="a tester", **more)


async def finish(db: Database, bulk: int) -> Bulk:
    while (found := await run_portion(db, bulk)).is_open:
        pass
    return found


async def undo(db: Database, bulk: int) -> Bulk:
    async with db.transaction() as tx:
        await ground(tx, 1, queues=("bulk",))  # its runner has ended
        await undo_bulk(tx, bulk)
    return await finish(db, bulk)


@asynccontextmanager
async def checked(db: Database) -> AsyncIterator[Tx]:
    async with db.transaction() as tx:
        yield tx
        await audit(tx)


async def state(db: Database) -> list[Any]:
    """All that a person sees of the tasks, without the runner of the action."""
    async with db.transaction() as tx:
        return await tx.all(
            "SELECT id, status, priority, foreground, position, run_at, attempts, error, fingerprint, finished_at, "
            "result, parent FROM tasks WHERE queue <> 'bulk' OR queue IS NULL ORDER BY id"
        )


async def test_a_preview_counts_shows_samples_and_changes_nothing(db: Database) -> None:
    async with db.transaction() as tx:
        sent = await send_many(tx, [Grind(i) for i in range(25)])
        await buried(tx, 14)
    before = await state(db)
    async with db.transaction() as tx:
        found = await preview_bulk(tx, "retry", MILL)
        assert (found.count, found.exact, [one.id for one in found.samples]) == (14, True, sent[13:3:-1])
        assert found.duration == timedelta(seconds=round(14 / module.PACE, 1))
        assert (await preview_bulk(tx, "cancel", TaskFilter(text="24"))).count == 1
        assert (await preview_bulk(tx, "cancel", TaskFilter(queue="oven"))).count == 0
    assert await state(db) == before


async def test_a_preview_that_runs_out_of_time_says_at_least_or_asks_the_counters(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_COUNTED", 5)
    async with db.transaction() as tx:
        await send_many(tx, [Grind(i) for i in range(120)])
        found = await preview_bulk(tx, "cancel", MILL)
        assert (found.count, found.exact) == (120, True)
        found = await preview_bulk(tx, "cancel", TaskFilter(text="grain"))
        assert (found.count, found.exact, len(found.samples)) == (5, False, 5)


async def test_dead_letters_are_replayed_in_portions_and_go_back_if_nothing_happened_since(db: Database) -> None:
    async with db.transaction() as tx:
        group = await open_group(tx)
        await send_many(tx, [Envelope(Grind(i), parent=group) for i in range(9)])
        await seal(tx, group)
        await buried(tx, 9, "no water")
    before = await state(db)
    bulk = await begin(db, "retry", expected=9)
    found = await finish(db, bulk)
    assert (found.status, found.changed, found.refused, found.step) == ("done", 9, 0, 3)
    async with checked(db) as tx:
        assert add_up(await count_tasks(tx)).failed == 0
        done = await ground(tx, 2)
    after = await undo(db, bulk)
    assert (after.status, after.undone) == ("undone", 7)
    async with checked(db) as tx:
        assert await find_runner(tx, bulk) is not None
    assert [row for row in await state(db) if row.id not in (*done, group)] == [
        row for row in before if row.id not in (*done, group)
    ]


async def test_cancelled_tasks_come_back_with_their_time_their_attempts_and_their_followers(db: Database) -> None:
    async with db.transaction() as tx:
        first, *_ = await send_many(tx, [Grind(i) for i in range(6)])
        await send(tx, Bake(1), after=first)
        await send(tx, Grind(7), delay=timedelta(hours=5))
        await send(tx, Grind(8), serial_key="one")
        await send(tx, Grind(9), serial_key="one")
        await ground(tx, 1, Retry(timedelta(hours=1), "no wind"))
    before = await state(db)
    bulk = await begin(db, "cancel")
    found = await finish(db, bulk)
    assert (found.status, found.changed) == ("done", 10)
    async with checked(db) as tx:
        assert set((await statuses(tx)).values()) == {"cancelled", "pending"}  # the runner waits
        assert add_up(await count_tasks(tx)).cancelled == 10
    assert (await undo(db, bulk)).undone == 10
    async with checked(db):
        pass
    fields = ("id", "status", "run_at", "attempts")
    assert [tuple(getattr(row, name) for name in fields) for row in await state(db)] == [
        tuple(getattr(row, name) for name in fields) for row in before
    ]


@pytest.mark.parametrize(("action", "value"), [("priority", 5), ("foreground", 1), ("position", 3), ("position", None)])
async def test_tasks_are_moved_and_moved_back(db: Database, action: Any, value: int | None) -> None:
    async with db.transaction() as tx:
        await send_many(tx, [Grind(i) for i in range(5)])
        await send_many(tx, [Envelope(Grind(i), position=i) for i in range(3)])
        await send(tx, Grind(9), delay=timedelta(hours=1))
        await claimed(tx, await registered(tx), 1)
    before = await state(db)
    async with db.transaction() as tx:
        places = await tx.all("SELECT id, lane, seq FROM ticket WHERE queue = 'mill' ORDER BY id")
    bulk = await begin(db, action, value=value)
    found = await finish(db, bulk)
    assert (found.changed > 0, found.changed + found.refused) == (True, 8)
    shown = {getattr(row, action) for row in await state(db) if row.status == "pending"}
    assert shown == {bool(value) if action == "foreground" else value}
    await undo(db, bulk)
    assert await state(db) == before
    async with checked(db) as tx:
        assert await tx.all("SELECT id, lane, seq FROM ticket WHERE queue = 'mill' ORDER BY id") == places


async def test_purging_removes_what_no_group_and_no_owner_holds(db: Database) -> None:
    async with db.transaction() as tx:
        group = await open_group(tx)
        await send_many(tx, [Grind(i) for i in range(6)])
        await send_many(tx, [Envelope(Grind(i), parent=group) for i in range(2)])
        await send(tx, Grind(1), owner="document:1")
        await ground(tx, 9)
    found = await finish(db, await begin(db, "purge", TaskFilter(queue="mill", status="completed")))
    assert (found.changed, found.refused) == (6, 3)
    async with checked(db) as tx:
        assert add_up(await count_tasks(tx)).completed == 3
        with pytest.raises(Refused, match="removed tasks"):
            await undo_bulk(tx, found.id)


async def test_new_tasks_are_no_part_of_an_action_that_began_before(db: Database) -> None:
    async with db.transaction() as tx:
        await send_many(tx, [Grind(i) for i in range(3)])
    bulk = await begin(db, "cancel")
    async with db.transaction() as tx:
        await send_many(tx, [Grind(i) for i in range(2)])
    assert (await finish(db, bulk)).changed == 3


async def test_it_stops_between_two_portions_and_what_was_changed_can_be_undone(db: Database) -> None:
    async with db.transaction() as tx:
        await send_many(tx, [Grind(i) for i in range(10)])
    bulk = await begin(db, "cancel")
    await run_portion(db, bulk)
    async with db.transaction() as tx:
        await stop_bulk(tx, bulk)
        await stop_bulk(tx, bulk)
    found = await finish(db, bulk)
    assert (found.status, found.changed) == ("stopped", 4)
    assert (await run_portion(db, bulk)).changed == 4  # nothing more
    async with db.transaction() as tx:
        with pytest.raises(Refused, match="stopped"):
            await stop_bulk(tx, bulk)
    assert (await undo(db, bulk)).undone == 4
    async with checked(db) as tx:
        assert add_up(await count_tasks(tx)).cancelled == 0
        with pytest.raises(Refused, match="undone"):
            await undo_bulk(tx, bulk)


class Killed(Exception):
    """As if the worker had been killed here."""


@pytest.mark.parametrize("action", ["retry", "cancel", "purge", "priority"])
async def test_killed_at_any_statement_each_portion_is_done_once(
    db: Database, action: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with db.transaction() as tx:
        await send_many(tx, [Grind(i) for i in range(9)])
        await buried(tx, 9) if action in ("retry", "purge") else None
    bulk = await begin(db, action, value=7 if action == "priority" else None)
    run, count, killed_at = Tx._run, 0, 0

    async def counted(self: Tx, *args: Any) -> Any:
        nonlocal count
        count += 1
        if count == killed_at:
            raise Killed
        return await run(self, *args)

    monkeypatch.setattr(Tx, "_run", counted)
    deaths = 0
    while True:  # each portion is killed at its first statement, then at its second, …
        killed_at, count = killed_at + 1, 0
        try:
            found = await run_portion(db, bulk)
        except Killed:
            deaths += 1
            continue
        killed_at = 0
        if not found.is_open:
            break
    monkeypatch.undo()
    assert deaths > 10
    assert (found.status, found.changed, found.refused) == ("done", 9, 0)
    async with checked(db):
        pass


async def test_two_overlapping_actions_at_once_change_every_task_once(db: Database) -> None:
    async with db.transaction() as tx:
        await send_many(tx, [Grind(i) for i in range(60)])
        await buried(tx, 60)
    first, second = await begin(db, "retry"), await begin(db, "retry", TaskFilter(status="failed"))
    ended = await asyncio.gather(finish(db, first), finish(db, second), finish(db, first))
    assert ended[0].changed + ended[1].changed == 60
    async with checked(db) as tx:
        assert add_up(await count_tasks(tx)).pending == 61 + 1  # and the two runners


async def test_a_client_acts_on_its_own_tasks_and_sees_its_own_actions(db: Database) -> None:
    for scope in (ACME, BETA):
        async with db.transaction(seen_from=scope) as tx:
            await send_many(tx, [Grind(i) for i in range(3)])
    async with db.transaction() as tx:
        await send_many(tx, [Grind(i) for i in range(3)])
    everywhere = await begin(db, "priority", value=1)
    async with db.transaction(seen_from=ACME) as tx:
        bulk = await start_bulk(tx, "cancel", TaskFilter(), by="acme")
        assert [one.id for one in await list_bulks(tx)] == [bulk]
        for asked in (get_bulk, stop_bulk, undo_bulk):
            with pytest.raises(Unknown, match="There is no bulk action"):
                await asked(tx, everywhere)
    found = await finish(db, bulk)
    assert (found.changed, found.refused) == (3, 0)
    async with checked(db) as tx:
        rows = await tx.all(
            "SELECT DISTINCT s.client FROM task t JOIN scope s ON s.id = t.scope WHERE outcome IS NOT NULL"
        )
        assert [row.client for row in rows] == ["acme"]
        assert [one.id for one in await list_bulks(tx)] == [bulk, everywhere]


async def test_an_action_leaves_its_own_runner_alone(db: Database) -> None:
    async with db.transaction() as tx:
        await send(tx, Grind(1))
    found = await finish(db, await begin(db, "cancel", TaskFilter()))
    assert found.changed == 1
    async with db.transaction() as tx:
        runner = await find_runner(tx, found.id)
        assert runner is not None
        assert (await statuses(tx))[runner] == "pending"


@pytest.mark.parametrize(
    ("action", "wanted", "value", "sentence"),
    [
        ("retry", {"status": "pending"}, None, "retry is for tasks that are failed or"),
        ("priority", {}, 101, "-100 to 100"),
        ("priority", {}, None, "-100 to 100"),
        ("foreground", {}, 2, "1 or 0"),
        ("cancel", {}, 1, "takes no value"),
        ("burn", {}, None, "“burn” is no action"),
    ],
)
async def test_what_makes_no_sense_is_refused(
    db: Database, action: Any, wanted: dict[str, Any], value: int | None, sentence: str
) -> None:
    async with db.transaction() as tx:
        with pytest.raises(Refused, match=sentence):
            await preview_bulk(tx, action, TaskFilter(**wanted), value)
        with pytest.raises(Refused, match=sentence):
            await start_bulk(tx, action, TaskFilter(**wanted), value=value, by="a tester")


async def test_an_old_action_is_forgotten_with_all_that_it_kept(db: Database) -> None:
    async with db.transaction() as tx:
        await send_many(tx, [Grind(i) for i in range(3)])
    bulk, running = await begin(db, "cancel"), await begin(db, "priority", value=1)
    await finish(db, bulk)
    async with later(db, QueueSettings().hours_keep_for + DAY) as tx:
        assert await tx.value("SELECT count(*) FROM bulk_change") == 3
        await sample(tx, QueueSettings())
        assert [one.id for one in await list_bulks(tx)] == [running]
        assert await tx.value("SELECT count(*) FROM bulk_change") == 0


async def test_results_survive_being_retried_and_put_back(db: Database) -> None:
    async with db.transaction() as tx:
        (task,) = await send_many(tx, [Grind(1)])
        worker = await registered(tx)
        await settled(tx, worker, await claimed(tx, worker), Done(result={"flour": [1, None]}))
    before = await state(db)
    bulk = await begin(db, "retry", TaskFilter(status="completed"))
    assert (await finish(db, bulk)).changed == 1
    assert (await undo(db, bulk)).undone == 1
    assert [row for row in await state(db) if row.id == task] == before


def test_the_runner_is_a_letter_of_its_own_queue() -> None:
    assert RunBulk(TaskId(1)).kind == "bulk.run"
