"""Gives the nodes of a drawn graph their places: the same question has the same picture, and growing moves nothing.

A picture grows by opening nodes, one after the other. Each opening adds some neighbours around the opened node, on the
free places of rings around it. Places that were given before are never changed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import atan2, cos, hypot, pi, sin
from typing import NamedTuple

WIDTH, HEIGHT = 156, 58  # of a node with its name below it; no other node stands within
RING = (190, 112)  # how far the first ring around an opened node is, across and down
GROWTH = 0.85  # each further ring is farther by this part of the first one
SLOTS = 6  # places on the first ring: beside each other they have room for their names
MOST_RINGS = 14
CLEARANCE = 26  # a line passes other nodes at this distance at least, where there is a choice …
DETOUR = 0.7  # … of places that are farther by no more than this part of the first ring
MARGIN = 90


class NodePlace(NamedTuple):
    x: float
    y: float


@dataclass(frozen=True)
class Opening:
    """A node that was opened, and the neighbours that this added."""

    node: str
    added: Sequence[str]


class Frame(NamedTuple):
    """The rectangle that holds all places, as an SVG names it."""

    x: float
    y: float
    width: float
    height: float


def place_on_line(keys: Sequence[str]) -> dict[str, NodePlace]:
    """The nodes of a path, from left to right around the middle."""
    return {key: NodePlace(round((n - (len(keys) - 1) / 2) * RING[0]), 0) for n, key in enumerate(keys)}


def place_nodes(openings: Iterable[Opening], fixed: Mapping[str, NodePlace] | None = None) -> dict[str, NodePlace]:
    """The places of all nodes; more openings at the end change none of the places before."""
    places: dict[str, NodePlace] = dict(fixed or {})
    parents: dict[str, str] = {}
    for opening in openings:
        if opening.node not in places:
            places[opening.node] = _find_start(places)
        fresh = [key for key in dict.fromkeys(opening.added) if key not in places]
        slots = list(_slots_around(opening.node, len(fresh), places, parents))
        for key in fresh:
            places[key] = _choose_slot(places, places[opening.node], slots)
            parents[key] = opening.node
    return places


def frame_of(places: Mapping[str, NodePlace]) -> Frame:
    """A rectangle around all nodes, at least as large as one ring."""
    xs, ys = [one.x for one in places.values()] or [0.0], [one.y for one in places.values()] or [0.0]
    left, right = min(*xs, -RING[0]), max(*xs, RING[0])
    top, bottom = min(*ys, -RING[1]), max(*ys, RING[1])
    return Frame(left - MARGIN, top - MARGIN / 2, right - left + 2 * MARGIN, bottom - top + MARGIN)


def _find_start(places: Mapping[str, NodePlace]) -> NodePlace:
    """The first node stands in the middle; another one without a neighbour here stands to the right of all."""
    if not places:
        return NodePlace(0, 0)
    return NodePlace(round(max(one.x for one in places.values()) + 2 * WIDTH), 0)


def _slots_around(
    node: str, wanted: int, places: Mapping[str, NodePlace], parents: Mapping[str, str]
) -> Iterator[NodePlace]:
    """Places on rings around a node, the nearest ring first, those that point away from its parent first on each."""
    middle = places[node]
    outward = _direction(places[parents[node]], middle) if node in parents else -pi / 2
    for ring in range(MOST_RINGS):
        size = 1 + ring * GROWTH
        count = round(SLOTS * size)
        if not ring and node not in parents and 0 < wanted < SLOTS:
            count = wanted  # few neighbours of the first node spread evenly
        shift = (ring % 2) * pi / count
        for turn in _spread(count):
            angle = outward + shift + turn
            yield NodePlace(
                round(middle.x + RING[0] * size * cos(angle)), round(middle.y + RING[1] * size * sin(angle))
            )


def _spread(count: int) -> list[float]:
    """Turns of a full circle: straight ahead, then one to the left and one to the right, and so on."""
    return [step * 2 * pi / count * (1 if n % 2 else -1) for n in range(count) for step in [(n + 1) // 2]]


def _direction(start: NodePlace, end: NodePlace) -> float:
    """The angle in which one looks from one place to another, on rings that are wider than they are high."""
    return atan2((end.y - start.y) / RING[1], (end.x - start.x) / RING[0])


def _choose_slot(places: Mapping[str, NodePlace], start: NodePlace, slots: Sequence[NodePlace]) -> NodePlace:
    """The nearest free place; one whose line to the start passes another node counts as farther away."""
    free = [slot for slot in slots if _is_free(places, slot)]
    if not free:
        return _find_start(places)

    def rate(slot: NodePlace) -> float:
        distance = hypot((slot.x - start.x) / RING[0], (slot.y - start.y) / RING[1])
        return round(distance, 1) + (0 if _is_clear(places, start, slot) else DETOUR)

    return min(free, key=rate)  # of equal ones the first: slots are in the order of preference


def _is_free(places: Mapping[str, NodePlace], slot: NodePlace) -> bool:
    return all(abs(one.x - slot.x) >= WIDTH or abs(one.y - slot.y) >= HEIGHT for one in places.values())


def _is_clear(places: Mapping[str, NodePlace], start: NodePlace, end: NodePlace) -> bool:
    """Whether the line from start to end keeps away from all nodes between them."""
    across, down = end.x - start.x, end.y - start.y
    length = across * across + down * down
    for one in places.values():
        part = ((one.x - start.x) * across + (one.y - start.y) * down) / length if length else 0
        if 0.05 < part < 0.95:
            away = hypot(one.x - start.x - part * across, one.y - start.y - part * down)
            if away < CLEARANCE:
                return False
    return True
