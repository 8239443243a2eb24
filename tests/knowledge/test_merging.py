"""Two nodes become one, and two again: nothing is lost on the way, and nothing outlives its evidence."""

import pytest

from graph_shelf import contribute, edges, nodes, rows, shelve
from gristmill.db import Database
from gristmill.errors import Refused, Unknown
from gristmill.knowledge import graph, keys
from gristmill.knowledge.merging import Merged, list_merges, merge_nodes, undo_merge
from gristmill.scopes import GLOBAL, Scope

ACME = Scope("acme")


async def merged(db: Database, alias: str, key: str, client: str = "") -> Merged:
    async with db.transaction() as tx:
        return await merge_nodes(tx, client, f"person::{alias}", f"person::{key}")


async def undone(db: Database, merge: int, client: str = "") -> None:
    async with db.transaction() as tx:
        await undo_merge(tx, client, merge)


EVERYTHING = """
SELECT (SELECT jsonb_agg(to_jsonb(m) ORDER BY chunk, key) FROM mention m),
       (SELECT jsonb_agg(to_jsonb(r) ORDER BY chunk, source, type, target) FROM relation r),
       (SELECT jsonb_agg(to_jsonb(e) ORDER BY scope, key) FROM entity e),
       (SELECT jsonb_agg(to_jsonb(a) ORDER BY alias) FROM alias a)
"""


async def test_a_merge_that_is_undone_leaves_everything_as_it_was(db: Database) -> None:
    one, two, three = await shelve(db, "a", "b", "c")
    await contribute(db, one, "Jane -MET-> Bob", "J. Doe -MET-> Bob", "J. Doe -IS-> Jane")
    await contribute(db, two, "J. Doe -KNOWS-> Bob")
    await contribute(db, three, "Jane -KNOWS-> Eve")
    async with db.transaction() as tx:
        await keys.add_alias(tx, "", "person::jd", "person::j. doe")
        await graph.create_node_with_rag_links(tx, GLOBAL, "person::j. doe", "person", {"city": "Brno"}, [two])
        await graph.create_relationship(tx, GLOBAL, "person::j. doe", "person::bob", "pays", {"sum": 3}, evidence=[two])
    before = await rows(db, EVERYTHING)
    done = await merged(db, "J. Doe", "Jane")
    assert (done.mentions, done.relations) == (2, 3)
    assert [key for key, *_ in await nodes(db)] == ["person::bob", "person::eve", "person::jane"]
    async with db.transaction() as tx:
        assert await graph.resolve(tx, GLOBAL, "jd") == "person::jane"
        assert [one.alias for one in await list_merges(tx, "")] == ["person::j. doe"]
    await undone(db, done.merge.id)
    assert await rows(db, EVERYTHING) == before
    assert await rows(db, "SELECT FROM merged_mention") == []
    with pytest.raises(Unknown, match=f"no merge {done.merge.id}"):
        await undone(db, done.merge.id)


async def test_statements_made_after_a_merge_stay_with_the_node_that_was_kept(db: Database) -> None:
    (chunk,) = await shelve(db, "a")
    await contribute(db, chunk, "J. Doe -MET-> Bob")
    done = await merged(db, "J. Doe", "Jane")
    async with db.transaction() as tx:
        await graph.create_relationship(tx, GLOBAL, "person::jane", "person::bob", "trusts", evidence=[chunk])
    await undone(db, done.merge.id)
    assert await edges(db) == [
        ("person::j. doe", "MET", "person::bob", 1),
        ("person::jane", "TRUSTS", "person::bob", 1),
    ]


async def test_what_came_after_a_merge_stays_merged_and_a_chunk_that_went_stays_away(db: Database) -> None:
    (gone,) = await shelve(db, "a", urn="urn:gone")
    (new,) = await shelve(db, "b", urn="urn:new")
    await contribute(db, gone, "J. Doe", "Bob")
    async with db.transaction() as tx:
        await graph.create_node_with_rag_links(tx, GLOBAL, "person::j. doe", "person", {}, [gone])
    done = await merged(db, "J. Doe", "Jane")
    await contribute(db, new, "J. Doe")
    async with db.transaction() as tx:
        await tx.execute("DELETE FROM document WHERE urn = 'urn:gone'")
    assert await rows(db, "SELECT FROM merged_mention") == []  # it went with its evidence
    await undone(db, done.merge.id)
    assert await nodes(db) == [("person::jane", 1, 1)]


async def test_merges_of_one_node_are_undone_in_the_opposite_order(db: Database) -> None:
    (chunk,) = await shelve(db, "a")
    await contribute(db, chunk, "a -MET-> z", "b -MET-> z", "c -MET-> z")
    before = await rows(db, EVERYTHING)
    first, second = await merged(db, "a", "b"), await merged(db, "b", "c")
    with pytest.raises(Refused, match=f"Merge {second.merge.id} came later"):
        await undone(db, first.merge.id)
    await undone(db, second.merge.id)
    await undone(db, first.merge.id)
    assert await rows(db, EVERYTHING) == before


async def test_a_client_merges_its_own_nodes_and_undoes_its_own_merges(db: Database) -> None:
    (theirs,) = await shelve(db, "a", client="beta")
    (ours,) = await shelve(db, "b", client="acme")
    for chunk in (theirs, ours):
        await contribute(db, chunk, "J. Doe -MET-> Bob")
    async with db.transaction(seen_from=ACME) as tx:
        done = await merge_nodes(tx, "acme", "person::j. doe", "person::jane")
    with pytest.raises(Unknown):
        async with db.transaction(seen_from=Scope("beta")) as tx:
            await undo_merge(tx, "beta", done.merge.id)
    named = "SELECT m.key FROM mention m JOIN scope s ON s.id = m.scope WHERE s.client = 'beta' ORDER BY 1"
    assert [row[0] for row in await rows(db, named)] == ["person::bob", "person::j. doe"]
    async with db.transaction(seen_from=ACME) as tx:
        await undo_merge(tx, "acme", done.merge.id)
        assert await list_merges(tx, "acme") == []
