"""The databases of tests: one that was used is as new for the next test, or is not used again."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar

import psycopg
import pytest
from psycopg import errors

from databases import SEQUENCES, TABLES, WRITTEN, Databases, exists, in_database
from gristmill.db import Database
from gristmill.queue import send_many
from gristmill.scopes import Scope, scope_id

INDEXES = "SELECT indexrelid, pg_get_indexdef(indexrelid) FROM pg_index"


@dataclass(frozen=True)
class Grind:
    kind: ClassVar[str] = "mill.grind"
    grain: int = 0


@pytest.fixture
def own(server: str, owner: str, template: str) -> Iterator[Databases]:
    """Databases that no other test waits for."""
    with psycopg.connect(server, autocommit=True) as connection, ThreadPoolExecutor(1) as thread:
        made = Databases(thread, connection, server, owner, template)
        if not made.clears:
            pytest.skip("this server, or our user there, lets no database be cleared")
        yield made
        made.close()


def read_everything(databases: Databases, name: str) -> dict[str, Any]:
    with psycopg.connect(in_database(databases.server, name), autocommit=True) as inside:
        tables = [table for _, table in inside.execute(TABLES)]
        found: dict[str, Any] = {
            table: inside.execute(f"SELECT t::text FROM {table} t ORDER BY 1").fetchall()  # type: ignore[arg-type]
            for table in tables
        }
        for part, query in (("sequences", SEQUENCES), ("written", WRITTEN), ("indexes", INDEXES)):
            found[part] = sorted(inside.execute(query).fetchall())  # type: ignore[arg-type]
        return found


async def test_a_database_that_was_used_is_as_new(own: Databases) -> None:
    fresh, used = own.make(), own.make()
    async with Database(in_database(own.server, used, own.owner)) as db:
        async with db.transaction() as tx:
            await send_many(tx, [Grind(n) for n in range(40)])
            await scope_id(tx, Scope("acme", "one"))
            await tx.execute("UPDATE alarm_round SET at = clock()")
            await tx.execute("INSERT INTO queue (name, max_attempts) VALUES ('oven', 3)")
        with pytest.raises(errors.NotNullViolation):
            async with db.transaction() as tx:  # writes nothing, and a number is gone all the same
                await tx.execute("INSERT INTO item (scope, type, title) VALUES (1, 'x', 'y')")
    before = read_everything(own, fresh)
    assert read_everything(own, used) != before
    assert own.clear(used)
    assert read_everything(own, used) == before
    for name in (fresh, used):
        own.drop(name)


async def test_a_connection_that_is_left_open_is_ended_before_anything_is_cleared(own: Databases) -> None:
    used = own.make()
    with psycopg.connect(in_database(own.server, used, own.owner)) as left:
        left.execute("INSERT INTO queue (name, max_attempts) VALUES ('mill', 3)")
        assert own.clear(used)
        with pytest.raises(psycopg.OperationalError):
            left.execute("SELECT 1")
    own.clear_or_drop(used)
    assert own.clean == [used]


def test_an_index_that_was_made_is_gone(own: Databases) -> None:
    fresh, used = own.make(), own.make()
    before = read_everything(own, fresh)
    for _ in range(2):
        with psycopg.connect(in_database(own.server, used, own.owner), autocommit=True) as inside:
            inside.execute("INSERT INTO queue (name, max_attempts) VALUES ('mill', 3)")
            inside.execute("SELECT make_vector_index(7::smallint, 3)")
            inside.execute("CREATE INDEX here_and_gone ON task (kind)")
            inside.execute("DROP INDEX here_and_gone")
        assert own.clear(used)
        assert read_everything(own, used) == before
    for name in (fresh, used):
        own.drop(name)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE ledger (n bigint)",
        "CREATE UNIQUE INDEX once ON task (kind); ALTER TABLE task ADD UNIQUE USING INDEX once",
        "CREATE INDEX ON task (kind); ALTER TABLE task SET (fillfactor = 50)",
        "DROP INDEX task_by_queue",
        "CREATE INDEX ON scope (client)",  # too many tables refer to it
        "ALTER TABLE task SET (fillfactor = 50)",
        "CREATE OR REPLACE FUNCTION clock() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT now()'",
        "DROP VIEW tasks CASCADE",
        "ANALYZE queue",
        "COMMENT ON TABLE task IS 'work'",
        "SELECT lo_from_bytea(0, 'x')",
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET work_mem = ''1MB''', current_database()); END $$",
        "GRANT SELECT ON task TO PUBLIC",
        "CREATE TEMP TABLE t (n int)",
    ],
)
def test_a_database_to_which_more_happened_than_rows_is_not_used_again(own: Databases, statement: str) -> None:
    used = own.make()
    with psycopg.connect(in_database(own.server, used, own.owner), autocommit=True) as inside:
        inside.execute("INSERT INTO queue (name, max_attempts) VALUES ('mill', 3)")
        inside.execute(statement)  # type: ignore[arg-type]
    own.clear_or_drop(used)
    assert own.clean == []
    assert not exists(own.admin, used)
