"""Exact numbers of tasks in each queue, read from counters: what they cost does not grow with the tasks."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from gristmill.db import Column, Tx, queries
from gristmill.ids import ScopeId, TaskId

SQL = queries("gristmill.queue.operate", "counts.sql")
LOOK, LOOKS = 2_500, 20  # tasks of a client that one look for the oldest reads, and how often it looks


class _Seen(NamedTuple):
    """What one look found, and the last task that it saw."""

    found: TaskId | None
    last: TaskId | None


@dataclass(frozen=True)
class StatusCounts:
    """How many tasks there are of each status; ended ones as long as they are kept."""

    pending: int = 0
    processing: int = 0
    completed: int = 0
    failed: int = 0
    skipped: int = 0
    cancelled: int = 0

    @property
    def open(self) -> int:
        return self.pending + self.processing

    @property
    def total(self) -> int:
        return self.open + self.completed + self.failed + self.skipped + self.cancelled


@dataclass(frozen=True)
class QueueCounts(StatusCounts):
    """Those of one queue, and how many were ever opened (sent or reopened), and ended, by outcome."""

    queue: str = ""
    opened: int = 0
    ever_completed: int = 0
    ever_failed: int = 0
    ever_skipped: int = 0
    ever_cancelled: int = 0
    ever_retried: int = 0


async def count_tasks(tx: Tx, *, scope: ScopeId | None = None) -> list[QueueCounts]:
    """Of every queue: the tasks of this scope, without one those of the client who asks; for the operator all.

    A client is told of the queues that hold or held tasks of its own.
    """
    scopes = [scope] if scope is not None else await own_scopes(tx)
    return await tx.all(SQL["counts"], QueueCounts, scopes=scopes)


async def own_scopes(tx: Tx) -> list[ScopeId] | None:
    """The scopes of the client or project for whom this transaction works; None for the operator, who has all."""
    return None if tx.seen_from is None else await tx.value(SQL["own_scopes"], list[ScopeId])


def add_up(counts: Iterable[StatusCounts]) -> StatusCounts:
    """The numbers of several queues together."""
    found = list(counts)
    return StatusCounts(
        pending=sum(one.pending for one in found),
        processing=sum(one.processing for one in found),
        completed=sum(one.completed for one in found),
        failed=sum(one.failed for one in found),
        skipped=sum(one.skipped for one in found),
        cancelled=sum(one.cancelled for one in found),
    )


async def find_oldest_pending(tx: Tx) -> TaskId | None:
    """The pending task that was sent first; of a client, its own.

    No index holds what ends with a task, so a client's is looked for among its oldest tasks; None also if it is not
    among the first 50,000 of them.
    """
    scopes = await own_scopes(tx)
    if scopes is None:
        return await tx.value(SQL["oldest_pending"], Column[TaskId])
    if not await tx.value(SQL["has_open"], scopes=scopes):
        return None
    after = 0
    for _ in range(LOOKS):
        seen = await tx.one(SQL["oldest_pending_of_scopes"], _Seen, scopes=scopes, after=after, look=LOOK)
        if seen is None or seen.found is not None or seen.last is None:
            return seen and seen.found
        after = seen.last
    return None
