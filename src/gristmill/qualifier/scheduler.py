"""Sends items on their way when their time has nearly come: once, or again and again by a cron expression."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from gristmill.db import Tx, queries
from gristmill.errors import Refused
from gristmill.qualifier.letters import DispatchDue
from gristmill.qualifier.line import send_qualify
from gristmill.qualifier.model import WorkItem
from gristmill.qualifier.moving import move_item, note_event
from gristmill.qualifier.store import ItemDraft, get_item, make_item, set_task
from gristmill.queue import Answer, Done, check_cron
from gristmill.settings import QualifierSettings

SQL = queries("gristmill.qualifier", "scheduler.sql")
BY = "scheduler"
AT_ONCE = 500  # items that one letter dispatches; the rest has its turn with the next


def plan_next(cron: str, zone: str, after: datetime) -> datetime | None:
    """The first run later than this; refused if the expression cannot be read."""
    return check_cron(cron, zone).next(after)


def explain_cron(cron: str, error: Refused) -> str:
    """What an item is warned with whose expression cannot be read."""
    reason = str(error).strip().splitlines()[-1].strip("^ ")
    return f"The cron expression “{cron}” cannot be read ({reason}): it runs once."


async def dispatch_due(letter: DispatchDue, *, settings: QualifierSettings) -> Answer:
    return Done(write=partial(_dispatch_all, settings=settings))


async def _dispatch_all(tx: Tx, *, settings: QualifierSettings) -> None:
    """Items that another scheduler dispatches at this moment are left to it."""
    now = await tx.only_value(SQL["read_clock"], datetime)
    for item in await tx.all(SQL["due_items"], WorkItem, ahead=settings.ahead, limit=AT_ONCE):
        await dispatch_item(tx, item, now)


async def dispatch_item(tx: Tx, item: WorkItem, now: datetime) -> None:
    """A recurring item stays, and a copy of it is executed; if its expression cannot be read, it is executed itself."""
    assert item.scheduled_at is not None, "a scheduled item has a time"
    if item.cron is None:
        await _dispatch_once(tx, item, "Its time has come.")
        return
    try:
        following = plan_next(item.cron, item.zone, max(item.scheduled_at, now))
    except Refused as error:
        warning = explain_cron(item.cron, error)
        await _dispatch_once(tx, item, "Its time has come, for the only time.", cron=None, warning=warning)
        return
    if following is None:
        await _dispatch_once(tx, item, "Its time has come, for the last time.", cron=None)
        return
    await _make_execution_copy(tx, item)
    await tx.execute(SQL["set_next"], id=item.id, scheduled_at=following)
    await note_event(tx, item.id, why=f"Its next time is {following:%Y-%m-%d %H:%M %Z}.", by=BY)


async def _dispatch_once(tx: Tx, item: WorkItem, why: str, **columns: Any) -> None:
    task = await send_qualify(tx, item)
    changed: Mapping[str, Any] = {**columns, "task": task}
    await move_item(tx, item.id, "ready_for_qualification", since=["scheduled"], why=why, by=BY, **changed)


async def _make_execution_copy(tx: Tx, item: WorkItem) -> None:
    id_ = await make_item(
        tx,
        ItemDraft(
            scope=item.scope,
            type="scheduled",
            title=item.title,
            state="ready_for_qualification",
            why=f"The run of item {item.id} for {item.scheduled_at:%Y-%m-%d %H:%M %Z}.",
            by=BY,
            document=item.document,
            text=item.text,
            note=item.note,
            foreground=item.foreground,
            position=item.position,
            urgency=item.urgency,
            written_at=item.scheduled_at,
            deadline=item.deadline,
            zone=item.zone,
            origin=item.id,
            added_by=item.added_by,
        ),
    )
    copy = await get_item(tx, id_)
    await set_task(tx, id_, await send_qualify(tx, copy))
