"""Merges two nodes that turn out to be one, and takes a merge back: what was known of each is kept until then."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from gristmill.db import Tx, queries
from gristmill.errors import Refused, Unknown
from gristmill.ids import ChunkId, ScopeId
from gristmill.knowledge.keys import SQL as ALIASES
from gristmill.knowledge.keys import add_alias, normalise_key, resolve_keys
from gristmill.scopes import Scope, find_scope, scope_id

SQL = queries("gristmill.knowledge", "merging.sql")


@dataclass(frozen=True)
class Merge:
    """A node that went into another one of the same client."""

    id: int
    alias: str
    key: str
    merged_at: datetime


@dataclass(frozen=True)
class Merged:
    """A merge, and how many mentions and relations it moved."""

    merge: Merge
    mentions: int
    relations: int


class _MergeRow(NamedTuple):
    id: int
    alias: str
    key: str
    merged_at: datetime
    repointed: list[str]


class _StatedRow(NamedTuple):
    """A relation that somebody stated on a merged node, after it was merged."""

    chunk: ChunkId
    source: str
    type: str
    target: str


class _ChunkRow(NamedTuple):
    chunk: ChunkId


async def merge_nodes(tx: Tx, client: str, alias: str, key: str) -> Merged:
    """Let the node `alias` be another name of the node `key`, as `add_alias` does, so that it can be undone."""
    await tx.execute(ALIASES["block_mention_writers"])
    alias = normalise_key(alias)
    (key,) = await resolve_keys(tx, client, [key])
    scope = await scope_id(tx, Scope(client))
    row = await tx.one(SQL["note_merge"], _MergeRow, scope=scope, client=client, alias=alias, key=key)
    assert row is not None
    for statement in (SQL["note_mentions"], SQL["note_relations"], SQL["note_entities"]):
        await tx.execute(statement, merge=row.id, client=client, alias=alias, key=key)
    moved = await add_alias(tx, client, alias, key)
    return Merged(Merge(*row[:4]), moved.mentions, moved.relations)


async def list_merges(tx: Tx, client: str, *, limit: int = 50) -> list[Merge]:
    """The merges that can be undone, the newest first."""
    scope = await find_scope(tx, Scope(client))
    return await tx.all(SQL["list_merges"], Merge, scope=scope, limit=limit) if scope is not None else []


async def undo_merge(tx: Tx, client: str, merge: int) -> Merge:
    """Make two nodes of one again, in the chunks that are left of those that were merged.

    New chunks that came after the merge stay with the node that was kept, and so do statements made since.
    """
    await tx.execute(ALIASES["block_mention_writers"])
    row = await _load_merge(tx, await find_scope(tx, Scope(client)), merge)
    names = {"client": client, "alias": row.alias, "key": row.key}
    await tx.execute(ALIASES["forget_extraction_keys"], client=client, key=row.key)
    await tx.execute(SQL["separate_aliases"], repointed=row.repointed, **names)
    mentions = await tx.all(SQL["stated_mentions_since"], _ChunkRow, merge=row.id, key=row.key)
    relations = await tx.all(SQL["stated_relations_since"], _StatedRow, merge=row.id, alias=row.alias, key=row.key)
    for statement in (SQL["drop_merged"], SQL["restore_mentions"], SQL["restore_relations"]):
        await tx.execute(statement, merge=row.id, key=row.key)
    await _state_again(tx, row.key, mentions, relations)
    for statement in (SQL["restore_kept_entities"], SQL["drop_made_entities"], SQL["restore_entities"]):
        await tx.execute(statement, merge=row.id, alias=row.alias, key=row.key)
    await tx.execute(SQL["forget_merge"], merge=row.id)
    return Merge(*row[:4])


async def _load_merge(tx: Tx, scope: ScopeId | None, merge: int) -> _MergeRow:
    row = await tx.one(SQL["load_merge"], _MergeRow, scope=scope, merge=merge)
    if row is None:
        raise Unknown(f"There is no merge {merge} that could be undone.")
    if later := await tx.value(SQL["later_merge"], int, scope=scope, merge=merge, alias=row.alias, key=row.key):
        raise Refused(f"Merge {later} came later and touches the same node: undo it first.")
    return row


async def _state_again(tx: Tx, key: str, mentions: Sequence[_ChunkRow], relations: Sequence[_StatedRow]) -> None:
    """Statements that somebody made since the merge stay with the node that was kept."""
    chunks = sorted({*(row.chunk for row in mentions), *(row.chunk for row in relations)})
    if chunks:
        namespace, _, name = key.partition("::")
        await tx.execute(SQL["link_again"], chunks=chunks, key=key, type=namespace, name=name)
    for row in relations:
        await tx.execute(SQL["state_again"], **row._asdict())
