"""procrastinate on psycopg: many jobs at once in each worker, a pool large enough for them."""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from bench.peers.peer import Send, main
from procrastinate import App, PsycopgConnector

CONCURRENCY = 30
AT_ONCE = 1_000


def app_at(url: str, noted: Callable[[], None] = lambda: None) -> tuple[App, object]:
    app = App(connector=PsycopgConnector(conninfo=url, min_size=4, max_size=CONCURRENCY + 4))

    @app.task(name="noop")
    async def noop() -> None:
        noted()

    return app, noop


async def install(url: str) -> None:
    app, _ = app_at(url)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def load(url: str, count: int) -> None:
    app, noop = app_at(url)
    async with app.open_async():
        for start in range(0, count, AT_ONCE):
            await noop.batch_defer_async(*({} for _ in range(min(AT_ONCE, count - start))))


async def work(url: str, noted: Callable[[], None], released: Callable[[], Awaitable[None]]) -> None:
    app, _ = app_at(url, noted)
    async with app.open_async():
        await released()
        await app.run_worker_async(concurrency=CONCURRENCY, delete_jobs="always", install_signal_handlers=False)


@asynccontextmanager
async def sender(url: str) -> AsyncIterator[Send]:
    app, noop = app_at(url)
    async with app.open_async():

        async def send() -> None:
            await noop.defer_async()

        yield send


if __name__ == "__main__":
    main(sys.modules[__name__])
