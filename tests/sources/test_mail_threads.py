"""Threads: whatever order mails come in, one by one or together, the same mails belong together under the same name."""

from itertools import permutations

import pytest

from gristmill.db import Database
from gristmill.scopes import GLOBAL_ID
from gristmill.sources.threads import join_threads, name_threads

MAILS = {"d": ("d", "c"), "c": ("c", "a", "b"), "b": ("b", "a"), "x": ("x", "y")}
THREADS = dict.fromkeys("abcd", "a") | dict.fromkeys("xy", "x")


@pytest.mark.parametrize("size", [1, 2, 3, 4])
async def test_every_order_of_arrival_ends_with_the_same_threads(db: Database, size: int) -> None:
    for order in permutations(MAILS):
        async with db.transaction() as tx:
            for start in range(0, len(order), size):
                await join_threads(tx, GLOBAL_ID, [MAILS[mail] for mail in order[start : start + size]])
            rows = await tx.all("SELECT message, thread FROM mail_thread")
            await tx.execute("DELETE FROM mail_thread")
        assert {row.message: row.thread for row in rows} == THREADS, order


async def test_each_mail_is_told_its_thread(db: Database) -> None:
    async with db.transaction() as tx:
        assert await join_threads(tx, GLOBAL_ID, [MAILS["d"], MAILS["x"]]) == ["c", "x"]
        assert await join_threads(tx, GLOBAL_ID, [MAILS["c"], ("z", "d")]) == ["a", "a"]


def test_a_chain_of_thousands_is_named_in_no_time() -> None:
    chains = [(str(n), str(n + 1)) for n in range(20_000)]
    assert set(name_threads(chains).values()) == {"0"}
