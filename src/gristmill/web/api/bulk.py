"""Bulk actions over HTTP: preview what a filter means, begin, watch, stop, undo."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from gristmill.queue import (
    Action,
    Bulk,
    find_runner,
    get_bulk,
    list_bulks,
    preview_bulk,
    start_bulk,
    stop_bulk,
    undo_bulk,
)
from gristmill.serving import Caller, Cursor, Listing, Manager, Viewer, read_cursor, services_of, write_cursor
from gristmill.web.api.tasks import TaskSummary
from gristmill.web.task_filters import BIGINT, TaskWish, read_wish

ROUTES = APIRouter(prefix="/bulk", tags=["bulk actions"])
BulkNumber = Annotated[int, Path(ge=0, le=BIGINT)]


class BulkWish(BaseModel):
    """An action on all tasks that fit; without a status retry and purge mean dead letters, all others pending tasks."""

    model_config = ConfigDict(extra="forbid")

    action: Action
    filter: TaskWish = TaskWish()
    value: Annotated[int, Field(ge=-(2**62), le=2**62)] | None = Field(
        default=None, description="Of the priority or position; for the foreground 1 or 0."
    )


class BulkStart(BulkWish):
    expected: Annotated[int, Field(ge=0, le=BIGINT)] | None = Field(
        default=None, description="How many the preview counted: progress is shown against it."
    )


class PreviewView(BaseModel):
    """What the action would change; it changes nothing."""

    count: int
    exact: bool = Field(description="False: at least so many.")
    samples: list[TaskSummary]
    seconds: float = Field(description="About how long it takes.")


class BulkView(BaseModel):
    """How far a bulk action is."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    action: str
    value: int | None
    status: str = Field(description="running, stopping, stopped, done, failed, undoing or undone.")
    created_at: datetime
    created_by: str
    finished_at: datetime | None
    expected: int | None
    examined: int = Field(description="Tasks that were looked at.")
    changed: int
    unchanged: int = Field(validation_alias="refused", description="Tasks that fit and could not be changed.")
    undone: int
    problem: str | None
    can_undo: bool


class BulkDetail(BulkView):
    filter: dict[str, object]
    runner: int | None = Field(description="The task that runs it: ask why it waits.")


@ROUTES.post("/preview", summary="How many tasks an action would change, some of them, and how long it takes")
async def preview(request: Request, caller: Manager, wish: BulkWish) -> PreviewView:
    async with caller.reading(services_of(request).db) as tx:
        wanted = await read_wish(tx, caller, wish.filter)
        found = await preview_bulk(tx, wish.action, wanted, wish.value)
    return PreviewView(
        count=found.count,
        exact=found.exact,
        samples=[TaskSummary.model_validate(one) for one in found.samples],
        seconds=found.duration.total_seconds(),
    )


@ROUTES.post("", status_code=202, summary="Begin: a worker runs it in portions, on the tasks that are there now")
async def begin(request: Request, caller: Manager, wish: BulkStart) -> BulkDetail:
    return await begin_bulk(request, caller, wish)


async def begin_bulk(request: Request, caller: Caller, wish: BulkStart) -> BulkDetail:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        wanted = await read_wish(tx, caller, wish.filter)
        number = await start_bulk(tx, wish.action, wanted, value=wish.value, by=caller.name, expected=wish.expected)
        details = wish.filter.model_dump(exclude_none=True, mode="json")
        await services.record(tx, caller, f"bulk {wish.action}", f"bulk action {number}", **details)
    return await show_bulk(request, caller, number)


@ROUTES.get("", summary="Bulk actions, the latest first")
async def list_actions(
    request: Request, caller: Viewer, cursor: Cursor = None, limit: Annotated[int, Query(ge=1, le=200)] = 50
) -> Listing[BulkView]:
    last = read_cursor(cursor, int)
    before = min(int(last[0]), BIGINT) if last else None
    async with caller.reading(services_of(request).db) as tx:
        found = await list_bulks(tx, limit=limit + 1, before=before)
    items = [BulkView.model_validate(one) for one in found[:limit]]
    return Listing(items=items, next=write_cursor(items[-1].id) if len(found) > limit else None)


@ROUTES.get("/{bulk}", summary="How far it is")
async def read_action(request: Request, caller: Viewer, bulk: BulkNumber) -> BulkDetail:
    return await show_bulk(request, caller, bulk)


@ROUTES.post("/{bulk}/stop", summary="End it after the portion that runs now")
async def stop(request: Request, caller: Manager, bulk: BulkNumber) -> BulkDetail:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        await stop_bulk(tx, bulk)
        await services.record(tx, caller, "stop", f"bulk action {bulk}")
    return await show_bulk(request, caller, bulk)


@ROUTES.post("/{bulk}/undo", status_code=202, summary="Give every changed task its former state, where it can")
async def undo(request: Request, caller: Manager, bulk: BulkNumber) -> BulkDetail:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        await undo_bulk(tx, bulk)
        await services.record(tx, caller, "undo", f"bulk action {bulk}")
    return await show_bulk(request, caller, bulk)


async def show_bulk(request: Request, caller: Caller, bulk: int) -> BulkDetail:
    async with caller.reading(services_of(request).db) as tx:
        found = await get_bulk(tx, bulk)
        runner = await find_runner(tx, bulk)
    return BulkDetail.model_validate(describe(found) | {"runner": runner})


def describe(found: Bulk) -> dict[str, Any]:
    wanted = {name: value for name, value in vars(found.filter).items() if value is not None}
    return vars(found) | {"can_undo": found.can_undo, "filter": wanted}
