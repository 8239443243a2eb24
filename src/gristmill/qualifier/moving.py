"""Moves items from state to state: compare and set, with an event beside every change."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import orjson

from gristmill.db import Tx, queries
from gristmill.ids import WorkItemId
from gristmill.qualifier.model import ItemState, Outcome

SQL = queries("gristmill.qualifier", "moving.sql")
LONGEST_WHY = 500  # characters of a reason


async def move_item(
    tx: Tx,
    item: WorkItemId,
    to: ItemState,
    *,
    since: Sequence[ItemState],
    why: str,
    by: str,
    outcome: Outcome | None = None,
    **columns: Any,
) -> bool:
    """Move an item that is in one of the states `since`; False if it is in another one, or gone.

    `columns` are further columns that change with it: urgency, deadline, scheduled_at, task, decision, warning …
    Outcome, error and question of the former state go with that state.
    """
    return await tx.only_value(
        SQL["move_item"],
        bool,
        item=item,
        since=list(since),
        state=to,
        why=make_keepable(why)[:LONGEST_WHY],
        by=by,
        outcome=outcome,
        columns=orjson.dumps({name: _as_json(value) for name, value in columns.items()}).decode(),
    )


async def note_event(tx: Tx, item: WorkItemId, *, why: str, by: str) -> None:
    """Write down something that leaves an item in its state: it was decided again, or moved in line."""
    await tx.execute(SQL["note_event"], item=item, why=make_keepable(why)[:LONGEST_WHY], by=by)


def make_keepable(text: str) -> str:
    """Text that the database takes, whatever somebody outside put into it."""
    return text.encode(errors="backslashreplace").decode().replace("\0", "\\0")


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return make_keepable(value) if isinstance(value, str) else value
