"""What is set for a queue in the database, where every worker reads the same."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Self

from gristmill.db import Tx, queries
from gristmill.queue.rates import Rate, RecentStarts, rate_of
from gristmill.queue.retry import RetryPolicy

SQL = queries("gristmill.queue", "config.sql")


@dataclass(frozen=True)
class QueueRow:
    """The columns of the table `queue` that a worker goes by."""

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
    breaker_threshold: float | None
    breaker_state: str


@dataclass(frozen=True)
class QueueLimits:
    """The limits of one queue and how far they are used at `now`; `running` tasks hold a lease."""

    name: str
    paused: bool
    concurrency: int | None
    running: int
    rate_count: int | None
    rate_period: timedelta | None
    recent_at: list[datetime]
    recent_n: list[int]
    breaker_state: str
    breaker_since: datetime | None
    breaker_reset: timedelta
    now: datetime

    @property
    def rate(self) -> Rate | None:
        return rate_of(self.rate_count, self.rate_period)

    @property
    def recent(self) -> RecentStarts:
        return RecentStarts(tuple(self.recent_at), tuple(self.recent_n))


@dataclass(frozen=True)
class QueueConfig:
    """What a worker goes by for one queue."""

    name: str
    paused: bool = False
    concurrency: int | None = None
    rate: Rate | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    retries_first: bool = False
    timeout: timedelta = timedelta(seconds=300)
    clear_payload: bool = False
    breaker: bool = False
    breaker_state: str = "closed"

    @classmethod
    def of(cls, row: QueueRow) -> Self:
        return cls(
            name=row.name,
            paused=row.paused,
            concurrency=row.concurrency,
            rate=rate_of(row.rate_count, row.rate_period),
            retry=RetryPolicy(row.max_attempts, row.retry_base, row.retry_cap),
            retries_first=row.retries_first,
            timeout=row.timeout,
            clear_payload=row.clear_payload,
            breaker=row.breaker_threshold is not None,
            breaker_state=row.breaker_state,
        )

    @property
    def is_limited(self) -> bool:
        """Whether a claim must ask the database how many may start; all others pay nothing."""
        return self.concurrency is not None or self.rate is not None or self.breaker_state != "closed"


async def lock_limits(tx: Tx, name: str) -> QueueLimits | None:
    """The queue's row with what runs of it now, for whoever alone may change that until the transaction ends."""
    await tx.execute(SQL["lock_queue"], name=name)
    return await tx.one(SQL["limits"], QueueLimits, name=name)


async def load_configs(tx: Tx, names: Iterable[str]) -> dict[str, QueueConfig]:
    wanted = list(names)
    rows = await tx.all(SQL["configs"], QueueRow, names=wanted)
    configs = {row.name: QueueConfig.of(row) for row in rows}
    return {name: configs.get(name) or QueueConfig(name) for name in wanted}
