"""Queues: how deep they are, how fast they go, what holds them back; one queue with its line, limits and pause."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Form, Request, Response

from gristmill.db import Tx
from gristmill.documents import names_of
from gristmill.durations import format_duration
from gristmill.ids import TaskId
from gristmill.queue import (
    QueueReport,
    TrendPoint,
    explain_standstill,
    list_limiters,
    list_line,
    list_queues,
    pause,
    put_in_line,
    read_sparks,
    read_trend,
    resume,
    set_limit,
    set_queue,
)
from gristmill.serving import Caller, MenuEntry, Problem, require, services_of
from gristmill.web.api.limiters import find_limiter
from gristmill.web.console.answering import answer_action
from gristmill.web.console.charts import ChartSpan, Series
from gristmill.web.console.sorting import Columns, read_sort, sort_rows
from gristmill.web.limits import describe_limits, read_limit, read_settings_form

PAGES = APIRouter()
MENU = (MenuEntry("/queues", "Queues", "queues", operator=True, place=70),)
Operator = Annotated[Caller, Depends(require("viewer", operator=True))]
Steward = Annotated[Caller, Depends(require("admin", operator=True))]
HEAD_OF_LINE = 50
COLUMNS: Columns[QueueReport] = {
    "name": lambda one: one.name,
    "waiting": lambda one: one.pending,
    "running": lambda one: one.processing,
    "dead": lambda one: one.dead,
    "done": lambda one: one.finished["completed"] + one.finished["skipped"],
    "oldest": lambda one: one.oldest,
    "workers": lambda one: len(one.workers),
}


@PAGES.get("/queues")
async def show_queues(request: Request, caller: Operator) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        reports, sparks, limiters = await list_queues(tx), await read_sparks(tx), await list_limiters(tx)
    sort = read_sort(request, COLUMNS, "name")
    return services.render(
        request,
        "queues.html",
        queues=sort_rows(reports, sort, COLUMNS),
        sort=sort,
        sparks=sparks,
        limiters=limiters,
        standstill=explain_standstill,
        describe=describe_limits,
        here=str(request.url.replace(scheme="", netloc="")),
    )


# --- one queue


async def find_queue(tx: Tx, name: str) -> QueueReport:
    for one in await list_queues(tx):
        if one.name == name:
            return one
    raise Problem(404, f"There is no queue {name}.")


@PAGES.get("/queues/{name}")
async def show_queue(request: Request, caller: Operator, name: str) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        queue = await find_queue(tx, name)
        points = await read_trend(tx, name)
        line = await list_line(tx, name, limit=HEAD_OF_LINE)
        names = await names_of(tx, [one.owner for one in line])
    return services.render(
        request,
        "queue.html",
        queue=queue,
        trend=Trend.of(points),
        line=line,
        names=names,
        standstill=explain_standstill(queue),
        limits=describe_limits(queue),
    )


@dataclass(frozen=True)
class Trend:
    """The points of a trend as charts take them."""

    span: ChartSpan
    work: Sequence[Series]
    depth: Sequence[Series]

    @classmethod
    def of(cls, points: Sequence[TrendPoint], step: timedelta = timedelta(minutes=1)) -> "Trend":
        end = points[-1].at + step
        return cls(
            ChartSpan(end, step, len(points)),
            (
                Series("done", "done", [one.completed + one.skipped for one in points]),
                Series("failed", "failed", [one.failed for one in points]),
            ),
            (Series("open", "waiting", [one.open for one in points]),),
        )


@PAGES.post("/queues/{name}/pause")
async def pause_queue(request: Request, caller: Steward, name: str) -> Response:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        await pause(tx, name)
        await services.record(tx, caller, "pause", f"queue {name}")
    here = f"/queues/{quote(name)}"
    return answer_action(request, f"{name} is paused; what runs goes on.", back=here, undo=f"{here}/resume")


@PAGES.post("/queues/{name}/resume")
async def resume_queue(request: Request, caller: Steward, name: str) -> Response:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        await resume(tx, name)
        await services.record(tx, caller, "resume", f"queue {name}")
    here = f"/queues/{quote(name)}"
    return answer_action(request, f"{name} goes on.", back=here, undo=f"{here}/pause")


@PAGES.get("/queues/{name}/settings")
async def show_settings(request: Request, caller: Steward, name: str) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        queue = await find_queue(tx, name)
    return services.render(request, "queue_settings.html", queue=queue, fields=fields_of(queue), wrong=None)


def fields_of(queue: QueueReport) -> Mapping[str, str]:
    """The settings as people type them."""
    settings = queue.settings
    return {name: write_setting(name, settings) for name in ("rate", "concurrency", "max_attempts", *SPANS, "breaker")}


SPANS = ("retry_base", "retry_cap", "timeout", "breaker_window", "breaker_reset")


def write_setting(name: str, settings: Mapping[str, Any]) -> str:
    match name:
        case "rate":
            count, period = settings["rate_count"], settings["rate_period"]
            return f"{count}/{format_duration(period)}" if count else ""
        case "breaker":
            share = settings["breaker_threshold"]
            return f"{share:.0%}" if share else ""
        case _:
            value = settings[name]
            return "" if value is None else format_duration(value) if isinstance(value, timedelta) else str(value)


@PAGES.post("/queues/{name}/settings")
async def change_settings(request: Request, caller: Steward, name: str) -> Response:
    services, form = services_of(request), await request.form()
    given = {key: str(value).strip() for key, value in form.items() if key != "csrf"}
    async with caller.transaction(services.db) as tx:
        queue = await find_queue(tx, name)
        before = fields_of(queue)
        changes = read_settings_form({key: text for key, text in given.items() if before.get(key) != text})
        if not changes:
            return answer_action(request, "Nothing was changed.", back=f"/queues/{quote(name)}")
        await set_queue(tx, name, **changes)
        await services.record(tx, caller, "set", f"queue {name}", **{key: given[key] or None for key in changes})
    said = ", ".join(f"{key.replace('_', ' ')} {given[key] or 'without limit'}" for key in changes)
    return answer_action(request, f"{name}: {said}.", back=f"/queues/{quote(name)}")


@PAGES.post("/queues/{name}/order")
async def order_line(
    request: Request,
    caller: Steward,
    name: str,
    task: Annotated[int, Form()],
    before: Annotated[int | None, Form()] = None,
    after: Annotated[int | None, Form()] = None,
) -> Response:
    services = services_of(request)
    one = TaskId(before) if before is not None else None
    other = TaskId(after) if after is not None else None
    async with caller.transaction(services.db) as tx:
        await put_in_line(tx, name, TaskId(task), before=one, after=other)
        await services.record(tx, caller, "move", f"task {task}", queue=name, before=before, after=after)
    where = f"before {before}" if before is not None else f"after {after}" if after is not None else "to the head"
    return answer_action(request, f"Task {task} was moved {where}.", back=f"/queues/{quote(name)}")


# --- limiters: for calls to the outside


@PAGES.get("/limiters/{name}")
async def show_limiter(request: Request, caller: Steward, name: str) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        limiter = await find_limiter(tx, name)
    return services.render(request, "limiter.html", limiter=limiter)


@PAGES.post("/limiters/{name}")
async def change_limiter(request: Request, caller: Steward, name: str) -> Response:
    services, form = services_of(request), await request.form()
    limit = read_limit({key: str(value).strip() for key, value in form.items()})
    async with caller.transaction(services.db) as tx:
        await find_limiter(tx, name)
        await set_limit(tx, name, limit)
        await services.record(
            tx, caller, "set", f"limiter {name}", **{key: str(form[key]) for key in form if key != "csrf"}
        )
    return answer_action(request, f"{name} has new limits.", back="/queues")
