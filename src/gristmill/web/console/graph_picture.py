"""The picture of a part of the graph: which nodes are drawn, where, and which lines are between them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import hypot
from typing import NamedTuple

from gristmill.db import Tx
from gristmill.errors import Refused
from gristmill.knowledge import graph
from gristmill.scopes import Scope
from gristmill.web.console.graph_places import Frame, NodePlace, Opening, frame_of, place_nodes, place_on_line

MOST_NODES = 60  # in one picture
PORTION = 12  # neighbours that opening a node adds
MOST_EDGES = 400  # of a node that are looked at when its neighbours are chosen
MOST_OPENED = 60
RADIUS = 15  # of a drawn node
LONGEST_LABEL = 22
UNDIRECTED = "RELATED_TO"  # both are named in one passage: there is no direction in that

# The sign inside a node; with the word of its type, it tells types apart without colour.
SIGNS = {
    "person": "P",
    "organisation": "O",
    "organization": "O",
    "place": "L",
    "address": "@",
    "date": "D",
    "amount": "¤",
    "id": "#",
    "mail": "✉",
    "email": "✉",
    "url": "↗",
}
COLOURED = ("person", "organisation", "place", "address", "date", "amount", "id", "mail", "url")


@dataclass(frozen=True)
class DrawnGraphNode:
    """A node in the picture."""

    key: str
    name: str
    label: str  # the name, cut to what fits
    type: str
    place: NodePlace
    mentions: int
    is_open: bool
    on_path: bool
    more: int  # edges to nodes that are not in the picture; 0 if the node was not opened

    @property
    def sign(self) -> str:
        return sign_of(self.type)

    @property
    def colour(self) -> str:
        return colour_of(self.type)


@dataclass(frozen=True)
class DrawnEdge:
    """A line between two nodes: all edges between them, whichever their direction."""

    steps: tuple[graph.PathEdge, ...]
    start: NodePlace
    end: NodePlace
    names: tuple[str, str]  # of the nodes at its start and end
    on_path: bool

    @property
    def label(self) -> str:
        return ", ".join(dict.fromkeys(word_of(step.type) for step in self.steps))

    @property
    def evidence(self) -> int:
        return sum(step.evidence for step in self.steps)

    @property
    def middle(self) -> NodePlace:
        return NodePlace((self.start.x + self.end.x) / 2, (self.start.y + self.end.y) / 2)

    @property
    def is_directed(self) -> bool:
        """All of its edges go from the first node to the second, and say more than that both are named together."""
        return len({(step.source, step.target) for step in self.steps}) == 1 and self.steps[0].type != UNDIRECTED


@dataclass(frozen=True)
class GraphPicture:
    """A drawn part of the graph."""

    frame: Frame
    nodes: tuple[DrawnGraphNode, ...]
    edges: tuple[DrawnEdge, ...]

    @property
    def is_full(self) -> bool:
        return len(self.nodes) >= MOST_NODES

    @property
    def types(self) -> list[tuple[str, str, str]]:
        """Type, sign and colour of the nodes in the picture, for the legend."""
        return sorted({(node.type, node.sign, node.colour) for node in self.nodes})


def sign_of(type: str) -> str:
    return SIGNS.get(type, type[:1].upper() or "?")


def colour_of(type: str) -> str:
    """The name of a colour in the style sheet; types that an LLM made up share one."""
    known = {"organization": "organisation", "email": "mail"}.get(type, type)
    return known if known in COLOURED else "other"


def word_of(type: str) -> str:
    """`HAS_ADDRESS` as people read it."""
    return type.replace("_", " ").lower()


def shorten_label(name: str) -> str:
    flat = " ".join(name.split())
    return flat if len(flat) <= LONGEST_LABEL else flat[: LONGEST_LABEL - 1].rstrip() + "…"


# --- a picture that grows


class _Grown(NamedTuple):
    """What the openings so far have brought into the picture."""

    nodes: dict[str, graph.FoundNode]
    openings: list[Opening]
    more: dict[str, int]


async def draw_around(tx: Tx, scope: Scope, opened: Sequence[str], path: Sequence[graph.PathEdge] = ()) -> GraphPicture:
    """The nodes that were opened, in this order, each with its strongest neighbours; a node that is opened again shows
    further ones. A path is drawn as a line before anything is opened."""
    line = await _load_path(tx, scope, path)
    grown = _Grown({node.key: node for node in line}, [], {})
    for key, times in _count_openings(opened[:MOST_OPENED]):
        try:
            around = await graph.surroundings(tx, scope, key, limit=MOST_EDGES)
        except Refused:
            if not grown.nodes:
                raise  # the node that the picture is about; one of the others may be gone since the link was made
            continue
        _open(grown, around, times)
    places = place_nodes(grown.openings, place_on_line([node.key for node in line]))
    edges = await graph.edges_between(tx, scope, list(places))
    on_path = {frozenset((step.source, step.target)) for step in path}
    return _compose(grown.nodes.values(), edges, places, more=grown.more, on_path=on_path)


def _count_openings(opened: Sequence[str]) -> Iterable[tuple[str, int]]:
    """Each key with how many times it was opened up to here."""
    return ((key, opened[: n + 1].count(key)) for n, key in enumerate(opened))


def _open(grown: _Grown, around: graph.NodeSurroundings, times: int) -> None:
    """Add the next portion of neighbours, as many as there is room for."""
    grown.nodes.setdefault(around.node.key, around.node)
    neighbours = list({edge.key: edge for edge in around.edges}.values())
    wanted = neighbours[: times * PORTION]
    room = MOST_NODES - len(grown.nodes)
    added = [one for one in wanted if one.key not in grown.nodes][:room]
    grown.nodes.update({one.key: _node_of(one) for one in added})
    grown.openings.append(Opening(around.node.key, [one.key for one in added]))
    unseen = sum(edge.key not in grown.nodes for edge in around.edges)
    grown.more[around.node.key] = unseen + around.total - len(around.edges)


def _node_of(edge: graph.Neighbour) -> graph.FoundNode:
    return graph.FoundNode(edge.key, edge.node_type, edge.name, edge.evidence, 0)


async def _load_path(tx: Tx, scope: Scope, path: Sequence[graph.PathEdge]) -> list[graph.FoundNode]:
    keys = list_path_nodes(path)
    return [(await graph.surroundings(tx, scope, key, limit=1)).node for key in keys]


def list_path_nodes(path: Sequence[graph.PathEdge]) -> list[str]:
    """The nodes of a path from its start to its end; each of its edges may point either way."""
    if not path:
        return []
    if len(path) == 1:
        return [path[0].source, path[0].target]
    ends = [{step.source, step.target} for step in path]
    shared = [next(iter(a & b)) for a, b in pairwise(ends)]
    return [next(iter(ends[0] - {shared[0]})), *shared, next(iter(ends[-1] - {shared[-1]}))]


# --- a picture of one document


def draw_excerpt(excerpt: graph.GraphExcerpt) -> GraphPicture:
    """The nodes of a document around the one with most edges, each beside a node that it has an edge to."""
    return _compose(excerpt.nodes, excerpt.edges, place_nodes(_order_openings(excerpt)))


def _order_openings(excerpt: graph.GraphExcerpt) -> list[Opening]:
    """As if the nodes had been opened one after the other; what has no way to the middle is put around it, too."""
    beside: dict[str, list[str]] = {node.key: [] for node in excerpt.nodes}
    for step in excerpt.edges:
        if step.source in beside and step.target in beside:
            beside[step.source].append(step.target)
            beside[step.target].append(step.source)
    by_edges = sorted(beside, key=lambda key: -len(set(beside[key])))
    openings: list[Opening] = []
    known = set[str]()
    for start in by_edges:
        if start not in known:
            openings.append(Opening(by_edges[0], [start]))
            openings += _open_from(start, beside, known)
    return openings


def _open_from(start: str, beside: Mapping[str, Sequence[str]], known: set[str]) -> list[Opening]:
    """The openings of everything that a node has a way to, the nearest first."""
    line = [start]
    known.add(start)
    for key in line:  # the line grows while it is gone through
        fresh = [other for other in dict.fromkeys(beside[key]) if other not in known]
        known.update(fresh)
        line += fresh
    return [Opening(key, beside[key]) for key in line]


def _compose(
    nodes: Iterable[graph.FoundNode],
    steps: Sequence[graph.PathEdge],
    places: Mapping[str, NodePlace],
    *,
    more: Mapping[str, int] | None = None,
    on_path: Iterable[frozenset[str]] = (),
) -> GraphPicture:
    marked = set(on_path)
    known = {node.key: node for node in nodes}
    drawn = [
        DrawnGraphNode(
            key=key,
            name=known[key].name,
            label=shorten_label(known[key].name),
            type=known[key].type,
            place=place,
            mentions=known[key].mentions,
            is_open=more is not None and key in more,
            on_path=any(key in pair for pair in marked),
            more=(more or {}).get(key, 0),
        )
        for key, place in places.items()
    ]
    return GraphPicture(frame_of(places), tuple(drawn), tuple(_draw_edges(steps, places, known, marked)))


def _draw_edges(
    steps: Sequence[graph.PathEdge],
    places: Mapping[str, NodePlace],
    known: Mapping[str, graph.FoundNode],
    on_path: set[frozenset[str]],
) -> Iterable[DrawnEdge]:
    pairs: dict[frozenset[str], list[graph.PathEdge]] = {}
    for step in steps:
        if step.source in places and step.target in places:
            pairs.setdefault(frozenset((step.source, step.target)), []).append(step)
    for pair, both in pairs.items():
        telling = sorted(both, key=lambda step: (step.type == UNDIRECTED, -step.evidence, step.type))
        source, target = telling[0].source, telling[0].target
        start, end = _shorten_line(places[source], places[target])
        yield DrawnEdge(tuple(telling), start, end, (known[source].name, known[target].name), pair in on_path)


def _shorten_line(start: NodePlace, end: NodePlace) -> tuple[NodePlace, NodePlace]:
    """A line from the rim of one node to the rim of the other."""
    length = hypot(end.x - start.x, end.y - start.y) or 1
    rim = (RADIUS + 3) / length
    return _point_between(start, end, rim), _point_between(start, end, 1 - rim)


def _point_between(start: NodePlace, end: NodePlace, part: float) -> NodePlace:
    return NodePlace(round(start.x + (end.x - start.x) * part, 1), round(start.y + (end.y - start.y) * part, 1))
