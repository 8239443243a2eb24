"""Breakers: hold a stage back while the world behind it is broken."""

from collections import defaultdict
from typing import Literal

from gristmill.db import Tx
from gristmill.queue.config import locked_limits
from gristmill.queue.statements import SQL
from gristmill.telemetry import log

State = Literal["closed", "open", "half-open"]


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


class Health:
    """Counts what this worker sees of each guarded queue, and reports it every second or so."""

    def __init__(self) -> None:
        self._counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        self._timeouts: dict[str, str] = {}

    def count(self, queue: str, *, ok: bool) -> None:
        self._counts[queue][0 if ok else 1] += 1

    def timed_out(self, queue: str, sentence: str) -> None:
        self._timeouts[queue] = sentence

    @property
    def pending(self) -> bool:
        return bool(self._counts or self._timeouts)

    async def report(self, tx: Tx) -> None:
        """Write what was seen and move the breakers it concerns."""
        counts, self._counts = self._counts, defaultdict(lambda: [0, 0])
        timeouts, self._timeouts = self._timeouts, {}
        for queue in sorted(counts.keys() | timeouts.keys()):
            row = await locked_limits(tx, queue)
            if row is None or row.breaker_threshold is None:
                continue
            ok, failed = counts.get(queue, (0, 0))
            await tx.execute(SQL["report_health"], queue=queue, ok=ok, failed=failed)
            if queue in timeouts:
                await _move(tx, queue, "open", timeouts[queue])
                continue
            if row.breaker_state == "closed":
                seen = await tx.one(SQL["health"], queue=queue)
                assert seen is not None
                ok, failed = seen.ok, seen.failed
            new = judge(
                row.breaker_state,
                ok=ok,
                failed=failed,
                threshold=row.breaker_threshold,
                minimum=row.breaker_minimum,
            )
            if new:
                await _move(tx, queue, new, f"{failed} of {ok + failed} failed" if new == "open" else None)


async def _move(tx: Tx, queue: str, state: State, reason: str | None) -> None:
    was = [other for other in ("closed", "open", "half-open") if other != state]
    if await tx.one(SQL["set_breaker"], name=queue, state=state, reason=reason, was=was):
        log.warning("breaker." + state, queue=queue, reason=reason)
        if state == "closed":
            await tx.execute(SQL["forget_health"], queue=queue)


async def half_open(tx: Tx, queue: str) -> None:
    """The pause is over: one task may try."""
    await _move(tx, queue, "half-open", "trying one task")
