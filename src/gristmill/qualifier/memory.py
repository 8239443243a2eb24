"""The memory of an item: what the qualifier found out, for whatever executes the item."""

from collections.abc import Sequence

import orjson

from gristmill.db import Tx, queries
from gristmill.ids import ChunkId, DocumentId, WorkItemId
from gristmill.qualifier.model import ItemMemory

SQL = queries("gristmill.qualifier", "memory.sql")


async def save_memory(tx: Tx, item: WorkItemId, memory: ItemMemory, *, document: DocumentId | None = None) -> bool:
    """The last memory counts: a later decision takes the place of the one before.

    The memory of a `document` is kept only if that one describes the item: not what another mail of its thread asks.
    Whether it was kept.
    """
    kept = await tx.value(
        SQL["save_memory"],
        item=item,
        document=document,
        summary=memory.summary,
        node_keys=list(memory.node_keys),
        chunks=list(memory.chunks),
        data=orjson.dumps(dict(memory.data)).decode(),
        routing=memory.routing,
        reason=memory.reason,
        source=memory.source,
        source_id=memory.source_id,
    )
    return kept is not None


async def save_reason(tx: Tx, item: WorkItemId, routing: str, reason: str) -> None:
    """What the last decision says, beside what is remembered of the mail that describes the item."""
    await tx.execute(SQL["save_reason"], item=item, routing=routing, reason=reason)


async def remember_chunks(tx: Tx, item: WorkItemId, keys: Sequence[str], found: Sequence[ChunkId]) -> None:
    """Add nodes and chunks to the memory of an item, and leave the rest: another decision may save it meanwhile."""
    await tx.execute(SQL["add_chunks"], item=item, keys=list(dict.fromkeys(keys)), chunks=list(dict.fromkeys(found)))


async def load_memory(tx: Tx, item: WorkItemId) -> ItemMemory | None:
    return await tx.one(SQL["load_memory"], ItemMemory, item=item)


async def delete_memory(tx: Tx, item: WorkItemId) -> bool:
    """Whether there was one."""
    return await tx.value(SQL["delete_memory"], item=item) is not None
