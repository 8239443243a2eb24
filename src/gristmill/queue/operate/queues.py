"""Queues as their operators see them: set, pause, resume, and how they stand."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from gristmill.db import Tx, queries
from gristmill.durations import parse_duration, parse_rate
from gristmill.errors import Refused, Unknown
from gristmill.queue.letters import to_json
from gristmill.queue.send import NAME, ensure_queues

SQL = queries("gristmill.queue.operate", "queues.sql")
MOST = 2_000  # where counting stops


@dataclass(frozen=True)
class Bounded:
    """A count that stops at a bound: `more` if there are more than `n`."""

    n: int
    more: bool = False

    def __str__(self) -> str:
        return f"{self.n}+" if self.more else str(self.n)


@dataclass(frozen=True)
class ShownBreaker:
    """`until` is when an open breaker lets one task try."""

    state: str
    since: datetime | None
    until: datetime | None
    reason: str | None


@dataclass(frozen=True)
class QueueReport:
    """How a queue is set and how it stands.

    `finished` counts what ever ended, by outcome; `kept` what of it is still there. What pending tasks wait for is
    counted to a bound; all other numbers are exact.
    """

    name: str
    paused: bool
    settings: Mapping[str, Any]
    pending: int
    ready: Bounded
    scheduled: Bounded
    blocked: Bounded
    suspects: Bounded
    processing: int
    finished: Mapping[str, int]
    kept: Mapping[str, int]
    oldest: timedelta | None
    breaker: ShownBreaker | None
    workers: tuple[str, ...]

    @property
    def dead(self) -> int:
        return self.kept["failed"]

    @property
    def waiting(self) -> Bounded:
        """Tasks that run by themselves, now or later; blocked ones are left out, as they may wait for ever."""
        if self.blocked.more:
            return Bounded(self.ready.n + self.scheduled.n + self.suspects.n, True)
        return Bounded(self.pending - self.blocked.n)


@dataclass(frozen=True)
class QueueReportRow:
    """One row of `report`: what is set for a queue, then how it stands at `now`."""

    name: str
    paused: bool
    concurrency: int | None
    rate_count: int | None
    rate_period: timedelta | None
    max_attempts: int | None
    retry_base: timedelta
    retry_cap: timedelta
    retries_first: bool
    timeout: timedelta
    clear_payload: bool
    keep: int | None
    keep_for: timedelta | None
    breaker_threshold: float | None
    breaker_window: timedelta
    breaker_minimum: int
    breaker_reset: timedelta
    breaker_state: str
    breaker_since: datetime | None
    breaker_reason: str | None
    pending: int
    ready: int
    scheduled: int
    blocked: int
    suspects: int
    processing: int
    completed: int
    failed: int
    skipped: int
    cancelled: int
    retried: int
    kept_completed: int
    kept_failed: int
    kept_skipped: int
    kept_cancelled: int
    oldest: datetime | None
    workers: list[str]
    now: datetime


async def pause(tx: Tx, queue: str) -> None:
    """Nothing more of this queue is claimed; what runs goes on."""
    await _pause(tx, queue, True)


async def resume(tx: Tx, queue: str) -> None:
    await _pause(tx, queue, False)


async def _pause(tx: Tx, queue: str, paused: bool) -> None:
    if await tx.one(SQL["pause"], name=queue, paused=paused) is None:
        raise Unknown(f"There is no queue {queue}.")


async def set_queue(tx: Tx, queue: str, **changes: Any) -> None:
    """Change what is set for a queue, for all workers at once; the queue is made if there is none.

    `rate="10/60s"`, `concurrency=4`, `breaker="30%"`, durations as text or timedelta; None takes a limit away.
    """
    if not NAME.fullmatch(queue):
        raise Refused(f"“{queue}” is no name for a queue: use small letters, digits, dots, dashes, at most 63.")
    columns = columns_of(changes)
    await ensure_queues(tx, [queue])
    await tx.one(SQL["change"], name=queue, changes=to_json(columns))


def columns_of(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that these changes set, or one sentence about the first that is wrong."""
    columns: dict[str, Any] = {}
    for name, value in changes.items():
        if name not in SETTABLE:
            raise Refused(f"A queue has no setting “{name}”; it has {', '.join(sorted(SETTABLE))}.")
        try:
            columns |= SETTABLE[name](name, value)
        except ValueError as error:
            raise Refused(f"{name} is wrong: {error}.") from error
    return columns


Setter = Callable[[str, Any], dict[str, Any]]


def _number(least: int, *, optional: bool, most: int = 2**31 - 1) -> Setter:
    def setter(name: str, value: Any) -> dict[str, Any]:
        if value is None and optional:
            return {name: None}
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"“{value}” is not a whole number of {least} or more")
        return {name: value}

    return setter


def _span(*, optional: bool = False, zero: bool = False) -> Setter:
    def setter(name: str, value: Any) -> dict[str, Any]:
        if value is None and optional:
            return {name: None}
        span = parse_duration(value) if isinstance(value, str) else value
        if not isinstance(span, timedelta) or span < timedelta(0) or (not span and not zero):
            raise ValueError(f"“{value}” is not a duration longer than zero")
        return {name: f"{span.total_seconds()} s"}

    return setter


def _flag(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, bool):
        raise ValueError(f"“{value}” is neither true nor false")
    return {name: value}


def _rate(_: str, value: Any) -> dict[str, Any]:
    if value is None:
        return {"rate_count": None, "rate_period": None}
    count, period = parse_rate(value) if isinstance(value, str) else value
    return _number(1, optional=False)("rate_count", count) | _span()("rate_period", period)


def _share(_: str, value: Any) -> dict[str, Any]:
    if value is None:
        return {"breaker_threshold": None}
    if isinstance(value, str) and value.strip().endswith("%"):
        value = float(value.strip()[:-1]) / 100
    share = float(value)
    if not 0 < share <= 1:
        raise ValueError(f"“{value}” is not a share of errors; write for example 30% or 0.3")
    return {"breaker_threshold": share}


SETTABLE: Mapping[str, Setter] = {
    "concurrency": _number(1, optional=True),
    "rate": _rate,
    "max_attempts": _number(1, optional=True, most=1000),
    "retry_base": _span(zero=True),
    "retry_cap": _span(zero=True),
    "retries_first": _flag,
    "timeout": _span(),
    "clear_payload": _flag,
    "keep": _number(0, optional=True),
    "keep_for": _span(optional=True, zero=True),
    "breaker": _share,
    "breaker_window": _span(),
    "breaker_minimum": _number(1, optional=False),
    "breaker_reset": _span(),
}


async def list_queues(tx: Tx, *, most: int = MOST) -> list[QueueReport]:
    """All queues; what it costs is bounded, however much they hold."""
    return [_report(row, most) for row in await tx.all(SQL["report"], QueueReportRow, most=most)]


async def list_queue_names(tx: Tx) -> list[str]:
    """All queues by name, without a look at what they hold."""
    return await tx.values(SQL["names"], str)


def _report(row: QueueReportRow, most: int) -> QueueReport:
    more = row.scheduled + row.blocked > most  # then either of them may be more
    return QueueReport(
        name=row.name,
        paused=row.paused,
        settings={name: getattr(row, name) for name in SHOWN},
        pending=row.pending,
        ready=_count_ready(row, most),
        scheduled=Bounded(min(row.scheduled, most), more),
        blocked=Bounded(min(row.blocked, most), more),
        suspects=Bounded(min(row.suspects, most), row.suspects > most),
        processing=row.processing,
        finished={name: getattr(row, name) for name in (*OUTCOMES, "retried")},
        kept={name: getattr(row, f"kept_{name}") for name in OUTCOMES},
        oldest=row.now - row.oldest if row.oldest else None,
        breaker=_breaker(row),
        workers=tuple(row.workers),
    )


def _count_ready(row: QueueReportRow, most: int) -> Bounded:
    """Counted where that is cheap, else what is left when all others are taken away."""
    others = row.scheduled + row.blocked + row.suspects
    if row.ready > most and others <= most:
        return Bounded(row.pending - others)
    return Bounded(min(row.ready, most), row.ready > most)


OUTCOMES = ("completed", "failed", "skipped", "cancelled")
SHOWN = (
    "concurrency",
    "rate_count",
    "rate_period",
    "max_attempts",
    "retry_base",
    "retry_cap",
    "retries_first",
    "timeout",
    "clear_payload",
    "keep",
    "keep_for",
    "breaker_threshold",
    "breaker_window",
    "breaker_minimum",
    "breaker_reset",
)


def _breaker(row: QueueReportRow) -> ShownBreaker | None:
    if row.breaker_threshold is None:
        return None
    until = row.breaker_since + row.breaker_reset if row.breaker_state == "open" and row.breaker_since else None
    if until is not None and until <= row.now:  # the table says open until the next claim lets one task try
        return ShownBreaker("half-open", row.breaker_since, None, row.breaker_reason)
    return ShownBreaker(row.breaker_state, row.breaker_since, until, row.breaker_reason)
