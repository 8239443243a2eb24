"""Removes old tasks, dead letters, workers and limiters, a small batch at a time, so that no table grows for ever."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from gristmill.db import Column, Tx, array, queries
from gristmill.ids import TaskId
from gristmill.queue.groups import conclude
from gristmill.queue.operate import dead
from gristmill.queue.operate.cancel import cancel
from gristmill.queue.operate.erase import erase
from gristmill.settings import QueueSettings

SQL = queries("gristmill.queue.upkeep", "janitor.sql")
FOLD_FROM = 64  # rows of counters that are as well added up by whoever asks
GROUPS = ""  # the name under which the groups, which are in no queue, are swept
Sooner = Mapping[str, timedelta]  # by the names of queues


@dataclass(frozen=True)
class Cleaned:
    """How much one call removed; `more` if another call would find something at once."""

    tasks: int = 0
    grouped: int = 0
    dead: int = 0
    workers: int = 0
    limiters: int = 0
    more: bool = False

    @property
    def total(self) -> int:
        return self.tasks + self.grouped + self.dead + self.workers + self.limiters


async def clean(tx: Tx, settings: QueueSettings, *, batch: int = 2_000, sooner: Sooner | None = None) -> Cleaned:
    """Remove up to `batch` finished tasks, as many of ended groups and of dead letters, and what is left of workers
    and of limiters that nobody set.

    What `sooner` names a time for is kept for that time: finished tasks and dead letters of these queues.
    Any number may do it at the same time: each queue is cleaned by one of them.
    """
    await tx.execute(SQL["new_sweeps"])
    held = await tx.values(SQL["sweeps"], str)
    await tx.execute(SQL["fold_tallies"], queues=held, batch=batch)
    await tx.execute(SQL["fold_depths"], queues=held, least=FOLD_FROM)
    await tx.execute(SQL["fold_dead"], queues=held, least=FOLD_FROM)
    tasks, more = await _sweep_queues(tx, [queue for queue in held if queue != GROUPS], settings, batch, sooner or {})
    grouped, groups_more = await _sweep_groups(tx, settings, batch) if GROUPS in held else (0, False)
    buried = await dead.purge(tx, older_than=settings.dead_keep_for, keep=settings.dead_keep, batch=batch)
    for queue, span in (sooner or {}).items():
        buried += await dead.purge(
            tx, older_than=span, keep=settings.dead_keep, batch=max(0, batch - buried), queues=[queue]
        )
    await tx.execute(SQL["old_health"])
    workers = await tx.only_value(SQL["old_workers"], int)
    limiters = await tx.only_value(SQL["idle_limiters"], int, n=batch)
    return Cleaned(tasks, grouped, buried, workers, limiters, more or groups_more or buried == batch)


class _SweptRow(NamedTuple):
    removed: int
    more: bool


async def _sweep_queues(
    tx: Tx, queues: list[str], settings: QueueSettings, batch: int, sooner: Sooner
) -> tuple[int, bool]:
    removed, more = 0, False
    for queue in queues:
        if removed == batch:
            return removed, True
        row = await tx.one(
            SQL["sweep_queue"],
            _SweptRow,
            queue=queue,
            keep_for=sooner.get(queue, settings.keep_for),
            keep=settings.keep,
            n=batch - removed,
            look=batch,
        )
        if row is not None:
            removed += row.removed
            more = more or row.more
    return removed, more


class _GroupRow(NamedTuple):
    id: TaskId
    over: bool


async def _sweep_groups(tx: Tx, settings: QueueSettings, batch: int) -> tuple[int, bool]:
    groups = await tx.all(
        SQL["next_groups"], _GroupRow, keep_for=settings.keep_for, dead_keep_for=settings.dead_keep_for, look=batch
    )
    removed, mark = 0, TaskId(0)
    for group in groups:
        if group.over:
            removed += await _remove_tree(tx, group.id, batch - removed)
            if removed >= batch:  # perhaps some of this group is left: look at it again next time
                await tx.execute(SQL["mark_groups"], mark=mark or group.id - 1)
                return removed, True
        mark = group.id
    await tx.execute(SQL["mark_groups"], mark=mark if len(groups) == batch else 0)
    return removed, False


async def _remove_tree(tx: Tx, root: TaskId, n: int) -> int:
    """Remove up to `n` tasks of this tree, from the leaves on."""
    removed = 0
    while removed < n:
        leaves = await tx.values(SQL["leaves_within"], Column[TaskId], id=root, n=n - removed)
        gone = await erase(tx, leaves)
        if not gone:
            break
        removed += gone
    return removed


async def forget_owners(tx: Tx, owners: Sequence[str]) -> int:
    """Remove all tasks of these owners and all tasks within their groups; running ones lose their lease.

    All owners in one call: one after the other would lock tasks in another order than everybody else, and deadlock.
    """
    known: set[TaskId] = set()
    # again: a task that was being settled meanwhile may have sent more
    while fresh := [
        one for one in await tx.values(SQL["owned"], Column[TaskId], owners=list(owners)) if one not in known
    ]:
        await _end(tx, fresh, "cancelled because what it belonged to was removed")
        known.update(fresh)
    return await erase(tx, sorted(known))


async def _end(tx: Tx, ids: Sequence[TaskId], reason: str) -> None:
    """Cancel tasks, running ones, too."""
    running = (await cancel(tx, ids, reason=reason)).asked
    if running:
        ended = await tx.values(SQL["cancel_running"], Column[TaskId], ids=array(running), reason=reason)
        await conclude(tx, ended, was="processing")
