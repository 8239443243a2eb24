"""Helpers for tests of the queue: claim and settle without a worker, travel in time, audit the books."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import Any, ClassVar

from gristmill.db import Database, Tx
from gristmill.ids import TaskId, WorkerId
from gristmill.queue.claim import Claim
from gristmill.queue.outcome import Bury, Done, Outcome
from gristmill.queue.settle import settle
from gristmill.queue.worker.claimer import SQL as CLAIMER
from gristmill.queue.worker.shift import SQL as SHIFT
from gristmill.queue.worker.worker import SQL as WORKER

LOWEST = -(2**62)  # before any place
LEASE = timedelta(seconds=120)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
_leases = count(1)


@dataclass(frozen=True)
class Grind:
    """The letter of most tests; its queue is `mill`."""

    kind: ClassVar[str] = "mill.grind"
    grain: int = 0


@dataclass(frozen=True)
class Bake:
    """A letter of another queue, `oven`."""

    kind: ClassVar[str] = "oven.bake"
    loaf: int = 0


@asynccontextmanager
async def later(db: Database, offset: timedelta) -> AsyncIterator[Tx]:
    """A transaction whose clock is ahead."""
    async with db.transaction() as tx:
        await travel(tx, offset)
        yield tx


async def travel(tx: Tx, offset: timedelta) -> None:
    """Set the clock of this transaction ahead of the world's by `offset`."""
    await tx.one("SELECT set_config('gristmill.clock_offset', %(offset)s, true)", offset=f"{offset.total_seconds()} s")


async def registered(
    tx: Tx,
    *queues: str,
    name: str = "host",
    process: str = "unseen",
    solo: bool = False,
    lease: timedelta = LEASE,
) -> WorkerId:
    """A worker that lives as long as nobody travels past its lease."""
    return await tx.value(
        WORKER["register"],
        name=name,
        process=process,
        journal=f"journal of {name}",
        queues=list(queues or ("mill",)),
        concurrency=4,
        solo=solo,
        lease=lease,
    )


async def claimed(tx: Tx, worker: WorkerId, n: int = 1, *, queues: Sequence[str] = ("mill",)) -> list[Claim]:
    """Up to `n` tasks in the order of claim."""
    lease = next(_leases)
    found = await tx.all(CLAIMER["lanes"], queues=list(queues))
    found.sort(key=lambda row: row.lane)
    rows = await tx.all(
        CLAIMER["claim"],
        worker=worker,
        lease=lease,
        n=n,
        queues=[row.queue for row in found],
        lanes=[row.lane for row in found],
        marks=[LOWEST] * len(found),
        limits=[n] * len(found),
    )
    return [Claim(*row, lease=lease) for row in sorted(rows, key=lambda row: (row.lane, row.seq))]


async def claimed_suspect(tx: Tx, worker: WorkerId, *, queues: Sequence[str] = ("mill",)) -> Claim | None:
    lease = next(_leases)
    row = await tx.one(CLAIMER["claim_suspect"], worker=worker, lease=lease, queues=list(queues))
    return Claim(*row, lease=lease) if row else None


async def promote(tx: Tx, n: int = 500) -> int:
    """Let up to `n` tasks whose time has come be claimed; how many there were."""
    return await tx.value(SHIFT["promote"], n=n)


def journal_of(*claims: Claim) -> Callable[[str], frozenset[TaskId]]:
    """A journal in which exactly these have begun."""
    return lambda _: frozenset(claim.id for claim in claims)


async def settled(tx: Tx, worker: WorkerId, claims: Sequence[Claim], outcome: Outcome | None = None) -> None:
    await settle(tx, worker, [(claim, outcome or Done()) for claim in claims])
    await tx.flush()


async def ground(
    tx: Tx, n: int = 1, outcome: Outcome | None = None, *, queues: Sequence[str] = ("mill",)
) -> list[TaskId]:
    """Claim and settle up to `n` tasks with a worker made for it."""
    worker = await registered(tx, *queues)
    claims = await claimed(tx, worker, n, queues=queues)
    await settled(tx, worker, claims, outcome)
    return [claim.id for claim in claims]


async def buried(tx: Tx, n: int = 1, error: str = "too hard", *, queues: Sequence[str] = ("mill",)) -> list[TaskId]:
    return await ground(tx, n, Bury(error), queues=queues)


async def status(tx: Tx, task: TaskId) -> str | None:
    return await tx.value("SELECT status FROM tasks WHERE id = %(id)s", id=task)


async def statuses(tx: Tx) -> dict[TaskId, str]:
    return {row.id: row.status for row in await tx.all("SELECT id, status FROM tasks ORDER BY id")}


async def task(tx: Tx, id: TaskId) -> Any:
    return await tx.one("SELECT * FROM tasks WHERE id = %(id)s", id=id)


async def group(tx: Tx, id: TaskId) -> dict[str, int]:
    """The counters of a group that are not zero."""
    row = await tx.one(
        "SELECT pending, processing, completed, failed, skipped, cancelled FROM task_group WHERE id = %(id)s",
        id=id,
    )
    assert row is not None
    return {name: n for name, n in row._asdict().items() if n}


AUDIT = {
    "a group's counters are its children's statuses, and what was done before it was opened": """
        SELECT g.id FROM task_group g LEFT JOIN tasks t ON t.parent = g.id GROUP BY g.id
        HAVING (g.pending, g.processing, g.completed - g.done, g.failed, g.skipped, g.cancelled) IS DISTINCT FROM (
          count(*) FILTER (WHERE t.status = 'pending'), count(*) FILTER (WHERE t.status = 'processing'),
          count(*) FILTER (WHERE t.status = 'completed'), count(*) FILTER (WHERE t.status = 'failed'),
          count(*) FILTER (WHERE t.status = 'skipped'), count(*) FILTER (WHERE t.status = 'cancelled'))""",
    "a group's status follows from its counters": """
        SELECT id FROM task_group
         WHERE status <> group_status(sealed, pending, processing, completed, failed, skipped, cancelled)""",
    "a group's task ends when the group does": """
        SELECT g.id FROM task_group g LEFT JOIN task t ON t.id = g.id
         WHERE t.id IS NULL
            OR t.outcome IS DISTINCT FROM CASE WHEN g.finished_at IS NOT NULL THEN g.status END
            OR (g.finished_at IS NULL) <> (g.status IN ('pending', 'processing'))""",
    "a task has a ticket when it is open and waits for nothing": """
        SELECT coalesce(t.id, k.id) AS id FROM task t FULL JOIN ticket k ON k.id = t.id
         WHERE t.id IS NULL OR (t.outcome IS NULL AND t.wait IS NULL) <> (k.id IS NOT NULL)""",
    "every leased ticket stands in a row of `lease`": """
        SELECT id FROM ticket WHERE worker IS NOT NULL
        EXCEPT SELECT id FROM leased""",
    "what waits for a task waits for one that is there and not done": """
        SELECT d.id FROM task d LEFT JOIN task a ON a.id = d.after
         WHERE d.wait = 'after' AND (a.id IS NULL OR a.outcome IN ('completed', 'skipped', 'cancelled'))""",
    "a serial key has one head, and it is open": """
        SELECT h.task AS id FROM serial_head h LEFT JOIN task t ON t.id = h.task
         WHERE t.id IS NULL OR t.outcome IS NOT NULL
        UNION ALL
        SELECT t.id FROM task t JOIN ticket k ON k.id = t.id LEFT JOIN serial_head h ON h.key = t.serial_key
         WHERE t.serial_key IS NOT NULL AND h.task IS DISTINCT FROM t.id
        UNION ALL
        SELECT t.id FROM task t LEFT JOIN serial_head h ON h.key = t.serial_key
         WHERE t.wait = 'serial' AND h.key IS NULL""",
    "retention counts what it may delete": """
        SELECT coalesce(p.queue, y.queue) AS id
          FROM (SELECT queue, count(*) AS n FROM task
                 WHERE outcome IN ('completed', 'skipped', 'cancelled') AND queue IS NOT NULL
                   AND parent IS NULL AND owner IS NULL GROUP BY queue) p
          FULL JOIN (SELECT queue, sum(prunable) AS n FROM queue_tally GROUP BY queue) y USING (queue)
         WHERE coalesce(p.n, 0) <> coalesce(y.n, 0)""",
    "the counters of a queue are the tasks that it holds": """
        SELECT coalesce(p.queue, c.queue) || ' of ' || coalesce(p.scope, c.scope) AS id
          FROM (SELECT queue, scope, count(*) FILTER (WHERE outcome IS NULL) AS open,
                       count(*) FILTER (WHERE outcome = 'completed') AS completed,
                       count(*) FILTER (WHERE outcome = 'failed') AS failed,
                       count(*) FILTER (WHERE outcome = 'skipped') AS skipped,
                       count(*) FILTER (WHERE outcome = 'cancelled') AS cancelled
                  FROM task WHERE queue IS NOT NULL GROUP BY queue, scope) p
          FULL JOIN queue_count c USING (queue, scope)
         WHERE (coalesce(p.open, 0), coalesce(p.completed, 0), coalesce(p.failed, 0), coalesce(p.skipped, 0),
                coalesce(p.cancelled, 0)) IS DISTINCT FROM
               (coalesce(c.open, 0), coalesce(c.kept_completed, 0), coalesce(c.kept_failed, 0),
                coalesce(c.kept_skipped, 0), coalesce(c.kept_cancelled, 0))""",
    "dead letters are counted by their error": """
        SELECT coalesce(p.queue, c.queue) || ' ' || coalesce(p.fingerprint, c.fingerprint) AS id
          FROM (SELECT queue, scope, kind, fingerprint, count(*) AS n FROM task
                 WHERE died_at IS NOT NULL GROUP BY 1, 2, 3, 4) p
          FULL JOIN (SELECT queue, scope, kind, fingerprint, sum(n) AS n FROM dead_tally GROUP BY 1, 2, 3, 4) c
                    USING (queue, scope, kind, fingerprint)
         WHERE coalesce(p.n, 0) <> coalesce(c.n, 0)""",
    "nothing is kept of a task that is gone": """
        SELECT f.task AS id FROM task_failure f LEFT JOIN task t ON t.id = f.task WHERE t.id IS NULL
        UNION ALL SELECT p.task FROM task_progress p LEFT JOIN task t ON t.id = p.task WHERE t.id IS NULL
        UNION ALL SELECT c.id FROM task c LEFT JOIN task p ON p.id = c.parent
         WHERE c.parent IS NOT NULL AND p.id IS NULL""",
}


async def audit(tx: Tx) -> None:
    """Every book must balance, whatever happened."""
    for rule, query in AUDIT.items():
        broken = [row[0] for row in await tx.all(query)]
        assert not broken, f"not true of {broken[:10]}: {rule}"
