"""The server is stopped without warning in the middle of the work, again and again."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest
from plant import Grain
from watch import ask, closed, crew, proven, until

from gristmill.db import Database
from gristmill.db.embedded import Embedded
from gristmill.db.migrate import migrate
from gristmill.queue.groups import open_group, seal
from gristmill.queue.letters import Envelope
from gristmill.queue.send import send_many

TASKS, CRASHES = 1600, 3


@pytest.fixture
async def own_server() -> AsyncIterator[Embedded]:
    """A server that only this test uses, in a folder that the server's user may enter."""
    with tempfile.TemporaryDirectory(prefix="gristmill-faults-") as folder:
        os.chmod(folder, 0o711)
        server = Embedded(Path(folder) / "data", {"shared_buffers": "64MB"})
        await asyncio.to_thread(server.start)
        try:
            async with Database(server.url()) as db:
                connection = await db.connect("migrate")
                async with connection:
                    await migrate(connection)
            yield server
        finally:
            await asyncio.to_thread(server.stop, "immediate")


async def test_nothing_is_lost_or_done_twice_when_the_server_crashes(own_server: Embedded, tmp_path: Path) -> None:
    url = own_server.url()
    async with crew(url, tmp_path, data=own_server.data) as mill:
        async with Database(url) as db, db.transaction() as tx:
            await tx.execute("INSERT INTO queue (name, max_attempts, retry_base) VALUES ('mill', 50, '50 ms')")
            group = await open_group(tx)
            await send_many(
                tx,
                [
                    Envelope(Grain(n, n % 5 * 0.004, fails=int(n % 25 == 0)), parent=group if n % 2 else None)
                    for n in range(TASKS)
                ],
            )
            await seal(tx, group)
        for _ in range(2):
            mill.start()
        mill.start(solo=True, stay=True)
        for crash in range(CRASHES):
            await until(lambda done=300 * (crash + 1): completed(url, done), 20, "some progress")
            await asyncio.to_thread(own_server.stop, "immediate")
            if crash % 2:  # else the workers start it again by themselves
                await asyncio.to_thread(own_server.start)
        async with Database(url, revive=own_server.start) as db:
            await until(lambda: up(db), 20, "the server")
            left = await ask(db, "SELECT count(*) FROM task WHERE outcome IS NULL")
            assert left > 0, "it crashed while there was work"
            await until(closed(db), 25, "all done")
            followers = {-n for n in range(TASKS) if n % 10 == 9}
            await proven(db, {*range(TASKS), *followers})
            assert await ask(db, "SELECT status FROM task_group") == "completed"


async def completed(url: str, n: int) -> bool:
    async with Database(url) as db:
        return await up(db) and await ask(db, "SELECT count(*) >= %(n)s FROM ledger", n=n)


async def up(db: Database) -> bool:
    try:
        await (await db.connect("probe")).close()
    except psycopg.OperationalError:
        return False
    return True
