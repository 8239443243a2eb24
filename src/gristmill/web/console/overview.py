"""The overview: what moves, what waits, what is wrong, and who works; complete when it arrives, and live."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from fastapi import APIRouter, Request, Response

from gristmill.alarms import Alarm, list_alarms
from gristmill.db import Tx
from gristmill.documents import Phase, Progress, count_documents, list_phases, load_overview
from gristmill.queue import (
    QueueCounts,
    QueueReport,
    StatusCounts,
    TrendPoint,
    WorkerReport,
    add_up,
    count_tasks,
    explain_standstill,
    list_queues,
    list_workers,
    read_sparks,
    read_trend,
)
from gristmill.serving import MenuEntry, Viewer, services_of
from gristmill.web.console.queues import Trend

PAGES = APIRouter()
MENU = (MenuEntry("/", "Overview", "overview", place=0),)
SHOWN_DOCUMENTS = 8
SHOWN_ALARMS = 3
SPANS = {
    "1h": (timedelta(hours=1), timedelta(minutes=1)),
    "6h": (timedelta(hours=6), timedelta(minutes=5)),
    "24h": (timedelta(days=1), timedelta(minutes=20)),
    "7d": (timedelta(days=7), timedelta(hours=2)),
}


@dataclass(frozen=True)
class PhaseWork:
    """How the pages or chunks of all documents stand in one phase."""

    phase: Phase
    counts: StatusCounts


@dataclass(frozen=True)
class Machine:
    """What only the operator sees: queues and workers."""

    queues: Sequence[QueueReport]
    workers: Sequence[WorkerReport]

    @property
    def oldest(self) -> QueueReport | None:
        waiting = [one for one in self.queues if one.oldest is not None]
        return max(waiting, key=lambda one: one.oldest or timedelta(0), default=None)

    @property
    def alive(self) -> int:
        return sum(one.state == "live" and not one.silent for one in self.workers)


@PAGES.get("/")
async def show_overview(request: Request, caller: Viewer, span: str = "1h") -> Response:
    services = services_of(request)
    length, step = SPANS.get(span, SPANS["1h"])
    async with caller.reading(services.db) as tx:
        counts = await count_tasks(tx)
        points = await read_trend(tx, span=length, step=step)
        seen = await load_overview(tx, SHOWN_DOCUMENTS)
        values: dict[str, Any] = {
            "tally": await count_documents(tx),
            "documents": choose_documents(seen.documents),
            "phases": join_phases(await list_phases(tx), counts),
            "sparks": await read_sparks(tx),
            "alarms": await load_alarms(tx),
            "machine": await load_machine(tx) if caller.is_operator else None,
        }
    return services.render(
        request,
        "overview.html",
        totals=add_up(counts),
        trend=Trend.of(points, step),
        pace=describe_pace(points, step),
        span=span if span in SPANS else "1h",
        spans=SPANS,
        standstill=explain_standstill,
        here=f"/?span={span}" if span in SPANS else "/",
        **values,
    )


async def load_alarms(tx: Tx) -> list[Alarm]:
    """The newest that nobody has acknowledged."""
    return [one for one in await list_alarms(tx, limit=20) if one.state == "firing"][:SHOWN_ALARMS]


async def load_machine(tx: Tx) -> Machine:
    return Machine(await list_queues(tx), await list_workers(tx))


def choose_documents(found: Sequence[Progress]) -> list[Progress]:
    """Those at work first, then those with errors, then the newest."""
    places = {"processing": 0, "failed": 1, "pending": 2}
    chosen = sorted(found, key=lambda one: (places.get(one.status, 3), -one.id))
    return chosen[:SHOWN_DOCUMENTS]


def join_phases(phases: Sequence[Phase], counts: Sequence[QueueCounts]) -> list[PhaseWork]:
    by_queue: Mapping[str, QueueCounts] = {one.queue: one for one in counts}
    shown = [one for one in phases if one.shown]
    return [PhaseWork(one, by_queue.get(one.queue) or QueueCounts(queue=one.queue)) for one in shown]


@dataclass(frozen=True)
class ShownPace:
    """How many tasks ended lately, in a unit that suits the number."""

    number: str
    unit: str
    failed: int


def describe_pace(points: Sequence[TrendPoint], step: timedelta) -> ShownPace:
    """Of the present step and the one before: a step that has just begun says nothing yet."""
    last = points[-2:]
    minutes = max(1.0, len(last) * step.total_seconds() / 60)
    ended = sum(one.completed + one.skipped for one in last)
    rate = ended / minutes
    number, unit = (f"{rate / 60:,.1f}", "tasks/s") if rate >= 120 else (f"{rate:,.0f}", "tasks/min")
    return ShownPace(number, unit, sum(one.failed for one in points))
