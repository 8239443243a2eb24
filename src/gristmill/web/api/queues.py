"""Queues over HTTP: how they stand, how they are set, what happened in them over time."""

from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from gristmill.db import Tx
from gristmill.durations import format_duration
from gristmill.queue import (
    QueueCounts,
    QueueReport,
    TrendPoint,
    count_tasks,
    explain_standstill,
    list_queues,
    pause,
    read_trend,
    resume,
    set_queue,
)
from gristmill.serving import Caller, Listing, Problem, Viewer, require, services_of

ROUTES = APIRouter(tags=["queues"])
Operator = Annotated[Caller, Depends(require("viewer", operator=True))]
Steward = Annotated[Caller, Depends(require("manager", operator=True))]
Keeper = Annotated[Caller, Depends(require("admin", operator=True))]
QueueName = Annotated[str, Path(max_length=63)]
Minutes = Annotated[int, Query(ge=1, le=60 * 24 * 90)]


class QueueNumbers(BaseModel):
    """How many tasks a queue holds of each status; ended ones as long as they are kept. Exact."""

    model_config = ConfigDict(from_attributes=True)

    queue: str
    pending: int
    processing: int
    completed: int
    failed: int
    skipped: int
    cancelled: int


class BoundedNumber(BaseModel):
    """A count that stops at a bound."""

    model_config = ConfigDict(from_attributes=True)

    n: int
    more: bool


class BreakerView(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    state: str
    since: datetime | None
    until: datetime | None
    reason: str | None


class QueueView(QueueNumbers):
    """A queue as its operator sees it."""

    paused: bool
    ready: BoundedNumber
    scheduled: BoundedNumber
    blocked: BoundedNumber
    suspects: BoundedNumber
    finished: dict[str, int] = Field(description="What ever ended, by outcome.")
    oldest: float | None = Field(description="For how many seconds the oldest ready task has waited.")
    settings: dict[str, Any]
    breaker: BreakerView | None
    workers: list[str]
    standstill: str | None = Field(description="Why nothing of it runs though tasks wait.")


class QueueWish(BaseModel):
    """What to change; null takes a limit away, what is left out stays as it is. Durations are texts such as 10s."""

    model_config = ConfigDict(extra="forbid")

    concurrency: int | None = None
    rate: Annotated[str, Field(max_length=50)] | None = Field(default=None, description="Such as 10/60s.")
    max_attempts: int | None = Field(default=None, description="null: never give up.")
    retry_base: Annotated[str, Field(max_length=50)] | None = None
    retry_cap: Annotated[str, Field(max_length=50)] | None = None
    retries_first: bool | None = None
    timeout: Annotated[str, Field(max_length=50)] | None = None
    clear_payload: bool | None = None
    keep: int | None = None
    keep_for: Annotated[str, Field(max_length=50)] | None = None
    breaker: Annotated[str, Field(max_length=50)] | None = Field(default=None, description="Errors, such as 30%.")
    breaker_window: Annotated[str, Field(max_length=50)] | None = None
    breaker_minimum: int | None = None
    breaker_reset: Annotated[str, Field(max_length=50)] | None = None


class PointView(BaseModel):
    """What happened in one step, and how many tasks were open, and dead, at its end."""

    model_config = ConfigDict(from_attributes=True)

    at: datetime
    opened: int
    completed: int
    failed: int
    skipped: int
    cancelled: int
    retried: int
    open: int
    dead: int


@ROUTES.get("/queues", summary="All queues with exact numbers; of a client those that hold its tasks")
async def list_numbers(request: Request, caller: Viewer) -> Listing[QueueNumbers]:
    async with caller.reading(services_of(request).db) as tx:
        found = await count_tasks(tx)
    return Listing(items=[QueueNumbers.model_validate(one) for one in found])


@ROUTES.get("/queues/history", summary="Throughput, failures and depth of all queues together")
async def read_history(
    request: Request, caller: Viewer, minutes: Minutes = 60, step: Minutes = 1
) -> Listing[PointView]:
    async with caller.reading(services_of(request).db) as tx:
        return show_points(await read_trend(tx, span=timedelta(minutes=minutes), step=timedelta(minutes=step)))


@ROUTES.get("/queues/{name}", summary="One queue: how it stands and how it is set")
async def read_queue(request: Request, caller: Operator, name: QueueName) -> QueueView:
    async with caller.reading(services_of(request).db) as tx:
        return show_queue(await find_report(tx, name))


@ROUTES.get("/queues/{name}/history", summary="Throughput, failures and depth of one queue")
async def read_queue_history(
    request: Request, caller: Viewer, name: QueueName, minutes: Minutes = 60, step: Minutes = 1
) -> Listing[PointView]:
    async with caller.reading(services_of(request).db) as tx:
        await find_numbers(tx, name)
        return show_points(await read_trend(tx, name, span=timedelta(minutes=minutes), step=timedelta(minutes=step)))


@ROUTES.patch("/queues/{name}", summary="Change limits and settings, for all workers at once")
async def change_queue(request: Request, caller: Keeper, name: QueueName, wish: QueueWish) -> QueueView:
    changes = wish.model_dump(exclude_unset=True)
    if not changes:
        raise Problem(422, "Nothing to change: name a setting.")
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        await find_report(tx, name)
        await set_queue(tx, name, **changes)
        await services.record(tx, caller, "set", f"queue {name}", **changes)
        return show_queue(await find_report(tx, name))


@ROUTES.post("/queues/{name}/pause", summary="Claim nothing more of it; what runs goes on")
async def pause_queue(request: Request, caller: Steward, name: QueueName) -> QueueView:
    return await _pause(request, caller, name, paused=True)


@ROUTES.post("/queues/{name}/resume", summary="Let a paused queue go on")
async def resume_queue(request: Request, caller: Steward, name: QueueName) -> QueueView:
    return await _pause(request, caller, name, paused=False)


async def _pause(request: Request, caller: Caller, name: str, *, paused: bool) -> QueueView:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        await (pause if paused else resume)(tx, name)
        await services.record(tx, caller, "pause" if paused else "resume", f"queue {name}")
        return show_queue(await find_report(tx, name))


async def find_report(tx: Tx, name: str) -> QueueReport:
    for one in await list_queues(tx):
        if one.name == name:
            return one
    raise Problem(404, f"There is no queue {name}.")


async def find_numbers(tx: Tx, name: str) -> QueueCounts:
    for one in await count_tasks(tx):
        if one.queue == name:
            return one
    raise Problem(404, f"There is no queue {name}.")


def show_queue(one: QueueReport) -> QueueView:
    settings = {
        name: format_duration(value) if isinstance(value, timedelta) else value for name, value in one.settings.items()
    }
    shown = (
        vars(one) | dict(one.kept) | {"queue": one.name, "settings": settings, "standstill": explain_standstill(one)}
    )
    return QueueView.model_validate(shown | {"oldest": one.oldest.total_seconds() if one.oldest else None})


def show_points(points: list[TrendPoint]) -> Listing[PointView]:
    return Listing(items=[PointView.model_validate(one) for one in points])
