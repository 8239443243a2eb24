"""Worker processes are killed while they load and embed: nothing is lost, and nothing is done twice."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tables import House, reviews

from gristmill.db import Database
from gristmill.records import RowCounts

ROWS = 6_000
FEW = 60  # records are embedded: the real model is slow
PATIENCE = 240.0  # seconds


@contextmanager
def worker(url: str, data: Path) -> Iterator["subprocess.Popen[bytes]"]:
    environment = os.environ | {
        "GRISTMILL_DATABASE_URL": url,
        "GRISTMILL_DATA": str(data),
        "GRISTMILL_RECORDS_BATCH": "20",
        "GRISTMILL_RECORDS_EMBED_JOB": "20",
        "GRISTMILL_RECORDS_EMBED_BATCH": "5",
        "GRISTMILL_QUEUE_RESCUE": "300ms",
        "GRISTMILL_LOG_LEVEL": "error",
    }
    words = [sys.executable, "-m", "gristmill", "worker", "--queues", "ingestion,vectorization"]
    process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def until_more(db: Database, count: str, than: int) -> int:
    """Wait until a count is above this number; the count."""
    async with asyncio.timeout(PATIENCE):
        while True:
            async with db.transaction() as tx:
                found: int = await tx.value(count)  # pyright: ignore[reportArgumentType]
            if found > than:
                return found
            await asyncio.sleep(0.02)


async def test_a_load_whose_workers_are_killed_loads_every_row_once(house: House, url: str) -> None:
    started = await house.add(reviews(ROWS), embed=False)
    loaded = 0
    for _ in range(2):  # the third attempt is the last one
        with worker(url, house.folder):
            loaded = await until_more(house.db, "SELECT count(*) FROM data_records", loaded)
    with worker(url, house.folder):
        await until_more(house.db, "SELECT count(*) FROM data_import WHERE state = 'loaded'", 0)
    assert (await house.report(started.document)).counts == RowCounts(loaded=ROWS)
    assert len(set(await house.records("external_id"))) == ROWS


async def test_an_embedding_whose_workers_are_killed_embeds_every_record_once(house: House, url: str) -> None:
    await house.add(reviews(FEW))
    done = 0
    findable = "SELECT count(*) FROM data_records WHERE chunk IS NOT NULL"
    for _ in range(2):
        with worker(url, house.folder):
            done = await until_more(house.db, findable, done)
    with worker(url, house.folder):
        await until_more(house.db, findable, FEW - 1)
    async with house.db.transaction() as tx:
        for table in ("chunk", "embedding"):
            assert await tx.value(f"SELECT count(*) FROM {table}") == FEW, table  # pyright: ignore[reportArgumentType]
