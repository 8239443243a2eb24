"""Measures how fast tables are loaded and embedded, beside bare COPY and the bare model: `make bench-records`."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT)  # or bench/queue.py would stand in for the standard library's queue

import argparse  # noqa: E402
import asyncio  # noqa: E402
import csv  # noqa: E402
import json  # noqa: E402
import random  # noqa: E402
import shutil  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from collections.abc import AsyncIterator, Sequence  # noqa: E402
from contextlib import asynccontextmanager  # noqa: E402
from dataclasses import dataclass, replace  # noqa: E402
from statistics import median  # noqa: E402

import psutil  # noqa: E402

from gristmill.app import ROOMS  # noqa: E402
from gristmill.db import Database, Embedded, open_database  # noqa: E402
from gristmill.ids import DocumentId  # noqa: E402
from gristmill.models import ModelPool  # noqa: E402
from gristmill.queue import Worker  # noqa: E402
from gristmill.records import Options, Readers, TableIntake, embed_records, find_project, remove_import  # noqa: E402
from gristmill.records.load import SQL  # noqa: E402
from gristmill.rooms import Tools, bind_rooms  # noqa: E402
from gristmill.scopes import Scope  # noqa: E402
from gristmill.settings import Settings  # noqa: E402

ROWS, EMBEDDED, ROUNDS = 200_000, 2_000, 3
WORDS = 30  # of a review
PROJECT = Scope("bench", "reviews")
COPY_OUT = """
COPY (SELECT scope, import, row, hash, whole, category, external_id, content, columns, embed, created_at, updated_at
        FROM data_records ORDER BY id) TO STDOUT
"""


@dataclass(frozen=True)
class House:
    """Everything that loads and embeds."""

    db: Database
    settings: Settings
    models: ModelPool

    @property
    def intake(self) -> TableIntake:
        return TableIntake(self.db, self.settings, Readers(self.models.reading_processes, self.settings.records))

    def with_batch(self, batch: int) -> "House":
        """The same house, which loads so many rows in one transaction."""
        records = self.settings.records.model_copy(update={"batch": batch})
        return replace(self, settings=self.settings.model_copy(update={"records": records}))

    async def load(self, path: Path, **options: object) -> tuple[DocumentId, float]:
        """The import, and the seconds from the letter to the end of all its work."""
        started = await self.intake.add(path, path.name, PROJECT, Options(**options))  # type: ignore[arg-type]
        return started.document, await self._work(
            f"SELECT state = 'loaded' FROM data_import WHERE id = {started.document}"
        )

    async def embed(self) -> float:
        """The seconds until all records of the project can be found."""
        async with self.db.transaction() as tx:
            await embed_records(tx, await find_project(tx, PROJECT))
        return await self._work("SELECT NOT EXISTS (SELECT FROM data_records WHERE chunk IS NULL)")

    async def _work(self, has_ended: str) -> float:
        """Let a worker run until this is true; how many seconds it took."""
        handlers = bind_rooms(ROOMS, Tools(self.db, self.settings, self.models))
        worker = Worker(self.db, handlers, self.settings.queue, queues=["ingestion", "vectorization"], until_idle=True)
        began = time.perf_counter()
        running = asyncio.create_task(worker.run())
        while not await self._ask(has_ended):  # noqa: ASYNC110 another process's work
            await asyncio.sleep(0.02)
        taken = time.perf_counter() - began
        worker.stop()
        await running
        return taken

    async def _ask(self, question: str) -> bool:
        async with self.db.transaction() as tx:
            return await tx.value(question)  # pyright: ignore[reportArgumentType]


@asynccontextmanager
async def open_house() -> AsyncIterator[House]:
    """An embedded PostgreSQL with its ordinary settings, gone afterwards."""
    data = Path(tempfile.mkdtemp(prefix="gristmill-bench-"))
    settings = Settings(data=data)
    try:
        async with open_database(settings) as db, ModelPool(settings) as models:
            yield House(db, settings, models)
    finally:
        Embedded(data).stop("immediate")
        shutil.rmtree(data, ignore_errors=True)


def write_reviews(path: Path, rows: int, first: int = 0) -> None:
    """A table of reviews: an id, a text of some words, a rating, a region and a date."""
    dice = random.Random(4 + first)
    words = ["".join(dice.choices("abcdefghijklmnoprstuvz", k=dice.randint(3, 10))) for _ in range(5_000)]
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(("task_id", "text", "rating", "region", "date"))
        for n in range(first, first + rows):
            text = " ".join(dice.choices(words, k=WORDS))
            table.writerow((f"task-{n}", text, n % 5 + 1, dice.choice(("north", "south")), f"2026-{n % 12 + 1:02}-01"))


async def copy_bare(house: House, lines: Sequence[bytes]) -> float:
    """The seconds that COPY takes for the same rows, into the same table with the same indexes."""
    async with house.db.transaction() as tx:
        await tx.execute("TRUNCATE data_records")
    began = time.perf_counter()
    async with house.db.transaction() as tx:
        await tx.copy(SQL["copy_records"], lines)
    return time.perf_counter() - began


async def read_lines(house: House) -> list[bytes]:
    async with (
        await house.db.connect("bench") as connection,
        connection.cursor() as cursor,
        cursor.copy(COPY_OUT) as out,
    ):
        return [bytes(line) async for line in out]


async def measure_load(house: House, path: Path) -> dict[str, float]:
    """Both ways in turn, so that a busy moment of the machine hits both."""
    warm, _ = await house.load(path, embed=False)  # fills the spool, starts the child, makes the lines
    lines = await read_lines(house)
    await remove_import(house.db, warm)
    ours, bare = list[float](), list[float]()
    for _ in range(ROUNDS):
        async with house.db.transaction() as tx:
            await tx.execute("TRUNCATE data_records")
        document, taken = await house.load(path, embed=False)
        ours.append(taken)
        bare.append(await copy_bare(house, lines))
        await remove_import(house.db, document)
    return {
        "load_ratio": round(median(bare) / median(ours), 3),
        "rows_per_s": round(len(lines) / median(ours)),
        "copy_rows_per_s": round(len(lines) / median(bare)),
    }


async def measure_batches(rows: int, batches: Sequence[int]) -> dict[str, float]:
    """Rows a second for each size of a transaction, in turn, so that a busy moment of the machine hits all."""
    folder = Path(tempfile.mkdtemp(prefix="gristmill-bench-"))
    taken: dict[int, list[float]] = {batch: [] for batch in batches}
    try:
        write_reviews(folder / "load.csv", rows)
        async with open_house() as house:
            for _ in range(ROUNDS):
                for batch in batches:
                    document, seconds = await house.with_batch(batch).load(folder / "load.csv", embed=False)
                    taken[batch].append(seconds)
                    await remove_import(house.db, document)
    finally:
        shutil.rmtree(folder)
    return {f"rows_per_s_by_{batch}": round(rows / median(seconds)) for batch, seconds in taken.items()}


async def measure_vectors(house: House, paths: Sequence[Path]) -> dict[str, float]:
    """Records embedded, beside the model alone with the same texts in the same batches: in turn, as above."""
    bare, ours, records = list[float](), list[float](), 0
    await house.models.embedder.embed(["loads the model"])
    for path in paths:
        with path.open() as file:
            texts = [row["text"] for row in csv.DictReader(file)]
        bare.append(await embed_bare(house, texts))
        await house.load(path, embed=False)
        ours.append(await house.embed())
        records = len(texts)
    return {
        "vectorize_ratio": round(median(bare) / median(ours), 3),
        "records_embedded_per_s": round(records / median(ours)),
    }


async def embed_bare(house: House, texts: Sequence[str]) -> float:
    """The seconds that the model alone takes."""
    size, began = house.settings.records.embed_batch, time.perf_counter()
    for at in range(0, len(texts), size):
        await house.models.embedder.embed(texts[at : at + size])
    return time.perf_counter() - began


async def measure_memory(house: House, path: Path) -> dict[str, float]:
    """The most memory that this process and its children hold while a large file is loaded."""
    peak, stop = 0, asyncio.Event()

    async def look() -> None:
        nonlocal peak
        me = psutil.Process()
        while not stop.is_set():
            own = [one for one in (me, *me.children(recursive=True)) if "postgres" not in one.name()]
            peak = max(peak, sum(one.memory_full_info().uss for one in own if one.is_running()))
            await asyncio.sleep(0.1)

    looking = asyncio.create_task(look())
    await house.load(path, embed=False)
    stop.set()
    await looking
    return {"peak_mb": round(peak / 2**20)}


async def measure(rows: int, embedded: int, large: int) -> dict[str, float]:
    folder = Path(tempfile.mkdtemp(prefix="gristmill-bench-"))
    try:
        part = embedded // ROUNDS
        parts = [folder / f"embed-{n}.csv" for n in range(ROUNDS)]
        for n, path in enumerate(parts):
            write_reviews(path, part, first=n * part)
        write_reviews(folder / "load.csv", rows)
        write_reviews(folder / "large.csv", large)
        async with open_house() as house:
            found = await measure_load(house, folder / "load.csv")
        async with open_house() as house:
            found |= await measure_memory(house, folder / "large.csv")
        async with open_house() as house:
            return found | await measure_vectors(house, parts)
    finally:
        shutil.rmtree(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help="of the table that is loaded")
    parser.add_argument("--embedded", type=int, default=EMBEDDED, help="records that are embedded")
    parser.add_argument("--large", type=int, default=7_500_000, help="rows of the table whose memory is measured: 2 GB")
    parser.add_argument("--batches", type=int, nargs="+", help="only compare these sizes of a transaction")
    options = parser.parse_args()
    if options.batches:
        print(json.dumps(asyncio.run(measure_batches(options.rows, options.batches))))
        return
    print(json.dumps(asyncio.run(measure(options.rows, options.embedded, options.large))))


if __name__ == "__main__":
    main()
