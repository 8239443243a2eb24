"""Threads: whatever order mails come in, the same mails belong together under the same name."""

from itertools import permutations

from gristmill.db import Database
from gristmill.scopes import GLOBAL_ID
from gristmill.sources.threads import join_thread

MAILS = {"d": ("d", "c"), "c": ("c", "a", "b"), "b": ("b", "a"), "x": ("x", "y")}


async def test_every_order_of_arrival_ends_with_the_same_threads(db: Database) -> None:
    for order in permutations(MAILS):
        async with db.transaction() as tx:
            for mail in order:
                await join_thread(tx, GLOBAL_ID, MAILS[mail])
            rows = await tx.all("SELECT message, thread FROM mail_thread")
            await tx.execute("DELETE FROM mail_thread")
        assert {row.message: row.thread for row in rows} == dict.fromkeys("abcd", "a") | dict.fromkeys("xy", "x"), order
