"""The health of the executor: after some failures in a row nobody asks it for a while, then one item tries."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from gristmill.db import Tx, queries

SQL = queries("gristmill.qualifier", "health.sql")
FAILURES = 5  # in a row that open the breaker
OPEN_FOR = timedelta(seconds=30)  # until one item may try
BACKOFF = tuple(timedelta(seconds=n) for n in (5, 15, 30, 60, 300))  # between two tries to dispatch an item

BreakerState = Literal["closed", "open", "half-open"]


@dataclass(frozen=True)
class ExecutorHealth:
    """How an executor is; the breaker is in the database, so that every worker and the console see the same."""

    name: str
    failures: int = 0
    opened_at: datetime | None = None
    probed_at: datetime | None = None
    error: str | None = None
    now: datetime | None = None

    @property
    def state(self) -> BreakerState:
        if self.opened_at is None or self.now is None:
            return "closed"
        return "open" if self.now < max(self.opened_at, self.probed_at or self.opened_at) + OPEN_FOR else "half-open"

    @property
    def is_healthy(self) -> bool:
        return self.state == "closed"


def choose_backoff(failures: int) -> timedelta:
    """How long an item waits after so many failed dispatches in a row."""
    return BACKOFF[min(max(failures, 1), len(BACKOFF)) - 1]


async def load_health(tx: Tx, name: str) -> ExecutorHealth:
    return await tx.one(SQL["load_health"], ExecutorHealth, name=name) or ExecutorHealth(name)


async def may_try(tx: Tx, name: str) -> timedelta | None:
    """None if an item may be dispatched; else how long to wait. Of those who ask while it is half open, one may try."""
    health = await load_health(tx, name)
    if health.state == "closed":
        return None
    if health.state == "half-open" and await tx.one(SQL["take_probe"], name=name, wait=OPEN_FOR) is not None:
        return None
    return OPEN_FOR


async def close_breaker(tx: Tx, name: str) -> None:
    """It answers again; failures in a row end with the first item that it works on to the end."""
    await tx.execute(SQL["close_breaker"], name=name)


async def note_healthy(tx: Tx, name: str) -> None:
    await tx.execute(SQL["note_healthy"], name=name)


async def note_failure(tx: Tx, name: str, error: str) -> None:
    await tx.execute(SQL["note_failure"], name=name, error=error, most=FAILURES)
