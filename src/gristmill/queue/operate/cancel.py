"""Cancels tasks: pending ones at once, running ones by asking their worker, groups with all in them."""

from collections.abc import Iterable
from dataclasses import dataclass

from gristmill.db import Column, Tx, array, queries
from gristmill.errors import Unknown
from gristmill.ids import TaskId
from gristmill.queue.groups import conclude

SQL = queries("gristmill.queue.operate", "cancel.sql")
REASON = "cancelled by request"


@dataclass(frozen=True)
class Cancelling:
    """The tasks that are cancelled, and the running tasks whose worker was asked to stop them."""

    cancelled: tuple[TaskId, ...] = ()
    asked: tuple[TaskId, ...] = ()


async def cancel(tx: Tx, ids: Iterable[TaskId], *, reason: str = REASON) -> Cancelling:
    """Cancel these tasks and all tasks within these groups, as far as they are open; the groups are sealed.

    A task that comes after a cancelled one is cancelled with it; it is not listed in the result.
    """
    wanted = array(await _check_known(tx, ids))
    cancelled: set[TaskId] = set()
    asked: set[TaskId] = set()
    while True:
        groups = array(await tx.values(SQL["groups_below"], Column[TaskId], ids=wanted))
        found = set(await tx.values(SQL["open_tasks"], Column[TaskId], ids=wanted, groups=groups)) - asked
        if found:
            ended, running = await _cancel(tx, array(found), reason)
            cancelled |= ended
            asked |= running
        # groups are locked after tasks, as everybody does; a task that joined meanwhile is found in the next round
        if not await tx.all(SQL["seal_groups"], ids=groups):
            break
    await tx.one(SQL["end_sealed"], ids=groups)
    return Cancelling(tuple(sorted(cancelled)), tuple(sorted(asked)))


async def _check_known(tx: Tx, ids: Iterable[TaskId]) -> list[TaskId]:
    wanted = list(dict.fromkeys(ids))
    known = set(await tx.values(SQL["known"], Column[TaskId], ids=array(wanted)))
    for task in wanted:
        if task not in known:
            raise Unknown(f"There is no task {task}.")
    return wanted


async def _cancel(tx: Tx, ids: str, reason: str) -> tuple[set[TaskId], set[TaskId]]:
    await tx.all(SQL["lock_tickets"], ids=ids)
    await tx.all(SQL["lock_tasks"], ids=ids)
    await tx.all(SQL["lock_tickets"], ids=ids)  # again: a task may have got its ticket while we waited for its lock
    running = set(await tx.values(SQL["ask"], Column[TaskId], ids=ids))
    ended = set(await tx.values(SQL["cancel_pending"], Column[TaskId], ids=ids, reason=reason))
    if ended:
        await conclude(tx, ended, was="pending")
    return ended, running
