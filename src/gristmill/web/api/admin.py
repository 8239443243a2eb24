"""Jobs under the names that monitors of job queues know: statistics, recent jobs, retry."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from gristmill.db import Tx
from gristmill.ids import TaskId
from gristmill.queue import (
    Task,
    TaskFilter,
    add_up,
    count_tasks,
    find_oldest_pending,
    find_tasks,
    get_task,
    retry_tasks,
)
from gristmill.records import IngestData, Vectorize
from gristmill.serving import Manager, services_of
from gristmill.web.api.tasks import check_revived
from gristmill.web.task_filters import BIGINT

ROUTES = APIRouter(prefix="/admin/queue", tags=["queues"])
RECENT = 20
JOB_TYPES = {IngestData.kind: "INGEST_DATA", Vectorize.kind: "VECTORIZE"}  # as importers of tables call them


class Named(BaseModel):
    """Its fields are written as JavaScript writes them: jobType, maxAttempts."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, serialize_by_alias=True)


class JobCounts(Named):
    """Exact, of the tasks that are kept; a skipped task counts as completed."""

    pending: int
    processing: int
    completed: int
    failed: int


class JobProgress(Named):
    current: int
    total: int | None
    message: str | None


class Job(Named):
    """A task; its status in capitals."""

    id: str
    job_type: str
    status: str
    payload: Any
    result: Any
    progress: JobProgress | None
    priority: int
    attempts: int
    max_attempts: int | None
    scheduled_for: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    created_at: datetime
    updated_at: datetime
    error: str | None


class QueueStats(Named):
    queue_stats: JobCounts
    recent_jobs: list[Job]
    oldest_pending_job: Job | None


class Retried(Named):
    job_id: str
    status: str = Field(description="PENDING: it will run again.")


@ROUTES.get("/stats", summary="Numbers, recent jobs, and the job that waits longest")
async def read_stats(request: Request, caller: Manager) -> QueueStats:
    async with caller.reading(services_of(request).db) as tx:
        counts = add_up(await count_tasks(tx))
        recent = (await find_tasks(tx, TaskFilter(), limit=2 * RECENT)).tasks
        oldest = await load_oldest(tx)
    return QueueStats(
        queue_stats=JobCounts(
            pending=counts.pending,
            processing=counts.processing,
            completed=counts.completed + counts.skipped,
            failed=counts.failed,
        ),
        recent_jobs=list(show_jobs(recent))[:RECENT],
        oldest_pending_job=oldest,
    )


async def load_oldest(tx: Tx) -> Job | None:
    found = await find_oldest_pending(tx)
    return show_job(await get_task(tx, found)) if found is not None else None


@ROUTES.post("/retry", summary="Try a failed job again")
async def retry_job(
    request: Request, caller: Manager, job_id: Annotated[int, Query(alias="jobId", ge=0, le=BIGINT)]
) -> Retried:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        revived = await retry_tasks(tx, [TaskId(job_id)])
        check_revived(revived)
        await services.record(tx, caller, "retry", f"task {job_id}", tasks=len(revived.tasks))
    return Retried(job_id=str(job_id), status="PENDING")


def show_jobs(tasks: Iterable[Task]) -> Iterable[Job]:
    """Groups have no handler: they are no jobs."""
    return (show_job(one) for one in tasks if one.queue is not None)


def show_job(one: Task) -> Job:
    progress = None
    if one.progress_current is not None:
        progress = JobProgress(current=one.progress_current, total=one.progress_total, message=one.progress_message)
    return Job(
        id=str(one.id),
        job_type=JOB_TYPES.get(one.kind, one.kind),
        status=one.status.upper(),
        payload=one.payload,
        result=one.result,
        progress=progress,
        priority=one.priority,
        attempts=one.attempts,
        max_attempts=one.max_attempts,
        scheduled_for=one.run_at or one.created_at,
        started_at=one.started_at,
        completed_at=one.finished_at,
        created_at=one.created_at,
        updated_at=one.finished_at or one.heartbeat_at or one.started_at or one.created_at,
        error=one.error,
    )
