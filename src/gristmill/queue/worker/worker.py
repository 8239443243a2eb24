"""The worker: registers, works, comes back after it lost its leases, and stops in good order."""

import asyncio
import gc
import os
import socket
from collections.abc import Coroutine, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from gristmill.db import Database, Tx, queries
from gristmill.ids import WorkerId
from gristmill.processes import process_key
from gristmill.queue.handlers import Handlers
from gristmill.queue.journal import Journal
from gristmill.queue.link import LOST, DatabaseLink
from gristmill.queue.loops import end_tasks
from gristmill.queue.send import ensure_queues
from gristmill.queue.upkeep.maintenance import maintain
from gristmill.queue.worker.heartbeat import TAKEN_BACK, Heartbeat
from gristmill.queue.worker.shift import Shift
from gristmill.settings import QueueSettings
from gristmill.telemetry import WorkerMetrics, log

R = TypeVar("R")

SQL = queries("gristmill.queue.worker", "worker.sql")
# Objects that are made until the next search for cycles, and how often a search goes further. Claims and answers come
# in hundreds, live for a moment and have no cycles: to search them as often as is usual takes a tenth of the time.
SELDOM = (20_000, 20, 50)
SAY_LIMIT = 5.0  # seconds; we must end even if the database is away


class Worker:
    """`await Worker(db, handlers, settings).run()`; `stop()` ends it gracefully from anywhere in the loop."""

    def __init__(
        self,
        db: Database,
        handlers: Handlers,
        settings: QueueSettings | None = None,
        *,
        queues: Sequence[str] | None = None,
        concurrency: int = 16,
        processes: int | None = None,
        name: str | None = None,
        solo: bool = False,
        supervised: bool = False,
        until_idle: bool = False,
        leave_scheduled: bool = False,
        maintenance: bool = True,
    ) -> None:
        self._db = db
        self._handlers = handlers
        self._settings = settings or QueueSettings()
        self._queues = list(queues or sorted({handler.queue for handler in handlers.values()}))
        self._concurrency = 1 if solo else concurrency
        self._processes = processes or min(self._concurrency, os.cpu_count() or 1)
        self._solo = solo
        self._supervised = supervised
        self._until_idle = until_idle
        self._leave_scheduled = leave_scheduled  # idle although tasks will run later
        self._maintenance = maintenance
        self.name = name or f"{socket.gethostname()}:{os.getpid()}"
        self.metrics = WorkerMetrics(self.name)
        self.id: WorkerId | None = None
        self._stopping = asyncio.Event()
        self._lost = asyncio.Event()
        self._taken_back = False  # … because a rescuer took the tasks back, after it read our journal
        self._heartbeat: Heartbeat | None = None

    def stop(self) -> None:
        """Finish what runs, give back what does not, and end."""
        self._stopping.set()

    async def run(self) -> None:
        with _collect_seldom():
            while not self._stopping.is_set():
                self._lost.clear()
                self._taken_back = False
                await self._shift()

    @property
    def alive(self) -> bool:
        """Whether its leases are renewed and its loop turns."""
        heartbeat = self._heartbeat
        return heartbeat is not None and heartbeat.fresh and not self._lost.is_set()

    @property
    def ready(self) -> bool:
        """Whether it takes tasks."""
        return self.alive and not self._stopping.is_set()

    async def _shift(self) -> None:
        """From registering to stopping, or to the loss of the leases."""
        journal = Journal(self._concurrency)
        registered = await self._unless_stopped(self._register(journal.name))
        if registered is None:
            journal.close()
            return
        self.id = registered
        shift = Shift(
            self._db,
            self.id,
            self._handlers,
            self._settings,
            self.metrics,
            queues=self._queues,
            concurrency=self._concurrency,
            processes=self._processes,
            solo=self._solo,
            unsupervised=not self._supervised,
            journal=journal,
        )
        heartbeat = self._start_heartbeat(self.id)
        working = asyncio.create_task(shift.work())
        duties = [asyncio.create_task(self._tick(heartbeat))]
        if self._maintenance:
            duties.append(asyncio.create_task(maintain(self._db, self._settings)))
        finished = False
        try:
            await self._until_the_end(shift, working)
            if self._lost.is_set():
                shift.abandon()
            else:
                await self._say("stopping")
                finished = await shift.finish(self._settings.stop)
        finally:
            await end_tasks([working, *duties])
            heartbeat.stop()
            await shift.close()
            nothing_left = self._taken_back or (finished and await self._say("stopped"))
            # a rescuer that takes back our tasks must read which of them had begun
            journal.close(leave=not nothing_left)
        self._heartbeat = None
        self.id = None

    async def _unless_stopped(self, doing: Coroutine[Any, Any, R]) -> R | None:
        """What comes of it, or None if we are told to stop before anything does."""
        task = asyncio.create_task(doing)
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait([task, stopping], return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            await end_tasks([task, stopping])

    async def _until_the_end(self, shift: Shift, working: asyncio.Task[None]) -> None:
        waits: list[asyncio.Task[Any]] = [asyncio.create_task(event.wait()) for event in (self._stopping, self._lost)]
        if self._until_idle:
            waits.append(asyncio.create_task(self._idle(shift)))
        try:
            await asyncio.wait([working, *waits], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if working.done():
            working.result()  # a bug of ours: raise it

    async def _idle(self, shift: Shift) -> None:
        while True:
            await shift.idle.wait()
            with suppress(*LOST):
                if not await shift.anything_left(scheduled=not self._leave_scheduled):
                    self.stop()
                    return
            await asyncio.sleep(0.1)

    async def _register(self, journal: str) -> WorkerId:
        async with DatabaseLink(self._db, "register") as link:
            while True:
                try:
                    connection = await link.connection()
                    async with connection.transaction():
                        tx = Tx(connection)
                        await ensure_queues(tx, self._queues)
                        await tx.flush()
                        cursor = await connection.execute(
                            SQL["register"],
                            {
                                "name": self.name,
                                "process": process_key(),
                                "journal": journal,
                                "queues": self._queues,
                                "concurrency": self._concurrency,
                                "solo": self._solo,
                                "lease": self._settings.lease,
                            },
                        )
                        row = await cursor.fetchone()
                    assert row is not None
                    log.info("worker.registered", worker=row[0], queues=self._queues)
                    return WorkerId(row[0])
                except LOST as error:
                    await link.drop(error)

    def _start_heartbeat(self, worker: WorkerId) -> Heartbeat:
        loop = asyncio.get_running_loop()

        def note_loss(why: str) -> None:
            self._taken_back = why == TAKEN_BACK
            log.error("worker.lost", worker=worker, why=why)
            with suppress(RuntimeError):  # the loop may have ended meanwhile
                loop.call_soon_threadsafe(self._lost.set)

        settings = self._settings
        heartbeat = Heartbeat(
            self._db,
            worker,
            every=settings.heartbeat,
            lease=settings.lease,
            stall=settings.stall,
            lost=note_loss,
        )
        heartbeat.start()
        self._heartbeat = heartbeat
        return heartbeat

    async def _tick(self, heartbeat: Heartbeat) -> None:
        while True:
            heartbeat.tick()
            await asyncio.sleep(0.5)

    async def _say(self, state: str) -> bool:
        """Whether the database heard it."""
        with suppress(*LOST):
            async with asyncio.timeout(SAY_LIMIT), self._db.transaction() as tx:
                await tx.one(SQL["set_worker_state"], worker=self.id, state=state)
            return True
        return False


@contextmanager
def _collect_seldom() -> Generator[None]:
    usual = gc.get_threshold()
    gc.set_threshold(*SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
