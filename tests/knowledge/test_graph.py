"""The contributions of chunks to the graph: counted per chunk, written once, gone with their chunk."""

import asyncio

import pytest
from psycopg.errors import CheckViolation, ForeignKeyViolation

from graph_shelf import contribute, drawn, edges, nodes, rows, shelve
from gristmill.db import Database
from gristmill.ids import ChunkId
from gristmill.knowledge import graph
from gristmill.models import Extraction, TextPassage

JANE, BOB, EVE = "person::jane", "person::bob", "person::eve"


async def test_an_edge_has_as_much_evidence_as_chunks_that_say_it(db: Database) -> None:
    one, two = await shelve(db, "a", "b")
    await contribute(db, one, "Jane -MET-> Bob")
    await contribute(db, two, "Jane -MET-> Bob", "Eve")
    assert await edges(db) == [(JANE, "MET", BOB, 2)]
    assert await nodes(db) == [(BOB, 2, 2), (EVE, 1, 1), (JANE, 2, 2)]


async def test_what_a_chunk_contributed_goes_with_it_and_nothing_else(db: Database) -> None:
    one, two = await shelve(db, "a", "b")
    await contribute(db, one, "Jane -MET-> Bob", "Eve -KNOWS-> Bob")
    await contribute(db, two, "Jane -MET-> Bob")
    await rows(db, "DELETE FROM chunk WHERE id = %s RETURNING id", [one])
    assert await edges(db) == [(JANE, "MET", BOB, 1)]
    assert await nodes(db) == [(BOB, 1, 1), (JANE, 1, 1)]


async def test_saving_a_chunk_again_replaces_what_it_said_before(db: Database) -> None:
    (chunk,) = await shelve(db, "a")
    for _ in range(2):
        await contribute(db, chunk, "Jane -MET-> Bob", "Eve -KNOWS-> Bob")
    assert await edges(db) == [(EVE, "KNOWS", BOB, 1), (JANE, "MET", BOB, 1)]
    await contribute(db, chunk, "Jane -LEFT-> Bob")
    assert await edges(db) == [(JANE, "LEFT", BOB, 1)]
    assert await nodes(db) == [(BOB, 1, 1), (JANE, 1, 1)]


async def test_saving_for_a_chunk_that_is_gone_writes_nothing(db: Database) -> None:
    await contribute(db, ChunkId(4711), "Jane -MET-> Bob")
    assert await nodes(db) == []


async def test_the_database_refuses_an_edge_without_evidence(db: Database) -> None:
    (chunk,) = await shelve(db, "a")
    await contribute(db, chunk, "Jane")
    insert = "INSERT INTO relation (chunk, source, type, target, scope, extracted) VALUES (%s, %s, 'X', %s, 1, true)"
    with pytest.raises(ForeignKeyViolation):  # a chunk that does not name Bob has no relation of his
        await rows(db, f"{insert} RETURNING 1", [chunk, JANE, BOB])
    with pytest.raises(ForeignKeyViolation):
        await rows(db, f"{insert} RETURNING 1", [4711, JANE, BOB])
    with pytest.raises(CheckViolation):
        await rows(db, f"{insert} RETURNING 1", [chunk, JANE, JANE])


async def test_what_was_drawn_once_is_found_by_what_it_was_drawn_from(db: Database) -> None:
    (chunk,) = await shelve(db, "a")
    key = await contribute(db, chunk, "Jane -MET-> Bob")
    async with db.transaction() as tx:
        found = await graph.find_extractions(tx, [key, b"other"])
    assert list(found) == [key]
    assert found[key] == drawn("Bob", "Jane -MET-> Bob")


async def test_nothing_found_is_known_too(db: Database) -> None:
    (chunk,) = await shelve(db, "a")
    async with db.transaction() as tx:
        await graph.save(tx, chunk, "", Extraction(), b"k")
        assert await graph.find_extractions(tx, [b"k"]) == {b"k": Extraction()}


def test_no_two_clients_share_what_was_drawn() -> None:
    passage = TextPassage("Jane met Bob.", context={"type": "mail"})
    assert graph.extraction_key("acme", passage, "1") == graph.extraction_key("acme", passage, "1")
    assert graph.extraction_key("acme", passage, "1") != graph.extraction_key("rival", passage, "1")
    assert graph.extraction_key("acme", passage, "1") != graph.extraction_key("acme", passage, "2")


async def test_two_writers_never_wait_for_each_other(db: Database) -> None:
    one, two = await shelve(db, "a", "b")
    async with db.transaction() as first, db.transaction() as second:
        await graph.save(first, one, "", drawn("Jane -MET-> Bob"), b"1")
        await first.flush()
        await graph.save(second, two, "", drawn("Bob -MET-> Jane"), b"2")
        await asyncio.wait_for(second.flush(), 60)
    assert len(await edges(db)) == 2
