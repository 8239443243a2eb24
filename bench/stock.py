"""Fills a database with tasks and documents as a house has them after months, and with counters that agree."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

from gristmill.db import Database, queries

CHUNK = 100_000
CLIENTS = 20
CHILDREN = 20_000
SQL = queries("bench", "stock.sql")
ABOVE = ("items", "sources", "source_items", "links", "imports", "records", "runs", "questions", "audit", "alarms")
PLAN = {
    "dialect": {"format": "csv", "encoding": "utf-8", "delimiter": ",", "quote": '"', "header": True, "begins_at": 0},
    "columns": ["task_id", "text", "rating"],
    "text": ["text"],
    "id": "task_id",
    "category": None,
    "rank_by": None,
    "words": [],
    "min_length": 0,
    "embed": False,
    "unique_text": True,
    "max_text": 1_000_000,
}


@dataclass(frozen=True)
class Stock:
    """How much there is."""

    tasks: int
    documents: int
    group: int

    @property
    def open(self) -> int:
        return self.tasks // 10


async def fill(db: Database, tasks: int, documents: int, *, seconds: float | None, say: Callable[[str], None]) -> Stock:
    """Fill by two connections; with `seconds`, as much as fits into them."""
    began = perf_counter()
    async with db.transaction() as tx:
        await tx.execute(SQL["blob"])
        await tx.execute(SQL["clients"], clients=CLIENTS)
        indexes = await tx.all(SQL["indexes"])
        for index in indexes:
            await tx.execute(f"DROP INDEX {index.indexname}")  # type: ignore[arg-type]
        await tx.execute("ALTER TABLE document DISABLE TRIGGER USER")
    starts = iter(range(1, tasks + 1, CHUNK))
    last = 0

    async def write_chunks() -> None:
        nonlocal last
        for first in starts:
            if seconds is not None and perf_counter() - began > seconds * 0.68:  # the rest is for the indexes
                return
            given = {"first": first, "last": min(first + CHUNK - 1, tasks)}
            async with db.transaction() as tx:
                await tx.execute(SQL["tasks"], **given, total=tasks, clients=CLIENTS, documents=documents)
                await tx.execute(SQL["tickets"], **given)
            last = max(last, given["last"])
            say(f"filled {last:,} of {tasks:,} tasks")

    await asyncio.gather(write_chunks(), write_chunks())
    documents = max(1, documents * last // tasks)
    for index in indexes:
        say(f"index {index.indexname}")
        async with db.transaction() as tx:
            await tx.execute(index.indexdef)
    group = last + 1
    async with db.transaction() as tx:
        await tx.execute(SQL["documents"], first=1, last=documents, clients=CLIENTS)
        await tx.execute(SQL["pages"])
        for name in ("group_counters", "group_task", "group_children"):
            await tx.execute(SQL[name], group=group, children=CHILDREN)
        await tx.execute(SQL["numbers"], last=group + CHILDREN + 1)
        await tx.execute("ALTER TABLE document ENABLE TRIGGER USER")
        for name in ("queues", "depths", "dead", "samples", "sampled", "document_tally"):
            await tx.execute(SQL[name])
    async with db.transaction() as tx:
        for name in ABOVE:
            say(f"the rooms above: {name}")
            await tx.execute(SQL[name], n=documents, clients=CLIENTS, plan=json.dumps(PLAN))
    say("vacuum")
    async with await db.connect("bench") as connection:
        await connection.set_autocommit(True)
        await connection.execute("VACUUM (ANALYZE)")
    say(f"{last:,} tasks, {documents:,} documents in {perf_counter() - began:.0f} s")
    return Stock(last, documents, group)
