"""The workers as operators see them: alive, silent or lost, and how much each of them has in its hands."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from gristmill.db import Tx, queries
from gristmill.ids import WorkerId

SQL = queries("gristmill.queue.operate", "workers.sql")


@dataclass(frozen=True)
class WorkerReport:
    """A worker that runs, or that was lost within the last hour; `tasks` counts those that it holds."""

    id: WorkerId
    name: str
    state: str
    queues: list[str]
    concurrency: int
    solo: bool
    started_at: datetime
    heartbeat_at: datetime
    lease_for: timedelta
    silent: bool  # its heartbeat is too old: its tasks will be taken back
    tasks: int


async def list_workers(tx: Tx) -> list[WorkerReport]:
    return await tx.all(SQL["workers"], WorkerReport)
