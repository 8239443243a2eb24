"""Our own queue, with leases, fencing, retries and dead letters on, as everybody gets it."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import ClassVar

import uvloop
from bench.peers.peer import Send, main

from gristmill.db import Database, Tx, open_database
from gristmill.queue import Done, Envelope, Worker, bind, on, open_group, seal, send, send_many
from gristmill.settings import Settings

CONCURRENCY = 500
AT_ONCE = 25_000  # letters in one transaction


@dataclass(frozen=True)
class Noop:
    kind: ClassVar[str] = "bench.noop"
    n: int


@dataclass(frozen=True)
class Write:
    kind: ClassVar[str] = "bench.write"
    n: int


@dataclass(frozen=True)
class Chain:
    """Sends its successor when it is done, so that a line of them keeps its length."""

    kind: ClassVar[str] = "bench.chain"
    n: int


async def install(url: str) -> None:
    async with open_database(Settings(database_url=url)) as db, db.transaction() as tx:
        await tx.execute("CREATE TABLE bench_row (n bigint NOT NULL)")
        await tx.execute("INSERT INTO queue (name) VALUES ('bench') ON CONFLICT DO NOTHING")


async def load(url: str, count: int) -> None:
    await loaded(url, (Noop(n) for n in range(count)))


async def loaded(url: str, letters: Iterable[Noop | Write | Chain]) -> float:
    """Send all of them, so many a transaction; letters per second, from the first to the last commit."""
    async with Database(url, size=1) as db:
        everything = list(letters)
        begin = perf_counter()
        for start in range(0, len(everything), AT_ONCE):
            async with db.transaction() as tx:
                await send_many(tx, everything[start : start + AT_ONCE])
        return len(everything) / (perf_counter() - begin)


async def work(url: str, noted: Callable[[], None], released: Callable[[], Awaitable[None]]) -> None:
    async def noop(letter: Noop) -> Done:
        noted()
        return Done()

    async def write(letter: Write) -> Done:
        noted()
        return Done(write=partial(insert, n=letter.n))

    async def chain(letter: Chain) -> Done:
        noted()
        return Done(then=(letter,))

    async def insert(tx: Tx, n: int) -> None:
        await tx.execute("INSERT INTO bench_row (n) VALUES (%(n)s)", n=n)

    async with Database(url) as db:
        worker = Worker(
            db,
            bind(on(Noop, noop), on(Write, write), on(Chain, chain)),
            Settings().queue,
            queues=["bench"],
            concurrency=CONCURRENCY,
        )
        await released()
        await worker.run()


@asynccontextmanager
async def sender(url: str) -> AsyncIterator[Send]:
    async with Database(url, size=1) as db:

        async def send_one() -> None:
            async with db.transaction() as tx:
                await send(tx, Noop(0))

        yield send_one


async def send_batch(url: str, count: int, *, grouped: bool) -> float:
    """`count` letters in one transaction, in one sealed group or on their own; the moment of its commit."""
    async with Database(url, size=1) as db, db.transaction() as tx:
        parent = await open_group(tx) if grouped else None
        await send_many(tx, [Envelope(Noop(n), parent=parent) for n in range(count)])
        if parent is not None:
            await seal(tx, parent)
        await tx.flush()
        return perf_counter()


async def batches(url: str, count: int) -> None:
    """A batch for every line that is read, grouped if it says so; prints the moment of its commit."""
    print("ready", flush=True)
    while word := (await asyncio.to_thread(sys.stdin.readline)).strip():
        print(await send_batch(url, count, grouped=word == "grouped"), flush=True)


def extra(arguments: list[str]) -> bool:
    """enqueue URL COUNT | writes URL COUNT | chains URL COUNT | batches URL COUNT"""
    match arguments:
        case ["enqueue", url, count]:
            print(uvloop.run(loaded(url, (Noop(n) for n in range(int(count))))))
        case ["writes", url, count]:
            uvloop.run(loaded(url, (Write(n) for n in range(int(count)))))
        case ["chains", url, count]:
            uvloop.run(loaded(url, (Chain(n) for n in range(int(count)))))
        case ["batches", url, count]:
            uvloop.run(batches(url, int(count)))
        case _:
            return False
    return True


if __name__ == "__main__":
    if not extra(sys.argv[1:]):
        main(sys.modules[__name__])
