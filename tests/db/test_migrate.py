"""Migrations: forward, once, all or nothing, and a clear no where they cannot be done."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from gristmill.db import Database
from gristmill.db import migrate as module
from gristmill.db.migrate import OLDER, migrate, schema_state
from gristmill.db.schema import Definition, Migration, Schema, read_schema
from gristmill.errors import Refused

Connection = psycopg.AsyncConnection[Any]

FIELD = Migration("farm", 1, "0001_field", "aa", "CREATE TABLE field (id int);\nINSERT INTO field VALUES (1), (2)")
MILL = Migration("farm", 2, "0002_mill", "bb", "CREATE TABLE mill (share text DEFAULT '100 %');")
BROKEN = Migration("farm", 3, "0003_broken", "cc", "CREATE TABLE oven (id int); SELECT 1 / 0;")
VIEW = Definition("farm", "views", "dd", "CREATE VIEW acre AS SELECT id FROM field;")
WIDER = Definition("farm", "views", "ee", "CREATE VIEW acre AS SELECT 'large' AS size, id FROM field;")
TABLES = {"gristmill_migration", "gristmill_definition"}


def farm(*migrations: Migration, view: Definition | None = None) -> Schema:
    return Schema(migrations, (view,) if view else ())


@pytest.fixture
async def connection(empty_url: str) -> AsyncIterator[Connection]:
    async with await psycopg.AsyncConnection.connect(empty_url, autocommit=True) as opened:
        yield opened


@pytest.fixture
async def guest(connection: Connection) -> AsyncIterator[sql.Identifier]:
    """A user who may create tables in this database, and nothing on its server."""
    name = sql.Identifier(f"guest_{uuid4().hex[:8]}")
    await connection.execute(sql.SQL("CREATE ROLE {0}; GRANT CREATE ON SCHEMA public TO {0}").format(name))
    yield name
    await connection.execute("RESET ROLE")
    await connection.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(name))


async def tables(connection: Connection) -> set[str]:
    found = await connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    return {row[0] for row in await found.fetchall()}


async def columns(connection: Connection, view: str) -> list[str]:
    found = await connection.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(view)))
    return [column.name for column in found.description or ()]


async def test_our_own_schema_fits_a_fresh_database(connection: Connection) -> None:
    ours = read_schema()
    assert await migrate(connection) == [str(one) for one in (*ours.migrations, *ours.definitions)]
    assert (await schema_state(connection)).fits
    assert await migrate(connection) == []


async def test_only_what_is_missing_is_applied(connection: Connection) -> None:
    assert await migrate(connection, farm(FIELD)) == ["farm/0001_field"]
    assert await migrate(connection, farm(FIELD, MILL)) == ["farm/0002_mill"]
    assert await migrate(connection, farm(FIELD, MILL)) == []
    assert await tables(connection) == {*TABLES, "field", "mill"}


async def test_it_commits_on_a_connection_without_autocommit_or_that_prepares_all(empty_url: str) -> None:
    async with await psycopg.AsyncConnection.connect(empty_url, prepare_threshold=0) as connection:
        await migrate(connection, farm(FIELD, MILL, view=VIEW))
        await connection.rollback()
        assert await migrate(connection, farm(FIELD, MILL, view=VIEW)) == []


async def test_a_view_is_made_anew_when_its_file_changes(connection: Connection) -> None:
    await migrate(connection, farm(FIELD, view=VIEW))
    assert await migrate(connection, farm(FIELD, view=WIDER)) == ["farm/views"]
    assert await columns(connection, "acre") == ["size", "id"]
    assert await migrate(connection, farm(FIELD)) == []  # what is no longer defined goes with the next change


async def test_a_view_does_not_stand_in_the_way_of_a_migration(connection: Connection) -> None:
    await migrate(connection, farm(FIELD, view=VIEW))
    wide = Migration("farm", 2, "0002_wide", "bb", "ALTER TABLE field ALTER id TYPE bigint")
    assert await migrate(connection, farm(FIELD, wide, view=VIEW)) == ["farm/0002_wide"]
    assert await columns(connection, "acre") == ["id"]


async def test_a_view_of_somebody_else_on_ours_is_not_dropped_but_named(connection: Connection) -> None:
    await migrate(connection, farm(FIELD, view=VIEW))
    await connection.execute("CREATE VIEW theirs AS SELECT * FROM acre")
    with pytest.raises(Refused, match="view theirs depends on view acre"):
        await migrate(connection, farm(FIELD, view=WIDER))
    assert await columns(connection, "theirs") == ["id"]


def barn(text: str, checksum: str) -> Schema:
    return Schema((FIELD,), (Definition("farm", "functions", checksum, text),))


DOUBLE = "CREATE OR REPLACE FUNCTION twice(n int) RETURNS int LANGUAGE sql AS $$ SELECT n * 2 $$;"
RENAMED = "CREATE OR REPLACE FUNCTION twice(number int) RETURNS bigint LANGUAGE sql AS $$ SELECT number * 2::bigint $$;"


async def test_a_function_may_change_its_parameters_and_its_result(connection: Connection) -> None:
    await migrate(connection, barn(DOUBLE, "aa"))
    assert await migrate(connection, barn(RENAMED, "bb")) == ["farm/functions"]
    assert await (await connection.execute("SELECT twice(number => 4)")).fetchone() == (8,)


async def test_a_function_that_is_no_longer_defined_is_dropped(connection: Connection) -> None:
    await migrate(connection, barn(DOUBLE, "aa"))
    await migrate(connection, barn("SELECT 1;", "bb"))
    assert await (await connection.execute("SELECT to_regproc('twice') IS NULL")).fetchone() == (True,)


async def test_a_function_that_something_needs_is_not_dropped_but_named(connection: Connection) -> None:
    await migrate(connection, barn(DOUBLE, "aa"))
    await connection.execute("CREATE INDEX by_double ON field (id)")
    await connection.execute("ALTER TABLE field ADD CHECK (twice(id) > 0)")
    with pytest.raises(psycopg.errors.DependentObjectsStillExist):
        await migrate(connection, barn("SELECT 1;", "bb"))
    assert await (await connection.execute("SELECT twice(4)")).fetchone() == (8,)


async def test_only_a_changed_definition_is_applied_anew(connection: Connection) -> None:
    """Whoever reads a table would otherwise hold up every upgrade, and everybody behind it."""
    counted = Definition("farm", "access", "aa", "INSERT INTO field VALUES (7);")
    await migrate(connection, Schema((FIELD,), (VIEW, counted)))
    await migrate(connection, Schema((FIELD,), (WIDER, counted)))
    assert await (await connection.execute("SELECT count(*) FROM field WHERE id = 7")).fetchone() == (1,)


async def test_a_table_in_use_is_waited_for_in_turns_and_then_named(
    connection: Connection, empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOCK_WAIT", "10ms")
    await migrate(connection, farm(FIELD))
    wide = Migration("farm", 2, "0002_wide", "bb", "ALTER TABLE field ALTER id TYPE bigint")
    async with await psycopg.AsyncConnection.connect(empty_url) as reader:
        await reader.execute("SELECT * FROM field")
        with pytest.raises(Refused, match="in use by long transactions: end them"):
            await migrate(connection, farm(FIELD, wide))
    assert await migrate(connection, farm(FIELD, wide)) == ["farm/0002_wide"]


async def test_views_are_made_anew_on_a_server_that_has_learned_to_keep_clients_apart(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "INVOKER_VIEWS", 990_000)
    await migrate(connection, row_security=False)
    monkeypatch.undo()
    assert "queue/views" in await migrate(connection)
    asked = "SELECT reloptions FROM pg_class WHERE relname = 'tasks'"
    assert await (await connection.execute(asked)).fetchone() == (["security_invoker=true"],)


async def test_the_state_names_what_is_pending(connection: Connection) -> None:
    state = await schema_state(connection, farm(FIELD, view=VIEW))
    assert (state.applied, state.pending) == (0, ("farm/0001_field", "farm/views"))
    await migrate(connection, farm(FIELD, view=VIEW))
    state = await schema_state(connection, farm(FIELD, MILL, view=WIDER))
    assert (state.applied, state.pending, state.fits) == (1, ("farm/0002_mill", "farm/views"), False)


async def test_looking_at_the_state_changes_nothing(connection: Connection) -> None:
    await schema_state(connection)
    assert await tables(connection) == set()


async def test_of_many_that_migrate_at_once_one_does_it_and_the_others_see_it_done(empty_url: str) -> None:
    wanted = farm(FIELD, MILL, view=VIEW)

    async def one() -> list[str]:
        async with await psycopg.AsyncConnection.connect(empty_url, autocommit=True) as connection:
            names = await migrate(connection, wanted)
            assert (await schema_state(connection, wanted)).fits
            return names

    applied = await asyncio.gather(*(one() for _ in range(8)))
    assert sorted(name for names in applied for name in names) == ["farm/0001_field", "farm/0002_mill", "farm/views"]


async def test_a_failing_migration_leaves_everything_as_it_was(connection: Connection) -> None:
    await migrate(connection, farm(FIELD, view=VIEW))
    with pytest.raises(Refused, match=r"farm/0003_broken failed \(division by zero\), and nothing was changed"):
        await migrate(connection, farm(FIELD, MILL, BROKEN, view=VIEW))
    assert await tables(connection) == {*TABLES, "field"}
    assert await columns(connection, "acre") == ["id"]
    state = await schema_state(connection, farm(FIELD, MILL, BROKEN, view=VIEW))
    assert state.pending == ("farm/0002_mill", "farm/0003_broken")


async def test_a_migration_that_ends_its_own_transaction_is_refused(connection: Connection) -> None:
    sly = Migration("farm", 3, "0003_sly", "cc", "CREATE TABLE oven (id int); COMMIT;")
    with pytest.raises(ValueError, match="farm/0003_sly ends its own transaction"):
        await migrate(connection, farm(FIELD, MILL, sly))


async def test_a_migration_that_was_changed_after_it_was_applied_is_refused(connection: Connection) -> None:
    await migrate(connection, farm(FIELD))
    changed = Migration("farm", 1, "0001_field", "zz", "CREATE TABLE meadow (id int)")
    with pytest.raises(Refused, match="farm/0001_field was changed after it was applied"):
        await migrate(connection, farm(changed, MILL))
    state = await schema_state(connection, farm(changed))
    assert (state.changed, state.fits) == (("farm/0001_field",), False)
    assert await tables(connection) == {*TABLES, "field"}


async def test_a_schema_newer_than_the_program_is_refused(connection: Connection) -> None:
    await migrate(connection, farm(FIELD, MILL))
    with pytest.raises(Refused, match=r"migrated by a newer Gristmill \(farm/0002_mill\): upgrade this one"):
        await migrate(connection, farm(FIELD))
    assert (await schema_state(connection, farm(FIELD))).unknown == ("farm/0002_mill",)


async def test_an_older_program_does_not_put_its_views_and_functions_back(connection: Connection) -> None:
    """During an upgrade programs of both versions start, and the newer ones need what they have just made."""
    older, newer = Schema((FIELD,), (VIEW,), "0.9.2"), Schema((FIELD,), (WIDER,), "0.10")
    await migrate(connection, older)
    assert await migrate(connection, newer) == ["farm/views"]
    with pytest.raises(Refused) as refused:
        await migrate(connection, older)
    assert str(refused.value) == (
        "The functions and views of the database are of Gristmill 0.10, and this is 0.9.2: upgrade this one."
    )
    assert await columns(connection, "acre") == ["size", "id"]
    state = await schema_state(connection, older)
    assert (state.unknown, state.pending, state.fits) == (("farm/views",), (), False)


async def test_an_older_program_works_with_the_views_of_a_newer_one_that_are_its_own(connection: Connection) -> None:
    await migrate(connection, Schema((FIELD,), (VIEW,), "0.10"))
    assert await migrate(connection, Schema((FIELD,), (VIEW,), "0.9")) == []


async def test_definitions_without_a_version_are_older_than_any(connection: Connection) -> None:
    await migrate(connection, Schema((FIELD,), (VIEW,), "0.9"))
    await connection.execute("ALTER TABLE gristmill_definition DROP COLUMN version")
    assert await migrate(connection, Schema((FIELD,), (WIDER,), "0.9")) == ["farm/views"]


async def test_a_database_from_before_the_first_release_is_refused_with_what_to_do(connection: Connection) -> None:
    await connection.execute(
        "CREATE TABLE gristmill_migration (number int PRIMARY KEY, name text, checksum text, applied_at timestamptz);"
        "INSERT INTO gristmill_migration VALUES (14, '0014_skipped', 'aa', now()); CREATE TABLE task (id bigint)"
    )
    with pytest.raises(Refused) as refused:
        await migrate(connection)
    assert str(refused.value) == OLDER
    assert (await schema_state(connection)).older
    assert await tables(connection) == {"gristmill_migration", "task"}


async def test_an_old_server_is_refused(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OLDEST_SERVER", 99)
    with pytest.raises(Refused, match=r"The server is PostgreSQL \d\d and Gristmill needs 99 or newer"):
        await migrate(connection, farm(FIELD))


async def test_a_server_whose_views_cannot_keep_clients_apart_is_used_only_if_that_is_wanted(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "INVOKER_VIEWS", 990_000)
    with pytest.raises(Refused, match=r"upgrade it to 99 or newer, or set GRISTMILL_ROW_SECURITY=false"):
        await migrate(connection)
    assert await migrate(connection, row_security=False)
    (options,) = await (
        await connection.execute("SELECT reloptions FROM pg_class WHERE relname = 'tasks'")
    ).fetchone() or (None,)
    assert options is None  # such a server does not know views with the rights of their user


async def test_a_server_without_pgvector_is_refused(connection: Connection) -> None:
    if connection.info.server_version < 180_000:
        pytest.skip("before 18 a server cannot be told to look elsewhere for extensions")
    await connection.execute("SET extension_control_path = '/nowhere'")
    with pytest.raises(Refused, match=r"does not have pgvector: .* run CREATE EXTENSION vector\.$"):
        await migrate(connection, farm(FIELD))
    assert await tables(connection) == set()


@pytest.mark.parametrize("version", ["0.4.4", "0.7"])
async def test_an_old_pgvector_is_refused(connection: Connection, version: str) -> None:
    await connection.execute("CREATE EXTENSION vector")
    await connection.execute("UPDATE pg_extension SET extversion = %s WHERE extname = 'vector'", [version])
    with pytest.raises(Refused, match=f"has pgvector {version} and Gristmill needs 0.8 or newer"):
        await migrate(connection, farm(FIELD))
    await connection.execute("UPDATE pg_extension SET extversion = '0.10.1' WHERE extname = 'vector'")
    assert await migrate(connection, farm(FIELD)) == ["farm/0001_field"]


async def test_a_user_who_may_not_install_pgvector_is_told_whom_to_ask(
    connection: Connection, guest: sql.Identifier
) -> None:
    become = sql.SQL("SET ROLE {}").format(guest)
    await connection.execute(become)
    with pytest.raises(Refused, match="ask an administrator to run CREATE EXTENSION vector"):
        await migrate(connection, farm(FIELD), row_security=False)
    await connection.execute("RESET ROLE; CREATE EXTENSION vector")
    await connection.execute(become)
    assert await migrate(connection, farm(FIELD), row_security=False) == ["farm/0001_field"]


async def test_a_user_who_may_not_create_roles_is_told_the_two_statements_for_the_administrator(
    connection: Connection, guest: sql.Identifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server of the tests has the role already, so it is looked for under another name here."""
    tenant = f"tenant_{uuid4().hex[:8]}"
    monkeypatch.setattr("gristmill.db.roles.TENANT", tenant)
    monkeypatch.setattr("gristmill.db.roles.CREATE", sql.SQL(f"CREATE ROLE {tenant} NOLOGIN"))  # pyright: ignore
    monkeypatch.setattr("gristmill.db.roles.GRANT", sql.SQL(f"GRANT {tenant} TO {{}}"))  # pyright: ignore
    become = sql.SQL("SET ROLE {}").format(guest)
    await connection.execute("CREATE EXTENSION vector")
    await connection.execute(become)
    with pytest.raises(Refused) as refused:
        await migrate(connection, farm(FIELD))
    name = guest.as_string().strip('"')
    assert f'run CREATE ROLE {tenant} NOLOGIN; and GRANT {tenant} TO "{name}";' in str(refused.value)
    assert "or set GRISTMILL_ROW_SECURITY=false" in str(refused.value)
    await connection.execute("RESET ROLE")
    await connection.execute(f'CREATE ROLE {tenant} NOLOGIN; GRANT {tenant} TO "{name}"'.encode())
    await connection.execute(become)
    assert await migrate(connection, farm(FIELD)) == ["farm/0001_field"]
    await connection.execute(f"RESET ROLE; DROP ROLE {tenant}".encode())


# --- files


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Path]:
    """A house of two rooms."""
    for room, needs in (("barn", ""), ("attic", "-- needs: barn\n")):
        folder = tmp_path / room / "schema"
        folder.mkdir(parents=True)
        (folder / "0001_tables.sql").write_text(f"-- Tables.\n{needs}CREATE TABLE {room} (id int);\n")
        (folder / "views.sql").write_text(f"-- Views.\nCREATE VIEW {room}s AS SELECT * FROM {room};\n")
    return tmp_path


def test_a_room_comes_behind_those_that_it_needs_and_all_tables_before_any_view(house: Path) -> None:
    schema = read_schema(house)
    assert [str(one) for one in schema.migrations] == ["barn/0001_tables", "attic/0001_tables"]
    assert [str(one) for one in schema.definitions] == ["barn/views", "attic/views"]
    assert [one.views for one in schema.definitions] == [["barns"], ["attics"]]


def test_a_file_with_a_wrong_name_is_no_migration(house: Path) -> None:
    (house / "barn" / "schema" / "queue.sql").touch()
    with pytest.raises(ValueError, match=r"barn/schema/queue\.sql is no name for a migration"):
        read_schema(house)


def test_a_room_cannot_need_one_without_a_schema(house: Path) -> None:
    (house / "barn" / "schema" / "0001_tables.sql").write_text("-- Tables.\n-- needs: cellar\n")
    with pytest.raises(ValueError, match="needs the schema of cellar, which has none"):
        read_schema(house)


PINNED = {  # by the beginning of its checksum: whoever adds a migration adds it here, and from then on leaves it alone
    "db/0001_clock": "e0169094f7f2",
    "scopes/0001_tables": "beebcc302666",
    "queue/0001_tables": "1ebdc1462f29",
    "queue/0002_counters": "f2d8e139bae5",
    "queue/0003_patient_schedules": "5332bc61ab1f",
    "queue/0004_done_before": "fd4ef10f695a",
    "documents/0001_tables": "f459d70d8bd2",
    "documents/0002_viewing": "c76aa17f3b9e",
    "documents/0003_names": "426063984e0d",
    "documents/0004_small_bytes": "56d5cdca00d0",
    "documents/0005_dead_documents": "5b5c26f60501",
    "documents/0006_phases": "0575a0f2b30b",
    "documents/0007_unreadable": "e86350a9045b",
    "documents/0008_listed_tally": "49b7310cc94f",
    "knowledge/0001_tables": "0967e3e4647c",
    "sources/0001_sources": "bc86b15d3030",
    "sources/0002_links": "587b17966f10",
    "sources/0003_leaving": "481a797e7408",
    "sources/0004_lists": "c7726d3f328c",
    "sources/0005_listings": "9f643a18882c",
    "sources/0006_newest": "ad531a71fee5",
    "sources/0007_declared_by": "967072087f55",
    "sources/0008_forgotten": "46a1b71991df",
    "sources/0009_pages_of_links": "7003b8bc0e78",
    "sources/0010_in_hand": "39c16c1e5081",
    "sources/0011_wishes": "ba866e7f82d7",
    "knowledge/0002_merges": "b935525887cf",
    "alarms/0001_tables": "2737fa2ccb71",
    "alarms/0002_lists": "d861491d7649",
    "records/0001_tables": "ba6981ba8f7a",
    "qualifier/0001_items": "4499d445ff74",
    "qualifier/0002_decisions": "4042a77c3b0d",
    "records/0002_counts": "db13b70aeb83",
    "web/0001_access": "275ffda50409",
    "web/0002_gate": "ec91249278ee",
    "web/0003_saved_views": "54697f2e39b5",
    "web/0004_audit_by_subject": "c53222527c7b",
    "agents/0001_runs": "3e2283d1697d",
    "agents/0002_conversations": "54c1694643d0",
    "agents/0003_checkpoints": "1ba401903649",
    "agents/0004_memory": "f0633dd511f0",
    "agents/0005_git_questions": "9027e20e23c3",
    "agents/0006_delegations": "48212ae07cec",
    "agents/0007_lists": "9c3b92191bba",
    "agents/0008_step_note": "ad40418ba618",
    "agents/0009_refused_effects": "7afe96ff39db",
    "agents/0010_session_owner": "e1d6caee715b",
    "agents/0011_step_progress": "a8beb01c8be9",
    "agents/0012_earlier_attempts": "f13693457375",
    "agents/0013_answering_messages": "c8696cbcc04a",
    "agents/0014_heard_messages": "13488fe3c45c",
    "qualifier/0003_same_ids": "3b8a8fedc2b0",
}


def test_a_migration_that_people_have_applied_is_never_edited() -> None:
    """Their database would be refused, with all that is in it."""
    assert {str(migration): migration.checksum[:12] for migration in read_schema().migrations} == PINNED


def test_the_migrations_of_a_room_are_numbered_without_gaps() -> None:
    numbers: dict[str, list[int]] = {}
    for migration in read_schema().migrations:
        numbers.setdefault(migration.room, []).append(migration.number)
    assert all(found == list(range(1, len(found) + 1)) for found in numbers.values())


# --- connections


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
