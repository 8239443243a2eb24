"""What can be asked of the graph: a node and its neighbours, its evidence, the way from one to another."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from gristmill.db import Row, Tx, queries
from gristmill.errors import Refused
from gristmill.ids import ChunkId, DocumentId, ScopeId
from gristmill.knowledge.keys import named_so, resolved
from gristmill.knowledge.scopes import Scope, visible
from gristmill.models import entity_key

SQL = queries("gristmill.knowledge.graph", "reading.sql")
WIDEST = 20_000  # nodes of one level of a search for a path
AROUND = 60  # characters before and after a name in a snippet
TWO_HOPS = 2


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
    """An edge to another node, seen from this one."""

    key: str
    node_type: str
    name: str
    type: str
    outward: bool
    evidence: int


@dataclass(frozen=True)
class Node:
    """Who or what it is, and how the chunks in sight know it."""

    key: str
    type: str
    name: str
    mentions: int
    chunks: int
    documents: int
    properties: dict[str, Any]
    neighbours: tuple[Neighbour, ...]
    edges: int  # of which `neighbours` are those with most evidence
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True)
class Found:
    """A node that a search by name brought up."""

    key: str
    type: str
    name: str
    mentions: int
    chunks: int


@dataclass(frozen=True)
class Step:
    """One edge of a path, in the direction in which it is known."""

    source: str
    type: str
    target: str
    evidence: int


@dataclass(frozen=True)
class Near:
    """A node in somebody's neighbourhood."""

    key: str
    hops: int
    evidence: int


@dataclass(frozen=True)
class Counts:
    """How large the graph is."""

    nodes: int
    edges: int
    mentions: int
    evidence: int
    node_types: dict[str, int] = field(default_factory=dict[str, int])
    edge_types: dict[str, int] = field(default_factory=dict[str, int])


async def resolve(tx: Tx, scope: Scope, text: str) -> str:
    """The key of the node that somebody means: by its key, an alias, or its name if only one node has that."""
    scopes = await visible(tx, scope)
    if "::" in text:
        (key,) = await resolved(tx, scope.client, [text])
        if await tx.value(SQL["exists"], key=key, scopes=scopes):
            return key
    else:
        namesakes = await _namesakes(tx, scope, scopes, text)
        if len(namesakes) > 1:
            raise Refused(f"Several nodes are called “{text}”: {', '.join(namesakes)}. Name one of them.")
        if namesakes:
            return namesakes[0]
    near = await near_names(tx, scope, text)
    hint = f"did you mean {' or '.join(near)}?" if near else "gristmill graph find TEXT searches for one."
    raise Refused(f"There is no node “{text}” in {scope}: {hint}")


async def _namesakes(tx: Tx, scope: Scope, scopes: Sequence[ScopeId], text: str) -> list[str]:
    """The keys of nodes that have exactly this name, or an alias that does."""
    names = {_name(text), " ".join(text.split())}
    found = [one.key for one in await _beginning(tx, scopes, text, 20) if _name_of(one.key) in names]
    return list(dict.fromkeys([*found, *await named_so(tx, scope.client, sorted(names))]))


async def node(tx: Tx, scope: Scope, key: str, *, limit: int = 20) -> Node:
    """A node by its key or name, with its strongest edges and where it is named most."""
    key = await resolve(tx, scope, key)
    sight: dict[str, Any] = {"key": key, "scopes": await visible(tx, scope)}
    known = await tx.one(SQL["node"], **sight)
    neighbours = await tx.all(SQL["neighbours"], **sight, limit=limit)
    evidence = await tx.all(SQL["evidence"], **sight, limit=limit)
    assert known is not None  # an aggregate always answers
    properties: dict[str, Any] = {}
    for stated in known.stated or ():
        properties |= stated
    return Node(
        key=key,
        type=known.type,
        name=known.name or str(properties.get("name") or _name_of(key)),
        mentions=known.mentions,
        chunks=known.chunks,
        documents=known.documents,
        properties=properties,
        neighbours=tuple(
            Neighbour(row.key, row.other_type, row.name, row.type, row.outward, row.evidence) for row in neighbours
        ),
        edges=neighbours[0].total if neighbours else 0,
        evidence=tuple(map(_evidence, evidence)),
    )


async def proof(tx: Tx, scope: Scope, step: Step, *, limit: int = 5) -> list[Evidence]:
    """The chunks that say so."""
    scopes = await visible(tx, scope)
    rows = await tx.all(
        SQL["proof"], source=step.source, type=step.type, target=step.target, scopes=scopes, limit=limit
    )
    return [_evidence(row) for row in rows]


async def find(tx: Tx, scope: Scope, text: str, *, limit: int = 20) -> list[Found]:
    """Nodes whose name begins with this, then those that have it anywhere."""
    scopes = await visible(tx, scope)
    first = await _beginning(tx, scopes, text, limit)
    if len(first) == limit or not text.strip():
        return first
    known = {one.key for one in first}
    rows = await tx.all(SQL["find_within"], scopes=scopes, text=_name(text), limit=limit)
    return [*first, *(one for one in map(_found, rows) if one.key not in known)][:limit]


async def near_names(tx: Tx, scope: Scope, text: str, *, most: int = 3) -> list[str]:
    """Keys that look much like this."""
    name = _name(text.rpartition("::")[2])
    scopes = await visible(tx, scope)
    candidates: dict[str, str] = {}
    for part in (name[:3], *(word[:4] for word in name.split()[1:])):
        for row in await tx.all(SQL["find_within"], scopes=scopes, text=part, limit=200) if part else ():
            candidates.setdefault(_name_of(row.key), row.key)
    close = get_close_matches(name, candidates, n=most, cutoff=0.6)
    return [candidates[one] for one in close]


async def path(tx: Tx, scope: Scope, source: str, target: str, *, hops: int = 6) -> list[Step] | None:
    """The shortest way from one node to another, from both ends at once; None if there is none within `hops`."""
    scopes = await visible(tx, scope)
    ends = await resolve(tx, scope, source), await resolve(tx, scope, target)
    if ends[0] == ends[1]:
        return []
    ways: tuple[_Ways, _Ways] = ({ends[0]: None}, {ends[1]: None})
    fronts = [[ends[0]], [ends[1]]]
    for _ in range(hops):
        side = 0 if len(fronts[0]) <= len(fronts[1]) else 1
        fronts[side] = await _widened(tx, scopes, ways[side], fronts[side])
        if meeting := next((key for key in fronts[side] if key in ways[1 - side]), None):
            return [*reversed(_back(ways[0], meeting)), *_back(ways[1], meeting)]
        if not fronts[side]:
            return None
    return None


_Ways = dict[str, tuple[str, Step] | None]  # node → where one came from, and by which edge


async def _widened(tx: Tx, scopes: Sequence[ScopeId], ways: _Ways, front: Sequence[str]) -> list[str]:
    """The next level: who was not seen before."""
    rows = await tx.all(SQL["around"], keys=list(front), scopes=scopes, limit=WIDEST)
    fresh = [row for row in rows if row.key not in ways]
    for row in fresh:
        there = (row.origin, row.type, row.key) if row.outward else (row.key, row.type, row.origin)
        ways[row.key] = (row.origin, Step(*there, row.evidence))
    return [row.key for row in fresh]


def _back(ways: _Ways, key: str) -> list[Step]:
    steps: list[Step] = []
    while (came := ways[key]) is not None:
        key, step = came
        steps.append(step)
    return steps


async def neighbourhood(tx: Tx, scope: Scope, keys: Sequence[str], *, hops: int = 1, limit: int = 200) -> list[Near]:
    """Who is within one or two hops of these nodes, the nearest and best known first; the nodes themselves excluded."""
    scopes = await visible(tx, scope)
    ways: _Ways = dict.fromkeys(await resolved(tx, scope.client, keys))
    front, near = list(ways), list[Near]()
    for hop in range(1, min(hops, TWO_HOPS) + 1):
        if not front or len(near) >= limit:
            break
        front = await _widened(tx, scopes, ways, front)
        level = [Near(key, hop, way[1].evidence) for key in front if (way := ways[key])]
        near += sorted(level, key=lambda one: (-one.evidence, one.key))
        front = [one.key for one in near[-len(level) :]][:limit] if level else []
    return near[:limit]


async def counts(tx: Tx, scope: Scope) -> Counts:
    """How large the graph is, and of what it consists."""
    sight = {"scopes": await visible(tx, scope)}
    row = await tx.one(SQL["counts"], **sight)
    assert row is not None
    nodes = {one.type: one.n for one in await tx.all(SQL["node_types"], **sight)}
    edges = {one.type: one.n for one in await tx.all(SQL["edge_types"], **sight)}
    return Counts(row.nodes, row.edges, row.mentions, row.evidence, nodes, edges)


# --- rows


async def _beginning(tx: Tx, scopes: Sequence[ScopeId], text: str, limit: int) -> list[Found]:
    """As keys are written; ids keep their case, so both are tried."""
    found: dict[str, Found] = {}
    for name in dict.fromkeys((_name(text), " ".join(text.split()))):
        rows = await tx.all(SQL["find_beginning"], scopes=scopes, text=name, limit=limit) if name else []
        found |= {row.key: _found(row) for row in rows}
    return list(found.values())[:limit]


def _name(text: str) -> str:
    """As it stands in a key."""
    return _name_of(entity_key("name", text))


def _name_of(key: str) -> str:
    return key.partition("::")[2]


def _found(row: Row) -> Found:
    return Found(row.key, row.type, row.name, row.mentions, row.chunks)


def _evidence(row: Row) -> Evidence:
    """At the name itself if the page has it as it was found, else at the whole chunk."""
    passage: str = row.passage or row.text
    written = r"\s+".join(re.escape(word) for word in row.name.split())
    at = re.search(written, passage, re.IGNORECASE)
    begin, end = (at.start(), at.end()) if at else (0, 0)
    start, stop = (row.start + begin, row.start + end) if at and row.passage else (row.start, row.stop)
    snippet = " ".join(passage[max(begin - AROUND, 0) : end + AROUND].split())
    return Evidence(row.chunk, row.document, row.file, row.title, row.urn, row.page, start, stop, snippet)
