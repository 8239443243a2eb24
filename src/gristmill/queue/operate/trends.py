"""What happened in queues over time: throughput, failures and depth, for charts and sparklines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from gristmill.db import Tx, queries
from gristmill.errors import Refused
from gristmill.queue.operate.counts import own_scopes

SQL = queries("gristmill.queue.operate", "trends.sql")
ORIGIN = datetime(2000, 1, 3, tzinfo=UTC)  # a Monday: steps of days and weeks begin where people expect it
MOST_POINTS = 2_000
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


@dataclass(frozen=True)
class TrendPoint:
    """What happened in one step that begins at `at`, and how many tasks were open, and dead, at its end."""

    at: datetime
    opened: int = 0
    completed: int = 0
    failed: int = 0
    skipped: int = 0
    cancelled: int = 0
    retried: int = 0
    open: int = 0
    dead: int = 0

    @property
    def ended(self) -> int:
        return self.completed + self.failed + self.skipped + self.cancelled


@dataclass(frozen=True)
class _Flow:
    """What changed in one step; `dead` may be below zero."""

    at: datetime
    opened: int
    completed: int
    failed: int
    skipped: int
    cancelled: int
    retried: int
    dead: int


@dataclass(frozen=True)
class Spark:
    """How many tasks ended in each step of a sparkline, and how many of them failed."""

    ended: tuple[int, ...]
    failed: tuple[int, ...]


class _LevelRow(NamedTuple):
    open: int
    dead: int


async def read_trend(
    tx: Tx, queue: str | None = None, *, span: timedelta = HOUR, step: timedelta = MINUTE
) -> list[TrendPoint]:
    """One point for each step of the last `span`, of one queue or of all; the last step is the present one.

    Depths are not sampled: they follow from the present depth and from what came and went since.
    """
    _check_steps(span, step)
    now = await tx.only_value(SQL["now"], datetime)
    steps = _list_steps(now, span, step)
    asked: dict[str, Any] = {"queue": queue, "scopes": await own_scopes(tx)}
    rows = await tx.all(SQL["trend"], _Flow, step=step, origin=ORIGIN, since=steps[0], now=now, **asked)
    levels = await tx.one(SQL["levels"], _LevelRow, **asked)
    assert levels is not None
    return draw_points(steps, {row.at: row for row in rows}, open_=levels.open, dead=levels.dead)


def draw_points(
    steps: Sequence[datetime], flows: Mapping[datetime, _Flow], *, open_: int, dead: int
) -> list[TrendPoint]:
    """From the present back to the first step: what came is taken away again, what went is put back."""
    points: list[TrendPoint] = []
    for at in reversed(steps):
        flow = flows.get(at) or _Flow(at, 0, 0, 0, 0, 0, 0, 0)
        point = TrendPoint(
            at,
            opened=flow.opened,
            completed=flow.completed,
            failed=flow.failed,
            skipped=flow.skipped,
            cancelled=flow.cancelled,
            retried=flow.retried,
            open=open_,
            dead=dead,
        )
        points.append(point)
        open_ += point.ended - flow.opened
        dead -= flow.dead
    return points[::-1]


class _SparkRow(NamedTuple):
    queue: str
    at: datetime
    ended: int
    failed: int


async def read_sparks(tx: Tx, *, span: timedelta = HOUR, step: timedelta = 2 * MINUTE) -> dict[str, Spark]:
    """A sparkline for every queue in which something happened."""
    _check_steps(span, step)
    steps = _list_steps(await tx.only_value(SQL["now"], datetime), span, step)
    rows = await tx.all(SQL["sparks"], _SparkRow, step=step, origin=ORIGIN, since=steps[0], scopes=await own_scopes(tx))
    found: dict[str, dict[datetime, tuple[int, int]]] = {}
    for row in rows:
        found.setdefault(row.queue, {})[row.at] = (row.ended, row.failed)
    nothing = (0, 0)
    return {
        queue: Spark(*zip(*(points.get(at, nothing) for at in steps), strict=True)) for queue, points in found.items()
    }


def _list_steps(now: datetime, span: timedelta, step: timedelta) -> list[datetime]:
    last = ORIGIN + (now - ORIGIN) // step * step
    count = max(1, -(-span // step))
    return [last - step * (count - 1 - place) for place in range(count)]


def _check_steps(span: timedelta, step: timedelta) -> None:
    if step < MINUTE or step % MINUTE:
        raise Refused("A step is a whole number of minutes.")
    if span < step:
        raise Refused("The span is shorter than a step.")
    if span / step > MOST_POINTS:
        raise Refused(f"That would be more than {MOST_POINTS:,} points: ask for a longer step.")
