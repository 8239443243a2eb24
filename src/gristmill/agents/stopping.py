"""Stops a run: its worker begins nothing more, and its questions need no answer any more."""

from gristmill.agents.effects import withdraw_effects
from gristmill.agents.runs import load_run, stop_run, withdraw_questions
from gristmill.db import Tx
from gristmill.ids import RunId, WorkItemId
from gristmill.qualifier import cancel_item, load_items


async def end_run(tx: Tx, run: RunId, by: str) -> bool:
    """Stop a run; False if it was over already. An effect that has begun comes to its end."""
    if not await stop_run(tx, run, by):
        return False
    await withdraw_effects(tx, run, f"{by} stopped the run before it was begun.")
    await withdraw_questions(tx, run)
    await _cancel_item(tx, run, by)
    return True


async def _cancel_item(tx: Tx, run: RunId, by: str) -> None:
    """A person who stops the run of an item wants nothing more done for it; its executor is told at once."""
    item = (await load_run(tx, run)).item
    found = (await load_items(tx, [WorkItemId(item)])).get(WorkItemId(item)) if item is not None else None
    if found is not None and found.is_open and found.state != "error":
        await cancel_item(tx, found.id, by=by, why=f"{by} stopped its run.")
