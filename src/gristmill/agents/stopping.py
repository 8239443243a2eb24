"""Stops a run: whoever works on it begins nothing more, and nobody needs to answer for it."""

from gristmill.agents.effects import withdraw_effects
from gristmill.agents.runs import stop_run, withdraw_questions
from gristmill.db import Tx
from gristmill.ids import RunId


async def end_run(tx: Tx, run: RunId, by: str) -> bool:
    """Stop a run; False if it was over already. An effect that has begun comes to its end."""
    if not await stop_run(tx, run, by):
        return False
    await withdraw_effects(tx, run, f"{by} stopped the run before it was begun.")
    await withdraw_questions(tx, run)
    return True
