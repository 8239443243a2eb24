"""The line in front of the executor: the letter that runs an item, and where the item stands."""

from gristmill.db import Tx
from gristmill.errors import Refused
from gristmill.ids import TaskId, WorkItemId
from gristmill.qualifier.letters import QualifyItem, RunInBackground, RunItem
from gristmill.qualifier.model import Urgency, WorkItem
from gristmill.qualifier.moving import note_event
from gristmill.qualifier.store import SQL, list_in_line
from gristmill.queue import choose_positions, find_place, send, set_position

PRIORITIES: dict[Urgency, int] = {"critical": 20, "high": 10, "normal": 0, "low": -10}
MOST = 200  # places from the head of the line within which an item can be put


async def send_run(
    tx: Tx,
    item: WorkItem,
    urgency: Urgency | None = None,
    *,
    parent: TaskId | None = None,
    foreground: bool | None = None,
) -> TaskId:
    """Put an item into the line of the executor: people's items and background items have queues of their own."""
    is_foreground = item.foreground if foreground is None else foreground
    return await send(
        tx,
        RunItem(item.id) if is_foreground else RunInBackground(item.id),
        scope=item.scope,
        foreground=is_foreground,
        priority=PRIORITIES[urgency or item.urgency],
        position=item.position,
        parent=parent,
    )


async def send_qualify(tx: Tx, item: WorkItem) -> TaskId:
    """Put an item into the line of those that are to be decided."""
    return await send(tx, QualifyItem(item.id), scope=item.scope, foreground=item.foreground, position=item.position)


async def place_item(
    tx: Tx, item: WorkItem, *, before: WorkItemId | None = None, after: WorkItemId | None = None, by: str
) -> None:
    """Put an item before or after another one in line; without either it becomes the first.

    Items ahead of its new place get a position if they have none: whatever has one goes first.
    """
    _check_waits(item)
    line = [one for one in await list_in_line(tx, foreground=item.foreground, limit=MOST) if one.id != item.id]
    place = find_place(line, before, after)
    if place is None:
        raise Refused(f"Item {before or after} does not wait among the first {MOST} any more: look at the line again.")
    tasks = {one.id: one.task for one in [*line, item]}
    for id_, position in choose_positions(line[:place], item.id, line[place:]):
        await _set_position(tx, id_, tasks[id_], position)
    await note_event(tx, item.id, why="A person moved it in line.", by=by)


async def position_item(tx: Tx, item: WorkItem, position: int | None, *, by: str) -> None:
    """Give an item a position: items with one go first, in the order of positions. None gives it up."""
    _check_waits(item)
    await _set_position(tx, item.id, item.task, position)
    why = "A person gave up its place in line." if position is None else f"A person put it at position {position}."
    await note_event(tx, item.id, why=why, by=by)


def _check_waits(item: WorkItem) -> None:
    if item.state not in ("ready_for_qualification", "ready_for_execution", "scheduled", "waiting_for_user"):
        raise Refused(f"Item {item.id} is {item.state}: only an item that waits can be moved in line.")


async def _set_position(tx: Tx, id_: WorkItemId, task: TaskId | None, position: int | None) -> None:
    """Of the item, and of the task that it waits with; a task that a worker has just taken needs none any more."""
    await tx.execute(SQL["set_position"], id=id_, position=position)
    if task is not None and await tx.value(SQL["is_pending"], task=task):
        await set_position(tx, task, position)
