"""Aliases join two names of one node, for old chunks and new ones; statements need evidence of one's own."""

import asyncio

import pytest

from graph_shelf import contribute, drawn, edges, nodes, rows, shelve
from gristmill.db import Database
from gristmill.errors import Refused
from gristmill.ids import ChunkId
from gristmill.knowledge import graph, keys
from gristmill.models import TextPassage
from gristmill.scopes import GLOBAL, Scope

ACME = Scope("acme")
SOMEBODY_WAITS = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


def test_a_key_needs_a_namespace_and_a_name() -> None:
    assert keys.normalise_key("Person::person::Jane  Doe") == "person::jane doe"
    for wrong in ("Jane", "::Jane", "person::", "person::person::"):
        with pytest.raises(Refused, match="namespace::name"):
            keys.normalise_key(wrong)


async def add(db: Database, alias: str, key: str, client: str = "") -> keys.AliasMerge:
    async with db.transaction() as tx:
        return await keys.add_alias(tx, client, f"person::{alias}", f"person::{key}")


async def test_an_alias_merges_what_was_known_under_it(db: Database) -> None:
    one, two = await shelve(db, "a", "b")
    await contribute(db, one, "Jane -MET-> Bob", "J. Doe -MET-> Bob", "J. Doe -IS-> Jane")
    await contribute(db, two, "J. Doe -KNOWS-> Bob")
    merged = await add(db, "J. Doe", "Jane")
    assert (merged.mentions, merged.relations) == (2, 2)
    assert await nodes(db) == [("person::bob", 2, 2), ("person::jane", 3, 2)]
    assert await edges(db) == [("person::jane", "KNOWS", "person::bob", 1), ("person::jane", "MET", "person::bob", 1)]


async def test_what_is_written_after_an_alias_is_written_under_its_key(db: Database) -> None:
    (chunk,) = await shelve(db, "a")
    await add(db, "J. Doe", "Jane")
    for _ in range(2):
        await contribute(db, chunk, "J. Doe -MET-> Bob", "Jane -MET-> Bob", "J. Doe -IS-> Jane")
        assert await nodes(db) == [("person::bob", 1, 1), ("person::jane", 2, 1)]
        assert await edges(db) == [("person::jane", "MET", "person::bob", 1)]
    async with db.transaction() as tx:
        assert await graph.resolve(tx, GLOBAL, "person::j. doe") == "person::jane"
        assert await graph.resolve(tx, GLOBAL, "J. Doe") == "person::jane"


async def test_aliases_of_aliases_lead_to_the_end(db: Database) -> None:
    (chunk,) = await shelve(db, "a")
    await add(db, "a", "b")
    await add(db, "b", "c")
    await add(db, "d", "a")
    await contribute(db, chunk, "a", "b", "c", "d")
    assert await nodes(db) == [("person::c", 4, 1)]
    with pytest.raises(Refused, match="already"):
        await add(db, "c", "a")
    with pytest.raises(Refused, match="already"):
        await add(db, "a", "x")
    assert [one.alias for one in await listed(db)] == ["person::a", "person::b", "person::d"]


async def listed(db: Database, client: str = "") -> list[keys.Alias]:
    async with db.transaction() as tx:
        return await keys.aliases(tx, client)


async def test_an_alias_can_be_removed(db: Database) -> None:
    await add(db, "a", "b")
    async with db.transaction() as tx:
        assert await keys.remove_alias(tx, "", "Person::A") == keys.Alias("person::a", "person::b")
        with pytest.raises(Refused, match="no alias"):
            await keys.remove_alias(tx, "", "person::a")
    assert await listed(db) == []


async def test_an_alias_is_one_clients_alone(db: Database) -> None:
    for client in ("acme", "rival", ""):
        (chunk,) = await shelve(db, client, client=client)
        await contribute(db, chunk, "a -MET-> z", client=client)
    await add(db, "a", "b", client="acme")
    found = await rows(db, "SELECT client, key FROM node WHERE key <> 'person::z' ORDER BY client")
    assert found == [("", "person::a"), ("acme", "person::b"), ("rival", "person::a")]
    assert await listed(db, "rival") == []


async def test_a_client_sees_what_is_global_under_its_own_names(db: Database) -> None:
    (everybodys,) = await shelve(db, "J. Doe met Bob.")
    await contribute(db, everybodys, "J. Doe -MET-> Bob")
    await add(db, "J. Doe", "Jane Doe", client="acme")
    async with db.transaction() as tx:
        for text in ("person::j. doe", "J. Doe", "person::jane doe", "Jane Doe"):
            jane = await graph.node(tx, ACME, text)
            assert (jane.key, jane.chunks, [one.key for one in jane.neighbours]) == (
                "person::jane doe",
                1,
                ["person::bob"],
            )
        assert [one.key for one in await graph.find(tx, ACME, "j. d")] == ["person::jane doe"]
        (step,) = await graph.path(tx, ACME, "Bob", "J. Doe") or ()
        assert (step.source, step.target) == ("person::jane doe", "person::bob")
        assert [one.chunk for one in await graph.edge_evidence(tx, ACME, step)] == [everybodys]
        text = "".join([piece async for piece in graph.export(tx, ACME)])
        assert ('"person::jane doe"' in text, '"person::j. doe"' in text) == (True, False)
        assert (await graph.counts(tx, ACME)).nodes == 2
        assert (await graph.node(tx, Scope("rival"), "J. Doe")).key == "person::j. doe"


async def test_what_a_client_and_global_say_of_two_names_is_one_node_to_the_client(db: Database) -> None:
    (everybodys,) = await shelve(db, "J. Doe met Bob.")
    (own,) = await shelve(db, "Jane met Bob.", client="acme")
    await contribute(db, everybodys, "J. Doe -MET-> Bob", "Jane -MET-> Bob", "J. Doe -IS-> Jane")
    await contribute(db, own, "Jane -MET-> Bob", client="acme")
    await add(db, "J. Doe", "Jane", client="acme")
    async with db.transaction() as tx:
        jane = await graph.node(tx, ACME, "jane")
        assert (jane.name, jane.mentions, jane.chunks) == ("Jane", 3, 2)
        assert [(one.key, one.evidence) for one in jane.neighbours] == [("person::bob", 2)]
        assert (await graph.counts(tx, ACME)).edge_types == {"MET": 1}


async def test_an_alias_of_global_leads_a_client_to_the_node(db: Database) -> None:
    (everybodys,) = await shelve(db, "J. Doe met Bob.")
    await add(db, "J. Doe", "Jane")
    await contribute(db, everybodys, "J. Doe -MET-> Bob")
    (own,) = await shelve(db, "J. Roe", client="acme")
    await contribute(db, own, "J. Roe", client="acme")
    await add(db, "J. Roe", "Jane Roe")
    async with db.transaction() as tx:
        for text in ("person::j. doe", "J. Doe"):
            assert await graph.resolve(tx, ACME, text) == "person::jane"
        # a node that ACME has under this key goes before the alias of GLOBAL
        assert await graph.resolve(tx, ACME, "person::j. roe") == "person::j. roe"


async def test_an_alias_misses_nobody_who_is_writing(db: Database) -> None:
    (chunk,) = await shelve(db, "a")
    async with db.transaction() as writing:
        await graph.save(writing, chunk, "", drawn("J. Doe -MET-> Bob"), b"k")
        await writing.flush()
        adding = asyncio.create_task(add(db, "J. Doe", "Jane"))
        async with await db.connect("test") as watching:
            while not await (await watching.execute(SOMEBODY_WAITS)).fetchone():  # noqa: ASYNC110 no event says so
                await asyncio.sleep(0.01)
    await adding
    assert [key for key, *_ in await nodes(db)] == ["person::bob", "person::jane"]


# --- what somebody states


async def test_a_stated_node_is_kept_beside_what_is_drawn(db: Database) -> None:
    (chunk,) = await shelve(db, "Jane wrote it.", client="acme")
    await contribute(db, chunk, "Jane -MET-> Bob", client="acme")
    async with db.transaction() as tx:
        key = await graph.create_node_with_rag_links(tx, ACME, "Person::Jane", "Author", {"born": 1970}, [chunk])
        await graph.create_node_with_rag_links(tx, ACME, "person::jane", "author", {"name": "Jane D."})
        assert key == "person::jane"
    await contribute(db, chunk, "Bob", client="acme")  # extracted again, and Jane is not found any more
    async with db.transaction() as tx:
        jane = await graph.node(tx, ACME, "jane")
        found = await graph.find_extractions(tx, [graph.extraction_key("acme", drawn_passage("Bob"), "test")])
    assert (jane.type, jane.properties, jane.mentions, jane.chunks) == (
        "author",
        {"born": 1970, "name": "Jane D."},
        0,
        1,
    )
    assert [one.key for extraction in found.values() for one in extraction.entities] == ["person::bob"]


def drawn_passage(*facts: str) -> TextPassage:
    return TextPassage("; ".join(facts))


async def test_a_node_may_be_stated_before_anything_names_it(db: Database) -> None:
    async with db.transaction() as tx:
        await graph.create_node_with_rag_links(tx, ACME, "confluence::4711", "page", {"title": "Home"})
        node = await graph.node(tx, ACME, "4711")
        assert (node.key, node.type, node.chunks, node.properties) == ("confluence::4711", "page", 0, {"title": "Home"})
        assert (await graph.counts(tx, ACME)).nodes == 1
        with pytest.raises(Refused):
            await graph.node(tx, Scope("rival"), "confluence::4711")


async def test_a_stated_edge_has_evidence_and_outlives_a_new_reading(db: Database) -> None:
    (chunk,) = await shelve(db, "x", client="acme")
    await contribute(db, chunk, "Jane -MET-> Bob", client="acme")
    async with db.transaction() as tx:
        made = await graph.create_relationship(
            tx, ACME, "person::Jane", "ticket::7", "works on", {"since": "May"}, evidence=[chunk, chunk]
        )
    assert made == ("person::jane", "WORKS_ON", "ticket::7")
    await contribute(db, chunk, "Eve", client="acme")
    assert await edges(db) == [("person::jane", "WORKS_ON", "ticket::7", 1)]
    await rows(db, "DELETE FROM chunk RETURNING id")
    assert await nodes(db) == []


async def test_an_edge_without_evidence_of_ones_own_is_refused(db: Database) -> None:
    (theirs,) = await shelve(db, "x", client="rival")
    (everybodys,) = await shelve(db, "x")
    (blue,) = await shelve(db, "x", client="acme", project="blue")
    for scope, evidence in (
        (ACME, []),
        (ACME, [theirs]),
        (ACME, [everybodys]),
        (GLOBAL, [theirs]),
        (Scope("acme", "red"), [blue]),
        (ACME, [blue, ChunkId(4711)]),
    ):
        with pytest.raises(Refused, match=r"evidence|There is no chunk"):
            async with db.transaction() as tx:
                await graph.create_relationship(tx, scope, "a::b", "c::d", "X", evidence=evidence)
        if evidence:
            with pytest.raises(Refused, match="There is no chunk"):
                async with db.transaction() as tx:
                    await graph.create_node_with_rag_links(tx, scope, "a::b", "c", rag_chunk_ids=evidence)
    with pytest.raises(Refused, match="same node"):
        async with db.transaction() as tx:
            await graph.create_relationship(tx, ACME, "a::b", "A::B", "X", evidence=[blue])
    assert await nodes(db) == []
    async with db.transaction() as tx:
        await graph.create_relationship(tx, ACME, "a::b", "c::d", "X", evidence=[blue])
    assert len(await edges(db)) == 1
