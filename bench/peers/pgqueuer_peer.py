"""PgQueuer on asyncpg: large dequeue batches, which also size its buffer of completions."""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import asyncpg
from bench.peers.peer import Send, main
from pgqueuer import AsyncpgDriver, PgQueuer, Queries
from pgqueuer.models import Job

BATCH = 1_000
AT_ONCE = 10_000


async def install(url: str) -> None:
    connection = await asyncpg.connect(url)
    await Queries(AsyncpgDriver(connection)).install()
    await connection.close()


async def load(url: str, count: int) -> None:
    connection = await asyncpg.connect(url)
    queries = Queries(AsyncpgDriver(connection))
    for start in range(0, count, AT_ONCE):
        n = min(AT_ONCE, count - start)
        await queries.enqueue(["noop"] * n, [None] * n, [0] * n)
    await connection.close()


async def work(url: str, noted: Callable[[], None], released: Callable[[], Awaitable[None]]) -> None:
    worker = PgQueuer(AsyncpgDriver(await asyncpg.connect(url)))

    @worker.entrypoint("noop")
    async def noop(job: Job) -> None:
        noted()

    await released()
    # statistics are folded on demand, not beside the work
    await worker.run(batch_size=BATCH, log_aggregation_interval=timedelta(0))


@asynccontextmanager
async def sender(url: str) -> AsyncIterator[Send]:
    connection = await asyncpg.connect(url)
    queries = Queries(AsyncpgDriver(connection))

    async def send() -> None:
        await queries.enqueue("noop", None)

    yield send
    await connection.close()


if __name__ == "__main__":
    main(sys.modules[__name__])
