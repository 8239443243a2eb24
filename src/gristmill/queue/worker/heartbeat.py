"""Says that the worker lives, from a thread that a busy event loop cannot starve."""

import asyncio
import faulthandler
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import psycopg

from gristmill.db import Connection, Database, queries
from gristmill.ids import WorkerId
from gristmill.queue.link import LOST
from gristmill.telemetry import log

SQL = queries("gristmill.queue.worker", "worker.sql")
TAKEN_BACK = "its leases were taken back"
STUCK = 70  # exit code of a worker whose loop stands still (EX_SOFTWARE)


class Heartbeat:
    """Renews one worker row; calls `lost` once when the leases can no longer be counted on.

    The thread has an event loop of its own, in which every wait for the server has a limit. A blocking call would hang
    for ever in a network that drops packets.
    """

    def __init__(
        self,
        db: Database,
        worker: WorkerId,
        *,
        every: timedelta,
        lease: timedelta,
        stall: timedelta,
        lost: Callable[[str], None],
    ) -> None:
        self._db = db
        self._worker = worker
        self._every = every.total_seconds()
        # stop a good while before others may take our tasks
        self._trusted = lease.total_seconds() * 0.75
        self._stall = stall.total_seconds()
        self._lost = lost
        self._ticked = time.monotonic()
        self.renewed = time.monotonic()
        self._loop = asyncio.new_event_loop()
        self._end = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        with suppress(RuntimeError):  # it has ended by itself
            self._loop.call_soon_threadsafe(self._end.set)

    def tick(self) -> None:
        """Called by the event loop: it still turns."""
        self._ticked = time.monotonic()

    @property
    def fresh(self) -> bool:
        """Whether the leases were renewed lately and the loop turns."""
        now = time.monotonic()
        return now - self.renewed < self._trusted and now - self._ticked < max(5.0, self._every)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._beat())

    async def _beat(self) -> None:
        connection: Connection | None = None
        why = None
        while why is None and not self._end.is_set():
            self._watch_the_loop()
            sent = time.monotonic()
            try:
                async with asyncio.timeout(self._patience()):
                    connection = connection or await self._connect()
                    cursor = await connection.execute(SQL["heartbeat"], {"worker": self._worker})
                    held = await cursor.fetchone()
                if held is None:
                    why = TAKEN_BACK
                # from before it was sent: the database may have written it that early
                self.renewed = sent
                pause = self._every
            except (*LOST, psycopg.Error) as error:
                log.warning("heartbeat.failed", worker=self._worker, error=str(error).strip()[:200])
                connection = await self._close(connection)
                pause = min(1.0, self._every / 4)
            if time.monotonic() - self.renewed > self._trusted:
                why = "it could not renew its leases in time"
            elif why is None:
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(pause, self._seconds_left())):
                        await self._end.wait()
        await self._close(connection)
        if why is not None:
            self._lost(why)

    def _seconds_left(self) -> float:
        """Seconds for which the leases can still be counted on."""
        return max(0.01, self._trusted - (time.monotonic() - self.renewed))

    def _patience(self) -> float:
        return min(self._seconds_left(), max(1.0, min(self._every, 10.0)))

    async def _connect(self) -> Connection:
        limit = int(max(self._every, 1) * 1000)
        return await self._db.connect("heartbeat", statement_timeout=str(limit))

    @staticmethod
    async def _close(connection: Connection | None) -> None:
        if connection is not None:
            await connection.close()

    def _watch_the_loop(self) -> None:
        if time.monotonic() - self._ticked > self._stall:
            # a handler that never awaits blocks everything: die, so that its task becomes a suspect, rather than hang
            log.error("worker.stuck", worker=self._worker, seconds=round(time.monotonic() - self._ticked))
            faulthandler.dump_traceback(file=sys.stderr)
            os._exit(STUCK)
