"""The line of a queue: which tasks are next, and putting one of them before or after another."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

from gristmill.db import Tx, queries
from gristmill.errors import Refused
from gristmill.ids import TaskId
from gristmill.queue.operate.order import set_position

SQL = queries("gristmill.queue.operate", "line.sql")
MOST = 200  # places from the head of a line within which a task can be put
STEP = 1_000  # between positions, so that most moves change one task


@dataclass(frozen=True)
class InLine:
    """A task that may run now and waits for its turn."""

    id: TaskId
    kind: str
    position: int | None
    priority: int
    foreground: bool
    attempts: int
    created_at: datetime
    owner: str | None
    payload: Any


async def list_line(tx: Tx, queue: str, *, limit: int = 50) -> list[InLine]:
    """The tasks that are claimed next, in their order."""
    return await tx.all(SQL["line"], InLine, queue=queue, limit=limit)


async def put_in_line(
    tx: Tx, queue: str, task: TaskId, *, before: TaskId | None = None, after: TaskId | None = None
) -> None:
    """Put a task before or after another one; without either it becomes the first.

    Tasks ahead of its new place get a position if they have none: whatever has one goes first.
    """
    line = [one for one in await list_line(tx, queue, limit=MOST) if one.id != task]
    place = find_place(line, before, after)
    if place is None:
        raise Refused(f"Task {before or after} is not among the first {MOST} in line any more: look at the line again.")
    for one, position in choose_positions(line[:place], task, line[place:]):
        await set_position(tx, one, position)


Id = TypeVar("Id", bound=int)
Id_co = TypeVar("Id_co", bound=int, covariant=True)


class Placed(Protocol[Id_co]):
    """Something that stands in a line: a task, or whatever waits with one."""

    @property
    def id(self) -> Id_co: ...

    @property
    def position(self) -> int | None: ...


def find_place(line: Sequence[Placed[Id]], before: Id | None, after: Id | None) -> int | None:
    """The place before or after another one, without either the first; None if that one is not in this line."""
    other = before if before is not None else after
    if other is None:
        return 0
    place = next((place for place, one in enumerate(line) if one.id == other), None)
    return place if place is None or before is not None else place + 1


def choose_positions(ahead: Sequence[Placed[Id]], task: Id, behind: Sequence[Placed[Id]]) -> list[tuple[Id, int]]:
    """The fewest new positions that give this order."""
    low = ahead[-1].position if ahead else None
    high = behind[0].position if behind else None
    if not ahead:
        return [(task, (high or STEP) - STEP)]
    if low is not None and high is None:
        return [(task, low + STEP)]
    if low is not None and high is not None and high - low > 1:
        return [(task, (low + high) // 2)]
    return renumber(ahead, task, behind)


def renumber(ahead: Sequence[Placed[Id]], task: Id, behind: Sequence[Placed[Id]]) -> list[tuple[Id, int]]:
    """New positions for all up to the new place, and for those behind it that have one."""
    placed = [*(one.id for one in ahead), task, *(one.id for one in behind if one.position is not None)]
    return [(one, place * STEP) for place, one in enumerate(placed, start=1)]
