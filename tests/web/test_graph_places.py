"""The places of nodes in a drawn graph."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from gristmill.web.console.graph_places import HEIGHT, WIDTH, NodePlace, Opening, frame_of, place_nodes

STAR = Opening("mill", [f"n{n}" for n in range(12)])


def overlaps(places: dict[str, NodePlace]) -> list[tuple[NodePlace, NodePlace]]:
    return [(a, b) for a, b in combinations(places.values(), 2) if abs(a.x - b.x) < WIDTH and abs(a.y - b.y) < HEIGHT]


def test_the_first_node_stands_in_the_middle_and_few_neighbours_spread_evenly_around_it() -> None:
    places = place_nodes([Opening("mill", ["a", "b", "c", "d"])])
    assert places["mill"] == NodePlace(0, 0)
    assert {(one.x, one.y) for key, one in places.items() if key != "mill"} == {
        (0, -112),
        (190, 0),
        (-190, 0),
        (0, 112),
    }


def test_opening_another_node_moves_nothing() -> None:
    before = place_nodes([STAR])
    after = place_nodes([STAR, Opening("n3", ["mill", "n4", *(f"m{n}" for n in range(20))])])
    assert {key: after[key] for key in before} == before
    assert len(after) == 33


def test_opening_a_node_again_adds_further_neighbours() -> None:
    before = place_nodes([STAR])
    after = place_nodes([STAR, Opening("mill", [f"n{n}" for n in range(8, 20)])])
    assert {key: after[key] for key in before} == before
    assert len(after) == 21


def test_a_node_without_a_neighbour_here_stands_beside_the_others() -> None:
    places = place_nodes([STAR, Opening("far", [])])
    assert places["far"].x > max(one.x for key, one in places.items() if key != "far")


@given(st.lists(st.tuples(st.integers(0, 59), st.lists(st.integers(0, 59), max_size=25)), min_size=1, max_size=8))
def test_no_two_nodes_overlap_and_the_frame_holds_all(grown: list[tuple[int, list[int]]]) -> None:
    places = place_nodes([Opening(str(node), list(map(str, added))) for node, added in grown])
    assert not overlaps(places)
    left, top, width, height = frame_of(places)
    assert all(left < one.x < left + width and top < one.y < top + height for one in places.values())
