"""Looks after items that nobody would decide or run any more: unread documents, lost tasks, long waits."""

from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from gristmill.db import Column, Tx, queries
from gristmill.documents import find_unreadable
from gristmill.ids import WorkItemId
from gristmill.qualifier.letters import QualifyItem, SweepItems
from gristmill.qualifier.line import send_qualify, send_run
from gristmill.qualifier.model import UNDECIDED, ItemState, WorkItem
from gristmill.qualifier.moving import move_item, note_event
from gristmill.qualifier.store import fold_tally, hold_item, set_task
from gristmill.queue import Answer, Done, Envelope, Unique, send_many
from gristmill.settings import QualifierSettings
from gristmill.tasks import DocumentRead

SQL = queries("gristmill.qualifier", "recovering.sql")
BY = "sweep"
AT_ONCE = 500  # of each kind that one sweep looks after
OVERLAP = timedelta(minutes=10)  # a death is written down a while after its time


async def sweep_items(letter: SweepItems, *, settings: QualifierSettings) -> Answer:
    return Done(write=partial(_sweep, settings=settings))


async def _sweep(tx: Tx, *, settings: QualifierSettings) -> None:
    await find_dead_documents(tx)
    await decide_overdue(tx, settings.patience)
    await recover_lost(tx, settings.stale)
    await fold_tally(tx)


async def find_dead_documents(tx: Tx) -> None:
    """Documents of which a page could not be read get no letter from their phases: it is sent here."""
    mark = await tx.only_value(SQL["hold_mark"], datetime, first=timedelta(days=1))
    found, until = await find_unreadable(tx, mark - OVERLAP, limit=AT_ONCE)
    letters = [Envelope(DocumentRead(one), unique=Unique(f"unread:{one}", period=2 * OVERLAP)) for one in found]
    if letters:
        await send_many(tx, letters)
    await tx.execute(SQL["set_mark"], mark=max(mark, until))


async def decide_overdue(tx: Tx, patience: timedelta) -> None:
    """Items that have waited long enough for the rest of their documents are decided without it."""
    ids = await tx.values(SQL["overdue"], Column[WorkItemId], patience=patience, limit=AT_ONCE)
    letters = [Envelope(QualifyItem(one), unique=Unique(f"overdue:{one}", period=patience)) for one in ids]
    if letters:
        await send_many(tx, letters)


class _Lost(NamedTuple):
    """An item that waits for a task which has ended, or is gone."""

    id: WorkItemId
    outcome: str | None  # of the task
    error: str | None


async def recover_lost(tx: Tx, stale: timedelta) -> None:
    """Leases bring back the tasks of dead workers; here are items whose task ended without an answer about them."""
    for lost in await tx.all(SQL["lost"], _Lost, stale=stale, limit=AT_ONCE):
        item = await hold_item(tx, lost.id)
        if item is None:
            continue
        reason = explain_end(lost.outcome, lost.error, foreground=item.foreground)
        if reason is None:
            await _reset(tx, item)
        else:
            await move_item(tx, item.id, "error", since=[item.state], why=reason, by=BY)


def explain_end(outcome: str | None, error: str | None, *, foreground: bool) -> str | None:
    """Why an item cannot go on whose task has ended so; None if it is put back in line: only background items are."""
    if outcome == "failed":
        return error or "Its task failed."
    if outcome == "cancelled":
        return "Its task was cancelled: reopen the item to go on."
    return "Its task is gone: reopen the item to go on." if foreground else None


async def _reset(tx: Tx, item: WorkItem) -> None:
    """To where it waited before, with a new task."""
    why = "Its task was gone: it is put back in line."
    undecided = item.state in UNDECIDED
    task = await (send_qualify(tx, item) if undecided else send_run(tx, item))
    waits: ItemState = "ready_for_qualification" if undecided else "ready_for_execution"
    if item.state == waits:
        await set_task(tx, item.id, task)
        await note_event(tx, item.id, why=why, by=BY)
    else:
        await move_item(tx, item.id, waits, since=[item.state], why=why, by=BY, task=task)
