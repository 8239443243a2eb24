"""Dead letters: how many, which, why, and back to life or away with them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from gristmill.db import Column, Tx, array, queries
from gristmill.errors import Refused
from gristmill.ids import TaskId, WorkerId
from gristmill.queue.fingerprint import normalise
from gristmill.queue.operate.counts import count_tasks, own_scopes
from gristmill.queue.operate.erase import erase
from gristmill.queue.operate.revive import retry

SQL = queries("gristmill.queue.operate", "dead.sql")
REPLAYED_AT_ONCE = 1_000


@dataclass(frozen=True)
class DeadStats:
    """`alert` once there are as many as the threshold."""

    total: int
    by_queue: Mapping[str, int]
    oldest: datetime | None
    alert: bool


@dataclass(frozen=True)
class DeadLetter:
    id: TaskId
    queue: str
    kind: str
    died_at: datetime
    attempts: int
    worker: WorkerId | None
    parent: TaskId | None
    owner: str | None
    error: str
    fingerprint: str
    payload: Any


@dataclass(frozen=True)
class Cluster:
    """Dead letters with the same error but for its particulars."""

    fingerprint: str
    error: str
    count: int
    queues: tuple[str, ...]
    kinds: tuple[str, ...]
    first: datetime
    last: datetime
    examples: tuple[TaskId, ...]


async def stats(tx: Tx, *, threshold: int) -> DeadStats:
    """From the counters; of a client, its own."""
    counts = sorted(await count_tasks(tx), key=lambda one: (-one.failed, one.queue))
    by_queue = {one.queue: one.failed for one in counts if one.failed}
    total = sum(by_queue.values())
    scopes = await own_scopes(tx)
    query = SQL["oldest"] if scopes is None else SQL["oldest_of_scopes"]
    oldest = await tx.value(query, datetime, scopes=scopes)
    return DeadStats(total, by_queue, oldest, total >= threshold)


async def dead_letters(
    tx: Tx,
    *,
    queue: str | None = None,
    kind: str | None = None,
    fingerprint: str | None = None,
    since: datetime | None = None,
    limit: int = 50,
) -> list[DeadLetter]:
    """The latest first."""
    filters = {"queue": queue, "kind": kind, "fingerprint": fingerprint, "since": since}
    return await tx.all(SQL["letters"], DeadLetter, limit=limit, **filters)


class _ClusterRow(NamedTuple):
    fingerprint: str
    sample: str | None
    n: int
    queues: list[str]
    kinds: list[str]
    first: datetime
    last: datetime
    examples: list[TaskId]


async def clusters(tx: Tx, queue: str | None = None, *, limit: int = 1_000) -> list[Cluster]:
    """The largest first; from counters, so that many dead letters cost no more than few."""
    scopes = await own_scopes(tx)
    return [
        Cluster(
            row.fingerprint,
            normalise(row.sample or ""),
            row.n,
            tuple(row.queues),
            tuple(row.kinds),
            row.first,
            row.last,
            tuple(row.examples),
        )
        for row in await tx.all(SQL["clusters"], _ClusterRow, queue=queue, scopes=scopes, limit=limit)
    ]


class _DeathRow(NamedTuple):
    id: TaskId
    died_at: datetime


async def replay(
    tx: Tx, *, ids: Iterable[TaskId] | None = None, queue: str | None = None, fingerprint: str | None = None
) -> int:
    """Retry these dead letters, or all of a queue or a cluster; how many are pending again.

    Those that cannot be retried (somebody else holds their unique key) stay dead.
    """
    if ids is None and queue is None and fingerprint is None:
        raise Refused("Say which dead letters to replay: ids, a queue or a cluster.")
    wanted = None if ids is None else array(ids)
    replayed, last = 0, (None, None)
    while True:
        rows = await tx.all(
            SQL["to_replay"],
            _DeathRow,
            ids=wanted,
            queue=queue,
            fingerprint=fingerprint,
            died_at=last[0],
            id=last[1],
            batch=REPLAYED_AT_ONCE,
        )
        if not rows:
            return replayed
        replayed += len((await retry(tx, [row.id for row in rows])).tasks)
        last = (rows[-1].died_at, rows[-1].id)


async def purge(
    tx: Tx, *, older_than: timedelta, keep: int, batch: int = 1_000, queues: Sequence[str] | None = None
) -> int:
    """Remove up to `batch` dead letters, of these queues or of all, that are too old or beyond the newest `keep`."""
    chosen = None if queues is None else list(queues)
    ids = await tx.values(SQL["to_purge"], Column[TaskId], older_than=older_than, keep=keep, batch=batch, queues=chosen)
    return await erase(tx, ids)
