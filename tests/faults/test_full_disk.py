"""The disk is full for a while: tasks wait, nothing is lost, and when there is room it goes on."""

import asyncio
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
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

TASKS = range(1, 1201)
LEASE = 4.0
EXPECTED = {*TASKS, *(-n for n in TASKS if n % 10 == 9)}
FULL = """
CREATE TABLE disk (is_full boolean NOT NULL);
INSERT INTO disk VALUES (false);
CREATE FUNCTION write_to_disk() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (SELECT is_full FROM disk) THEN
    RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full';
  END IF;
  RETURN NULL;
END $$
"""
ENDED = (
    "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = current_database() AND xact_start < %(since)s"
    " AND pid <> pg_backend_pid()"
)
ON = "CREATE TRIGGER disk BEFORE INSERT OR UPDATE OR DELETE ON {} FOR EACH STATEMENT EXECUTE FUNCTION write_to_disk()"


@pytest.mark.parametrize(
    ("tables", "seconds"),
    [
        (["task", "ticket", "ledger"], 1.0),
        # past the lease, and heartbeats too
        (["task", "ticket", "ledger", "worker", "queue_tally", "task_group"], 1.5 * LEASE),
    ],
    ids=["for tasks", "for everything"],
)
async def test_a_full_disk_only_delays(
    tables: list[str], seconds: float, db: Database, url: str, tmp_path: Path
) -> None:
    async with crew(url, tmp_path, lease=LEASE, heartbeat=0.2, rescue=0.3) as mill:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(FULL)
            for table in tables:
                connection.execute(ON.format(table))
        async with db.transaction() as tx:
            await tx.execute("INSERT INTO queue (name, retry_base) VALUES ('mill', '50 ms')")
            group = await open_group(tx)
            await send_many(tx, [Envelope(Grain(n, 0.04), parent=group if n % 3 else None) for n in TASKS])
            await seal(tx, group)
        mill.start()
        await until(lambda: ask(db, "SELECT count(*) > 50 FROM ledger"), 20, "some progress")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("UPDATE disk SET is_full = true")
            now = await ask(db, "SELECT clock_timestamp()")
            await until(lambda: ask(db, ENDED, since=now), 20, "the end of what was under way")
            before = await ask(db, "SELECT count(*) FROM ledger")
            await asyncio.sleep(seconds)
            assert await ask(db, "SELECT count(*) FROM ledger") == before < len(TASKS)
            connection.execute("UPDATE disk SET is_full = false")
        await until(closed(db), 20, "all done")
        await proven(db, EXPECTED)
        assert await ask(db, "SELECT status FROM task_group") == "completed"
        assert await ask(db, "SELECT max(attempts) FROM task") == 1, "a full disk is held against no task"


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system in memory that is soon full."""
    with tempfile.TemporaryDirectory(prefix="gristmill-faults-") as folder:
        os.chmod(folder, 0o711)
        disk = Path(folder) / "disk"
        disk.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=288m,mode=0711", "gristmill", str(disk)]
        if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
            pytest.skip("only root may mount a small disk, and not everywhere")
        try:
            yield disk
        finally:
            subprocess.run(["umount", "--lazy", str(disk)], check=True)


async def test_a_server_whose_disk_is_really_full_goes_on_when_there_is_room(small_disk: Path, tmp_path: Path) -> None:
    server = Embedded(small_disk / "data", {"shared_buffers": "32MB", "min_wal_size": "32MB", "max_wal_size": "48MB"})
    ballast = small_disk / "ballast"
    await asyncio.to_thread(server.start)
    try:
        async with Database(server.url()) as db:
            connection = await db.connect("migrate")
            async with connection:
                await migrate(connection)
        async with crew(server.url(), tmp_path, data=server.data) as mill:
            async with Database(server.url()) as db, db.transaction() as tx:
                await tx.execute("INSERT INTO queue (name, max_attempts, retry_base) VALUES ('mill', 50, '50 ms')")
                await send_many(tx, [Envelope(Grain(n, 0.02)) for n in TASKS])
            mill.start()
            mill.start(solo=True, stay=True)
            async with Database(server.url()) as db:
                await until(lambda: ask(db, "SELECT count(*) > 100 FROM ledger"), 20, "some progress")
            fill(ballast)
            with pytest.raises(psycopg.Error):
                write_on(server.url())
            await asyncio.sleep(2)
            ballast.unlink()
            async with Database(server.url(), revive=server.start) as db:
                await until(lambda: answers(db), 20, "the server")
                await until(closed(db), 25, "all done")
                await proven(db, EXPECTED)
    finally:
        ballast.unlink(missing_ok=True)
        await asyncio.to_thread(server.stop, "immediate")


def fill(ballast: Path) -> None:
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(65536))


def write_on(url: str) -> None:
    """Make the log grow until there is no room for it."""
    with psycopg.connect(url, autocommit=True) as connection:
        for _ in range(1000):
            connection.execute("SELECT pg_switch_wal(), pg_logical_emit_message(true, 'x', repeat('x', 100000))")


async def answers(db: Database) -> bool:
    try:
        await db.revive()
        await (await db.connect("probe")).close()
    except Exception:  # noqa: BLE001 whatever it says, it does not answer yet
        return False
    return True
