"""Workers in the test's own loop, and bounded waits for what they do."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from engine import Grind, audit, statuses

from gristmill.db import Database
from gristmill.ids import TaskId
from gristmill.queue import Envelope, Handler, Worker, bind, send, send_many
from gristmill.queue.operate.queues import set_queue
from gristmill.settings import QueueSettings

QUICK = QueueSettings(
    heartbeat=timedelta(milliseconds=200),
    lease=timedelta(seconds=20),
    poll=timedelta(milliseconds=50),
    rescue=timedelta(seconds=60),
    stop=timedelta(seconds=5),
)
PATIENCE = 60.0  # seconds until a wait is a failure; never what a test is about


@asynccontextmanager
async def working(
    db: Database, *handlers: Handler, settings: QueueSettings = QUICK, **options: Any
) -> AsyncIterator[Worker]:
    """A worker that runs meanwhile and is stopped at the end."""
    worker = Worker(db, bind(*handlers), settings, maintenance=options.pop("maintenance", False), **options)
    running = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        worker.stop()
        async with asyncio.timeout(PATIENCE):
            await running


async def worked(db: Database, *handlers: Handler, **options: Any) -> Worker:
    """A worker that runs until nothing is left to do."""
    async with asyncio.timeout(PATIENCE), working(db, *handlers, until_idle=True, **options) as worker:
        await worker._stopping.wait()
    return worker


async def until(condition: Callable[[], Awaitable[Any]], what: str = "it") -> Any:
    """Wait until it is true, and say what was if it never is."""
    deadline = time.monotonic() + PATIENCE
    while not (seen := await condition()):
        assert time.monotonic() < deadline, f"{what} did not come true: {seen!r}"
        await asyncio.sleep(0.01)
    return seen


async def until_status(db: Database, task: TaskId, *wanted: str) -> Any:
    """The task, once it has one of these statuses."""

    async def there() -> Any:
        async with db.transaction() as tx:
            row = await tx.one("SELECT * FROM tasks WHERE id = %(id)s", id=task)
            return row if row is not None and row.status in wanted else None

    return await until(there, f"{task} is {' or '.join(wanted)}")


async def sent(db: Database, letter: Any, **outside: Any) -> TaskId:
    async with db.transaction() as tx:
        return await send(tx, letter, **outside)


async def set_up(db: Database, queue: str, **changes: Any) -> None:
    async with db.transaction() as tx:
        await set_queue(tx, queue, **changes)


async def ask(db: Database, query: Any, **params: Any) -> list[Any]:
    async with db.transaction() as tx:
        return await tx.all(query, **params)


async def nothing(letter: Grind) -> None:
    pass


async def never(letter: Any) -> None:
    await asyncio.Event().wait()


async def sent_many(db: Database, n: int, **outside: Any) -> list[TaskId]:
    async with db.transaction() as tx:
        return await send_many(tx, [Envelope(Grind(i), **outside) for i in range(n)])


async def row(db: Database, task: TaskId) -> Any:
    (found,) = await ask(db, "SELECT * FROM tasks WHERE id = %(id)s", id=task)
    return found


async def ends(db: Database) -> dict[str, int]:
    async with db.transaction() as tx:
        await audit(tx)
        return dict(Counter((await statuses(tx)).values()))


async def all_waiting(db: Database) -> bool:
    return not await ask(db, "SELECT 1 FROM task WHERE wait IS DISTINCT FROM 'time'")
