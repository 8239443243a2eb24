"""Tidies up behind runs: those that nobody carries, effects that nobody settled, what nobody needs to remember."""

import asyncio
from datetime import timedelta
from functools import partial
from pathlib import Path

from gristmill.agents.checkpoints import drop_threads, prune_ended_runs
from gristmill.agents.delegation.store import drop_old_delegations
from gristmill.agents.effects import question_lost_effects
from gristmill.agents.letters import TidyRuns
from gristmill.agents.memory import fill_meanings, tidy_facts, tidy_procedures, tidy_sessions
from gristmill.agents.runs import (
    abandon_runs,
    drop_runs,
    forget_ended_texts,
    list_expired_runs,
    list_old_runs,
    list_runs_of_items,
    withdraw_stale_questions,
)
from gristmill.agents.stopping import end_run
from gristmill.agents.workspaces import list_workspaces, remove_workspace
from gristmill.db import Database, Tx
from gristmill.ids import WorkItemId
from gristmill.knowledge import Embedders
from gristmill.qualifier import load_items, wake_item
from gristmill.settings import Settings

PORTION, MOST_PORTIONS = 50, 20  # runs that are removed in one transaction, and transactions in one round
LOST_AFTER = timedelta(minutes=10)  # longer than an effect of a stopped run may take to end


async def tidy_runs(letter: TidyRuns, *, db: Database, settings: Settings, embedders: Embedders) -> None:
    # each in a transaction of its own: runs that one of them has locked must not wait for tasks that another one needs
    for work in (
        abandon_runs,
        _see_to_runs_of_items,
        partial(question_lost_effects, patience=LOST_AFTER),
        withdraw_stale_questions,
        drop_old_delegations,
        prune_ended_runs,
        forget_ended_texts,
        tidy_sessions,
        tidy_procedures,
    ):
        async with db.transaction() as tx:
            await work(tx)
    await _remove_runs(db, settings.agents.keep_runs)
    await tidy_facts(db)
    await fill_meanings(db, embedders)
    await _remove_workspaces(db, settings.data, settings.agents.keep_workspaces)


async def _see_to_runs_of_items(tx: Tx) -> None:
    """A run whose item has ended, whoever ended it, is over as well; one that waits for nobody goes on.

    A question may be answered in the moment between the rest of a run and that of its item, which nothing wakes then.
    """
    runs = [one for one in await list_runs_of_items(tx) if one.item is not None]
    items = await load_items(tx, [WorkItemId(one.item) for one in runs if one.item is not None])
    for one in runs:
        item = items.get(WorkItemId(one.item or 0))
        if item is None or not item.is_open or item.state == "error":
            await end_run(tx, one.id, "its item, which has ended")
        elif item.state == "waiting_for_user" and one.state == "queued":
            await wake_item(tx, item.id, why=f"The questions of run {one.id} are answered.")


async def _remove_runs(db: Database, keep: timedelta) -> None:
    """Remove what was over long ago, a portion in each transaction; the rest waits for the next minute."""
    for _ in range(MOST_PORTIONS):
        async with db.transaction() as tx:
            old = await list_expired_runs(tx, keep, PORTION)
            await drop_threads(tx, old)
            await drop_runs(tx, old)
        if len(old) < PORTION:
            return


async def _remove_workspaces(db: Database, data: Path, keep: timedelta) -> None:
    """The old workspaces of this machine; those of another machine are removed by a worker there."""
    there = await asyncio.to_thread(list_workspaces, data)
    async with db.reading() as tx:
        old = await list_old_runs(tx, there, keep) if there else []
    for run in old:
        await remove_workspace(data, run)
