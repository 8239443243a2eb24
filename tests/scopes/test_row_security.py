"""Row-level security: a tenant sees its own and GLOBAL rows, changes its own alone, and cannot learn of another's."""

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, LiteralString, cast

import psycopg
import pytest
from neighbour import NUMBER, SECRET, SPECIAL, VALUES, move_in
from psycopg import sql
from psycopg.conninfo import make_conninfo

from gristmill.db import Connection, Database, open_database, pool
from gristmill.errors import Refused
from gristmill.queue.settle import LEASE_LOST
from gristmill.scopes import GLOBAL, Scope, scope_id
from gristmill.settings import Settings
from statements import PARAMETER, PLACEHOLDER, is_copy, parameters_of, prepare_as, read_statements

ACME, MILL, BETA = Scope("acme"), Scope("acme", "mill"), Scope("beta")

# Tables without a scope of their own, each with the reason.
WITHOUT_SCOPE = {
    "gristmill_migration": "the history of the schema",
    "gristmill_definition": "the history of the schema",
    "scope": "it is the list of scopes; its policy compares names",
    "alias": "it belongs to a whole client, which it names; its policy compares names",
    "ticket": "a place in line: it is seen with its task",
    "blob": "bytes are kept once, whoever has them: they are seen with a document",
    "blob_piece": "as blob",
    "staged_blob": "a pin is a secret that its stager alone knows; no tenant sees the table",
    "claimed_blob": "which bytes a transaction has had in its hands; no tenant sees the table",
    "queue": "settings of the machine",
    "queue_health": "the health of the machine",
    "sweep": "where the janitor of the machine goes on",
    "limiter": "settings of the machine",
    "limiter_hold": "turns of the machine's workers",
    "worker": "the machine's processes",
    "lease": "numbers of tasks that a worker holds; what they are is seen with the task",
    "embedding_model": "models of the machine",
    "alarm_round": "when the rules of the machine were looked at",
    "phase_kind": "the phases of the program",
    "embedding_account": "the account of the machine",
    "access_key": "keys are the operator's; what one is bound to is no secret of a client's",
    "web_session": "who is signed in; no tenant sees the table",
    "sign_in_link": "links of the operator",
    "sign_in_attempt": "attempts from anywhere, by nobody's client",
    "web_write": "answers that are repeated to the same key alone; no tenant sees the table",
    "web_allowance": "how often keys may ask; no tenant sees the table",
    "person_request": "when somebody last asked, and by which program; nothing of a client",
    "executor_health": "the health of the machine",
    "item_sweep": "where the sweep of the machine goes on",
}
# Tables that no client's data is in, and that no tenant sees a row of.
UNSEEN = {
    "gristmill_migration",
    "gristmill_definition",
    "queue_health",
    "sweep",
    "limiter",
    "limiter_hold",
    "staged_blob",
    "claimed_blob",
    "embedding_account",
    "access_key",
    "web_session",
    "sign_in_link",
    "sign_in_attempt",
    "web_write",
    "web_allowance",
    "item_sweep",
}

COLUMNS = """
SELECT c.relname AS name, c.relrowsecurity AS secured,
       EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'scope' AND a.attnotnull) AS scoped,
       ARRAY(SELECT p.polname::text FROM pg_policy p WHERE p.polrelid = c.oid ORDER BY p.polname) AS policies
  FROM pg_class c WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace ORDER BY c.relname
"""


async def test_every_table_has_a_scope_and_policies_or_a_reason(db: Database) -> None:
    async with db.transaction() as tx:
        tables = await tx.all(COLUMNS)
    assert len(tables) > 25
    for table in tables:
        assert table.scoped != (table.name in WITHOUT_SCOPE), table.name
        if table.scoped or table.name in ("scope", "alias", "ticket", "blob", "blob_piece"):
            assert table.secured, table.name
            assert table.policies == ["added", "changed", "removed", "seen"], table.name


async def test_a_tenant_may_not_even_look_at_the_tables_of_the_machine_that_it_does_not_need(db: Database) -> None:
    async with db.transaction() as tx:
        rights = "SELECT has_table_privilege('gristmill_tenant', %(table)s, 'SELECT')"
        assert {table for table in UNSEEN if await tx.value(rights, table=table)} == set()


async def test_every_view_has_the_rights_of_the_user_who_asks(db: Database) -> None:
    async with db.transaction() as tx:
        views = await tx.all(
            "SELECT relname, reloptions FROM pg_class WHERE relkind = 'v' AND relnamespace = 'public'::regnamespace"
        )
    assert len(views) > 5
    assert [view.relname for view in views if "security_invoker=true" not in (view.reloptions or [])] == []


async def test_the_everyday_role_is_no_superuser_owns_nothing_and_cannot_log_in(db: Database) -> None:
    async with db.transaction(seen_from=ACME) as tx:
        assert await tx.value("SELECT current_user::text") == "gristmill_tenant"
        role = await tx.one("SELECT * FROM pg_roles WHERE rolname = current_user")
    assert role is not None
    rights = (role.rolsuper, role.rolbypassrls, role.rolcanlogin, role.rolcreaterole, role.rolcreatedb)
    assert not any(rights)
    async with db.transaction() as tx:
        owned = "SELECT count(*) FROM pg_class WHERE pg_get_userbyid(relowner) = 'gristmill_tenant'"
        assert await tx.value(owned) == 0


async def test_who_logs_in_to_the_embedded_server_is_no_superuser(db: Database, owner: str) -> None:
    if owner != "gristmill":
        pytest.skip("the server is somebody else's")
    async with db.transaction() as tx:
        assert not await tx.value("SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user")


# --- what is seen

ADD = "INSERT INTO entity (scope, key, type) VALUES (%(scope)s, %(key)s, 'mark')"
SEEN: LiteralString = "SELECT key FROM entity ORDER BY key"


async def mark_scopes(db: Database) -> None:
    async with db.transaction() as tx:
        for scope in (GLOBAL, ACME, MILL, Scope("acme", "oven"), BETA):
            await tx.execute(ADD, scope=await scope_id(tx, scope), key=str(scope))


@pytest.mark.parametrize(
    ("scope", "seen"),
    [
        (None, ["GLOBAL", "acme", "acme/mill", "acme/oven", "beta"]),
        (GLOBAL, ["GLOBAL"]),
        (ACME, ["GLOBAL", "acme", "acme/mill", "acme/oven"]),
        (MILL, ["GLOBAL", "acme", "acme/mill"]),
        (BETA, ["GLOBAL", "beta"]),
        (Scope("stranger"), ["GLOBAL"]),
    ],
    ids=str,
)
@pytest.mark.parametrize("reading", [False, True], ids=["transaction", "reading"])
async def test_a_client_sees_its_own_rows_and_those_of_everybody(
    db: Database, scope: Scope | None, seen: list[str], reading: bool
) -> None:
    await mark_scopes(db)
    async with (db.reading if reading else db.transaction)(seen_from=scope) as tx:
        assert [row.key for row in await tx.all(SEEN)] == seen


async def test_connections_of_the_pool_show_each_borrower_its_own(db: Database) -> None:
    await mark_scopes(db)
    for scope, sees in ((ACME, True), (BETA, False), (ACME, True), (GLOBAL, False)):
        async with db.reading(seen_from=scope) as tx:
            assert ("acme" in {row.key for row in await tx.all(SEEN)}) == sees
        with suppress(psycopg.errors.DivisionByZero):
            async with db.transaction(seen_from=scope) as tx:
                assert ("acme" in {row.key for row in await tx.all(SEEN)}) == sees
                await tx.value("SELECT 1 / 0")


async def test_a_session_that_never_said_where_it_looks_from_sees_what_is_everybodys(url: str, db: Database) -> None:
    await mark_scopes(db)
    async with await Database(url).connect("test", role="gristmill_tenant") as connection:
        found = await (await connection.execute(SEEN)).fetchall()
    assert found == [("GLOBAL",)]


async def test_without_row_security_only_the_program_keeps_clients_apart(url: str) -> None:
    async with Database(url, row_security=False) as db:
        await mark_scopes(db)
        async with db.reading(seen_from=ACME) as tx:
            assert len(await tx.all(SEEN)) == 5


@pytest.mark.parametrize("path", ["mill,public", '"$user",public'])
async def test_clients_are_kept_apart_in_any_schema(empty_url: str, path: str) -> None:
    async with await psycopg.AsyncConnection.connect(empty_url, autocommit=True) as connection:
        await connection.execute("CREATE EXTENSION vector")
        await connection.execute(
            f'CREATE SCHEMA "{"mill" if path.startswith("mill") else connection.info.user}"'.encode()
        )
    url = make_conninfo(empty_url, options=f"-csearch_path={path}")
    async with open_database(Settings(database_url=url)) as db:
        await mark_scopes(db)
        async with db.transaction(seen_from=BETA) as tx:
            assert [row.key for row in await tx.all(SEEN)] == ["GLOBAL", "beta"]


async def test_a_session_that_does_not_become_a_tenant_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy may swallow what we say to the server: then nothing is lent."""
    monkeypatch.setattr(pool, "BECOME_TENANT", "SELECT 'swallowed'")
    async with await Database(url).connect("test") as connection:
        with pytest.raises(Refused, match="does not let us act as gristmill_tenant"):
            await pool._become_tenant(connection)  # pyright: ignore[reportPrivateUsage]


async def test_a_temporary_table_of_a_client_deceives_no_policy(db: Database) -> None:
    await mark_scopes(db)
    async with db.transaction(seen_from=ACME) as tx:
        await tx.execute(
            "CREATE TEMP TABLE scope AS SELECT id, 'acme' AS client, '' AS project FROM generate_series(1, 9) id"
        )
        seen = {row.key for row in await tx.all("SELECT key FROM entity")}
    assert "beta" not in seen


async def test_functions_with_the_owners_rights_are_for_tenants_alone(db: Database) -> None:
    async with db.transaction() as tx:
        definers = await tx.all(
            "SELECT oid, proname, proconfig FROM pg_proc WHERE prosecdef AND proowner = 'gristmill'::regrole"
        )
        assert len(definers) > 5
        for one in definers:
            assert not await tx.value("SELECT has_function_privilege('public', %(oid)s, 'EXECUTE')", oid=one.oid), (
                one.proname
            )
            assert any(setting.endswith("pg_temp") for setting in one.proconfig), one.proname


# --- what can be changed


@pytest.mark.parametrize(
    ("seen_from", "target"), [(ACME, BETA), (ACME, GLOBAL), (MILL, ACME), (MILL, Scope("acme", "oven")), (GLOBAL, ACME)]
)
async def test_a_tenant_adds_nothing_to_what_is_not_its_own(db: Database, seen_from: Scope, target: Scope) -> None:
    await mark_scopes(db)
    async with db.transaction() as tx:
        foreign = await scope_id(tx, target)
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
        async with db.transaction(seen_from=seen_from) as tx:
            await tx.execute(ADD, scope=foreign, key="smuggled")


async def test_a_tenant_changes_and_removes_its_own_rows_alone(db: Database) -> None:
    await mark_scopes(db)
    async with db.transaction(seen_from=ACME) as tx:
        changed = await tx.all("UPDATE entity SET type = 'changed' RETURNING key")
        gone = await tx.all("DELETE FROM entity RETURNING key")
    assert {row.key for row in changed} == {row.key for row in gone} == {"acme", "acme/mill", "acme/oven"}
    async with db.transaction() as tx:
        assert [row.key for row in await tx.all(SEEN)] == ["GLOBAL", "beta"]


async def test_no_client_learns_the_name_of_another(db: Database) -> None:
    await mark_scopes(db)
    async with db.transaction(seen_from=BETA) as tx:
        assert {row.client for row in await tx.all("SELECT client FROM scope")} == {"", "beta"}
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await tx.one("INSERT INTO scope (client, project) VALUES ('acme', 'new') RETURNING id")


# --- every statement of the program


@pytest.fixture
async def neighbour(db: Database) -> AsyncIterator[Connection]:
    """A connection that looks from a tenant, into a database in which every table holds something of a neighbour."""
    async with db.transaction() as tx:
        await move_in(tx)
    async with await db.connect("test", role="gristmill_tenant") as connection:
        await connection.execute("SET gristmill.client = 'acme'")
        yield connection


async def test_the_neighbour_has_a_row_in_every_table_that_has_a_scope(db: Database, neighbour: Connection) -> None:
    async with db.transaction() as tx:
        for table in await tx.all(COLUMNS):
            if table.scoped:
                count = sql.SQL("SELECT count(*) FROM {} WHERE scope = %(scope)s").format(sql.Identifier(table.name))
                assert await tx.value(cast(LiteralString, count.as_string()), scope=NUMBER), table.name


async def picture(db: Database) -> dict[str, str]:
    """All that belongs to the neighbour."""
    found: dict[str, str] = {}
    async with db.transaction() as tx:
        for table in await tx.all(COLUMNS):
            if table.scoped:
                rows = f"SELECT array_agg(t::text ORDER BY t::text)::text FROM {table.name} t WHERE scope = {NUMBER}"
                found[table.name] = await tx.value(cast(LiteralString, rows))
    return found


async def test_no_statement_of_the_program_shows_or_changes_anything_of_a_neighbour(
    db: Database, neighbour: Connection
) -> None:
    """Each is run by a tenant of acme with the neighbour's own values as its parameters: ids, keys, hashes, names."""
    before = await picture(db)
    ran: list[str] = []
    for place, text in read_statements():
        if is_copy(text):
            continue
        try:
            rows = await run_as_tenant(neighbour, text, given=SPECIAL.get(place.rpartition(":")[2], {}))
        except psycopg.errors.InsufficientPrivilege:
            continue  # it is none of a tenant's business
        except psycopg.Error as error:
            if error.sqlstate == LEASE_LOST:
                continue  # nothing of it was the tenant's
            raise AssertionError(f"{place}: {error}") from error
        ran.append(place)
        assert SECRET not in repr(rows), f"{place}: {rows}"
        assert str(NUMBER) not in repr(rows), f"{place}: {rows}"
    assert len(ran) > 120
    assert await picture(db) == before


async def run_as_tenant(connection: Connection, text: str, *, given: dict[str, Any]) -> list[Any]:
    names = parameters_of(text)
    await connection.execute(prepare_as("one", text))
    asked = "SELECT parameter_types::text[] FROM pg_prepared_statements WHERE name = 'one'"
    (types,) = await (await connection.execute(asked)).fetchone() or ([],)
    await connection.execute("DEALLOCATE one")
    kinds = dict(zip(names, types, strict=True))
    typed = PARAMETER.sub(lambda found: f"%({found[1]})s::{kinds[found[1]]}", PLACEHOLDER.sub("3", text))
    values = {name: value_for(name, kind) for name, kind in kinds.items()} | given
    cursor = await connection.execute(cast(LiteralString, typed), values)
    return await cursor.fetchall() if cursor.description else []


def value_for(name: str, type_: str) -> Any:
    """Something of the neighbour's that fits a parameter of this name and type."""
    found = VALUES.get((name, type_), VALUES.get(("", type_)))
    assert found is not None, f"no value for {name} of type {type_}: add one to neighbour.VALUES"
    return found
