"""Removes closed tasks; a task that still waits for one of them is cancelled, or it would wait for ever."""

from collections.abc import Sequence

from gristmill.db import Column, Tx, array, queries
from gristmill.ids import TaskId
from gristmill.queue.operate.cancel import cancel

SQL = queries("gristmill.queue.operate", "erase.sql")


async def erase(tx: Tx, ids: Sequence[TaskId]) -> int:
    """Remove these tasks; how many there were.

    None of them may be counted as prunable in queue_tally, for this does not count them down: use it for dead letters,
    and for tasks in groups or with an owner.
    """
    if not ids:
        return 0
    waiting = await tx.values(SQL["waiting_for"], Column[TaskId], ids=array(ids))
    if waiting:
        await cancel(tx, waiting, reason="cancelled because the task it waited for failed and was removed")
    return await tx.only_value(SQL["erase"], int, ids=array(ids))
