"""Breakers: hold a stage back while the world behind it is broken."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Literal, NamedTuple

from gristmill.db import Tx, queries
from gristmill.telemetry import log

SQL = queries("gristmill.queue.upkeep", "breaker.sql")
TIME_OUTS = 3  # so many time-outs in a row without a success: the stage hangs, even if too few tasks ran for a share
State = Literal["closed", "open", "half-open"]


@dataclass(frozen=True)
class QueueBreaker:
    """What is set for the breaker of a queue, and its state."""

    name: str
    breaker_state: str
    breaker_threshold: float | None  # None: the queue has no breaker
    breaker_minimum: int


def judge(state: str, *, ok: int, failed: int, threshold: float, minimum: int) -> State | None:
    """The state that a breaker should change to, if any."""
    match state:
        case "half-open" if failed:
            return "open"
        case "half-open" if ok:
            return "closed"
        case "closed" if ok + failed >= minimum and failed / (ok + failed) >= threshold:
            return "open"
        case _:
            return None


class _Health(NamedTuple):
    """How the tasks of a queue ended within the window of its breaker."""

    ok: int
    failed: int


class _LateCounts(NamedTuple):
    """How many tasks ran into their time-out, and how many succeeded meanwhile."""

    timed_out: int
    ok: int


class EndedCounts:
    """How tasks of one queue ended since the last report; time-outs are among the failed."""

    __slots__ = ("failed", "ok", "timed_out")

    def __init__(self) -> None:
        self.ok = self.failed = self.timed_out = 0


class HealthReporter:
    """Counts how tasks of queues with a breaker end in this worker, and reports it about every second."""

    def __init__(self) -> None:
        self._seen: dict[str, EndedCounts] = defaultdict(EndedCounts)

    def count(self, queue: str, *, ok: bool) -> None:
        seen = self._seen[queue]
        if ok:
            seen.ok += 1
        else:
            seen.failed += 1

    def count_time_out(self, queue: str) -> None:
        self._seen[queue].timed_out += 1

    @property
    def pending(self) -> bool:
        return bool(self._seen)

    async def report(self, tx: Tx) -> None:
        """Write the counts, and change the state of breakers where they say so."""
        reports, self._seen = self._seen, defaultdict(EndedCounts)
        for queue in sorted(reports):
            await _report(tx, queue, reports[queue])


async def _report(tx: Tx, queue: str, seen: EndedCounts) -> None:
    """The row of a healthy queue is not locked; only a breaker that is not closed, or is to change, is."""
    breaker = await tx.one(SQL["breaker"], QueueBreaker, name=queue)
    if breaker is None or breaker.breaker_threshold is None:
        return
    if breaker.breaker_state != "closed":
        breaker = await _lock(tx, queue)
    await tx.execute(SQL["report_health"], queue=queue, ok=seen.ok, failed=seen.failed)
    if seen.timed_out:
        await tx.execute(SQL["note_time_outs"], queue=queue, n=seen.timed_out)
    if await _verdict(tx, breaker, seen):
        breaker = await _lock(tx, queue)
        if verdict := await _verdict(tx, breaker, seen):
            await _move(tx, queue, *verdict)


async def _lock(tx: Tx, queue: str) -> QueueBreaker:
    breaker = await tx.one(SQL["lock_breaker"], QueueBreaker, name=queue)
    assert breaker is not None, "a queue is never removed"
    return breaker


async def _verdict(tx: Tx, row: QueueBreaker, seen: EndedCounts) -> tuple[State, str | None] | None:
    """The state that the breaker should change to, and why."""
    if row.breaker_threshold is None:  # somebody took it away before we had the lock
        return None
    ok, failed = seen.ok, seen.failed
    if row.breaker_state == "closed":
        window = await tx.one(SQL["health"], _Health, queue=row.name)
        assert window is not None
        ok, failed = window.ok, window.failed
    new = judge(row.breaker_state, ok=ok, failed=failed, threshold=row.breaker_threshold, minimum=row.breaker_minimum)
    if new:
        return new, f"{failed} of {ok + failed} failed" if new == "open" else None
    if seen.timed_out and row.breaker_state == "closed":
        late = await tx.one(SQL["time_outs"], _LateCounts, queue=row.name, n=TIME_OUTS)
        if late is not None and late.timed_out >= TIME_OUTS and not late.ok:
            return "open", f"{late.timed_out} tasks in a row took too long"
    return None


async def _move(tx: Tx, queue: str, state: State, reason: str | None) -> None:
    was = [other for other in ("closed", "open", "half-open") if other != state]
    if await tx.one(SQL["set_breaker"], name=queue, state=state, reason=reason, was=was):
        log.warning("breaker." + state, queue=queue, reason=reason)
        if state == "closed":
            await tx.execute(SQL["forget_health"], queue=queue)


async def half_open(tx: Tx, queue: str) -> None:
    """The pause is over: one task may try."""
    await _move(tx, queue, "half-open", "trying one task")
