"""Questions to the graph, and that nobody gets answers from another client's chunks."""

import xml.etree.ElementTree as ET
from typing import Any, cast

import pytest

from graph_shelf import contribute, drawn, shelve
from gristmill.db import Database, Tx
from gristmill.errors import Refused
from gristmill.ids import ChunkId
from gristmill.knowledge import graph
from gristmill.knowledge.graph import contributions, reading
from gristmill.models import Entity, Extraction, Relation
from gristmill.scopes import GLOBAL, Scope

ACME, RIVAL = Scope("acme"), Scope("rival")


@pytest.fixture
async def family(db: Database) -> Database:
    """Jane – Bob – Eve – Mallory in a row, Jane and Bob twice; Zoe stands alone."""
    one, two, three = await shelve(db, "Hello. Jane met Bob, who is ill.", "Bob and Eve", "Eve and Mallory")
    await contribute(db, one, "Jane -MET-> Bob")
    await contribute(db, two, "Bob -KNOWS-> Eve", "Jane -MET-> Bob")
    await contribute(db, three, "Mallory -KNOWS-> Eve", "Zoe")
    return db


@pytest.mark.parametrize(
    ("text", "name"),
    [("Order PO-20261 there. Later Anna signed PO-2026.", "PO-2026"), ("水車は田中さんのものです。", "田中")],
)
async def test_a_node_is_shown_where_it_is_named_and_not_within_a_longer_name(
    db: Database, text: str, name: str
) -> None:
    (chunk,) = await shelve(db, text)
    async with db.transaction() as tx:
        await graph.save(tx, chunk, "", Extraction((Entity(f"id::{name}", "id", name),)), b"k")
        (one,) = (await graph.node(tx, GLOBAL, f"id::{name}")).evidence
    assert (one.start, one.stop) == (text.rindex(name), text.rindex(name) + len(name))


async def test_a_node_shows_its_edges_in_both_directions_and_where_it_is_named(family: Database) -> None:
    async with family.transaction() as tx:
        bob = await graph.node(tx, GLOBAL, "Person::person::BOB")
    assert (bob.key, bob.type, bob.name, bob.mentions, bob.chunks, bob.documents) == (
        "person::bob",
        "person",
        "Bob",
        2,
        2,
        1,
    )
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
        with pytest.raises(Refused, match="a part of its name"):
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
        assert [one.snippet for one in await graph.edge_evidence(tx, GLOBAL, way[2])] == ["Eve and Mallory"]


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
        told = await graph.find_losses(tx, chunks)
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


async def test_the_export_has_the_properties_of_nodes_and_edges(db: Database) -> None:
    one, two = await shelve(db, "x", "y")
    relation = Relation("person::jane", "MET", "person::bob", {"quote": "Jane <met> Bob"})
    async with db.transaction() as tx:
        await graph.save(tx, one, "", Extraction(drawn("Jane -MET-> Bob").entities, (relation,)), b"1")
        await graph.save(tx, two, "", drawn("Jane -MET-> Bob"), b"2")
        await graph.create_node_with_rag_links(tx, GLOBAL, "person::jane", "author", {"born": 1970})
        text = "".join([piece async for piece in graph.export(tx, GLOBAL)])
    root = ET.fromstring(text)
    assert [data.text for data in root.iter() if data.get("key") == "stated"] == ['{"born":1970}']
    assert [data.text for data in root.iter() if data.get("key") == "known"] == ['[{"quote":"Jane <met> Bob"}]']


async def test_all_who_are_asked_say_the_same_of_a_node(db: Database) -> None:
    """One node is extracted as a person, then stated as an author; another one is only stated."""
    (chunk,) = await shelve(db, "Jane wrote it.")
    await contribute(db, chunk, "Jane")
    async with db.transaction() as tx:
        await graph.create_node_with_rag_links(tx, GLOBAL, "person::jane", "Author", {"name": "J."}, [chunk])
        await graph.create_node_with_rag_links(tx, GLOBAL, "wiki::7", "page", {"name": "Home"})
        shown = [await graph.node(tx, GLOBAL, key) for key in ("person::jane", "wiki::7")]
        found = [*await graph.find(tx, GLOBAL, "jane"), *await graph.find(tx, GLOBAL, "7")]
        counts = await graph.counts(tx, GLOBAL)
        text = "".join([piece async for piece in graph.export(tx, GLOBAL)])
        view = [tuple(row) for row in await tx.all("SELECT key, type, name FROM node ORDER BY key")]
        linked = await graph.create_relationship(tx, GLOBAL, "person::jane", "person::bob", "met", evidence=[chunk])
        (other,) = (await graph.node(tx, GLOBAL, linked[2])).neighbours
    expected = [("person::jane", "author", "Jane"), ("wiki::7", "page", "Home")]
    assert [(one.key, one.type, one.name) for one in shown] == expected
    assert [(one.key, one.type, one.name) for one in found] == expected
    assert view == expected
    assert (counts.nodes, counts.node_types) == (2, {"author": 1, "page": 1})
    exported = [[data.text for data in node][:2] for node in ET.fromstring(text).iter() if node.tag.endswith("}node")]
    assert exported == [["Jane", "author"], ["Home", "page"]]
    assert (other.key, other.node_type, other.name) == expected[0]


async def test_what_a_project_states_goes_before_what_its_client_does(db: Database) -> None:
    async with db.transaction() as tx:
        for scope, type in ((Scope("acme", "red"), "reviewer"), (ACME, "author"), (GLOBAL, "person")):
            await graph.create_node_with_rag_links(tx, scope, "person::jane", type, {"by": str(scope), str(scope): 1})
        red, acme = [await graph.node(tx, scope, "person::jane") for scope in (Scope("acme", "red"), RIVAL)]
    assert (red.type, red.properties) == ("reviewer", {"by": "acme/red", "GLOBAL": 1, "acme": 1, "acme/red": 1})
    assert (acme.type, acme.properties) == ("person", {"by": "GLOBAL", "GLOBAL": 1})


# --- case


async def test_nodes_are_found_in_whatever_case_their_keys_keep(db: Database) -> None:
    (chunk,) = await shelve(db, "x")
    keys = {"amount::500.00 USD": "$500", "email::Ab1@X.org": "Plan", "id::ÄB-1": "ÄB-1", "id::äb-1": "äb-1"}
    entities = tuple(Entity(key, key.partition("::")[0], name) for key, name in keys.items())
    async with db.transaction() as tx:
        await graph.save(tx, chunk, "", Extraction(entities), b"k")
        for text in ("USD", "usd", "500.00 u"):
            assert [one.key for one in await graph.find(tx, GLOBAL, text)] == ["amount::500.00 USD"], text
        for text in ("ab1@x", "1@X.ORG", "MAIL::ab1", "PLAN"):
            assert [one.key for one in await graph.find(tx, GLOBAL, text)] == ["email::Ab1@X.org"], text
        assert len(await graph.find(tx, GLOBAL, "äb")) == 2
        assert await graph.resolve(tx, GLOBAL, "ab1@x.ORG") == "email::Ab1@X.org"
        assert await graph.resolve(tx, GLOBAL, "ÄB-1") == "id::ÄB-1"
        with pytest.raises(Refused, match="Several nodes"):
            await graph.resolve(tx, GLOBAL, "Äb-1")


async def test_of_a_bare_name_and_a_person_of_that_name_the_person_is_meant(db: Database) -> None:
    (chunk,) = await shelve(db, "x")
    keys = [
        "name::dana whitlock",
        "person::dana whitlock",
        "name::mill lane",
        "company::ash",
        "person::ash",
        "name::ash",
    ]
    entities = tuple(Entity(key, key.partition("::")[0], key.partition("::")[2].title()) for key in keys)
    async with db.transaction() as tx:
        await graph.save(tx, chunk, "", Extraction(entities), b"k")
        assert await graph.resolve(tx, GLOBAL, "Dana Whitlock") == "person::dana whitlock"
        assert await graph.resolve(tx, GLOBAL, "Mill Lane") == "name::mill lane"
        assert await graph.resolve(tx, GLOBAL, "name::dana whitlock") == "name::dana whitlock"
        with pytest.raises(Refused, match="Several nodes are called “Ash”: company::ash, person::ash"):
            await graph.resolve(tx, GLOBAL, "Ash")


async def many(tx: Tx, chunk: ChunkId) -> None:
    await tx.execute(
        """INSERT INTO mention (chunk, key, scope, type, name)
           SELECT %(chunk)s, 'person::' || md5(n::text), c.scope, 'person', 'P'
             FROM generate_series(1, 20000) n, chunk c WHERE c.id = %(chunk)s""",
        chunk=chunk,
    )
    await tx.execute("ANALYZE mention")


async def test_a_name_that_nobody_has_is_looked_up_and_not_looked_for(db: Database) -> None:
    (chunk,) = await shelve(db, "x")
    async with db.transaction() as tx:
        await many(tx, chunk)
        scopes = [row.id for row in await tx.all("SELECT id FROM scope")]
        sight: dict[str, Any] = {"client": "", "scopes": scopes}
        for name, asked, index in (
            ("find_beginning", {"text": "jan", "limit": 9}, "mention_by_name"),
            ("nodes", {"keys": ["person::jane"]}, "mention_by_key"),
            ("present_keys", {"keys": ["person::jane"]}, "mention_by_key"),
        ):
            plan = "\n".join(row[0] for row in await tx.all("EXPLAIN " + reading.SQL[name], **sight, **asked))
            assert index in plan, plan
            assert "Seq Scan on mention" not in plan, plan


async def test_who_is_not_there_is_not_looked_for_among_all(family: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cast("dict[str, Any]", reading.SQL), "find_within", "this would be an error")
    async with family.transaction() as tx:
        with pytest.raises(Refused, match="There is no node"):
            await graph.node(tx, GLOBAL, "Jane Mary Doe Smith")


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
            step = graph.PathEdge("person::jane", "SPIES_FOR", name, 1)
            assert await graph.edge_evidence(tx, scope, step) == []


async def test_what_one_client_loses_another_does_not_keep_for_it(neighbours: Database) -> None:
    async with neighbours.transaction() as tx:
        rival = await tx.value("SELECT c.id FROM chunk c JOIN scope s ON s.id = c.scope WHERE s.client = 'rival'")
        assert (await graph.find_losses(tx, [rival])).nodes_gone == (
            ("rival", "person::jane"),
            ("rival", "person::rival"),
        )


async def test_a_snippet_ends_where_words_end(db: Database) -> None:
    text = f"{'considerable ' * 8}Jane {'afterwards ' * 8}"
    (chunk,) = await shelve(db, text.strip())
    await contribute(db, chunk, "Jane")
    async with db.transaction() as tx:
        (found,) = (await graph.node(tx, GLOBAL, "Jane")).evidence
    assert set(found.snippet.split()) == {"considerable", "Jane", "afterwards"}
