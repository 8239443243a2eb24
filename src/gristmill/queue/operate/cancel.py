"""Cancels tasks: pending ones at once, running ones by asking their worker, groups with all in them."""

from collections.abc import Iterable
from dataclasses import dataclass

from gristmill.db import Tx, array, queries
from gristmill.errors import Refused
from gristmill.ids import TaskId
from gristmill.queue.groups import conclude

SQL = queries("gristmill.queue.operate", "cancel.sql")
REASON = "cancelled by request"


@dataclass(frozen=True)
class Cancelling:
    """What is cancelled, and what was running and has been asked to stop."""

    cancelled: tuple[TaskId, ...] = ()
    asked: tuple[TaskId, ...] = ()


async def cancel(tx: Tx, ids: Iterable[TaskId], *, reason: str = REASON) -> Cancelling:
    """Cancel what is still open of these tasks, and of everything within these groups, which are sealed.

    What waited for a cancelled task (`after`) is cancelled with it, and not listed here.
    """
    wanted = array(await _check_known(tx, ids))
    cancelled: set[TaskId] = set()
    asked: set[TaskId] = set()
    while True:
        groups = array(row.id for row in await tx.all(SQL["groups_below"], ids=wanted))
        found = {row.id for row in await tx.all(SQL["open_tasks"], ids=wanted, groups=groups)} - asked
        if found:
            ended, running = await _cancel(tx, array(found), reason)
            cancelled |= ended
            asked |= running
        # sealed last, to keep one order of locks; whatever joined before that is found by another look
        if not await tx.all(SQL["seal_groups"], ids=groups):
            break
    await tx.one(SQL["end_sealed"], ids=groups)
    return Cancelling(tuple(sorted(cancelled)), tuple(sorted(asked)))


async def _check_known(tx: Tx, ids: Iterable[TaskId]) -> list[TaskId]:
    wanted = list(dict.fromkeys(ids))
    known = {row.id for row in await tx.all(SQL["known"], ids=array(wanted))}
    for task in wanted:
        if task not in known:
            raise Refused(f"There is no task {task}.")
    return wanted


async def _cancel(tx: Tx, ids: str, reason: str) -> tuple[set[TaskId], set[TaskId]]:
    await tx.all(SQL["lock_tickets"], ids=ids)
    await tx.all(SQL["lock_tasks"], ids=ids)
    await tx.all(SQL["lock_tickets"], ids=ids)  # again: one may have got its ticket while we waited for its task
    running = {row.id for row in await tx.all(SQL["ask"], ids=ids)}
    ended = {row.id for row in await tx.all(SQL["cancel_pending"], ids=ids, reason=reason)}
    if ended:
        await conclude(tx, ended, was="pending")
    return ended, running
