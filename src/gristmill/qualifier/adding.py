"""What people and programs do with items: add, say something, answer, cancel, reopen."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gristmill.db import Tx
from gristmill.errors import Refused
from gristmill.ids import WorkItemId
from gristmill.qualifier.idle import announce_request
from gristmill.qualifier.line import send_qualify, send_run
from gristmill.qualifier.model import CLOSED, TYPES, URGENCIES, ItemState, ItemType, Urgency, WorkItem
from gristmill.qualifier.moving import move_item
from gristmill.qualifier.scheduler import explain_cron, plan_next
from gristmill.qualifier.store import SQL, ItemDraft, add_message, get_item, hold_item, make_item, set_task
from gristmill.queue import check_zone
from gristmill.scopes import Scope, scope_id

ADDED_TYPES: tuple[ItemType, ...] = ("user_input", "user_task", "scheduled")
LONGEST_TEXT = 200_000  # characters
REOPENED_WHY = "A person reopened it."
REOPENED: tuple[ItemState, ...] = ("done", "completed", "error")


@dataclass(frozen=True)
class ItemWish:
    """An item as a person or a program asks for it."""

    text: str
    title: str = ""  # empty: the first line of the text
    type: ItemType = "user_task"
    foreground: bool | None = None  # None: a chat message is waited for, other items are not
    urgency: Urgency = "normal"
    deadline: datetime | None = None
    scheduled_at: datetime | None = None
    cron: str | None = None
    zone: str = "UTC"
    position: int | None = None


async def add_item(tx: Tx, scope: Scope, wish: ItemWish, *, by: str) -> WorkItem:
    """A new item: it is decided next, or waits for its time."""
    check_wish(wish)
    now = await tx.only_value(SQL["read_clock"], datetime)
    when, cron, warning = choose_time(wish, now)
    is_foreground = wish.type == "user_input" if wish.foreground is None else wish.foreground
    waits = when is not None
    id_ = await make_item(
        tx,
        ItemDraft(
            scope=await scope_id(tx, scope),
            type="scheduled" if waits else wish.type,
            title=wish.title.strip() or wish.text.strip().partition("\n")[0],
            state="scheduled" if waits else "ready_for_qualification",
            why=f"{by} added it.",
            by=by,
            text=wish.text,
            note={"sender": by},
            foreground=is_foreground,
            position=wish.position,
            urgency=wish.urgency,
            deadline=wish.deadline,
            scheduled_at=when,
            cron=cron,
            zone=wish.zone,
            added_by=by,
            warning=warning,
        ),
    )
    item = await get_item(tx, id_)
    if not waits:
        await set_task(tx, id_, await send_qualify(tx, item))
    if is_foreground:
        await announce_request(tx, by="item")
    return await get_item(tx, id_)


def check_wish(wish: ItemWish) -> None:
    """Refuse what nobody could work on, in one sentence."""
    if not wish.text.strip():
        raise Refused("An item needs a text: say what is to be done.")
    if len(wish.text) > LONGEST_TEXT:
        raise Refused(f"The text of an item has at most {LONGEST_TEXT:,} characters: add a longer one as a document.")
    if wish.type not in ADDED_TYPES:
        kinds = ", ".join(ADDED_TYPES)
        raise Refused(f"Items of the type {wish.type} come from sources: choose one of {kinds}.")
    if wish.urgency not in URGENCIES:
        raise Refused(f"“{wish.urgency}” is no urgency: choose one of {', '.join(URGENCIES)}.")
    for name, moment in (("deadline", wish.deadline), ("scheduled_at", wish.scheduled_at)):
        if moment is not None and moment.utcoffset() is None:
            raise Refused(f"The {name} has no time zone: nobody knows which moment is meant.")
    check_zone(wish.zone)
    if wish.type == "scheduled" and wish.scheduled_at is None and wish.cron is None:
        raise Refused("A scheduled item needs a time: give scheduled_at, or a cron expression.")


def choose_time(wish: ItemWish, now: datetime) -> tuple[datetime | None, str | None, str | None]:
    """When it is due, its cron expression, and a warning if that cannot be read: then it runs once."""
    if wish.cron is None:
        return wish.scheduled_at, None, None
    try:
        planned = plan_next(wish.cron, wish.zone, now)
    except Refused as error:
        if wish.scheduled_at is None:
            raise
        return wish.scheduled_at, None, explain_cron(wish.cron, error)
    if planned is None and wish.scheduled_at is None:
        raise Refused(f"The cron expression {wish.cron} names no time to come.")
    return wish.scheduled_at or planned, wish.cron, None


# --- messages


async def say(tx: Tx, id_: WorkItemId, text: str, *, by: str) -> WorkItem:
    """Say something to an item. One that waits for an answer goes on; one that had ended begins again.

    An item that is being executed hears it when its run ends: it is put back in line.
    """
    item = await _hold(tx, id_)
    _check_text(text)
    kind = "answer" if item.state == "waiting_for_user" else "user"
    await add_message(tx, id_, kind, text, by=by)
    await announce_request(tx, by="item")
    if item.state in ("waiting_for_user", *CLOSED):
        why = "A person answered." if kind == "answer" else "A person said something to it."
        await _run_again(tx, item, why=why, by=by, foreground=True)  # the person waits for the result
    return await get_item(tx, id_)


async def wake_item(tx: Tx, id_: WorkItemId, *, why: str) -> None:
    """Go on with an item that waits for a person, because what it waits for was said elsewhere."""
    item = await hold_item(tx, id_)
    if item is not None and item.state == "waiting_for_user":
        await _run_again(tx, item, why=why, by="executor", foreground=True)


async def answer(tx: Tx, id_: WorkItemId, text: str, *, by: str) -> WorkItem:
    """Answer the question that an item asks."""
    item = await _hold(tx, id_)
    if item.state != "waiting_for_user":
        raise Refused(f"Item {id_} asks nothing: it is {item.state}. gristmill item say {id_} says something to it.")
    return await say(tx, id_, text, by=by)


def _check_text(text: str) -> None:
    if not text.strip():
        raise Refused("A message needs a text.")
    if len(text) > LONGEST_TEXT:
        raise Refused(f"A message has at most {LONGEST_TEXT:,} characters.")


async def _run_again(tx: Tx, item: WorkItem, *, why: str, by: str, foreground: bool) -> None:
    columns: dict[str, Any] = {"task": await send_run(tx, item, foreground=foreground), "foreground": foreground}
    await move_item(tx, item.id, "ready_for_execution", since=[item.state], why=why, by=by, **columns)


# --- the end, and a new beginning


async def cancel_item(tx: Tx, id_: WorkItemId, *, by: str, why: str = "A person cancelled it.") -> WorkItem:
    """End an item, whatever it does; its executor is stopped."""
    item = await _hold(tx, id_)
    if item.state in CLOSED:
        raise Refused(f"Item {id_} has ended: it is {item.state}.")
    await move_item(tx, id_, "done", since=[item.state], outcome="cancelled", why=why, by=by)
    return await get_item(tx, id_)


async def was_reopened(tx: Tx, id_: WorkItemId, since: datetime) -> bool:
    """Whether a person has asked since then that an item is worked on again."""
    return await tx.only_value(SQL["was_reopened"], bool, item=id_, since=since, why=REOPENED_WHY)


async def reopen_item(tx: Tx, id_: WorkItemId, *, by: str, why: str = REOPENED_WHY) -> WorkItem:
    """Work on an item again that has ended, or could not go on; one that was never decided is decided first."""
    item = await _hold(tx, id_)
    if item.state not in REOPENED:
        raise Refused(f"Item {id_} is open: it is {item.state}.")
    if item.decision is None and item.run == 0 and item.parent is None:
        task = await send_qualify(tx, item)
        await move_item(tx, id_, "ready_for_qualification", since=REOPENED, why=why, by=by, task=task)
    else:
        await _run_again(tx, item, why=why, by=by, foreground=item.foreground)
    if item.parent is not None:
        told = f"Item {id_} of it was reopened."
        await move_item(tx, item.parent, "waiting_for_children", since=["error", "completed"], why=told, by=by)
    return await get_item(tx, id_)


async def _hold(tx: Tx, id_: WorkItemId) -> WorkItem:
    await get_item(tx, id_)  # raises Unknown if there is no such item
    item = await hold_item(tx, id_)
    if item is None:
        raise Refused(f"Item {id_} is not yours to change.")
    return item


def check_type(name: str) -> ItemType:
    if name not in TYPES:
        raise Refused(f"“{name}” is no type of an item: choose one of {', '.join(TYPES)}.")
    return name
