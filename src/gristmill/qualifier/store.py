"""Keeps items: makes, loads and lists them, with their events and messages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, NamedTuple

import orjson

from gristmill.db import Column, Tx, queries
from gristmill.errors import Unknown
from gristmill.ids import DocumentId, ScopeId, TaskId, WorkItemId
from gristmill.qualifier.model import STATES, ItemEvent, ItemMessage, ItemState, ItemType, Urgency, WorkItem
from gristmill.qualifier.moving import make_keepable

SQL = queries("gristmill.qualifier", "items.sql")
NEWEST = 2**63 - 1
LONGEST_TITLE = 300  # characters
MOST_MESSAGES = 500


@dataclass(frozen=True)
class ItemDraft:
    """An item that is to be made."""

    scope: ScopeId
    type: ItemType
    title: str
    state: ItemState
    why: str
    by: str
    urn: str | None = None
    document: DocumentId | None = None
    message: str | None = None
    text: str | None = None
    note: Mapping[str, Any] = field(default_factory=dict[str, Any])
    foreground: bool = False
    position: int | None = None
    urgency: Urgency = "normal"
    written_at: datetime | None = None  # None: now
    deadline: datetime | None = None
    scheduled_at: datetime | None = None
    cron: str | None = None
    zone: str = "UTC"
    parent: WorkItemId | None = None
    origin: WorkItemId | None = None
    added_by: str | None = None
    warning: str | None = None


async def make_item(tx: Tx, new: ItemDraft) -> WorkItemId:
    """A new item, and the event that it began."""
    columns = {name: make_keepable(value) if isinstance(value, str) else value for name, value in vars(new).items()}
    columns["title"] = make_keepable(new.title)[:LONGEST_TITLE]
    columns["note"] = orjson.dumps(dict(new.note)).decode()
    return WorkItemId(await tx.only_value(SQL["make_item"], int, **columns))


async def load_items(tx: Tx, ids: Sequence[WorkItemId]) -> dict[WorkItemId, WorkItem]:
    """Those of them that (still) exist."""
    return {row.id: row for row in await tx.all(SQL["load_items"], WorkItem, ids=list(ids))}


async def get_item(tx: Tx, id_: WorkItemId) -> WorkItem:
    """An item that the caller sees."""
    item = (await load_items(tx, [id_])).get(id_) if id_ <= NEWEST else None  # a larger number fits no column
    if item is None:
        raise Unknown(f"There is no item {id_}.", listed_by="gristmill item ls")
    return item


async def warn_item(tx: Tx, item: WorkItem, warning: str) -> WorkItem:
    """Keep a warning on an item; the item as it is now."""
    await tx.execute(SQL["set_warning"], id=item.id, warning=make_keepable(warning))
    return replace(item, warning=warning)


async def hold_item(tx: Tx, id_: WorkItemId) -> WorkItem | None:
    """An item that nobody else changes until the transaction ends."""
    return await tx.one(SQL["hold_item"], WorkItem, id=id_)


async def set_task(tx: Tx, id_: WorkItemId, task: TaskId) -> None:
    """Which task decides or runs it."""
    await tx.execute(SQL["set_task"], id=id_, task=task)


async def list_events(tx: Tx, item: WorkItemId, *, after: int = 0, limit: int = 200) -> list[ItemEvent]:
    """What happened to an item, the oldest first."""
    return await tx.all(SQL["list_events"], ItemEvent, item=item, after=after, limit=limit)


async def list_messages(tx: Tx, item: WorkItemId) -> list[ItemMessage]:
    return await tx.all(SQL["list_messages"], ItemMessage, item=item, limit=MOST_MESSAGES)


async def add_message(
    tx: Tx,
    item: WorkItemId,
    kind: Literal["user", "mail", "item", "question", "answer"],
    text: str,
    *,
    by: str,
    document: DocumentId | None = None,
) -> None:
    await tx.one(SQL["add_message"], item=item, kind=kind, text=make_keepable(text), by=by, document=document)


@dataclass(frozen=True)
class ItemResult:
    """What an executor made of an item."""

    run: int
    at: datetime
    by: str
    summary: str
    reply: str | None
    asked: Sequence[Mapping[str, Any]]
    citations: Sequence[Mapping[str, Any]]


async def load_result(tx: Tx, item: WorkItemId) -> ItemResult | None:
    """Of the last run that came to its end."""
    return await tx.one(SQL["load_result"], ItemResult, item=item)


class SourceDocument(NamedTuple):
    """A document that an item was made of."""

    id: DocumentId
    urn: str
    name: str
    title: str | None
    type: str | None
    written_at: datetime | None


async def list_sources_of(tx: Tx, item: WorkItemId) -> list[SourceDocument]:
    return await tx.all(SQL["sources_of"], SourceDocument, item=item)


async def list_children(tx: Tx, item: WorkItemId) -> list[WorkItem]:
    return await tx.all(SQL["children_of"], WorkItem, item=item)


async def list_copies(tx: Tx, item: WorkItemId, *, limit: int = 20) -> list[WorkItem]:
    """Copies that wait for their time, or did; the newest first."""
    return await tx.all(SQL["copies_of"], WorkItem, item=item, limit=limit)


async def list_merged(tx: Tx, item: WorkItemId, *, limit: int = 50) -> list[WorkItem]:
    """The items that were consolidated into this one."""
    return await tx.all(SQL["merged_into"], WorkItem, item=item, limit=limit)


async def list_items(
    tx: Tx, states: Sequence[ItemState] = STATES, *, before: int = NEWEST, limit: int = 50, copied: bool = True
) -> list[WorkItem]:
    """Items in these states that the caller sees, the newest first; if not `copied`, without those whose copy waits."""
    wanted = {"states": list(states), "before": before, "limit": limit, "copied": copied}
    if (scopes := await _list_seen_scopes(tx)) is None:
        return await tx.all(SQL["list_all"], WorkItem, **wanted)
    return await tx.all(SQL["list_of_scopes"], WorkItem, scopes=scopes, **wanted)


async def list_in_line(tx: Tx, *, foreground: bool | None = None, limit: int = 50) -> list[WorkItem]:
    """Items that wait for an executor, in the order in which they are taken."""
    return await tx.all(SQL["in_line"], WorkItem, foreground=foreground, limit=limit)


async def list_due(tx: Tx, *, limit: int = 50) -> list[WorkItem]:
    """Items that wait for their time, the next first."""
    return await tx.all(SQL["next_due"], WorkItem, limit=limit)


async def find_item_of(tx: Tx, document: DocumentId) -> WorkItemId | None:
    """The item that a document belongs to."""
    return await tx.value(SQL["find_by_document"], Column[WorkItemId], document=document)


class StateCount(NamedTuple):
    """How many items are in a state."""

    state: ItemState
    outcome: str  # '': none
    foreground: bool
    n: int


async def count_states(tx: Tx) -> list[StateCount]:
    """Exact, from counters: it costs the same however many items there are."""
    return await tx.all(SQL["count_states"], StateCount, scopes=await _list_seen_scopes(tx))


async def fold_tally(tx: Tx) -> None:
    await tx.execute(SQL["fold_tally"])


async def _list_seen_scopes(tx: Tx) -> list[ScopeId] | None:
    """The scopes that the client of this transaction sees; None for the operator, who sees all."""
    return None if tx.seen_from is None else await tx.value(SQL["seen_scopes"], list[ScopeId])
