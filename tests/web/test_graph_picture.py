"""The picture of a part of the graph."""

import pytest

from graph_shelf import contribute, shelve
from gristmill.db import Database
from gristmill.errors import Refused
from gristmill.knowledge import graph
from gristmill.knowledge.graph import FoundNode, GraphExcerpt, PathEdge
from gristmill.scopes import GLOBAL
from gristmill.web.console.graph_picture import (
    MOST_NODES,
    PORTION,
    GraphPicture,
    draw_around,
    draw_excerpt,
    list_path_nodes,
    shorten_label,
)


async def draw(db: Database, *opened: str, path: list[PathEdge] | None = None) -> GraphPicture:
    async with db.transaction() as tx:
        return await draw_around(tx, GLOBAL, opened, path or [])


async def know_friends(db: Database, name: str, count: int) -> None:
    (chunk,) = await shelve(db, f"text of {name}")
    await contribute(db, chunk, *(f"{name} -KNOWS-> {name} friend {n:03}" for n in range(count)))


async def test_opening_a_node_shows_a_portion_of_its_neighbours_and_counts_the_rest(db: Database) -> None:
    await know_friends(db, "Jane", 30)
    picture = await draw(db, "Jane")
    assert len(picture.nodes) == PORTION + 1
    (jane,) = [node for node in picture.nodes if node.is_open]
    assert (jane.name, jane.more) == ("Jane", 30 - PORTION)


async def test_opening_it_again_shows_further_ones_and_moves_nothing(db: Database) -> None:
    await know_friends(db, "Jane", 30)
    before = {node.key: node.place for node in (await draw(db, "Jane")).nodes}
    picture = await draw(db, "Jane", "Jane")
    after = {node.key: node.place for node in picture.nodes}
    assert len(after) == 2 * PORTION + 1
    assert {key: after[key] for key in before} == before


async def test_a_picture_never_has_more_nodes_than_people_can_read(db: Database) -> None:
    await know_friends(db, "Jane", 100)
    picture = await draw(db, *["Jane"] * 9)
    assert len(picture.nodes) == MOST_NODES
    assert picture.is_full
    assert next(node.more for node in picture.nodes if node.is_open) == 101 - MOST_NODES


async def test_edges_between_neighbours_are_drawn_and_those_of_one_pair_are_one_line(db: Database) -> None:
    (chunk,) = await shelve(db, "text")
    await contribute(db, chunk, "Jane -KNOWS-> Bob", "Jane -RELATED_TO-> Bob", "Jane -KNOWS-> Cid", "Bob -HIRED-> Cid")
    picture = await draw(db, "jane")
    labels = {frozenset(edge.names): edge.label for edge in picture.edges}
    assert labels[frozenset(("Jane", "Bob"))] == "knows, related to"
    assert labels[frozenset(("Bob", "Cid"))] == "hired"
    assert len(picture.edges) == 3


async def test_an_unknown_first_node_is_refused_and_a_later_one_is_left_out(db: Database) -> None:
    await know_friends(db, "Jane", 2)
    with pytest.raises(Refused, match="There is no node"):
        await draw(db, "nobody")
    assert len((await draw(db, "Jane", "person::nobody")).nodes) == 3


async def test_a_path_is_a_line_that_can_be_opened_further(db: Database) -> None:
    (chunk,) = await shelve(db, "text")
    await contribute(db, chunk, "Jane -KNOWS-> Bob", "Cid -HIRED-> Bob", "Cid -KNOWS-> Dan")
    async with db.transaction() as tx:
        path = await graph.path(tx, GLOBAL, "Jane", "Cid")
    picture = await draw(db, path=path)
    assert [(node.name, node.place.y, node.on_path) for node in picture.nodes] == [
        ("Jane", 0, True),
        ("Bob", 0, True),
        ("Cid", 0, True),
    ]
    assert all(edge.on_path for edge in picture.edges)
    grown = await draw(db, "Cid", path=path)
    assert [node.place for node in grown.nodes[:3]] == [node.place for node in picture.nodes]
    assert [node.name for node in grown.nodes if not node.on_path] == ["Dan"]


def test_a_path_is_read_whichever_way_its_edges_point() -> None:
    assert list_path_nodes([]) == []
    assert list_path_nodes([PathEdge("a", "T", "b", 1)]) == ["a", "b"]
    assert list_path_nodes(
        [PathEdge("b", "T", "a", 1), PathEdge("b", "T", "c", 1), PathEdge("d", "T", "c", 1)]
    ) == list("abcd")


def test_an_excerpt_is_drawn_around_the_node_with_most_edges() -> None:
    nodes = tuple(FoundNode(key, "person", key.upper(), 1, 1) for key in "abc")
    picture = draw_excerpt(GraphExcerpt(nodes, (PathEdge("a", "KNOWS", "b", 2), PathEdge("a", "KNOWS", "gone", 1)), 3))
    assert [node.key for node in picture.nodes] == ["a", "b", "c"]
    assert picture.nodes[0].place == (0, 0)
    assert [(edge.names, edge.is_directed) for edge in picture.edges] == [(("A", "B"), True)]
    assert draw_excerpt(GraphExcerpt((), (), 0)).nodes == ()


def test_long_names_are_cut_to_what_fits() -> None:
    assert shorten_label("Jane\n Doe") == "Jane Doe"
    assert shorten_label("x" * 200) == "x" * 21 + "…"


def test_nodes_of_an_excerpt_stand_beside_those_that_they_have_an_edge_to() -> None:
    nodes = tuple(FoundNode(key, "person", key, 1, 1) for key in "abcdefghij")
    picture = draw_excerpt(GraphExcerpt(nodes, (PathEdge("a", "KNOWS", "b", 1), PathEdge("j", "KNOWS", "b", 1)), 10))
    places = {node.key: node.place for node in picture.nodes}
    assert len(places) == 10
    assert abs(places["j"].x - places["b"].x) + abs(places["j"].y - places["b"].y) <= 320


async def test_the_names_at_a_line_are_those_of_its_most_telling_edge(db: Database) -> None:
    (chunk,) = await shelve(db, "text")
    await contribute(db, chunk, "Bob -RELATED_TO-> Jane", "Jane -HIRED-> Bob")
    (edge,) = (await draw(db, "jane")).edges
    assert (edge.label, edge.names) == ("hired, related to", ("Jane", "Bob"))
