"""What is kept of how far a run is: how large its checkpoints are, and what of them is left when it is over."""

from collections.abc import Sequence
from typing import NamedTuple

from gristmill.db import Column, Tx, queries
from gristmill.ids import RunId

SQL = queries("gristmill.agents", "checkpoints.sql")
MOST_AT_ONCE = 100  # runs that are pruned in one transaction


class CheckpointSize(NamedTuple):
    """What the checkpoints of a run take in the database."""

    checkpoints: int
    bytes: int


async def measure_checkpoints(tx: Tx, run: RunId) -> CheckpointSize:
    return await tx.one(SQL["measure_checkpoints"], CheckpointSize, thread=str(run)) or CheckpointSize(0, 0)


async def is_by_delegation(tx: Tx, run: RunId) -> bool | None:
    """Whether a run went through the delegation graph so far; None if it has not begun."""
    return await tx.value(SQL["is_by_delegation"], bool, thread=str(run))


async def prune_checkpoints(tx: Tx, run: RunId) -> None:
    """Keep the last state of a run that is over, and nothing of how it came there."""
    thread = str(run)
    await tx.execute(SQL["drop_old_checkpoints"], thread=thread)
    await tx.execute(SQL["forget_parent"], thread=thread)
    await tx.execute(SQL["drop_writes"], thread=thread)
    await tx.execute(SQL["drop_old_values"], thread=thread)


async def drop_threads(tx: Tx, runs: Sequence[RunId]) -> None:
    """Keep nothing of how far these runs were: they are removed themselves."""
    await tx.execute(SQL["drop_threads"], threads=[str(run) for run in runs])


async def prune_ended_runs(tx: Tx) -> int:
    """Prune runs that are over and whose worker did not do it: those that failed, or were stopped."""
    found = await tx.values(SQL["list_unpruned"], Column[RunId], most=MOST_AT_ONCE)
    for run in found:
        await prune_checkpoints(tx, run)
    return len(found)
