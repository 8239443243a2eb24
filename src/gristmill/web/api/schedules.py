"""Schedules over HTTP: when they run next, by UTC and by their own clock; enable, run now, history."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from gristmill.db import Tx
from gristmill.ids import ScopeId
from gristmill.queue import Schedule, enable_schedule, list_runs, list_schedules, own_scopes, run_schedule
from gristmill.serving import Caller, Cursor, Listing, Manager, Viewer, read_cursor, services_of, write_cursor
from gristmill.web.console.schedules import list_upcoming
from gristmill.web.task_filters import BIGINT, choose_scope_id

ROUTES = APIRouter(prefix="/schedules", tags=["schedules"])
ScheduleName = Annotated[str, Path(max_length=63)]
ScopeName = Annotated[str | None, Query(max_length=100)]


class ScheduleView(BaseModel):
    """A schedule: `next_at` in UTC, `upcoming` by the clock of its own time zone."""

    model_config = ConfigDict(from_attributes=True)

    name: str
    kind: str
    queue: str
    cron: str | None
    zone: str
    once_at: datetime | None
    follows: str | None
    enabled: bool
    next_at: datetime | None
    upcoming: list[datetime]
    last_at: datetime | None
    last_task: int | None


class ScheduleRunView(BaseModel):
    """A run; `due` is null for one by hand, `status` when its task is not kept any more."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    at: datetime
    due: datetime | None
    task: int
    status: str | None
    started_at: datetime | None
    finished_at: datetime | None
    problem: str | None
    error: str | None


class ScheduleSwitch(BaseModel):
    enabled: bool = Field(description="Whether it runs at its times.")


class Ran(BaseModel):
    task: int


@ROUTES.get("", summary="All schedules, the next to run first; of a client its own")
async def list_all(request: Request, caller: Viewer) -> Listing[ScheduleView]:
    async with caller.reading(services_of(request).db) as tx:
        found = await find_own(tx)
    return Listing(items=[show(one) for one in found])


@ROUTES.get("/{name}/runs", summary="Its runs, the latest first")
async def list_history(
    request: Request,
    caller: Viewer,
    name: ScheduleName,
    client: ScopeName = None,
    project: ScopeName = None,
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> Listing[ScheduleRunView]:
    last = read_cursor(cursor, int)
    before = max(min(int(last[0]), BIGINT), 0) if last else None
    async with caller.reading(services_of(request).db) as tx:
        scope = await find_scope_of(tx, caller, client, project)
        found = await list_runs(tx, [(scope, name)], limit=limit + 1, before=before)
    items = [ScheduleRunView.model_validate(one) for one in found[:limit]]
    return Listing(items=items, next=write_cursor(items[-1].id) if len(found) > limit else None)


@ROUTES.post("/{name}/run", status_code=202, summary="Run it now; its next run stays where it is")
async def run(
    request: Request, caller: Manager, name: ScheduleName, client: ScopeName = None, project: ScopeName = None
) -> Ran:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        task = await run_schedule(tx, name, scope=await find_scope_of(tx, caller, client, project))
        await services.record(tx, caller, "run", f"schedule {name}", task=task)
    return Ran(task=task)


@ROUTES.patch("/{name}", summary="Let it run at its times, or rest")
async def switch(
    request: Request,
    caller: Manager,
    name: ScheduleName,
    wish: ScheduleSwitch,
    client: ScopeName = None,
    project: ScopeName = None,
) -> ScheduleView:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        scope = await find_scope_of(tx, caller, client, project)
        await enable_schedule(tx, name, wish.enabled, scope=scope)
        await services.record(tx, caller, "enable" if wish.enabled else "disable", f"schedule {name}")
        return next(show(one) for one in await list_schedules(tx) if (one.scope, one.name) == (scope, name))


async def find_own(tx: Tx) -> Sequence[Schedule]:
    scopes = await own_scopes(tx)
    return [one for one in await list_schedules(tx) if scopes is None or one.scope in scopes]


async def find_scope_of(tx: Tx, caller: Caller, client: str | None, project: str | None) -> ScopeId:
    """The scope that is named, else that of the caller."""
    own = caller.scope
    found = await choose_scope_id(tx, caller, client or own.client, project or ("" if client else own.project))
    return ScopeId(1) if found is None else found


def show(one: Schedule) -> ScheduleView:
    shown: dict[str, Any] = vars(one) | {"upcoming": list_upcoming(one)}
    return ScheduleView.model_validate(shown)
