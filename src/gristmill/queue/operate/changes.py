"""What a bulk action does to a portion of tasks, and how each task becomes again as it was."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gristmill.db import Column, Tx, array, queries
from gristmill.ids import ScopeId, TaskId, WorkerId
from gristmill.queue.groups import conclude
from gristmill.queue.letters import to_json
from gristmill.queue.operate.cancel import cancel
from gristmill.queue.operate.erase import erase
from gristmill.queue.operate.order import choose_lane
from gristmill.queue.operate.revive import retry

SQL = queries("gristmill.queue.operate", "changes.sql")


@dataclass(frozen=True)
class Locked:
    """A task that is about to be changed; `was` is JSON text of everything that the change may overwrite."""

    id: TaskId
    scope: ScopeId
    queue: str | None
    outcome: str | None
    parent: TaskId | None
    owner: str | None
    position: int | None
    priority: int
    foreground: bool
    lane: int
    unique_held: bool | None
    worker: WorkerId | None
    was: str


Was = Mapping[TaskId, Any]  # what tasks were before, as JSON values
Apply = Callable[[Tx, Sequence[Locked], int | None], Awaitable[list[TaskId]]]
Undo = Callable[[Tx, Was, int | None], Awaitable[int]]


async def lock(tx: Tx, ids: Sequence[TaskId]) -> list[Locked]:
    """Those of these tasks that are still there, locked in the order that everybody keeps."""
    wanted = array(sorted(ids))
    await tx.all(SQL["lock_tickets"], ids=wanted)
    return await tx.all(SQL["lock_tasks"], Locked, ids=wanted)


async def lock_with_followers(tx: Tx, ids: Sequence[TaskId]) -> list[Locked]:
    """With the tasks that wait for them: these are cancelled together, and come back together."""
    behind = await tx.values(SQL["followers"], Column[TaskId], ids=array(ids))
    return await lock(tx, [*ids, *behind])


async def apply_retry(tx: Tx, tasks: Sequence[Locked], value: int | None) -> list[TaskId]:
    revived = await retry(tx, [one.id for one in tasks], any_outcome=True)
    return list(revived.tasks)


async def apply_cancel(tx: Tx, tasks: Sequence[Locked], value: int | None) -> list[TaskId]:
    open_ = [one.id for one in tasks if one.outcome is None]
    await cancel(tx, open_, reason="cancelled by a bulk action")
    return open_


async def apply_purge(tx: Tx, tasks: Sequence[Locked], value: int | None) -> list[TaskId]:
    """Ended tasks; those in groups go with their group, those with an owner with their owner."""
    ids = [one.id for one in tasks if one.outcome is not None and one.parent is None and one.owner is None]
    await tx.execute(SQL["uncount"], ids=array(ids))
    await erase(tx, ids)
    return ids


async def apply_priority(tx: Tx, tasks: Sequence[Locked], value: int | None) -> list[TaskId]:
    return await _move(tx, {one.id: (one.position, value or 0, one.foreground) for one in tasks}, tasks)


async def apply_foreground(tx: Tx, tasks: Sequence[Locked], value: int | None) -> list[TaskId]:
    return await _move(tx, {one.id: (one.position, one.priority, bool(value)) for one in tasks}, tasks)


async def apply_position(tx: Tx, tasks: Sequence[Locked], value: int | None) -> list[TaskId]:
    return await _move(tx, {one.id: (value, one.priority, one.foreground) for one in tasks}, tasks)


Place = tuple[int | None, int, bool]  # position, priority, foreground


async def _move(tx: Tx, places: Mapping[TaskId, Place], tasks: Sequence[Locked]) -> list[TaskId]:
    """Move those that are pending and stand elsewhere."""
    moved = [
        (one, places[one.id])
        for one in tasks
        if one.outcome is None and one.worker is None and places[one.id] != (one.position, one.priority, one.foreground)
    ]
    rows = [_describe_move(one, *place) for one, place in moved]
    await tx.one(SQL["move"], rows=to_json(rows))
    return [one.id for one, _ in moved]


def _describe_move(one: Locked, position: int | None, priority: int, foreground: bool) -> dict[str, Any]:
    return {
        "id": one.id,
        "position": position,
        "priority": priority,
        "foreground": foreground,
        "lane": choose_lane(one.lane, position, priority, foreground),
        "by_age": one.position is not None,
    }


# --- back again


async def undo_retry(tx: Tx, was: Was, value: int | None) -> int:
    """Those that are still pending end again as they had ended."""
    found = [one for one in await lock(tx, list(was)) if one.outcome is None and one.worker is None]
    rows = [{"id": one.id, "was": was[one.id]} for one in found]
    closed = await tx.values(SQL["put_back"], Column[TaskId], rows=to_json(rows))
    await conclude(tx, closed, was="pending")
    return len(closed)


async def undo_cancel(tx: Tx, was: Was, value: int | None) -> int:
    """Those that are still cancelled are open again, with the attempts and the time that they had."""
    found = [one.id for one in await lock(tx, list(was)) if one.outcome == "cancelled"]
    revived = await retry(tx, found)
    rows = [{"id": id_, "was": was[id_]} for id_ in revived.tasks]
    await tx.execute(SQL["restore"], rows=to_json(rows))
    return len(revived.tasks)


async def undo_move(tx: Tx, was: Was, value: int | None) -> int:
    places = {id_: (one["position"], one["priority"], one["foreground"]) for id_, one in was.items()}
    return len(await _move(tx, places, await lock(tx, list(was))))


@dataclass(frozen=True)
class BulkKind:
    """How an action finds its tasks, what it does, and how it is undone, if it can be."""

    statuses: tuple[str, ...]  # of the tasks that it is for; the first if the filter names none
    apply: Apply
    undo: Undo | None = None
    with_followers: bool = False


ENDED = ("failed", "cancelled", "completed", "skipped")
KINDS: Mapping[str, BulkKind] = {
    "retry": BulkKind(ENDED, apply_retry, undo_retry),
    "cancel": BulkKind(("pending", "processing"), apply_cancel, undo_cancel, with_followers=True),
    "purge": BulkKind(ENDED, apply_purge),
    "priority": BulkKind(("pending",), apply_priority, undo_move),
    "foreground": BulkKind(("pending",), apply_foreground, undo_move),
    "position": BulkKind(("pending",), apply_position, undo_move),
}


def read_was(row: str | Any) -> Any:
    return json.loads(row) if isinstance(row, str) else row
