"""Parts of the graph that fit on one picture: around a node, of a document, of the newest documents."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gristmill.db import Tx, queries
from gristmill.ids import DocumentId
from gristmill.knowledge.graph.reading import FoundNode, Neighbour, PathEdge, load_edges, load_found, reader_of, resolve
from gristmill.scopes import Scope

SQL = queries("gristmill.knowledge.graph", "excerpts.sql")


@dataclass(frozen=True)
class GraphExcerpt:
    """The nodes that a document names most often, and the edges between them that it shows."""

    nodes: tuple[FoundNode, ...]
    edges: tuple[PathEdge, ...]
    total: int  # nodes that the document names


@dataclass(frozen=True)
class NodeSurroundings:
    """A node and its strongest edges."""

    node: FoundNode
    edges: tuple[Neighbour, ...]
    total: int  # edges that it has


class _NamedRow(NamedTuple):
    key: str
    total: int


async def document_excerpt(tx: Tx, scope: Scope, document: DocumentId, *, limit: int = 20) -> GraphExcerpt:
    """What one document adds to the graph; its most named nodes first."""
    reader = await reader_of(tx, scope)
    named = await reader.all(tx, SQL["nodes_of_document"], _NamedRow, document=document, limit=limit)
    keys = [row.key for row in named]
    if not keys:
        return GraphExcerpt((), (), 0)
    edges = await reader.all(tx, SQL["edges_of_document"], PathEdge, document=document, keys=keys)
    return GraphExcerpt(tuple(await load_found(tx, reader, keys)), tuple(edges), named[0].total)


async def recent_nodes(tx: Tx, scope: Scope, *, limit: int = 40) -> list[FoundNode]:
    """The nodes that the newest documents name most: where a reader may begin, at the same cost in a large graph."""
    reader = await reader_of(tx, scope)
    named = await reader.all(tx, SQL["recent_nodes"], _NamedRow, limit=limit)
    return await load_found(tx, reader, [row.key for row in named])


async def surroundings(tx: Tx, scope: Scope, key: str, *, limit: int) -> NodeSurroundings:
    """A node by its key or name with its strongest edges, without the evidence that `node` reads."""
    key = await resolve(tx, scope, key)
    reader = await reader_of(tx, scope)
    (known,) = await load_found(tx, reader, [key])
    return NodeSurroundings(known, *await load_edges(tx, reader, key, limit))


async def edges_between(tx: Tx, scope: Scope, keys: Sequence[str]) -> list[PathEdge]:
    """All edges that have both ends among these nodes."""
    reader = await reader_of(tx, scope)
    return await reader.all(tx, SQL["edges_between"], PathEdge, keys=list(keys)) if len(keys) > 1 else []
