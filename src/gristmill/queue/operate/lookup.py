"""Tells what is known of one task: its row, its history, and of a group its progress."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from gristmill.db import Tx, queries
from gristmill.errors import Unknown
from gristmill.ids import ScopeId, TaskId, WorkerId

SQL = queries("gristmill.queue.operate", "lookup.sql")
STATUSES = ("pending", "processing", "completed", "failed", "skipped", "cancelled")


@dataclass(frozen=True)
class Task:
    """A task as people mean it: the row of the view `tasks`."""

    id: TaskId
    queue: str | None
    kind: str
    status: str
    priority: int
    foreground: bool
    position: int | None
    created_at: datetime
    run_at: datetime | None
    wait: str | None
    started_at: datetime | None
    finished_at: datetime | None
    attempts: int
    max_attempts: int | None
    worker: WorkerId | None
    lease: int | None
    suspect: bool
    heartbeat_at: datetime | None
    lease_expires_at: datetime | None
    cancel_requested: bool
    parent: TaskId | None
    after: TaskId | None
    serial_key: str | None
    unique_key: str | None
    owner: str | None
    progress_current: int | None
    progress_total: int | None
    progress_message: str | None
    payload: Any
    result: Any
    error: str | None
    fingerprint: str | None
    scope: ScopeId


@dataclass(frozen=True)
class TaskError:
    id: TaskId
    kind: str
    queue: str
    attempts: int
    at: datetime
    error: str


@dataclass(frozen=True)
class GroupProgress:
    """A group's counters of its direct children, and the latest errors anywhere within it."""

    id: TaskId
    label: str | None
    status: str
    sealed: bool
    pending: int
    processing: int
    completed: int
    failed: int
    skipped: int
    cancelled: int
    created_at: datetime
    finished_at: datetime | None
    errors: tuple[TaskError, ...]

    @property
    def total(self) -> int:
        return self.pending + self.processing + self.done

    @property
    def done(self) -> int:
        """What has ended, well or badly."""
        return self.completed + self.failed + self.skipped + self.cancelled


@dataclass(frozen=True)
class HistoryEvent:
    """Something that happened to a task: sent, claimed, failed, ended …"""

    at: datetime
    what: str
    attempt: int | None = None
    worker: WorkerId | None = None
    text: str | None = None


async def get_task(tx: Tx, task: TaskId) -> Task:
    found = await tx.one(SQL["get"], Task, id=task)
    if found is None:
        raise Unknown(f"There is no task {task}.")
    return found


class _GroupRow(NamedTuple):
    id: TaskId
    label: str | None
    status: str
    sealed: bool
    pending: int
    processing: int
    completed: int
    failed: int
    skipped: int
    cancelled: int
    created_at: datetime
    finished_at: datetime | None


async def group_progress(tx: Tx, group: TaskId, *, errors: int = 20) -> GroupProgress:
    row = await tx.one(SQL["group"], _GroupRow, id=group)
    if row is None:
        raise Unknown(f"There is no group {group}.")
    found = await tx.all(SQL["errors_within"], TaskError, id=group, limit=errors)
    return GroupProgress(*row, errors=tuple(found))


async def history(tx: Tx, task: TaskId) -> list[HistoryEvent]:
    """What is known to have happened to a task, oldest first."""
    events = await tx.all(SQL["history"], HistoryEvent, id=task)
    if not events:
        raise Unknown(f"There is no task {task}.")
    return events
