"""The items of a source as people look at them, and another try for those that were set aside."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, get_args

from gristmill.db import Tx
from gristmill.errors import Refused, Unknown
from gristmill.ids import DocumentId, ItemId, SourceId
from gristmill.queue import Envelope, send_many
from gristmill.sources.letters import IndexItem
from gristmill.sources.model import Source, State
from gristmill.sources.poller import ask_for_listing
from gristmill.sources.store import SQL, load_raw

NEWEST = 2**62
STATES: tuple[str, ...] = get_args(State)


@dataclass(frozen=True)
class ItemRow:
    """An item, without its bytes."""

    id: ItemId
    external: str
    type: str | None
    state: str
    urn: str | None
    title: str | None
    thread: str | None
    document: DocumentId | None
    size: int
    error: str | None
    version: int
    first_at: datetime
    changed_at: datetime
    removed: Mapping[str, Any] | None


async def list_items(
    tx: Tx, source: SourceId, *, state: str | None = None, before: int = NEWEST, limit: int = 50
) -> list[ItemRow]:
    """The items of a source, the newest first; of one state if it is named."""
    if state is not None and state not in STATES:
        raise Refused(f"“{state}” is no state of an item: choose one of {', '.join(STATES)}.")
    given = {"source": source, "before": before, "limit": limit}
    if state is None:
        return await tx.all(SQL["list_items"], ItemRow, **given)
    if state == "INDEXED":
        return await tx.all(SQL["list_indexed"], ItemRow, **given)
    if state == "FAILED":
        return await tx.all(SQL["list_unreadable"], ItemRow, **given)
    if state == "INDEXING":
        return await tx.all(SQL["list_in_hand"], ItemRow, **given)
    return await tx.all(SQL["list_items_in_state"], ItemRow, state=state, **given)


async def load_item(tx: Tx, source: SourceId, item: ItemId) -> ItemRow:
    found = await tx.one(SQL["load_item"], ItemRow, source=source, id=item)
    if found is None:
        raise Unknown(f"There is no item {item} of this source.")
    return found


async def load_item_bytes(tx: Tx, item: ItemId) -> bytes:
    """The bytes of an item that waits or was set aside; nothing if it was handed on: its document has them."""
    return (await load_raw(tx, [item])).get(item, b"")


class _VersionRow(NamedTuple):
    id: ItemId
    version: int


async def retry_set_aside(tx: Tx, source: Source) -> int:
    """Try the items again that were set aside; how many there are.

    Those whose bytes could not be had (they were too large) are fetched again. Not every source gives old items to a
    poll: a listing finds all of them.
    """
    rows = await tx.all(SQL["retry_set_aside"], _VersionRow, source=source.id)
    await send_many(tx, [Envelope(IndexItem(row.id, row.version), scope=source.scope) for row in rows])
    refused = await tx.all(SQL["ask_again"], source=source.id)
    if refused:
        await ask_for_listing(tx, source)
    return len(rows) + len(refused)
