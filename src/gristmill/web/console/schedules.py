"""Schedules: when they run next, by your clock and by theirs; run one now, let one rest, look at the last runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated
from urllib.parse import quote
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Form, Request, Response
from markupsafe import Markup

from gristmill.durations import format_duration
from gristmill.ids import ScopeId
from gristmill.queue import Schedule, ScheduleRun, enable_schedule, list_runs, list_schedules, run_schedule
from gristmill.serving import Manager, MenuEntry, Problem, Viewer, services_of
from gristmill.web.console.answering import answer_action
from gristmill.web.console.charts import Series, draw_spark_blocks
from gristmill.web.console.sorting import Columns, read_sort, sort_rows

PAGES = APIRouter()
MENU = (MenuEntry("/schedules", "Schedules", "schedules", place=76),)
SHOWN_RUNS = 24
NEXT_RUNS = 3


@dataclass(frozen=True)
class ScheduleLine:
    """A schedule, its next runs, and its last ones from the oldest."""

    schedule: Schedule
    upcoming: Sequence[datetime]
    runs: Sequence[ScheduleRun]

    @property
    def timing(self) -> str:
        """When it runs, in words or as a cron line."""
        one = self.schedule
        if one.cron:
            return one.cron
        if one.follows:
            return f"{format_duration(one.delay) if one.delay else 'right'} after {one.follows}"
        return "once"

    @property
    def spark(self) -> Markup:
        """A bar for each run: how long it took, in the colour of what became of it."""
        ended = [run for run in self.runs if run.status not in (None, "pending", "processing")]
        failed = sum(run.status == "failed" for run in ended)
        label = f"{len(self.runs)} runs, {failed} failed" if self.runs else "no runs yet"
        before: list[float | None] = [None] * (SHOWN_RUNS - len(self.runs))  # the last run stands at the right edge
        bad = [*before, *(seconds_of(run) if run.status == "failed" else None for run in self.runs)]
        good = [*before, *(None if run.status == "failed" else seconds_of(run) for run in self.runs)]
        return draw_spark_blocks([Series("done", "done", good), Series("failed", "failed", bad)], label=label)


COLUMNS: Columns[ScheduleLine] = {
    "name": lambda one: one.schedule.name,
    "next": lambda one: one.schedule.next_at,
    "last": lambda one: one.schedule.last_at,
}


def seconds_of(run: ScheduleRun) -> float:
    if run.started_at is None or run.finished_at is None:
        return 0.05
    return max(0.05, (run.finished_at - run.started_at).total_seconds())


@PAGES.get("/schedules")
async def show_schedules(request: Request, caller: Viewer) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        found = await list_schedules(tx)
        runs = await list_runs(tx, [(one.scope, one.name) for one in found], limit=SHOWN_RUNS)
    sort = read_sort(request, COLUMNS, "next")
    return services.render(
        request,
        "schedules.html",
        lines=sort_rows((describe(one, runs) for one in found), sort, COLUMNS),
        sort=sort,
        here=str(request.url.replace(scheme="", netloc="")),
    )


def describe(one: Schedule, runs: Sequence[ScheduleRun]) -> ScheduleLine:
    own = [run for run in runs if (run.scope, run.name) == (one.scope, one.name)]
    return ScheduleLine(one, list_upcoming(one), own[::-1])


def list_upcoming(one: Schedule) -> list[datetime]:
    """Its next runs, in its own time zone."""
    upcoming: list[datetime] = []
    at = one.next_at if one.enabled else None
    while at is not None and len(upcoming) < NEXT_RUNS:
        upcoming.append(at.astimezone(ZoneInfo(one.zone)))
        at = one.next(at) if one.cron else None
    return upcoming


@PAGES.post("/schedules/{scope}/{name}/run")
async def run_now(request: Request, caller: Manager, scope: int, name: str) -> Response:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        task = await run_schedule(tx, name, scope=ScopeId(scope))
        await services.record(tx, caller, "run", f"schedule {name}", task=task)
    return answer_action(request, f"{name} runs as task {task}.", back="/schedules")


@PAGES.post("/schedules/{scope}/{name}/enabled")
async def switch_schedule(
    request: Request, caller: Manager, scope: int, name: str, on: Annotated[str, Form()] = ""
) -> Response:
    services, wanted = services_of(request), on or request.query_params.get("on", "")
    if wanted not in ("0", "1"):
        raise Problem(422, "Say whether the schedule should run: on=1 or on=0.")
    async with caller.transaction(services.db) as tx:
        await enable_schedule(tx, name, wanted == "1", scope=ScopeId(scope))
        await services.record(tx, caller, "enable" if wanted == "1" else "disable", f"schedule {name}")
    undo = f"/schedules/{scope}/{quote(name)}/enabled?on={'0' if wanted == '1' else '1'}"
    said = "runs at its times again" if wanted == "1" else "rests until it is enabled again"
    return answer_action(request, f"{name} {said}.", back="/schedules", undo=undo)
