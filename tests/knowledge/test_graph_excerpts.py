"""Parts of the graph for one picture."""

from graph_shelf import contribute, rows, shelve
from gristmill.db import Database
from gristmill.ids import DocumentId
from gristmill.knowledge import graph, keys
from gristmill.knowledge.graph import GraphExcerpt, PathEdge
from gristmill.scopes import GLOBAL, Scope


async def document_of(db: Database, chunk: int) -> DocumentId:
    return DocumentId((await rows(db, "SELECT document FROM chunk WHERE id = %s", [chunk]))[0][0])


async def excerpt(db: Database, chunk: int, scope: Scope = GLOBAL, limit: int = 20) -> GraphExcerpt:
    document = await document_of(db, chunk)
    async with db.transaction() as tx:
        return await graph.document_excerpt(tx, scope, document, limit=limit)


async def test_a_document_shows_its_own_nodes_and_edges_and_no_others(db: Database) -> None:
    (first,) = await shelve(db, "Jane signed with Acme.")
    (second,) = await shelve(db, "Jane knows Bob.")
    await contribute(db, first, "Jane -SIGNED-> Acme")
    await contribute(db, second, "Jane -KNOWS-> Bob")
    found = await excerpt(db, first)
    assert [node.key for node in found.nodes] == ["person::acme", "person::jane"]
    assert found.edges == (PathEdge("person::jane", "SIGNED", "person::acme", 1),)
    assert found.total == 2


async def test_the_nodes_that_a_document_names_in_most_places_come_first_and_the_rest_is_counted(db: Database) -> None:
    chunks = await shelve(db, "one", "two")
    await contribute(db, chunks[0], "Zoe -KNOWS-> Bob")
    await contribute(db, chunks[1], "Zoe -KNOWS-> Cid")
    found = await excerpt(db, chunks[0], limit=1)
    assert ([node.name for node in found.nodes], found.edges, found.total) == (["Zoe"], (), 3)


async def test_a_document_of_another_client_shows_nothing(db: Database) -> None:
    (chunk,) = await shelve(db, "Jane signed with Acme.", client="acme")
    await contribute(db, chunk, "Jane -SIGNED-> Acme", client="acme")
    assert (await excerpt(db, chunk, Scope("other"))).nodes == ()
    assert len((await excerpt(db, chunk, Scope("acme"))).nodes) == 2


async def test_edges_between_nodes_follow_aliases_and_leave_others_out(db: Database) -> None:
    (chunk,) = await shelve(db, "text", client="acme")
    await contribute(db, chunk, "Jane -KNOWS-> Bob", "Bob -KNOWS-> Cid", "J. Doe -HIRED-> Cid", client="acme")
    async with db.transaction() as tx:
        await keys.add_alias(tx, "acme", "person::j. doe", "person::jane")
        found = await graph.edges_between(tx, Scope("acme"), ["person::jane", "person::cid"])
        assert await graph.edges_between(tx, Scope("acme"), ["person::jane"]) == []
    assert found == [PathEdge("person::jane", "HIRED", "person::cid", 1)]


async def test_the_newest_documents_offer_nodes_to_begin_with(db: Database) -> None:
    for n in range(25):
        (chunk,) = await shelve(db, f"text {n}")
        await contribute(db, chunk, f"Old {n}" if n < 5 else "Zoe", client="")
    (chunk,) = await shelve(db, "secret", client="acme")
    await contribute(db, chunk, "Hidden", client="acme")
    async with db.transaction() as tx:
        assert [node.name for node in await graph.recent_nodes(tx, GLOBAL)] == ["Zoe"]
        assert [node.name for node in await graph.recent_nodes(tx, Scope("acme"))] == ["Zoe", "Hidden"]


async def test_the_surroundings_of_a_node_have_its_strongest_edges_and_count_all(db: Database) -> None:
    (chunk,) = await shelve(db, "text")
    await contribute(db, chunk, *(f"Jane -KNOWS-> Friend {n}" for n in range(5)))
    async with db.transaction() as tx:
        found = await graph.surroundings(tx, GLOBAL, "jane", limit=3)
    assert (found.node.key, len(found.edges), found.total) == ("person::jane", 3, 5)
