"""A text that stands in thousands of documents, as a signature does, costs no more to find than one that is rare."""

from hashlib import sha256
from typing import Any, LiteralString

import pytest

from gristmill.db import Database, Tx
from gristmill.documents import store
from gristmill.knowledge import vectors
from gristmill.knowledge.graph import contributions
from gristmill.scopes import GLOBAL, scope_id

pytestmark = pytest.mark.asyncio(loop_scope="session")

MANY = 20_000
SIGNATURE, UNHEARD = (sha256(word).digest() for word in (b"signature", b"unheard"))
MODEL, OTHER = 1, 2


async def mails(tx: Tx, *, embedded_by: int = MODEL, silent: bool | None = None) -> None:
    """Many with one page and one chunk each, all alike."""
    asked: dict[str, Any] = {"n": MANY, "same": SIGNATURE, "scope": await scope_id(tx, GLOBAL)}
    asked |= {"model": embedded_by, "silent": silent}
    await tx.execute("INSERT INTO blob VALUES (%(same)s, 1)", **asked)
    await tx.execute("INSERT INTO embedding_model (name, dimensions) VALUES ('one', 3), ('another', 3)")
    await tx.execute(
        """INSERT INTO document (scope, urn, version, hash, name, pages, task, opening)
           SELECT %(scope)s, 'mail:' || n, 1, %(same)s, 'mail', 1, 0, 0 FROM generate_series(1, %(n)s::int) n""",
        **asked,
    )
    await tx.execute(
        """INSERT INTO page (document, number, scope, method, text, key, divided)
           SELECT id, 1, scope, 'text', 'Yours, Jane', %(same)s, %(same)s FROM document""",
        **asked,
    )
    await tx.execute(
        """INSERT INTO chunk (scope, document, page, ordinal, start, stop, tokens, text, hash)
           SELECT scope, id, 1, 0, 0, 11, 3, 'Yours, Jane', %(same)s FROM document ORDER BY id""",
        **asked,
    )
    await tx.execute(
        "INSERT INTO embedding SELECT %(model)s::smallint, id, scope, '[1,2,3]' FROM chunk ORDER BY id", **asked
    )
    await tx.execute(
        "INSERT INTO extraction (chunk, scope, key, silent) SELECT id, scope, %(same)s, %(silent)s FROM chunk", **asked
    )


async def buffers(tx: Tx, statement: LiteralString, **asked: Any) -> int:
    """How many pages of the database it reads, for a planner that knows the tables and for one that does not."""
    read: list[int] = []
    for _ in range(2):
        plan = await tx.value("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + statement, **asked)
        read.append(plan[0]["Plan"]["Shared Hit Blocks"] + plan[0]["Plan"]["Shared Read Blocks"])
        await tx.execute("ANALYZE page, chunk, embedding, extraction")
    return max(read)


@pytest.mark.parametrize("key", [SIGNATURE, UNHEARD])
async def test_one_of_thousands_of_equals_is_found_with_one_look_into_the_index(db: Database, key: bytes) -> None:
    async with db.transaction() as tx:
        await mails(tx)
        for statement in (store.SQL["find_pages"], store.SQL["find_divided"], contributions.SQL["known_extractions"]):
            assert await buffers(tx, statement, keys=[key]) < 50, statement
        assert await buffers(tx, vectors.SQL["known_vectors"], hashes=[key], model=MODEL) < 50
        found = 1 if key == SIGNATURE else 0
        assert len(await store.find_pages(tx, [key, key])) == found
        assert [len(pieces) for pieces in (await store.find_divided(tx, [key, key])).values()] == [1] * found
        assert len(await contributions.find_extractions(tx, [key, key])) == found
        assert len(await vectors.find_vectors(tx, MODEL, [key, key])) == found


async def test_a_text_that_another_model_embedded_thousands_of_times_is_soon_given_up(db: Database) -> None:
    async with db.transaction() as tx:
        await mails(tx, embedded_by=OTHER)
        assert await buffers(tx, vectors.SQL["known_vectors"], hashes=[SIGNATURE], model=MODEL) < 2_000
        assert await vectors.find_vectors(tx, MODEL, [SIGNATURE]) == {}


async def test_a_text_of_which_an_llm_said_nothing_thousands_of_times_is_soon_given_up(db: Database) -> None:
    async with db.transaction() as tx:
        await mails(tx, silent=True)
        assert await buffers(tx, contributions.SQL["known_extractions"], keys=[SIGNATURE]) < 500
        assert await contributions.find_extractions(tx, [SIGNATURE]) == {}


async def test_chunks_without_a_vector_hide_none_that_has_one(db: Database) -> None:
    async with db.transaction() as tx:
        await mails(tx)
        await tx.execute("DELETE FROM embedding WHERE chunk IN (SELECT id FROM chunk ORDER BY id LIMIT 100)")
        assert SIGNATURE in await vectors.find_vectors(tx, MODEL, [SIGNATURE])
