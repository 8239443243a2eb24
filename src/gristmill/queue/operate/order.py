"""Changes the order of claim for a pending task: position, priority, foreground."""

from dataclasses import dataclass

from gristmill.db import Tx, array, queries
from gristmill.errors import Refused, Unknown
from gristmill.ids import TaskId, WorkerId
from gristmill.queue.letters import POSITIONED, lane_of

SQL = queries("gristmill.queue.operate", "order.sql")


@dataclass(frozen=True)
class TaskPlace:
    """Where a task stands in the order of claim, and what may keep it from being moved."""

    id: TaskId
    priority: int
    foreground: bool
    position: int | None
    lane: int
    outcome: str | None
    queue: str | None
    worker: WorkerId | None


async def set_position(tx: Tx, task: TaskId, position: int | None) -> None:
    """Before all tasks without a position, in the order of positions; None gives it up again."""
    row = await _lock_pending(tx, task)
    await _move(tx, row, position, row.priority, row.foreground)


async def set_priority(tx: Tx, task: TaskId, priority: int) -> None:
    if not -100 <= priority <= 100:
        raise Refused(f"The priority {priority} is out of range: it goes from -100 to 100, higher first.")
    row = await _lock_pending(tx, task)
    await _move(tx, row, row.position, priority, row.foreground)


async def set_foreground(tx: Tx, task: TaskId, foreground: bool = True) -> None:
    """People wait for it: it overtakes all background work, whatever its priority."""
    row = await _lock_pending(tx, task)
    await _move(tx, row, row.position, row.priority, foreground)


async def run_now(tx: Tx, task: TaskId) -> None:
    """Let a task run that is scheduled, snoozed or backs off: its time is now."""
    row = await _lock_pending(tx, task)
    if await tx.one(SQL["wake"], id=row.id) is None:
        raise Refused(f"Task {task} does not wait for a time: gristmill task why {task} says what it waits for.")
    await tx.one(SQL["admit"], ids=array([task]))


async def _lock_pending(tx: Tx, task: TaskId) -> TaskPlace:
    row = await tx.one(SQL["lock_place"], TaskPlace, id=task)
    if row is None:
        raise Unknown(f"There is no task {task}.")
    if row.queue is None:
        raise Refused(f"Task {task} is a group: it has no place in line, its children have.")
    if row.outcome is not None or row.worker is not None:
        state = row.outcome or "processing"
        raise Refused(f"Task {task} is {state}: only a pending task can be moved.")
    return row


def choose_lane(old: int, position: int | None, priority: int, foreground: bool) -> int:
    """The lane of a task that was in an old one: a retry that goes first goes on doing so."""
    lane = lane_of(position, priority, foreground)
    return lane if POSITIONED in (lane, old) else lane & ~1 | old & 1


async def _move(tx: Tx, row: TaskPlace, position: int | None, priority: int, foreground: bool) -> None:
    lane = choose_lane(row.lane, position, priority, foreground)
    await tx.one(
        SQL["move"],
        id=row.id,
        position=position,
        priority=priority,
        foreground=foreground,
        lane=lane,
        by_age=row.position is not None,
    )
