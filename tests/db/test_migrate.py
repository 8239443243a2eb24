"""Migrations: forward, once, all or nothing, and a clear no where they cannot be done."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from gristmill.db import Database
from gristmill.db import migrate as module
from gristmill.db.migrate import TWINS, Migration, known, migrate, read, schema_state
from gristmill.errors import Refused

Connection = psycopg.AsyncConnection[Any]

FIELD = Migration(1, "0001_field", "aa", "CREATE TABLE field (id int);\nINSERT INTO field VALUES (1), (2)")
MILL = Migration(2, "0002_mill", "bb", "CREATE TABLE mill (share text DEFAULT '100 %');")
BROKEN = Migration(3, "0003_broken", "cc", "CREATE TABLE oven (id int); SELECT 1 / 0;")


@pytest.fixture
async def connection(empty_url: str) -> AsyncIterator[Connection]:
    async with await psycopg.AsyncConnection.connect(empty_url, autocommit=True) as opened:
        yield opened


async def tables(connection: Connection) -> set[str]:
    found = await connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    return {row[0] for row in await found.fetchall()}


async def test_our_own_migrations_fit_a_fresh_database(connection: Connection) -> None:
    assert await migrate(connection) == [migration.name for migration in known()]
    assert (await schema_state(connection)).fits
    assert await migrate(connection) == []


async def test_only_what_is_missing_is_applied(connection: Connection) -> None:
    assert await migrate(connection, [FIELD]) == ["0001_field"]
    assert await migrate(connection, [FIELD, MILL]) == ["0002_mill"]
    assert await migrate(connection, [FIELD, MILL]) == []
    assert await tables(connection) == {"gristmill_migration", "field", "mill"}


async def test_it_commits_on_a_connection_without_autocommit_or_that_prepares_all(empty_url: str) -> None:
    async with await psycopg.AsyncConnection.connect(empty_url, prepare_threshold=0) as connection:
        await migrate(connection, [FIELD, MILL])
        await connection.rollback()
        assert await migrate(connection, [FIELD, MILL]) == []


async def test_the_state_names_what_is_pending(connection: Connection) -> None:
    state = await schema_state(connection, [FIELD, MILL])
    assert (state.current, state.newest, state.pending) == (0, 2, ("0001_field", "0002_mill"))
    await migrate(connection, [FIELD])
    state = await schema_state(connection, [FIELD, MILL])
    assert (state.current, state.newest, state.pending, state.fits) == (1, 2, ("0002_mill",), False)


async def test_looking_at_the_state_changes_nothing(connection: Connection) -> None:
    await schema_state(connection)
    assert await tables(connection) == set()


async def test_of_many_that_migrate_at_once_one_does_it_and_the_others_see_it_done(empty_url: str) -> None:
    async def one() -> list[str]:
        async with await psycopg.AsyncConnection.connect(empty_url, autocommit=True) as connection:
            names = await migrate(connection, [FIELD, MILL])
            assert (await schema_state(connection, [FIELD, MILL])).fits
            return names

    applied = await asyncio.gather(*(one() for _ in range(8)))
    assert sorted(name for names in applied for name in names) == ["0001_field", "0002_mill"]


async def test_a_failing_migration_leaves_nothing_behind(connection: Connection) -> None:
    with pytest.raises(Refused, match=r"0003_broken failed \(division by zero\), and nothing of it was kept"):
        await migrate(connection, [FIELD, MILL, BROKEN])
    assert await tables(connection) == {"gristmill_migration", "field", "mill"}
    assert (await schema_state(connection, [FIELD, MILL, BROKEN])).pending == ("0003_broken",)


async def test_a_migration_that_ends_its_own_transaction_is_refused(connection: Connection) -> None:
    sly = Migration(3, "0003_sly", "cc", "CREATE TABLE oven (id int); COMMIT;")
    with pytest.raises(ValueError, match="0003_sly ends its own transaction"):
        await migrate(connection, [FIELD, MILL, sly])


async def test_a_migration_that_was_changed_after_it_was_applied_is_refused(connection: Connection) -> None:
    await migrate(connection, [FIELD])
    changed = Migration(1, "0001_field", "zz", "CREATE TABLE meadow (id int)")
    with pytest.raises(Refused, match="0001_field was changed after it was applied"):
        await migrate(connection, [changed, MILL])
    state = await schema_state(connection, [changed])
    assert (state.changed, state.fits) == (("0001_field",), False)
    assert await tables(connection) == {"gristmill_migration", "field"}


async def test_a_schema_newer_than_the_program_is_refused(connection: Connection) -> None:
    await migrate(connection, [FIELD, MILL])
    with pytest.raises(Refused) as refused:
        await migrate(connection, [FIELD])
    expected = "The database was migrated by a newer Gristmill (0002 > 0001): upgrade this one."
    assert str(refused.value) == expected
    assert (await schema_state(connection, [FIELD])).unknown == ("0002_mill",)


async def test_an_old_server_is_refused(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OLDEST_SERVER", 99)
    with pytest.raises(Refused, match=r"The server is PostgreSQL \d\d and Gristmill needs 99 or newer"):
        await migrate(connection, [FIELD])


async def test_a_server_without_pgvector_is_refused(connection: Connection) -> None:
    if connection.info.server_version < 180_000:
        pytest.skip("before 18 a server cannot be told to look elsewhere for extensions")
    await connection.execute("SET extension_control_path = '/nowhere'")
    with pytest.raises(Refused, match=r"does not have pgvector: .* run CREATE EXTENSION vector\.$"):
        await migrate(connection, [FIELD])
    assert await tables(connection) == set()


@pytest.mark.parametrize("version", ["0.4.4", "0.7"])
async def test_an_old_pgvector_is_refused(connection: Connection, version: str) -> None:
    await connection.execute("CREATE EXTENSION vector")
    await connection.execute("UPDATE pg_extension SET extversion = %s WHERE extname = 'vector'", [version])
    with pytest.raises(Refused, match=f"has pgvector {version} and Gristmill needs 0.8 or newer"):
        await migrate(connection, [FIELD])
    await connection.execute("UPDATE pg_extension SET extversion = '0.10.1' WHERE extname = 'vector'")
    assert await migrate(connection, [FIELD]) == ["0001_field"]


async def test_a_user_who_may_not_install_pgvector_is_told_whom_to_ask(connection: Connection) -> None:
    guest = sql.Identifier(f"guest_{uuid4().hex[:8]}")
    await connection.execute(sql.SQL("CREATE ROLE {}").format(guest))
    await connection.execute(sql.SQL("SET ROLE {}").format(guest))
    with pytest.raises(Refused, match="ask an administrator to run CREATE EXTENSION vector"):
        await migrate(connection, [FIELD])
    await connection.execute("RESET ROLE")
    await connection.execute("CREATE EXTENSION vector")
    await connection.execute(sql.SQL("GRANT CREATE ON SCHEMA public TO {}").format(guest))
    await connection.execute(sql.SQL("SET ROLE {}").format(guest))
    assert await migrate(connection, [FIELD]) == ["0001_field"]
    await connection.execute("RESET ROLE")
    await connection.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(guest))


def test_a_file_with_a_wrong_name_is_no_migration(tmp_path: Path) -> None:
    (tmp_path / "queue.sql").touch()
    with pytest.raises(ValueError, match="is no name for a migration"):
        read(tmp_path / "queue.sql")


PINNED = {  # by the beginning of its checksum: whoever adds a migration adds it here, and from then on leaves it alone
    "0001_queue": "30985662ffb7",
    "0002_documents": "1dc1c208969e",
    "0003_knowledge": "316f9216d16d",
    "0004_graph": "a4fefc8a5d95",
    "0005_hands": "b9a0afa7a32e",
    "0006_breakers": "852e98033a96",
    "0007_limiters": "cd95cd247770",
    "0008_shelves": "2f3d4717df57",
    "0009_written_down": "e0ee64317611",
    "0010_retired_models": "9d2e4515dc22",
    "0011_sight": "f3b6687446ee",
    "0012_evidence": "36f4d5583a98",
    "0013_parts_and_troubles": "0ed9dc2cd1f8",
    "0014_skipped": "dab4559de8d5",
    "0015_queue_names": "37982c161e2a",
}
BEFORE_NINE = known()[:8]


def test_a_migration_that_people_have_applied_is_never_edited() -> None:
    """Their database would be refused, with all that is in it."""
    assert {migration.name: migration.checksum[:12] for migration in known()} == PINNED


async def test_what_was_written_down_before_it_had_a_place_in_the_lists_is_in_them_now(connection: Connection) -> None:
    await migrate(connection, BEFORE_NINE)
    await connection.execute(
        """
        INSERT INTO scope (client, project) VALUES ('acme', '');
        INSERT INTO blob (hash, size) VALUES (sha256('note'), 4);
        INSERT INTO document (scope, urn, version, hash, name, type, pages, completed_at, task, opening)
        SELECT id, 'note:1', 1, sha256('note'), 'A note', 'note', 1, clock(), 77, 77 FROM scope WHERE client = 'acme';
        """
    )
    await migrate(connection)
    shown = await connection.execute("SELECT filename, status, ocr_status, total_chunks FROM document_progress")
    assert await shown.fetchall() == [("A note", "completed", "skipped", 0)]


async def test_what_was_stated_and_noted_before_is_known_as_such(connection: Connection) -> None:
    await migrate(connection, known()[:11])
    await connection.execute(
        """
        INSERT INTO scope (client, project) VALUES ('acme', 'red'), ('acme', 'blue');
        INSERT INTO blob (hash, size) VALUES (sha256('note'), 4);
        INSERT INTO document (scope, urn, version, hash, name, meta, task, opening)
        VALUES (1, 'note:1', 1, sha256('note'), 'A note', '{}', 0, 0),
               (1, 'memo:1', 1, sha256('note'), 'A memo', '{"location": "desk"}', 0, 0);
        INSERT INTO page (document, number, method, text, key)
        VALUES (1, 1, 'copied', 'note', ''), (2, 1, 'copied', 'note', '');
        INSERT INTO chunk (scope, document, page, ordinal, start, stop, tokens, text, hash)
        VALUES (1, 1, 1, 0, 0, 4, 1, 'note', '');
        INSERT INTO mention (chunk, key, scope, type, name, count, stated)
        VALUES (1, 'wiki::7', 1, 'wiki', '7', 0, true);
        INSERT INTO entity (scope, key, type) VALUES (1, 'wiki::7', 'page'), (2, 'wiki::7', 'page');
        """
    )
    await migrate(connection)
    linked = await connection.execute("SELECT scope, linked FROM entity ORDER BY scope")
    assert await linked.fetchall() == [(1, True), (2, False)]
    pages = await connection.execute("SELECT document, method FROM page ORDER BY document")
    assert await pages.fetchall() == [(1, "note"), (2, "copied")]


async def test_a_database_migrated_by_the_second_form_of_a_migration_goes_on_like_any_other(
    connection: Connection,
) -> None:
    await migrate(connection, BEFORE_NINE)
    await connection.execute("DROP INDEX task_owner")  # the second form had done so already
    for number, checksum in TWINS.items():
        await connection.execute("UPDATE gristmill_migration SET checksum = %s WHERE number = %s", [checksum, number])
    assert await migrate(connection) == [migration.name for migration in known()[len(BEFORE_NINE) :]]
    assert (await schema_state(connection)).fits


def test_our_migrations_are_numbered_without_gaps() -> None:
    assert [migration.number for migration in known()] == list(range(1, len(known()) + 1))


async def test_a_connection_keeps_the_options_of_the_url(url: str) -> None:
    given = make_conninfo(url, options="-csearch_path=mine,public")
    async with await Database(given).connect("test", work_mem="1MB") as connection:
        found = await connection.execute("SELECT current_setting('search_path'), current_setting('work_mem')")
        assert await found.fetchone() == ("mine,public", "1MB")


async def test_every_test_has_a_migrated_database_of_its_own(url: str, empty_url: str, db: Database) -> None:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        assert (await schema_state(connection)).fits
    async with db.transaction() as tx:
        mine = await tx.value("SELECT current_database()")
    assert url.partition("?")[0].endswith(mine)
    assert not empty_url.partition("?")[0].endswith(mine)
