"""What can be asked of the graph, and that nobody is told what is another client's."""

import xml.etree.ElementTree as ET

import pytest
from graph_shelf import contribute, shelve

from gristmill.db import Database
from gristmill.errors import Refused
from gristmill.knowledge import graph
from gristmill.knowledge.graph import contributions
from gristmill.knowledge.scopes import GLOBAL, Scope
from gristmill.models import Entity, Extraction

ACME, RIVAL = Scope("acme"), Scope("rival")


@pytest.fixture
async def family(db: Database) -> Database:
    """Jane – Bob – Eve – Mallory in a row, Jane and Bob twice; Zoe stands alone."""
    one, two, three = await shelve(db, "Hello. Jane met Bob, who is ill.", "Bob and Eve", "Eve and Mallory")
    await contribute(db, one, "Jane -MET-> Bob")
    await contribute(db, two, "Bob -KNOWS-> Eve", "Jane -MET-> Bob")
    await contribute(db, three, "Mallory -KNOWS-> Eve", "Zoe")
    return db


async def test_a_node_shows_its_edges_in_both_directions_and_where_it_is_named(family: Database) -> None:
    async with family.transaction() as tx:
        bob = await graph.node(tx, GLOBAL, "Person::person::BOB")
    assert (bob.key, bob.type, bob.name, bob.mentions, bob.chunks, bob.documents) == (
        "person::bob", "person", "Bob", 2, 2, 1,
    )  # fmt: skip
    assert [(one.key, one.type, one.outward, one.evidence) for one in bob.neighbours] == [
        ("person::jane", "MET", False, 2),
        ("person::eve", "KNOWS", True, 1),
    ]
    first = bob.evidence[0]
    assert "Hello. Jane met Bob, who is ill."[first.start : first.stop] == "Bob"
    assert (first.page, first.file, first.snippet) == (1, "note.md", "Hello. Jane met Bob, who is ill.")


async def test_a_name_will_do_when_only_one_node_has_it(family: Database) -> None:
    (chunk,) = await shelve(family, "x")
    async with family.transaction() as tx:
        assert await graph.resolve(tx, GLOBAL, "BOB") == "person::bob"
        place = Extraction((Entity("place::bob", "place", "Bob"), Entity("id::A-1", "id", "A-1")))
        await graph.save(tx, chunk, "", place, b"k")
        assert await graph.resolve(tx, GLOBAL, "A-1") == "id::A-1"
        with pytest.raises(Refused, match=r"person::bob, place::bob|place::bob, person::bob"):
            await graph.resolve(tx, GLOBAL, "Bob")


async def test_who_is_not_there_is_answered_with_names_that_are_near(family: Database) -> None:
    async with family.transaction() as tx:
        with pytest.raises(Refused, match="did you mean person::mallory"):
            await graph.node(tx, GLOBAL, "person::malory")
        with pytest.raises(Refused, match="graph find"):
            await graph.node(tx, GLOBAL, "Quetzalcoatl")


async def test_nodes_are_found_by_the_beginning_and_by_any_part_of_their_names(db: Database) -> None:
    (chunk,) = await shelve(db, "x")
    await contribute(db, chunk, "Jane Doe", "Mary Jane", "Jane", "100%")
    async with db.transaction() as tx:
        assert [one.name for one in await graph.find(tx, GLOBAL, "JANE")] == ["Jane", "Jane Doe", "Mary Jane"]
        assert [one.name for one in await graph.find(tx, GLOBAL, "ja", limit=1)] == ["Jane"]
        assert [one.name for one in await graph.find(tx, GLOBAL, "0%")] == ["100%"]
        assert await graph.find(tx, GLOBAL, "_") == []


async def test_the_way_from_one_to_another_is_the_shortest_and_says_which_way_its_edges_point(family: Database) -> None:
    async with family.transaction() as tx:
        way = await graph.path(tx, GLOBAL, "jane", "mallory")
        assert way is not None
        assert [(one.source, one.type, one.target) for one in way] == [
            ("person::jane", "MET", "person::bob"),
            ("person::bob", "KNOWS", "person::eve"),
            ("person::mallory", "KNOWS", "person::eve"),
        ]
        back = await graph.path(tx, GLOBAL, "mallory", "jane")
        assert back == way[::-1]
        assert await graph.path(tx, GLOBAL, "jane", "jane") == []
        assert await graph.path(tx, GLOBAL, "jane", "zoe") is None
        assert await graph.path(tx, GLOBAL, "jane", "mallory", hops=2) is None
        assert [one.snippet for one in await graph.proof(tx, GLOBAL, way[2])] == ["Eve and Mallory"]


async def test_a_neighbourhood_ends_after_two_hops(family: Database) -> None:
    async with family.transaction() as tx:
        near = await graph.neighbourhood(tx, GLOBAL, ["person::jane"], hops=9)
        assert [(one.key, one.hops) for one in near] == [("person::bob", 1), ("person::eve", 2)]
        one = await graph.neighbourhood(tx, GLOBAL, ["person::bob"], hops=1)
        assert [(one.key, one.evidence) for one in one] == [("person::jane", 2), ("person::eve", 1)]
        assert len(await graph.neighbourhood(tx, GLOBAL, ["person::bob"], limit=1)) == 1
        assert await graph.neighbourhood(tx, GLOBAL, []) == []


async def test_the_graph_is_counted(family: Database) -> None:
    async with family.transaction() as tx:
        counts = await graph.counts(tx, GLOBAL)
    assert (counts.nodes, counts.edges, counts.mentions, counts.evidence) == (5, 3, 8, 4)
    assert counts.edge_types == {"KNOWS": 2, "MET": 1}


async def test_deletion_can_be_foretold(family: Database) -> None:
    (row,) = await shelve(family, "y")
    await contribute(family, row, "Eve")
    async with family.transaction() as tx:
        chunks = [chunk for (chunk,) in await tx.all("SELECT id FROM chunk WHERE ordinal IN (1, 2)")]
        told = await graph.losses(tx, chunks)
    assert told.nodes_gone == (("", "person::mallory"), ("", "person::zoe"))
    assert told.nodes_weaker == (("", "person::bob"), ("", "person::eve"), ("", "person::jane"))
    assert told.edges_gone == (
        ("", "person::bob", "KNOWS", "person::eve"),
        ("", "person::mallory", "KNOWS", "person::eve"),
    )
    assert told.edges_weaker == (("", "person::jane", "MET", "person::bob"),)


@pytest.mark.parametrize("name", ["lost_nodes", "lost_edges"])
async def test_foretelling_the_deletion_of_many_chunks_looks_each_of_them_up(family: Database, name: str) -> None:
    async with family.transaction() as tx:
        plan = await tx.all("EXPLAIN " + contributions.SQL[name], chunks=list(range(20_000)))
    assert any("hashed SubPlan" in line for (line,) in plan), "it goes through all of them for every name"


async def test_the_export_is_xml_whatever_names_contain(db: Database) -> None:
    (chunk,) = await shelve(db, "x")
    await contribute(db, chunk, 'A&B <"x"> \ufffe\' -KNOWS & LIKES-> ünï', "Bob")
    async with db.transaction() as tx:
        text = "".join([piece async for piece in graph.export(tx, GLOBAL)])
    root = ET.fromstring(text)
    space = "{http://graphml.graphdrawing.org/xmlns}"
    nodes = {node.get("id") for node in root.iter(f"{space}node")}
    assert nodes == {'person::a&b <"x"> \'', "person::ünï", "person::bob"}
    (edge,) = root.iter(f"{space}edge")
    assert {edge.get("source"), edge.get("target")} < nodes
    assert [data.text for data in edge] == ["KNOWS & LIKES", "1"]


async def test_an_export_of_many_portions_has_everything_once(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gristmill.knowledge.graph.graphml.PORTION", 3)
    one, two = await shelve(db, "x", "y")
    facts = [f"Hub -{type}-> P{n}" for n in range(5) for type in ("A", "B")]
    await contribute(db, one, *facts)
    await contribute(db, two, *facts)
    async with db.transaction() as tx:
        text = "".join([piece async for piece in graph.export(tx, GLOBAL)])
    assert text.count("<node ") == 6
    assert text.count("<edge ") == 10
    assert text.count('<data key="weight">2</data>') == 10


# --- scopes


@pytest.fixture
async def neighbours(db: Database) -> Database:
    """The same names known to two clients, to two projects of one of them, and to all."""
    for scope, fact in (
        (GLOBAL, "Jane -WORKS_FOR-> Everybody"),
        (ACME, "Jane -WORKS_FOR-> Acme"),
        (Scope("acme", "red"), "Jane -LEADS-> Red"),
        (Scope("acme", "blue"), "Jane -LEADS-> Blue"),
        (RIVAL, "Jane -SPIES_FOR-> Rival"),
    ):
        (chunk,) = await shelve(db, f"{fact} {scope}", client=scope.client, project=scope.project)
        await contribute(db, chunk, fact, client=scope.client)
    return db


@pytest.mark.parametrize(
    ("scope", "seen"),
    [
        (GLOBAL, {"everybody"}),
        (ACME, {"everybody", "acme", "red", "blue"}),
        (Scope("acme", "red"), {"everybody", "acme", "red"}),
        (RIVAL, {"everybody", "rival"}),
        (Scope("nobody"), {"everybody"}),
    ],
)
async def test_no_question_crosses_clients(neighbours: Database, scope: Scope, seen: set[str]) -> None:
    others = {f"person::{name}" for name in {"everybody", "acme", "red", "blue", "rival"} - seen}
    wanted = {f"person::{name}" for name in seen}
    async with neighbours.transaction() as tx:
        jane = await graph.node(tx, scope, "jane")
        assert {one.key for one in jane.neighbours} == wanted
        assert jane.chunks == len(jane.evidence) == len(seen)
        assert {one.key for one in await graph.neighbourhood(tx, scope, ["person::jane"], hops=2)} == wanted
        found = {one.key for text in "eabr" for one in await graph.find(tx, scope, text)}
        assert wanted <= found
        assert not found & others
        assert (await graph.counts(tx, scope)).edges == len(seen)
        text = "".join([piece async for piece in graph.export(tx, scope)])
        assert not any(f'"{name}"' in text for name in others)
        for name in others:
            with pytest.raises(Refused, match="There is no node") as refused:
                await graph.node(tx, scope, name)
            assert not any(other in str(refused.value).partition("did you")[2] for other in others)
            with pytest.raises(Refused):
                await graph.path(tx, scope, "jane", name)
            step = graph.Step("person::jane", "SPIES_FOR", name, 1)
            assert await graph.proof(tx, scope, step) == []


async def test_what_one_client_loses_another_does_not_keep_for_it(neighbours: Database) -> None:
    async with neighbours.transaction() as tx:
        rival = await tx.value("SELECT c.id FROM chunk c JOIN scope s ON s.id = c.scope WHERE s.client = 'rival'")
        assert (await graph.losses(tx, [rival])).nodes_gone == (("rival", "person::jane"), ("rival", "person::rival"))
