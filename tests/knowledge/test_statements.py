"""A statement goes with its own evidence, passes to newer versions, and cannot be removed by others."""

import asyncio

import pytest

from graph_shelf import contribute, edges, nodes, rows, shelve
from gristmill.db import Database, Tx
from gristmill.documents import removal, remove
from gristmill.ids import ChunkId, DocumentId
from gristmill.knowledge import graph, keys
from gristmill.knowledge.graph import statements
from gristmill.scopes import GLOBAL, Scope, scope_id

ACME, RED, BLUE = Scope("acme"), Scope("acme", "red"), Scope("acme", "blue")
TICKET = ("ticket::7", 0, 1)
SOMEBODY_WAITS = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


async def stated(db: Database, *chunks: ChunkId, scope: Scope = GLOBAL, key: str = "ticket::7") -> None:
    async with db.transaction() as tx:
        await graph.create_node_with_rag_links(tx, scope, key, "ticket", {"owner": str(scope)}, chunks)


async def replaced(db: Database, chunk: ChunkId) -> None:
    """Replaces the document of this chunk by a newer version."""
    async with db.transaction() as tx:
        await removal.replace(tx, [await document_of(tx, chunk)])


async def removed(db: Database, chunk: ChunkId) -> int:
    async with db.transaction() as tx:
        return (await remove(tx, [await document_of(tx, chunk)])).nodes


async def document_of(tx: Tx, chunk: ChunkId) -> DocumentId:
    return await tx.value("SELECT document FROM chunk WHERE id = %(id)s", id=chunk)


async def statements_of(db: Database, key: str = "ticket::7") -> list[str]:
    found = await rows(db, "SELECT properties ->> 'owner' FROM entity WHERE key = %s ORDER BY 1", [key])
    return [owner for (owner,) in found]


# --- a new version


async def test_what_was_stated_of_a_chunk_holds_of_the_same_chunk_of_the_next_version(db: Database) -> None:
    old, _ = await shelve(db, "Jane works.", "Old.", urn="plan")
    await contribute(db, old, "Jane")
    await stated(db, old)
    async with db.transaction() as tx:
        since = {"since": "May"}
        await graph.create_relationship(tx, GLOBAL, "person::jane", "ticket::7", "works on", since, evidence=[old])
    _, new = await shelve(db, "New.", "Jane works.", urn="plan", version=2)
    await contribute(db, new, "Jane")
    await replaced(db, old)
    assert await edges(db) == [("person::jane", "WORKS_ON", "ticket::7", 1)]
    assert await nodes(db) == [("person::jane", 1, 1), TICKET]
    kept = await rows(db, "SELECT chunk, extracted, stated, properties FROM relation")
    assert kept == [(new, False, True, {"since": "May"})]
    assert await statements_of(db) == ["GLOBAL"]
    await contribute(db, new, "Bob")  # extracted again
    assert await edges(db) == [("person::jane", "WORKS_ON", "ticket::7", 1)]


async def test_what_was_stated_of_a_chunk_that_the_next_version_has_not_goes(db: Database) -> None:
    (old,) = await shelve(db, "Jane works.", urn="plan")
    await stated(db, old)
    await shelve(db, "Jane rests.", urn="plan", version=2)
    await replaced(db, old)
    assert (await nodes(db), await statements_of(db)) == ([], [])


async def test_two_chunks_that_were_alike_hand_down_to_the_one_that_is_left(db: Database) -> None:
    first, second = await shelve(db, "Alike.", "Alike.", urn="plan")
    await stated(db, first, second)
    (new,) = await shelve(db, "Alike.", urn="plan", version=2)
    await replaced(db, first)
    assert await rows(db, "SELECT chunk, key FROM mention") == [(new, "ticket::7")]


async def test_a_chunk_hands_down_to_the_one_in_its_place(db: Database) -> None:
    _, second = await shelve(db, "Alike.", "Alike.", urn="plan")
    await stated(db, second)
    _, new = await shelve(db, "Alike.", "Alike.", urn="plan", version=2)
    await replaced(db, second)
    assert await rows(db, "SELECT chunk FROM mention") == [(new,)]


async def test_nothing_is_handed_down_to_another_source_or_a_version_that_is_not_whole(db: Database) -> None:
    (old,) = await shelve(db, "Jane works.", urn="plan")
    await stated(db, old)
    await shelve(db, "Jane works.", urn="other", version=2)
    (early,) = await shelve(db, "Jane works.", urn="plan", version=2)
    await rows(db, "UPDATE document SET completed_at = NULL WHERE urn = 'plan' AND version = 2 RETURNING 1")
    assert early
    await replaced(db, old)
    assert await nodes(db) == []


# --- whose statement it is


async def test_one_project_s_removal_leaves_what_another_stated(db: Database) -> None:
    (red,) = await shelve(db, "Ticket 7", client="acme", project="red")
    await stated(db, scope=BLUE)
    await stated(db, red, scope=RED)
    assert await removed(db, red) == 0
    assert await statements_of(db) == ["acme/blue"]


async def test_one_project_s_removal_leaves_what_another_has_evidence_of(db: Database) -> None:
    (red,) = await shelve(db, "Ticket 7", client="acme", project="red")
    (blue,) = await shelve(db, "Ticket 7 in blue", client="acme", project="blue")
    await stated(db, red, scope=RED)
    await stated(db, blue, scope=BLUE)
    await removed(db, red)
    assert await statements_of(db) == ["acme/blue"]
    assert await removed(db, blue) == 1
    assert await statements_of(db) == []


async def test_what_a_client_stated_of_a_project_s_chunk_goes_with_it(db: Database) -> None:
    (red,) = await shelve(db, "Ticket 7", client="acme", project="red")
    await stated(db, red, scope=ACME)
    assert await removed(db, red) == 1
    assert await statements_of(db) == []


async def test_what_was_stated_without_evidence_stays_when_a_document_that_names_it_goes(db: Database) -> None:
    (chunk,) = await shelve(db, "Jane")
    await contribute(db, chunk, "Jane")
    await stated(db, key="person::jane")
    assert await removed(db, chunk) == 0
    assert await nodes(db) == [("person::jane", 0, 0)]


async def test_of_two_who_take_the_last_two_pieces_of_evidence_one_takes_the_statement(db: Database) -> None:
    (one,), (two,) = await shelve(db, "One"), await shelve(db, "Two")
    await stated(db, one, two)
    async with db.transaction() as tx:
        await remove(tx, [await document_of(tx, one)])
        await tx.flush()
        other = asyncio.create_task(removed(db, two))
        await somebody_waits(db)
    await other
    assert await statements_of(db) == []


# --- aliases


async def test_an_alias_misses_nobody_who_is_stating(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    (chunk,) = await shelve(db, "x", client="acme")
    adding: list[asyncio.Task[None]] = []

    async def add() -> None:
        async with db.transaction() as tx:
            await keys.add_alias(tx, "acme", "person::j. doe", "person::jane")

    async def slow(tx: Tx, scope: Scope) -> object:
        """Between asking for aliases and writing."""
        monkeypatch.setattr(statements, "scope_id", scope_id)
        adding.append(asyncio.create_task(add()))
        await somebody_waits(db)
        return await scope_id(tx, scope)

    for state in ("node", "edge"):
        monkeypatch.setattr(statements, "scope_id", slow)
        async with db.transaction() as tx:
            if state == "node":
                await graph.create_node_with_rag_links(tx, ACME, "person::j. doe", "person", {"x": 1}, [chunk])
            else:
                await graph.create_relationship(tx, ACME, "person::j. doe", "person::bob", "knows", evidence=[chunk])
        await adding.pop()
        found = await rows(db, "SELECT key FROM node WHERE key <> 'person::bob'")
        assert found == [("person::jane",)]
        async with db.transaction() as tx:
            await keys.remove_alias(tx, "acme", "person::j. doe")


async def somebody_waits(db: Database) -> None:
    async with await db.connect("test") as watching:
        while not await (await watching.execute(SOMEBODY_WAITS)).fetchone():  # noqa: ASYNC110 no event says so
            await asyncio.sleep(0.01)


# --- a project removes the evidence of its whole client


async def removed_by(db: Database, scope: Scope, chunk: ChunkId) -> tuple[int, int]:
    """How many nodes went, and how many lost some of their evidence, when a project removed this chunk's document."""
    async with db.transaction(seen_from=scope) as tx:
        gone = await remove(tx, [await document_of(tx, chunk)])
    return gone.nodes, gone.nodes_weaker


async def test_what_a_client_stated_goes_with_the_last_evidence_that_its_project_removes(db: Database) -> None:
    (chunk,) = await shelve(db, "Seven.", client="acme", project="red")
    await stated(db, chunk, scope=ACME)
    assert await removed_by(db, RED, chunk) == (1, 0)
    assert await statements_of(db) == []


async def test_what_a_client_stated_stays_with_evidence_that_the_removing_project_cannot_see(db: Database) -> None:
    (red,) = await shelve(db, "Seven.", client="acme", project="red")
    (blue,) = await shelve(db, "Seven.", client="acme", project="blue")
    await stated(db, red, blue, scope=ACME)
    assert await removed_by(db, RED, red) == (0, 1)
    assert await statements_of(db) == ["acme"]
    assert await removed_by(db, BLUE, blue) == (1, 0)
    assert await statements_of(db) == []


async def test_nobody_retracts_a_statement_of_another_that_has_evidence(db: Database) -> None:
    (chunk,) = await shelve(db, "Seven.", client="acme")
    await stated(db, chunk, scope=ACME)
    async with db.transaction() as tx:
        own = await scope_id(tx, ACME)
    async with db.transaction(seen_from=Scope("zenith")) as tx:
        await graph.retract_statements(tx, [statements.Statement(own, "ticket::7")])
    assert await statements_of(db) == ["acme"]
