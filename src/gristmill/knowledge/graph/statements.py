"""Nodes and edges that somebody states: the chunks that show them, and their fate when these chunks go."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from gristmill.db import Column, Tx, queries
from gristmill.errors import Refused, Unknown
from gristmill.ids import ChunkId, DocumentId, ScopeId
from gristmill.knowledge.graph.contributions import NodeRef
from gristmill.knowledge.keys import block_alias_changes, resolve_keys
from gristmill.models import make_relation_type
from gristmill.scopes import Scope, scope_id

SQL = queries("gristmill.knowledge.graph", "statements.sql")


class Statement(NamedTuple):
    """A node that somebody stated in a scope."""

    scope: ScopeId
    key: str


async def create_node_with_rag_links(
    tx: Tx,
    scope: Scope,
    node_key: str,
    node_type: str,
    properties: Mapping[str, Any] | None = None,
    rag_chunk_ids: Sequence[ChunkId] = (),
) -> str:
    """States a node, or more properties of a known one, and links it with chunks; returns the key that is kept."""
    await block_alias_changes(tx)
    (key,) = await resolve_keys(tx, scope.client, [node_key])
    type = "_".join(node_type.casefold().split())
    if not type:
        raise Refused(f"The node “{key}” needs a type, for example person.")
    own = await scope_id(tx, scope)
    await _refuse_foreign_chunks(tx, scope, own, rag_chunk_ids)
    linked = bool(rag_chunk_ids)
    await tx.execute(SQL["state_node"], scope=own, key=key, type=type, properties=_json(properties), linked=linked)
    await _link_chunks(tx, [key], rag_chunk_ids)
    return key


async def create_relationship(
    tx: Tx,
    scope: Scope,
    from_key: str,
    to_key: str,
    edge_type: str,
    properties: Mapping[str, Any] | None = None,
    *,
    evidence: Sequence[ChunkId],
) -> tuple[str, str, str]:
    """States an edge that these chunks show; returns source, type and target as they are kept."""
    if not evidence:
        raise Refused(f"An edge from “{from_key}” to “{to_key}” needs at least one chunk as evidence.")
    await block_alias_changes(tx)
    source, target = await resolve_keys(tx, scope.client, [from_key, to_key])
    if source == target:
        raise Refused(f"“{from_key}” and “{to_key}” are the same node: an edge needs two.")
    await _refuse_foreign_chunks(tx, scope, await scope_id(tx, scope), evidence)
    type = make_relation_type(edge_type)
    await _link_chunks(tx, [source, target], evidence)
    await tx.execute(
        SQL["state_edge"], chunks=list(evidence), source=source, type=type, target=target, properties=_json(properties)
    )
    return source, type, target


async def hand_down_statements(tx: Tx, documents: Sequence[DocumentId]) -> None:
    """Passes the statements on chunks of these documents to the same chunks of their newer versions."""
    await block_alias_changes(tx)
    await tx.execute(SQL["hand_down_statements"], documents=list(documents))


async def statements_at_stake(tx: Tx, documents: Sequence[DocumentId]) -> list[Statement]:
    """The statements that lose evidence with these documents; locked, so that the remaining evidence stays as it is."""
    await block_alias_changes(tx)
    found = await tx.all(SQL["statements_at_stake"], Statement, documents=list(documents))
    if found:
        await tx.one(SQL["lock_statements"], **_columns_of(found))
    return found


async def retract_statements(tx: Tx, statements: Sequence[Statement]) -> list[NodeRef]:
    """Removes those of these statements that have no evidence left; the nodes of the others.

    Statements without any evidence are never given.
    """
    if not statements:
        return []
    columns = _columns_of(statements)
    await tx.one(SQL["retract_statements"], **columns)
    return await tx.all(SQL["find_statements"], NodeRef, **columns)


def _columns_of(statements: Sequence[Statement]) -> dict[str, list[Any]]:
    return {"scopes": [one.scope for one in statements], "keys": [one.key for one in statements]}


async def _refuse_foreign_chunks(tx: Tx, scope: Scope, own: ScopeId, chunks: Sequence[ChunkId]) -> None:
    """Refuses chunks of others, and those of GLOBAL: everybody would see what is stated on them."""
    if not chunks:
        return
    known = set(await tx.values(SQL["own_chunks"], Column[ChunkId], chunks=list(chunks), scope=own))
    for chunk in chunks:
        if chunk not in known:
            raise Unknown(f"There is no chunk {chunk} in {scope}.")


async def _link_chunks(tx: Tx, keys: Sequence[str], chunks: Sequence[ChunkId]) -> None:
    for key in keys:
        namespace, _, name = key.partition("::")
        await tx.execute(SQL["link_chunks"], chunks=list(chunks), key=key, type=namespace, name=name)


def _json(properties: Mapping[str, Any] | None) -> str:
    return orjson.dumps(dict(properties or {})).decode()
