"""What is set for a queue in the database, where every worker reads the same."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Self

from gristmill.db import Tx, queries
from gristmill.queue.rates import Rate
from gristmill.queue.retry import RetryPolicy

SQL = queries("gristmill.queue", "config.sql")


@dataclass(frozen=True)
class QueueConfig:
    """One row of the table `queue`."""

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
    def of(cls, row: Any) -> Self:
        return cls(
            name=row.name,
            paused=row.paused,
            concurrency=row.concurrency,
            rate=Rate(row.rate_count, row.rate_period) if row.rate_count else None,
            retry=RetryPolicy(row.max_attempts, row.retry_base, row.retry_cap),
            retries_first=row.retries_first,
            timeout=row.timeout,
            clear_payload=row.clear_payload,
            breaker=row.breaker_threshold is not None,
            breaker_state=row.breaker_state,
        )

    @property
    def limited(self) -> bool:
        """Whether a claim must ask the database how many may start; all others pay nothing."""
        return self.concurrency is not None or self.rate is not None or self.breaker_state != "closed"


async def lock_limits(tx: Tx, name: str) -> Any:
    """The queue's row with what runs of it now, for whoever alone may change that until the transaction ends."""
    await tx.execute(SQL["lock_queue"], name=name)
    return await tx.one(SQL["limits"], name=name)


async def load_configs(tx: Tx, names: Iterable[str]) -> dict[str, QueueConfig]:
    wanted = list(names)
    rows = {row.name: QueueConfig.of(row) for row in await tx.all(SQL["configs"], names=wanted)}
    return {name: rows.get(name) or QueueConfig(name) for name in wanted}
