"""Finds tasks by a filter, newest or oldest first: a bounded look, what it found, and where to go on."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from gristmill.db import Column, Query, Tx, array, queries
from gristmill.errors import Refused
from gristmill.ids import ScopeId, TaskId
from gristmill.queue.operate.counts import own_scopes
from gristmill.queue.operate.lookup import STATUSES, Task
from gristmill.scopes import GLOBAL_ID

SQL = queries("gristmill.queue.operate", "search.sql")
NEWER = 2**62  # than any task
BY_DEATH = (SQL["latest_dead"], SQL["latest_dead_of_scopes"])
OPEN = ("pending", "processing")
FEW = 5_000  # open tasks of a queue that are as well read all
MOST_AT_ONCE = 1_000  # ids in one look: the time is over only between two looks
BUDGET = 0.1  # seconds of one request
SLACK = timedelta(minutes=10)  # ids grow with time, but two senders at once may mix them


@dataclass(frozen=True)
class TaskFilter:
    """Which tasks are meant; what is None or empty excludes nothing."""

    queue: str | None = None
    kind: str | None = None
    status: str | None = None
    fingerprint: str | None = None  # of the error: dead letters alone
    since: datetime | None = None  # sent at this time or later
    until: datetime | None = None
    owner: str | None = None
    parent: TaskId | None = None
    text: str | None = None  # inside payload, result or error
    scope: ScopeId | None = None

    def __post_init__(self) -> None:
        if self.status is not None and self.status not in STATUSES:
            raise Refused(f"“{self.status}” is no status; there are {', '.join(STATUSES)}.")
        if self.fingerprint is not None and self.status not in (None, "failed"):
            raise Refused(f"A cluster holds dead letters: leave the status out, instead of {self.status}.")
        for moment in (self.since, self.until):
            if moment is not None and moment.tzinfo is None:
                raise Refused("A time needs a time zone, or nobody knows when it is.")
        if self.text is not None and "\0" in self.text:
            raise Refused("The text holds a NUL character, which no task holds.")

    @property
    def is_dead(self) -> bool:
        """Whether it means dead letters, which are found by the time of their death."""
        return (self.status == "failed" and self.kind != "group") or self.fingerprint is not None


@dataclass(frozen=True)
class Spot:
    """Where a look ended: before the task with this id, of dead letters before this death."""

    id: TaskId
    died_at: datetime | None = None


@dataclass(frozen=True)
class TaskLook:
    """The ids that one request found, how many tasks it looked at, and where to go on; `next` is None at the end."""

    ids: tuple[TaskId, ...]
    looked: int
    next: Spot | None


@dataclass(frozen=True)
class TasksFound:
    """The tasks of a look."""

    tasks: tuple[Task, ...]
    looked: int
    next: Spot | None


async def find_tasks(
    tx: Tx,
    wanted: TaskFilter,
    *,
    limit: int = 50,
    start: Spot | None = None,
    budget: float = BUDGET,
    oldest_first: bool = False,
) -> TasksFound:
    """Up to `limit` tasks that fit; fewer, with `next`, if the time was over before so many were found."""
    look = await look_for(tx, wanted, limit=limit, start=start, budget=budget, oldest_first=oldest_first)
    return TasksFound(await load_tasks(tx, look.ids), look.looked, look.next)


async def read_clock(tx: Tx) -> datetime:
    """The time of the database, from which ages are reckoned."""
    return await tx.only_value(SQL["clock"], datetime)


async def load_tasks(tx: Tx, ids: Sequence[TaskId]) -> tuple[Task, ...]:
    """These tasks, in this order; those that are gone are left out."""
    rows = {row.id: row for row in await tx.all(SQL["load"], Task, ids=array(ids))} if ids else {}
    return tuple(rows[id_] for id_ in ids if id_ in rows)


async def look_for(
    tx: Tx,
    wanted: TaskFilter,
    *,
    limit: int,
    start: Spot | None = None,
    budget: float = BUDGET,
    last_id: TaskId | None = None,
    groups: bool = True,
    oldest_first: bool = False,
) -> TaskLook:
    """The ids of tasks that fit, of those up to `last_id`; with or without groups."""
    if oldest_first:
        stream = await _open_oldest(tx, wanted, start)
    else:
        stream = await _open_stream(tx, wanted, start, last_id, groups)
    began = time.monotonic()
    ids: list[TaskId] = []
    looked, size = 0, min(max(limit, 50), MOST_AT_ONCE)
    while True:
        seen = await stream.read(tx, size)
        fitting = await _fit(tx, wanted, stream, seen, limit - len(ids))
        ids += fitting
        ended = len(seen) < size
        if len(ids) >= limit and not (ended and fitting and fitting[-1] == seen[-1].id):
            at = next(place for place, spot in enumerate(seen) if spot.id == ids[-1])
            return TaskLook(tuple(ids), looked + at + 1, seen[at])
        looked += len(seen)
        if ended:
            return TaskLook(tuple(ids), looked, None)
        stream = replace(stream, at=seen[-1])
        spent = time.monotonic() - began
        if spent >= budget:
            return TaskLook(tuple(ids), looked, seen[-1])
        # large payloads take long to look through: the next look should end in time
        size = max(50, min(size * 4, MOST_AT_ONCE, int(looked / spent * (budget - spent))))


@dataclass(frozen=True)
class _Stream:
    """A statement that reads ids, its parameters, and the last one that was read."""

    query: Query
    at: Spot
    params: dict[str, Any]
    scopes: list[ScopeId] | None
    last_id: TaskId | None
    groups: bool

    async def read(self, tx: Tx, size: int) -> list[Spot]:
        given = {"before": self.at.id, "after": self.at.id, "died_at": self.at.died_at, "look": size, **self.params}
        if self.query in BY_DEATH:
            return await tx.all(self.query, Spot, **given)
        return [Spot(id_) for id_ in await tx.values(self.query, Column[TaskId], **given)]


async def _open_stream(tx: Tx, wanted: TaskFilter, start: Spot | None, last_id: TaskId | None, groups: bool) -> _Stream:
    scopes = [wanted.scope] if wanted.scope is not None else await _find_scopes(tx, wanted)
    floor, ceiling = await _find_id_bounds(tx, wanted, scopes)
    at = start or Spot(TaskId(min(ceiling, NEWER if last_id is None else last_id + 1)))
    query, params = await _choose_stream(tx, wanted, scopes)
    if wanted.is_dead and start is None:
        at = Spot(TaskId(NEWER))
    return _Stream(query, at, {"floor": floor, **params}, scopes, last_id, groups)


async def _open_oldest(tx: Tx, wanted: TaskFilter, start: Spot | None) -> _Stream:
    """By the order in which they were sent, also dead letters."""
    scopes = [wanted.scope] if wanted.scope is not None else await _find_scopes(tx, wanted)
    floor, ceiling = await _find_id_bounds(tx, wanted, scopes)
    query, params = _choose_oldest(wanted, scopes)
    return _Stream(query, start or Spot(TaskId(floor)), {"ceiling": ceiling, **params}, scopes, None, groups=True)


def _choose_oldest(wanted: TaskFilter, scopes: list[ScopeId] | None) -> tuple[Query, dict[str, Any]]:
    if wanted.parent is not None:
        return SQL["oldest_children"], {"parent": wanted.parent}
    if wanted.owner is not None:
        return SQL["oldest_of_owner"], {"owner": wanted.owner}
    if scopes is not None and GLOBAL_ID not in scopes:
        return SQL["oldest_of_scopes"], {"scopes": scopes}
    return (SQL["oldest"], {}) if wanted.queue is None else (SQL["oldest_of_queue"], {"queue": wanted.queue})


async def _find_scopes(tx: Tx, wanted: TaskFilter) -> list[ScopeId] | None:
    """Those of the client who asks; of a group or an owner that it sees, it sees all tasks."""
    return None if wanted.parent is not None or wanted.owner is not None else await own_scopes(tx)


async def _choose_stream(tx: Tx, wanted: TaskFilter, scopes: list[ScopeId] | None) -> tuple[Query, dict[str, Any]]:
    """The index that leads to these tasks with the fewest others between them."""
    scoped = scopes is not None and GLOBAL_ID not in scopes
    if wanted.parent is not None:
        return SQL["newest_children"], {"parent": wanted.parent}
    if wanted.owner is not None:
        return SQL["newest_of_owner"], {"owner": wanted.owner}
    if wanted.is_dead:
        return (SQL["latest_dead"], {}) if scopes is None else (SQL["latest_dead_of_scopes"], {"scopes": scopes})
    if wanted.status == "processing":
        return SQL["newest_processing"], {}
    if scoped:
        return SQL["newest_of_scopes"], {"scopes": scopes}
    if wanted.queue is None:
        return (SQL["newest_open"] if wanted.status == "pending" else SQL["newest"]), {}
    few = wanted.status == "pending" and not await tx.value(SQL["has_more_open"], queue=wanted.queue, most=FEW)
    return (SQL["newest_open_of_queue"] if few else SQL["newest_of_queue"]), {"queue": wanted.queue}


async def _fit(tx: Tx, wanted: TaskFilter, stream: _Stream, seen: Sequence[Spot], limit: int) -> list[TaskId]:
    if not seen:
        return []
    status = "failed" if wanted.is_dead else wanted.status
    is_open = status in OPEN
    return await tx.values(
        SQL["fitting"],
        Column[TaskId],
        ids=array(spot.id for spot in seen),
        queue=wanted.queue,
        kind=wanted.kind,
        status=status if is_open else None,  # which ticket and group tell; how a task ended, it tells itself
        outcome=None if is_open else status,
        open=is_open,
        fingerprint=wanted.fingerprint,
        scopes=stream.scopes,
        since=wanted.since,
        until=wanted.until,
        owner=wanted.owner,
        parent=wanted.parent,
        last_id=stream.last_id,
        groups=stream.groups,
        pattern=_to_pattern(wanted.text),
        limit=limit,
    )


def _to_pattern(text: str | None) -> str | None:
    return None if not text else "%" + re.sub(r"([\\%_])", r"\\\1", text) + "%"


async def _find_id_bounds(tx: Tx, wanted: TaskFilter, scopes: list[ScopeId] | None) -> tuple[int, int]:
    """Ids between which all tasks of the asked time are: those before and after need not be looked at."""
    if scopes is not None and (len(scopes) != 1 or GLOBAL_ID in scopes):
        return 0, NEWER  # no index tells their ids apart from those of others
    scope = scopes[0] if scopes else None
    floor = await _find_id_at(tx, wanted.since - SLACK, scope) - 1 if wanted.since else 0
    ceiling = await _find_id_at(tx, wanted.until + SLACK, scope) if wanted.until else NEWER
    return floor, ceiling


class _SentRow(NamedTuple):
    id: TaskId
    created_at: datetime


async def _find_id_at(tx: Tx, moment: datetime, scope: ScopeId | None) -> int:
    """About the first id of a task that was sent after this moment: found in some thirty steps."""
    query = SQL["next_of_age"] if scope is None else SQL["next_of_age_in_scope"]
    low, high = 0, await tx.only_value(SQL["last_id"], int) + 1
    while low < high:
        middle = (low + high) // 2
        row = await tx.one(query, _SentRow, id=middle, scope=scope)
        if row is None or row.created_at > moment:
            high = middle
        else:
            low = row.id + 1
    return low
