"""The runs of schedules: when they were due, when they were, and what became of their tasks."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from gristmill.db import Tx, array, queries
from gristmill.ids import ScopeId, TaskId

SQL = queries("gristmill.queue.upkeep", "runs.sql")


@dataclass(frozen=True)
class ScheduleRun:
    """`due` is None for a run by hand; `status` is None when the task is not kept any more."""

    id: int
    scope: ScopeId
    name: str
    at: datetime
    due: datetime | None
    task: TaskId
    problem: str | None
    status: str | None
    started_at: datetime | None
    finished_at: datetime | None
    error: str | None


async def note_run(
    tx: Tx, scope: ScopeId, name: str, task: TaskId, *, due: datetime | None = None, problem: str | None = None
) -> None:
    await tx.execute(SQL["note"], scope=scope, name=name, task=task, due=due, problem=problem)


async def list_runs(
    tx: Tx, schedules: Sequence[tuple[ScopeId, str]], *, limit: int = 50, before: int | None = None
) -> list[ScheduleRun]:
    """The latest runs of each of these schedules, all together the latest first."""
    scopes, names = array(scope for scope, _ in schedules), [name for _, name in schedules]
    return await tx.all(SQL["runs"], ScheduleRun, scopes=scopes, names=names, limit=limit, before=before)
