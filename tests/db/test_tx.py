"""Statements without a result are sent together, in their order; rows can be typed."""

from typing import NamedTuple

import pytest
from psycopg.errors import UniqueViolation

from gristmill.db import Column, Database, Query, Tx, bytes_array, text_array
from gristmill.db import tx as module
from gristmill.ids import TaskId

TABLE = "CREATE TEMP TABLE said (word text, n int) ON COMMIT DROP"
ADD = "INSERT INTO said (word, n) SELECT * FROM unnest(%(word)b::text[], %(n)b::int[])"
EXECUTE = "INSERT INTO said (word, n) VALUES (%(word)s, %(n)s)"
COMMANDS = "SELECT array_agg(DISTINCT cmin::text) AS commands, count(*) FROM said"
ALL = "SELECT word, n FROM said ORDER BY ctid"


async def test_rows_that_follow_each_other_are_one_statement(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.execute(TABLE)
        for n in range(100):
            await tx.add(ADD, word="many", n=n)
        row = await tx.one(COMMANDS)
        assert row is not None
        assert (len(row.commands), row.count) == (1, 100)


async def test_statements_and_rows_keep_their_order(db: Database) -> None:
    said = [("a", 1), ("b", 2), ("c", None), ("d", 3)]
    async with db.transaction() as tx:
        await tx.execute(TABLE)
        for write, (word, n) in zip((tx.add, tx.execute, tx.add, tx.add), said, strict=True):
            await write(EXECUTE if write == tx.execute else ADD, word=word, n=n)
        assert [tuple(row) for row in await tx.all(ALL)] == said


async def test_rows_that_are_too_large_together_are_several_statements(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PORTION", 10)
    words = ["seven c", "a", "b", "more than there is room for", "", "ten chars.", "c"]
    async with db.transaction() as tx:
        await tx.execute(TABLE)
        for n, word in enumerate(words):
            await tx.add(ADD, word=word, n=n)
        row = await tx.one(COMMANDS)
        assert row is not None
        assert len(row.commands) == 4
        assert [row.word for row in await tx.all(ALL)] == words


class Word(NamedTuple):
    word: str
    n: int


async def test_binary_rows_are_of_the_class_that_was_asked_for(db: Database) -> None:
    async with db.reading() as tx:
        rows = await tx.all_binary("SELECT 'a' AS word, 1 AS n UNION ALL SELECT 'b', 2 ORDER BY n", Word)
        assert rows == [Word("a", 1), Word("b", 2)]
        assert {type(row) for row in rows} == {Word}
        assert await tx.all_binary("SELECT 'a' AS word, 1 AS n WHERE false", Word) == []


async def test_fields_are_found_by_the_names_of_columns_and_other_columns_left_out(db: Database) -> None:
    async with db.reading() as tx:
        assert await tx.all_binary("SELECT 1 AS n, true AS more, 'a' AS word", Word) == [Word("a", 1)]
        assert await tx.one("SELECT 1 AS n, true AS more, 'a' AS word", Word) == Word("a", 1)


async def test_a_field_without_a_column_is_refused(db: Database) -> None:
    async with db.reading() as tx:
        with pytest.raises(TypeError, match="the statement selects no word for Word, but n, more"):
            await tx.all("SELECT 1 AS n, true AS more", Word)


async def add_behind_a_savepoint(tx: Tx, *ids: int) -> None:
    async with tx.savepoint():
        for id_ in ids:
            await tx.execute("INSERT INTO field VALUES (%(id)s)", id=id_)  # sent at the end of the savepoint


async def test_what_fails_behind_a_savepoint_is_undone_and_the_rest_is_kept(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.execute("CREATE TABLE field (id int PRIMARY KEY)")
        await tx.execute("INSERT INTO field VALUES (1)")
        with pytest.raises(UniqueViolation):
            await add_behind_a_savepoint(tx, 2, 1)
        await add_behind_a_savepoint(tx, 3)
    async with db.transaction() as tx:
        assert await tx.values("SELECT id FROM field ORDER BY id", int) == [1, 3]


async def test_a_value_is_the_first_column_of_the_first_row(db: Database) -> None:
    async with db.reading() as tx:
        assert await tx.value("SELECT n, 'a' FROM generate_series(7, 9) n", int) == 7
        assert await tx.value("SELECT 1 WHERE false", int) is None
        assert await tx.only_value("SELECT false", bool) is False
        assert await tx.only_value("SELECT '{3, 4}'::bigint[]", list[TaskId]) == [3, 4]
        assert await tx.values("SELECT n FROM generate_series(7, 9) n", Column[TaskId]) == [7, 8, 9]


@pytest.mark.parametrize("query", ["SELECT 1 WHERE false", "SELECT NULL"])
async def test_a_statement_that_must_have_a_value_fails_without_one(db: Database, query: Query) -> None:
    async with db.reading() as tx:
        with pytest.raises(LookupError, match=query):
            await tx.only_value(query, int)


async def test_arrays_of_texts_and_bytes_arrive_as_they_were(db: Database) -> None:
    texts = ["plain", "", "NULL", None, 'a "quote", a \\ and {braces}', "two\nlines\tand č ř ß", " spaces ", "%s %(x)s"]
    digests = [b"", None, b"\x00\xff\\x", bytes(range(256))]
    async with db.transaction() as tx:
        assert await tx.value("SELECT %(texts)s::text[]", texts=text_array(texts)) == texts
        assert await tx.value("SELECT %(digests)s::bytea[]", digests=bytes_array(digests)) == digests
        assert await tx.value("SELECT %(none)s::text[]", none=text_array([])) == []
