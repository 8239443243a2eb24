"""A row belongs to the scope of its parent: a tenant hangs nothing of its own on the rows of another."""

from typing import LiteralString

import pytest
from neighbour import HASH, KEY, NUMBER, move_in
from psycopg.errors import ForeignKeyViolation, InsufficientPrivilege

from gristmill.db import Database
from gristmill.scopes import Scope, scope_id

ACME = Scope("acme")
DOCUMENT: LiteralString = """
INSERT INTO document (scope, urn, version, hash, name, container, task, opening)
VALUES (%(own)s, 'urn:acme', 1, keep_bytes('grain'), 'grain', %(parent)s, 0, 0)
"""
# Each writes a row of the own scope whose parent is given.
WRITES: dict[str, LiteralString] = {
    "document": DOCUMENT,
    "phase": "INSERT INTO phase (document, ordinal, name, unit, shown, scope, task)"
    " VALUES (%(parent)s, 90, 'graph', 'page', true, %(own)s, 1)",
    "page": "INSERT INTO page (document, number, scope, method, text, key)"
    " VALUES (%(parent)s, 9, %(own)s, 'text', 'smuggled', %(hash)s)",
    "kept_part": "INSERT INTO kept_part (container, urn, scope) VALUES (%(parent)s, 'urn:acme', %(own)s)",
    "chunk": "INSERT INTO chunk (scope, document, page, ordinal, start, stop, tokens, text, hash)"
    " VALUES (%(own)s, %(parent)s, 1, 9, 0, 3, 1, 'smuggled', %(hash)s)",
    "embedding": "INSERT INTO embedding (model, chunk, scope, vector) VALUES (4, %(parent)s, %(own)s, '[1,0,0]')",
    "fresh_terms": "INSERT INTO fresh_terms (chunk, scope, length, terms) VALUES (%(parent)s, %(own)s, 1, '{}')",
    "posting": "INSERT INTO posting (segment, term, scope, data) VALUES (%(parent)s, 'smuggled', %(own)s, 'x')",
    "mention": "INSERT INTO mention (chunk, key, scope, type, name)"
    " VALUES (%(parent)s, 'person::smuggler', %(own)s, 'person', 'smuggled')",
    "relation": "INSERT INTO relation (chunk, source, type, target, scope, extracted)"
    " VALUES (%(parent)s, %(key)s, 'KNEW', 'person::friend', %(own)s, true)",
    "data_import": "INSERT INTO data_import (id, scope, name, state, plan, hash, size, estimated_rows,"
    " estimated_tokens, estimated_cost) VALUES (%(parent)s, %(own)s, 'smuggled', 'draft', '{}', %(hash)s, 1, 1, 1, 1)",
    "data_rejected": "INSERT INTO data_rejected (import, row, scope, why, reason, cells)"
    " VALUES (%(parent)s, 9, %(own)s, 'invalid', 'smuggled', '{}')",
    "extraction": "INSERT INTO extraction (chunk, scope, key) VALUES (%(parent)s, %(own)s, %(hash)s)",
}
SECOND_MODEL = "INSERT INTO embedding_model (id, name, dimensions) OVERRIDING SYSTEM VALUE VALUES (4, 'second', 3)"
NOTHING = 4_711  # no row has this id


async def said(db: Database, write: LiteralString, parent: int) -> str:
    """Why a tenant of acme cannot write this."""
    try:
        async with db.transaction(seen_from=ACME) as tx:
            await tx.execute(write, own=await scope_id(tx, ACME), parent=parent, hash=HASH, key=KEY)
    except (ForeignKeyViolation, InsufficientPrivilege) as error:
        return str(error).replace(str(parent), "ID")
    raise AssertionError("it was written")


@pytest.mark.parametrize("table", WRITES)
async def test_a_parent_of_another_is_as_one_that_does_not_exist(db: Database, table: str) -> None:
    async with db.transaction() as tx:
        await move_in(tx)
        await scope_id(tx, ACME)
        await tx.execute(SECOND_MODEL)
        # a second row of the same chunk would collide before its key is asked
        await tx.execute("DELETE FROM fresh_terms")
        await tx.execute("DELETE FROM extraction")
        if table == "data_import":
            await tx.execute("DELETE FROM data_import")
    assert await said(db, WRITES[table], NUMBER) == await said(db, WRITES[table], NOTHING)
