"""Connections are lent as transactions, or statement by statement, and come back as they were."""

from contextlib import AsyncExitStack, suppress
from typing import Any

import pytest

from gristmill.db import Database, outage, outlast_outage, pool
from gristmill.errors import NoSpace, Unreachable
from gristmill.scopes import Scope

pytestmark = pytest.mark.usefixtures("ends_sessions")

NUMBER = "SELECT txid_current()"  # of the transaction that asks


async def test_all_statements_of_a_transaction_are_of_one_and_those_of_a_reader_each_of_their_own(db: Database) -> None:
    async with db.transaction() as tx:
        assert await tx.value(NUMBER) == await tx.value(NUMBER)
    async with db.reading() as tx:
        assert await tx.value(NUMBER) != await tx.value(NUMBER)


async def test_a_connection_that_was_lent_to_a_reader_keeps_no_transaction_from_rolling_back(db: Database) -> None:
    one = Database(db.url, size=1)
    async with one:
        async with one.reading() as tx:
            await tx.one("SELECT 1")
        with suppress(ZeroDivisionError):
            async with one.transaction() as tx:
                await tx.one("INSERT INTO scope (client, project) VALUES ('nobody', '') RETURNING id")
                raise ZeroDivisionError
        async with one.reading() as tx:
            assert await tx.value("SELECT count(*) FROM scope WHERE client = 'nobody'") == 0


async def test_a_reader_that_fails_leaves_the_connection_to_others(db: Database) -> None:
    one = Database(db.url, size=1)
    async with one:
        with suppress(ZeroDivisionError):
            async with one.reading() as tx:
                await tx.one("SELECT 1")
                raise ZeroDivisionError
        async with one.transaction() as tx:
            assert await tx.value("SELECT 1") == 1


async def test_what_is_read_beside_goes_by_connections_that_do_nothing_else(db: Database) -> None:
    async def server_process(*, beside: bool) -> int:
        async with db.reading(beside=beside) as tx:
            return await tx.value("SELECT pg_backend_pid()")

    usual = {await server_process(beside=False) for _ in range(3)}
    beside = {await server_process(beside=True) for _ in range(3)}
    async with db.transaction() as tx:
        usual.add(await tx.value("SELECT pg_backend_pid()"))
    assert len(beside) == 1
    assert beside.isdisjoint(usual)


@pytest.mark.parametrize("beside", [False, True])
async def test_after_an_outage_both_kinds_of_connections_are_had_anew(
    db: Database, monkeypatch: pytest.MonkeyPatch, beside: bool
) -> None:
    monkeypatch.setattr(pool, "PATIENCE", 0.3)
    monkeypatch.setitem(pool.WATCHFUL, "port", "1")  # where nobody listens
    async with Database(db.url) as cut_off:
        monkeypatch.delitem(pool.WATCHFUL, "port")
        with pytest.raises(Unreachable):
            async with cut_off.reading(beside=beside):
                pass
        for either in (False, True):
            async with cut_off.reading(beside=either) as tx:
                assert await tx.value("SELECT 1") == 1


async def test_a_full_disk_is_told_as_such_and_not_as_a_server_that_is_away(db: Database) -> None:
    with pytest.raises(NoSpace, match=r"the disk of the database at .* is full"):
        async with db.transaction() as tx:
            await tx.one("DO $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$")


async def test_whoever_waits_for_space_says_so(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outage, "PAUSE", 0)
    said: list[str] = []
    await outlast_outage(db, said.append, NoSpace("full"))
    await outlast_outage(db, said.append, Unreachable("away"))
    assert [sentence.partition(": ")[2] for sentence in said] == [
        "this goes on when there is space again.",
        "this goes on when it is back.",
    ]


HANG_UP = """
SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND usename = current_user
"""


@pytest.mark.parametrize("how", [{}, {"beside": True}, {"seen_from": Scope("acme")}])
async def test_no_connection_is_lent_whose_server_hung_up_meanwhile(db: Database, how: dict[str, Any]) -> None:
    async with Database(db.url) as pooled, AsyncExitStack() as held:
        for _ in range(4):
            tx = await held.enter_async_context(pooled.reading(**how))
            assert await tx.value("SELECT 1") == 1
        await held.aclose()
        async with await db.connect("restart") as connection:
            await connection.execute(HANG_UP)
        for _ in range(6):
            async with pooled.reading(**how) as tx:
                assert await tx.value("SELECT 1") == 1
