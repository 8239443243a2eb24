"""Groups of tasks over HTTP: how far they are, and their children, a portion at a time."""

from datetime import datetime

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from gristmill.ids import TaskId
from gristmill.queue import TaskFilter, find_tasks, group_progress
from gristmill.serving import Cursor, Viewer, services_of
from gristmill.web.api.tasks import TaskListing, TaskNumber, show_found
from gristmill.web.task_filters import Limit, Status, read_spot

ROUTES = APIRouter(prefix="/groups", tags=["tasks"])


class GroupError(BaseModel):
    """A task that failed somewhere within a group."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    kind: str
    queue: str
    attempts: int
    at: datetime
    error: str


class GroupView(BaseModel):
    """How many direct children a group has of each status, and the latest errors anywhere within it."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    label: str | None
    status: str
    sealed: bool = Field(description="No more children will come.")
    pending: int
    processing: int
    completed: int
    failed: int
    skipped: int
    cancelled: int
    total: int
    done: int
    created_at: datetime
    finished_at: datetime | None
    errors: list[GroupError]


@ROUTES.get("/{task}", summary="How far a group is")
async def read_group(request: Request, caller: Viewer, task: TaskNumber) -> GroupView:
    async with caller.reading(services_of(request).db) as tx:
        return GroupView.model_validate(await group_progress(tx, TaskId(task)))


@ROUTES.get("/{task}/children", summary="The tasks and groups within a group, newest first")
async def list_children(
    request: Request,
    caller: Viewer,
    task: TaskNumber,
    status: Status | None = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> TaskListing:
    start = read_spot(cursor)
    async with caller.reading(services_of(request).db) as tx:
        await group_progress(tx, TaskId(task), errors=0)
        return show_found(
            await find_tasks(tx, TaskFilter(parent=TaskId(task), status=status), limit=limit, start=start)
        )
