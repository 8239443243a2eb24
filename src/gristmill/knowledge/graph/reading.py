"""Reads the graph: a node with its neighbours and evidence, nodes by name, the way from one node to another."""

import re
from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, NamedTuple, TypeVar

from gristmill.db import Query, Tx, queries
from gristmill.errors import Refused, Unknown
from gristmill.ids import ChunkId, DocumentId, ScopeId
from gristmill.knowledge.keys import keys_with_name, resolve_keys
from gristmill.models import make_entity_key
from gristmill.scopes import Scope, visible

SQL = queries("gristmill.knowledge.graph", "reading.sql")
R = TypeVar("R")
WIDEST = 20_000  # nodes on one level of the search for a path
AROUND = 60  # characters before and after a name in a snippet …
NEARBY = 20  # … and at most so many more to the end of a word


@dataclass(frozen=True)
class Evidence:
    """Where a chunk names a node: offsets are characters of the page's text."""

    chunk: ChunkId
    document: DocumentId
    file: str
    title: str | None
    urn: str
    page: int
    start: int
    stop: int
    snippet: str


@dataclass(frozen=True)
class Neighbour:
    """An edge between this node and another one."""

    key: str
    node_type: str
    name: str
    type: str
    outward: bool
    evidence: int


@dataclass(frozen=True)
class Node:
    """A person or thing, and how the visible chunks know it."""

    key: str
    type: str
    name: str
    mentions: int
    chunks: int
    documents: int
    properties: dict[str, Any]
    neighbours: tuple[Neighbour, ...]
    edges: int  # of all; `neighbours` are those with most evidence
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True)
class FoundNode:
    """A node that was found by its name."""

    key: str
    type: str
    name: str
    mentions: int
    chunks: int


@dataclass(frozen=True)
class PathEdge:
    """One edge of a path, in its own direction."""

    source: str
    type: str
    target: str
    evidence: int


@dataclass(frozen=True)
class GraphCounts:
    """How large the graph is."""

    nodes: int
    edges: int
    mentions: int
    evidence: int
    node_types: dict[str, int] = field(default_factory=dict[str, int])
    edge_types: dict[str, int] = field(default_factory=dict[str, int])


# --- rows


class _KeyRow(NamedTuple):
    key: str


class _NodeRow(NamedTuple):
    key: str
    type: str
    name: str
    mentions: int
    chunks: int
    stated: list[dict[str, Any]] | None


class _Places(NamedTuple):
    chunks: int
    documents: int


class _NeighbourRow(NamedTuple):
    key: str
    type: str
    outward: bool
    evidence: int
    total: int


class _EvidenceRow(NamedTuple):
    chunk: ChunkId
    document: DocumentId
    file: str
    title: str | None
    urn: str
    page: int
    start: int
    stop: int
    name: str
    text: str
    passage: str | None  # the place of the chunk on its page; a page may be gone


class _LevelRow(NamedTuple):
    key: str
    origin: str
    type: str
    outward: bool
    evidence: int


class _CountsRow(NamedTuple):
    mentions: int
    evidence: int


class _TypeRow(NamedTuple):
    type: str
    n: int


# --- questions


@dataclass(frozen=True, slots=True)
class GraphReader:
    """The scopes that a reader may see, and the client whose aliases name the nodes."""

    client: str
    scopes: Sequence[ScopeId]

    async def all(self, tx: Tx, query: Query, row: type[R], **params: Any) -> list[R]:
        return await tx.all(query, row, client=self.client, scopes=self.scopes, **params)

    async def keys(self, tx: Tx, query: Query, **params: Any) -> list[str]:
        return [row.key for row in await self.all(tx, query, _KeyRow, **params)]


async def reader_of(tx: Tx, scope: Scope) -> GraphReader:
    return GraphReader(scope.client, await visible(tx, scope))


async def resolve(tx: Tx, scope: Scope, text: str) -> str:
    """The key of the node that somebody means: by its key, an alias, or its name if only one node has that."""
    reader = await reader_of(tx, scope)
    meant = await (_find_by_key if "::" in text else _find_by_name)(tx, reader, text)
    # `name` is the kind of a name of which nothing else is known: a person or a company of that name is meant rather
    meant = [key for key in meant if not key.startswith("name::")] or meant
    if len(meant) > 1:
        raise Refused(f"Several nodes are called “{text}”: {', '.join(meant)}. Name one of them.")
    if meant:
        return meant[0]
    near = await similar_names(tx, scope, text)
    hint = f"did you mean {' or '.join(near)}?" if near else "search for it by a part of its name."
    raise Unknown(f"There is no node “{text}” in {scope}: {hint}")


async def _find_by_key(tx: Tx, reader: GraphReader, text: str) -> list[str]:
    """The node with this key, resolved by the client's own aliases, or else by those of GLOBAL."""
    keys = [*await resolve_keys(tx, reader.client, [text]), *await resolve_keys(tx, "", [text])]
    return (await _present_keys(tx, reader, keys))[:1]


async def _find_by_name(tx: Tx, reader: GraphReader, text: str) -> list[str]:
    """The keys of nodes with this name or alias; where case matters, those written exactly so, if there are any."""
    names = {_normal_name(text), " ".join(text.split())}
    found = [
        key
        for key in await _keys_beginning_with(tx, reader, text, 20)
        if _normal_name(_name_in_key(key)) == _normal_name(text)
    ]
    alike = [key for key in found if make_entity_key(key.partition("::")[0], text) == key] or found
    called = await keys_with_name(tx, reader.client, sorted(names)) or await keys_with_name(tx, "", sorted(names))
    return list(dict.fromkeys([*alike, *await _present_keys(tx, reader, called)]))


async def _present_keys(tx: Tx, reader: GraphReader, keys: Sequence[str]) -> list[str]:
    """The keys, of these, that the graph has a node for."""
    there = set(await reader.keys(tx, SQL["present_keys"], keys=list(keys)))
    return [key for key in keys if key in there]


async def node(tx: Tx, scope: Scope, key: str, *, limit: int = 20) -> Node:
    """A node by its key or name, with its strongest edges and the chunks that name it most."""
    key = await resolve(tx, scope, key)
    reader = await reader_of(tx, scope)
    known = (await _load_nodes(tx, reader, [key]))[key]
    (places,) = await reader.all(tx, SQL["count_places"], _Places, keys=[key])
    edges, total = await load_edges(tx, reader, key, limit)
    evidence = await reader.all(tx, SQL["node_evidence"], _EvidenceRow, keys=[key], limit=limit)
    return Node(
        key=key,
        type=known.type,
        name=known.name,
        mentions=known.mentions,
        chunks=places.chunks,
        documents=places.documents,
        properties=merge_properties(known.stated),
        neighbours=edges,
        edges=total,
        evidence=tuple(map(_make_evidence, evidence)),
    )


async def load_edges(tx: Tx, reader: GraphReader, key: str, limit: int) -> tuple[tuple[Neighbour, ...], int]:
    """The edges of a node with most evidence, and how many it has in all."""
    rows = await reader.all(tx, SQL["neighbours"], _NeighbourRow, keys=[key], limit=limit)
    others = await _load_nodes(tx, reader, [row.key for row in rows])
    edges = (
        Neighbour(row.key, others[row.key].type, others[row.key].name, row.type, row.outward, row.evidence)
        for row in rows
    )
    return tuple(edges), rows[0].total if rows else 0


def merge_properties(stated: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    """The properties of a node that were stated in several scopes; those of the nearest scope come last, and win."""
    return dict(ChainMap(*map(dict, reversed(stated or ()))))


async def _load_nodes(tx: Tx, reader: GraphReader, keys: Sequence[str]) -> dict[str, _NodeRow]:
    return {row.key: row for row in await reader.all(tx, SQL["nodes"], _NodeRow, keys=list(keys))} if keys else {}


async def edge_evidence(tx: Tx, scope: Scope, step: PathEdge, *, limit: int = 5) -> list[Evidence]:
    """The chunks that show this edge."""
    reader = await reader_of(tx, scope)
    edge = {"source": step.source, "type": step.type, "target": step.target}
    rows = await reader.all(tx, SQL["edge_evidence"], _EvidenceRow, **edge, limit=limit)
    return [_make_evidence(row) for row in rows]


async def find(tx: Tx, scope: Scope, text: str, *, limit: int = 20) -> list[FoundNode]:
    """Nodes whose name begins with this text, then nodes whose name contains it; in any case of letters."""
    reader = await reader_of(tx, scope)
    keys = await _keys_beginning_with(tx, reader, text, limit)
    if len(keys) < limit and text.strip():
        within = await reader.keys(tx, SQL["find_within"], text=_normal_name(text), limit=limit)
        keys = list(dict.fromkeys([*keys, *within]))[:limit]
    return await load_found(tx, reader, keys)


async def load_found(tx: Tx, reader: GraphReader, keys: Sequence[str]) -> list[FoundNode]:
    """These nodes, in this order; keys must be those of nodes that the reader sees."""
    known = await _load_nodes(tx, reader, keys)
    return [FoundNode(*known[key][:5]) for key in keys]


async def similar_names(tx: Tx, scope: Scope, text: str, *, most: int = 3) -> list[str]:
    """Keys that look much like this text, among those whose names begin like it or like one of its words."""
    name = _normal_name(text.rpartition("::")[2])
    reader = await reader_of(tx, scope)
    candidates: dict[str, str] = {}
    for part in dict.fromkeys((name[:3], name[:2], *(word[:4] for word in name.split()[1:]))):
        candidates |= {
            _normal_name(_name_in_key(key)): key for key in await _keys_beginning_with(tx, reader, part, 200)
        }
    close = get_close_matches(name, candidates, n=most, cutoff=0.6)
    return [candidates[one] for one in close]


async def path(tx: Tx, scope: Scope, source: str, target: str, *, hops: int = 6) -> list[PathEdge] | None:
    """The shortest way between two nodes, searched from both ends at once; None if there is none within `hops`."""
    reader = await reader_of(tx, scope)
    ends = await resolve(tx, scope, source), await resolve(tx, scope, target)
    if ends[0] == ends[1]:
        return []
    ways: tuple[_Ways, _Ways] = ({ends[0]: None}, {ends[1]: None})
    fronts = [[ends[0]], [ends[1]]]
    for _ in range(hops):
        side = 0 if len(fronts[0]) <= len(fronts[1]) else 1
        fronts[side] = await _next_level(tx, reader, ways[side], fronts[side])
        if meeting := next((key for key in fronts[side] if key in ways[1 - side]), None):
            return [*reversed(_steps_back(ways[0], meeting)), *_steps_back(ways[1], meeting)]
        if not fronts[side]:
            return None
    return None


_Ways = dict[str, tuple[str, PathEdge] | None]  # node → the node before it on the way, and the edge between them


async def _next_level(tx: Tx, reader: GraphReader, ways: _Ways, front: Sequence[str]) -> list[str]:
    """The neighbours of these nodes that were not reached before; `ways` learns how they were reached."""
    rows = await reader.all(tx, SQL["next_level"], _LevelRow, keys=list(front), limit=WIDEST)
    fresh = [row for row in rows if row.key not in ways]
    for row in fresh:
        there = (row.origin, row.type, row.key) if row.outward else (row.key, row.type, row.origin)
        ways[row.key] = (row.origin, PathEdge(*there, row.evidence))
    return [row.key for row in fresh]


def _steps_back(ways: _Ways, key: str) -> list[PathEdge]:
    steps: list[PathEdge] = []
    while (came := ways[key]) is not None:
        key, step = came
        steps.append(step)
    return steps


async def counts(tx: Tx, scope: Scope) -> GraphCounts:
    """How many nodes and edges of each type the graph has."""
    reader = await reader_of(tx, scope)
    (row,) = await reader.all(tx, SQL["counts"], _CountsRow)
    nodes = {one.type: one.n for one in await reader.all(tx, SQL["node_types"], _TypeRow)}
    edges = {one.type: one.n for one in await reader.all(tx, SQL["edge_types"], _TypeRow)}
    return GraphCounts(sum(nodes.values()), sum(edges.values()), row.mentions, row.evidence, nodes, edges)


# --- names and evidence


async def _keys_beginning_with(tx: Tx, reader: GraphReader, text: str, limit: int) -> list[str]:
    """The keys of nodes whose names begin with this text, folded as a name and as an id: the two may differ."""
    found: dict[str, None] = {}
    for name in dict.fromkeys((_normal_name(text), " ".join(text.lower().split()))):
        found |= dict.fromkeys(await reader.keys(tx, SQL["find_beginning"], text=name, limit=limit) if name else [])
    return list(found)[:limit]


def _normal_name(text: str) -> str:
    """A name as it stands in a key."""
    return _name_in_key(make_entity_key("name", text))


def _name_in_key(key: str) -> str:
    return key.partition("::")[2]


def _make_evidence(row: _EvidenceRow) -> Evidence:
    """Points at the name itself if the page has it as it was found, else at the whole chunk.

    A name that stands alone goes before one inside a longer word; but some scripts have no blanks between words.
    """
    passage: str = row.passage or row.text
    written = r"\s+".join(re.escape(word) for word in row.name.split())
    at = re.search(rf"(?<!\w){written}(?!\w)", passage, re.IGNORECASE) or re.search(written, passage, re.IGNORECASE)
    begin, end = (at.start(), at.end()) if at else (0, 0)
    start, stop = (row.start + begin, row.start + end) if at and row.passage else (row.start, row.stop)
    snippet = _cut_snippet(passage, begin - AROUND, end + AROUND)
    return Evidence(row.chunk, row.document, row.file, row.title, row.urn, row.page, start, stop, snippet)


def _cut_snippet(text: str, start: int, stop: int) -> str:
    """This part of a text on one line, from the beginning of a word to the end of one if there are any nearby."""
    before, behind = text[max(start - NEARBY, 0) : max(start, 0)], text[stop : stop + NEARBY]
    begun = re.search(r"\S+$", before)
    left = re.match(r"\S+", behind)
    start -= len(begun[0]) if begun and len(begun[0]) < NEARBY else 0
    stop += len(left[0]) if left and len(left[0]) < NEARBY else 0
    return " ".join(text[max(start, 0) : stop].split())
