"""Bulk actions are run by workers, a slice at a time."""

import sys
from functools import partial
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "queue"))

from crew import worked
from engine import Grind, audit, buried, statuses

from gristmill.db import Database
from gristmill.queue import RunBulk, TaskFilter, dead, get_bulk, on, set_queue, start_bulk
from gristmill.queue.send import send_many
from gristmill.web import bulk as module
from gristmill.web.bulk import run_bulk


@pytest.mark.parametrize("slice_", [10.0, 0.0])
async def test_a_worker_runs_it_to_the_end_in_as_many_tasks_as_it_takes(
    db: Database, monkeypatch: pytest.MonkeyPatch, slice_: float
) -> None:
    monkeypatch.setattr(module, "SLICE", slice_)
    monkeypatch.setattr("gristmill.queue.operate.bulk.PORTION", 10)
    async with db.transaction() as tx:
        await send_many(tx, [Grind(i) for i in range(35)])
        await buried(tx, 35)
        bulk = await start_bulk(tx, "retry", TaskFilter(queue="mill"), by="a tester", expected=35)
    await worked(db, on(RunBulk, partial(run_bulk, db=db)))
    async with db.transaction() as tx:
        found = await get_bulk(tx, bulk)
        assert (found.status, found.changed) == ("done", 35)
        ended = [status for status in (await statuses(tx)).values() if status == "completed"]
        assert len(ended) == (1 if slice_ else 4)
        await audit(tx)


async def test_a_killed_worker_loses_nothing_and_repeats_nothing(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """It dies after a portion was committed and before its task is settled: the next worker goes on from there."""
    monkeypatch.setattr("gristmill.queue.operate.bulk.PORTION", 10)
    async with db.transaction() as tx:
        await send_many(tx, [Grind(i) for i in range(35)])
        bulk = await start_bulk(tx, "priority", TaskFilter(queue="mill"), value=5, by="a tester")

    deaths = 0

    async def run_and_die(letter: RunBulk) -> object:
        nonlocal deaths
        await module.run_portion(db, letter.bulk)
        deaths += 1
        raise RuntimeError("killed")

    async with db.transaction() as tx:
        await set_queue(tx, "bulk", retry_base="0s")
    await worked(db, on(RunBulk, run_and_die))
    assert deaths == 3
    async with db.transaction() as tx:
        assert (await get_bulk(tx, bulk)).changed == 30
        await dead.replay(tx, queue="bulk")
    await worked(db, on(RunBulk, partial(run_bulk, db=db)))
    async with db.transaction() as tx:
        found = await get_bulk(tx, bulk)
        assert (found.status, found.changed, found.refused) == ("done", 35, 0)
