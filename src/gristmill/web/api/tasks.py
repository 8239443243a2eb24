"""Tasks over HTTP: find them, ask why they wait and what would let them go, retry, cancel and move them."""

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from gristmill.ids import TaskId
from gristmill.queue import (
    Cancelling,
    Revived,
    TasksFound,
    cancel,
    find_remedies,
    find_tasks,
    get_task,
    history,
    put_in_line,
    retry_tasks,
    run_now,
    set_foreground,
    set_position,
    set_priority,
    why,
)
from gristmill.serving import Listing, Manager, Problem, Viewer, services_of
from gristmill.web.task_filters import BIGINT, TaskWish, read_spot, read_wish, write_spot

ROUTES = APIRouter(prefix="/tasks", tags=["tasks"])
TaskNumber = Annotated[int, Path(ge=0, le=BIGINT)]


class TaskSummary(BaseModel):
    """A task as lists show it; of a large payload or result the beginning, as text."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    queue: str | None = Field(description="None for a group.")
    kind: str
    status: str
    priority: int
    foreground: bool
    position: int | None
    created_at: datetime
    run_at: datetime | None
    wait: str | None = Field(description="What it waits for: time, after (another task), serial, children.")
    started_at: datetime | None
    finished_at: datetime | None
    attempts: int
    max_attempts: int | None
    suspect: bool
    cancel_requested: bool
    parent: int | None
    after: int | None
    owner: str | None
    progress_current: int | None
    progress_total: int | None
    progress_message: str | None
    payload: Any
    result: Any
    error: str | None
    cluster: str | None = Field(validation_alias="fingerprint")


class TaskEvent(BaseModel):
    """Something that happened to a task."""

    model_config = ConfigDict(from_attributes=True)

    at: datetime
    what: str
    attempt: int | None
    text: str | None


class TaskDetail(TaskSummary):
    """A task with all that is known of it."""

    serial_key: str | None
    unique_key: str | None
    why: str
    history: list[TaskEvent]


class TaskListWish(TaskWish):
    """Which tasks are listed, and how many."""

    order: Literal["newest", "oldest"] = Field(default="newest", description="Of the whole list.")
    cursor: Annotated[str, Field(max_length=500)] | None = Field(
        default=None, description="`next` of the portion before; none: the first."
    )
    limit: int = Field(default=50, ge=1, le=500)


class TaskListing(Listing[TaskSummary]):
    """A portion, and how many tasks were looked at for it: fewer items than asked for, and `next`: go on from there."""

    looked: int


class RemedyView(BaseModel):
    """Something that would let the task go: a call of the API, or a command on a machine."""

    model_config = ConfigDict(from_attributes=True)

    action: str
    sentence: str
    method: str | None
    path: str | None
    body: dict[str, Any]
    choose: list[str] = Field(description="The fields of the body whose values are yours to choose.")
    command: str | None
    operator: bool = Field(description="It concerns all clients: for keys that are bound to none.")


class WhyView(BaseModel):
    """Why a task is where it is: one word for machines, one sentence for people, and what would let it go."""

    id: int
    state: str
    sentence: str
    remedies: list[RemedyView]


class RefusalView(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    id: int
    reason: str


class RevivedView(BaseModel):
    """What is pending again, and what stays as it is, with the reason."""

    model_config = ConfigDict(from_attributes=True)

    tasks: list[int]
    refused: list[RefusalView]


class CancellingView(BaseModel):
    """The tasks that are cancelled, and the running ones whose worker was asked to stop them."""

    model_config = ConfigDict(from_attributes=True)

    cancelled: list[int]
    asked: list[int]


class MoveWish(BaseModel):
    """Where a pending task goes; at least one of these."""

    model_config = ConfigDict(extra="forbid")

    first: bool = Field(default=False, description="Before all others.")
    position: Annotated[int, Field(ge=-(2**62), le=2**62)] | None = Field(
        default=None, description="Before all tasks without a position; null takes its position away."
    )
    priority: Annotated[int, Field(ge=-100, le=100)] | None = None
    foreground: bool | None = Field(default=None, description="People wait for it: before all background work.")


def show_found(found: TasksFound) -> TaskListing:
    items = [TaskSummary.model_validate(one) for one in found.tasks]
    return TaskListing(items=items, next=write_spot(found.next), looked=found.looked)


@ROUTES.get("", summary="Tasks that fit, newest or oldest first; the newest dead letters by the time of their death")
async def list_tasks(request: Request, caller: Viewer, wish: Annotated[TaskListWish, Query()]) -> TaskListing:
    start, is_oldest = read_spot(wish.cursor), wish.order == "oldest"
    async with caller.reading(services_of(request).db) as tx:
        wanted = await read_wish(tx, caller, wish)
        return show_found(await find_tasks(tx, wanted, limit=wish.limit, start=start, oldest_first=is_oldest))


@ROUTES.get("/{task}", summary="One task, with its history")
async def read_task(request: Request, caller: Viewer, task: TaskNumber) -> TaskDetail:
    async with caller.reading(services_of(request).db) as tx:
        found = await get_task(tx, TaskId(task))
        events, reason = await history(tx, TaskId(task)), await why(tx, TaskId(task))
    shown = vars(found) | {"why": reason.sentence, "history": [TaskEvent.model_validate(one) for one in events]}
    return TaskDetail.model_validate(shown)


@ROUTES.get("/{task}/why", summary="Why it is where it is, and what would let it go")
async def explain_task(request: Request, caller: Viewer, task: TaskNumber) -> WhyView:
    async with caller.reading(services_of(request).db) as tx:
        reason = await why(tx, TaskId(task))
    remedies = [RemedyView.model_validate(one) for one in find_remedies(reason)]
    return WhyView(id=reason.id, state=reason.state, sentence=reason.sentence, remedies=remedies)


@ROUTES.post("/{task}/retry", summary="Try it again; of a group all that failed in it")
async def retry_task(request: Request, caller: Manager, task: TaskNumber, again: bool = False) -> RevivedView:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        revived = await retry_tasks(tx, [TaskId(task)], any_outcome=again)
        check_revived(revived)
        await services.record(tx, caller, "retry", f"task {task}", tasks=len(revived.tasks))
    return RevivedView.model_validate(revived)


def check_revived(revived: Revived) -> None:
    if not revived.tasks and revived.refused:
        one = revived.refused[0]
        raise Problem(409, f"Task {one.id} stays as it is: {one.reason}.")


@ROUTES.post("/{task}/cancel", summary="Cancel it; of a group all that is open in it")
async def cancel_task(request: Request, caller: Manager, task: TaskNumber) -> CancellingView:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        ended = await cancel(tx, [TaskId(task)], reason=f"cancelled by {caller.name}")
        await record_cancel(request, tx, caller, task, ended)
    return CancellingView.model_validate(ended)


async def record_cancel(request: Request, tx: Any, caller: Manager, task: int, ended: Cancelling) -> None:
    counts = {"cancelled": len(ended.cancelled), "asked": len(ended.asked)}
    await services_of(request).record(tx, caller, "cancel", f"task {task}", **counts)


@ROUTES.post("/{task}/move", summary="Change the place of a pending task in line")
async def move_task(request: Request, caller: Manager, task: TaskNumber, wish: MoveWish) -> WhyView:
    given = wish.model_fields_set
    if not given:
        raise Problem(422, "Say where to move it: first, position, priority or foreground.")
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        if "priority" in given and wish.priority is not None:
            await set_priority(tx, TaskId(task), wish.priority)
        if "foreground" in given and wish.foreground is not None:
            await set_foreground(tx, TaskId(task), wish.foreground)
        if "position" in given:
            await set_position(tx, TaskId(task), wish.position)
        if wish.first:
            found = await get_task(tx, TaskId(task))
            await put_in_line(tx, found.queue or "", found.id)
        await services.record(tx, caller, "move", f"task {task}", **wish.model_dump(exclude_unset=True))
    return await explain_task(request, caller, task)


@ROUTES.post("/{task}/run-now", summary="Let a scheduled task, or one that backs off, run now")
async def wake_task(request: Request, caller: Manager, task: TaskNumber) -> WhyView:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        await run_now(tx, TaskId(task))
        await services.record(tx, caller, "run now", f"task {task}")
    return await explain_task(request, caller, task)
