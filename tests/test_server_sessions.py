"""The sessions of closed connections: they go on as new with the next connection, or they end."""

import asyncio
import os
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from databases import Databases, in_database
from gristmill.db import Connection, Database
from gristmill.scopes import Scope
from server_sessions import MOST, SESSIONS

pytestmark = pytest.mark.usefixtures("keeping")
LOCKS = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"


@pytest.fixture
def keeping(url: str) -> None:
    with psycopg.connect(url) as connection:
        if connection.info.server_version < 150_000:
            pytest.skip("this server counts rows later: no session is kept")


def pid_of(connection: Connection) -> int:
    return connection.info.backend_pid


async def ask(connection: Connection, query: str) -> Any:
    (found,) = await (await connection.execute(query)).fetchone() or (None,)  # type: ignore[arg-type]
    return found


async def visit(url: str, *statements: str, name: str = "visit") -> int:
    """The server's process of a connection that ran these statements, and was closed."""
    connection = await Database(url).connect(name)
    for statement in statements:
        await connection.execute(statement)  # type: ignore[arg-type]
    pid = pid_of(connection)
    await connection.close()
    assert connection.closed
    return pid


async def test_a_connection_goes_on_with_the_session_that_the_last_one_left(url: str) -> None:
    assert await visit(url) == await visit(url)


async def test_the_connections_of_a_pool_go_on_with_the_sessions_of_another_pool(url: str) -> None:
    found: list[set[int]] = []
    for _ in range(2):
        async with Database(url) as db, db.transaction() as one, db.transaction() as two:
            found.append({await tx.value("SELECT pg_backend_pid()") for tx in (one, two)})
    assert found[0] == found[1]


async def test_a_connection_that_is_closed_can_no_longer_be_used(url: str) -> None:
    connection = await Database(url).connect("visit")
    await connection.close()
    await connection.close()
    with pytest.raises(psycopg.OperationalError):
        await connection.execute("SELECT 1")


async def test_a_session_forgets_its_settings_and_its_role(url: str) -> None:
    settings = "SELECT array_agg(name || '=' || setting ORDER BY name) FROM pg_settings WHERE source = 'session'"
    async with await Database(url).connect("visit") as connection:
        before = await ask(connection, settings)
    changes = ("SET gristmill.clock_offset = '2 hours'", "SET work_mem = '1MB'", "SET ROLE gristmill_tenant")
    pid = await visit(url, *changes)
    async with await Database(url).connect("visit") as connection:
        assert pid_of(connection) == pid
        assert await ask(connection, settings) == before
        assert await ask(connection, "SELECT current_user = session_user")
        assert await ask(connection, "SELECT abs(extract(epoch FROM clock() - clock_timestamp())) < 1")


async def test_a_session_of_a_tenant_sees_everything_when_another_takes_it(url: str) -> None:
    async with Database(url, size=1) as db:
        async with db.transaction() as tx:
            await tx.execute("INSERT INTO scope (client, project) VALUES ('acme', ''), ('other', '')")
        async with db.transaction(seen_from=Scope("acme")) as tx:
            assert await tx.value("SELECT count(*) FROM scope WHERE client <> ''") == 1
    async with Database(url) as db, db.transaction() as one, db.transaction() as two:
        for tx in (one, two):
            assert await tx.value("SELECT count(*) FROM scope WHERE client <> ''") == 2


async def test_a_session_forgets_what_it_heard_held_and_made(url: str) -> None:
    cursor = ("BEGIN", "DECLARE c CURSOR WITH HOLD FOR SELECT 1", "COMMIT")
    heard_and_held = ("LISTEN mill", "NOTIFY mill", "SELECT pg_advisory_lock(7)")
    pid = await visit(url, *heard_and_held, "CREATE TEMP TABLE ours (n int)", *cursor)
    async with await Database(url).connect("visit") as connection:
        assert pid_of(connection) == pid
        assert await ask(connection, LOCKS) == 0
        assert await ask(connection, "SELECT to_regclass('ours')") is None
        assert await ask(connection, "SELECT count(*) FROM pg_cursors WHERE name = 'c'") == 0
        assert await ask(connection, "SELECT count(*) FROM pg_listening_channels()") == 0
        assert [notice async for notice in connection.notifies(timeout=0)] == []


async def test_what_psycopg_prepared_goes_on_and_what_others_prepared_ends_the_session(url: str) -> None:
    pid = await visit(url, "SELECT 40 + 2")
    assert await visit(url, "SELECT 40 + 2", "PREPARE ours AS SELECT 1") == pid
    assert await visit(url) != pid


@pytest.mark.parametrize("statement", ["SELECT 1", "SELECT 1 / 0"])
async def test_a_session_within_a_transaction_ends_with_its_connection(url: str, statement: str) -> None:
    connection = await Database(url).connect("visit")
    await connection.execute("BEGIN")
    with suppress(psycopg.errors.DivisionByZero):
        await connection.execute(statement)  # type: ignore[arg-type]
    pid = pid_of(connection)
    await connection.close()
    assert await visit(url) != pid


async def test_a_session_that_works_ends_with_its_connection(url: str) -> None:
    connection = await Database(url).connect("visit")
    pid, work = pid_of(connection), asyncio.create_task(connection.execute("SELECT pg_sleep(60)"))
    while not connection.lock.locked():  # noqa: ASYNC110 the task says nothing when it begins
        await asyncio.sleep(0)
    await connection.close()
    with pytest.raises(psycopg.OperationalError):
        await work
    assert await visit(url) != pid


async def test_no_session_is_taken_that_the_server_ended(url: str) -> None:
    pid = await visit(url)
    await visit(url, f"SELECT pg_terminate_backend({pid}, 10000)", name="judge")
    assert await visit(url) != pid


async def test_another_name_another_setting_or_another_way_means_another_session(url: str) -> None:
    pid = await visit(url)
    assert await visit(url, name="other") != pid
    assert await visit(make_conninfo(url, options="-c work_mem=1MB")) != pid
    folder = str(conninfo_to_dict(url).get("host"))
    if folder.startswith("/"):
        roundabout = make_conninfo(url, host=f"{folder}/.")
        assert await visit(roundabout) != await visit(roundabout)


async def test_a_copy_of_the_process_takes_no_session(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pid = await visit(url)
    with monkeypatch.context() as copy:
        copy.setattr(SESSIONS, "process", os.getppid())
        assert await visit(url) != pid
    assert await visit(url) == pid


async def test_only_so_many_sessions_wait(url: str) -> None:
    held = [await Database(url).connect("visit") for _ in range(MOST + 2)]
    for connection in held:
        await connection.close()
    assert len(SESSIONS.list_pids(url)) == MOST


async def test_a_cleared_database_keeps_its_sessions_and_none_of_the_rows_they_wrote(databases: Databases) -> None:
    if not databases.clears:
        pytest.skip("this server, or our user there, lets no database be cleared")
    name = databases.make()
    url = in_database(databases.server, name, databases.owner)
    SESSIONS.lend(url)
    pid = await visit(url, "INSERT INTO queue (name, max_attempts) VALUES ('mill', 3)")
    assert await asyncio.to_thread(databases.clear, name)
    async with await Database(url).connect("visit") as connection:
        assert pid_of(connection) == pid
        assert await ask(connection, "SELECT count(*) FROM queue WHERE name = 'mill'") == 0
    SESSIONS.give_back(url)
    await asyncio.to_thread(databases.drop, name)
    assert SESSIONS.list_pids(url) == []
