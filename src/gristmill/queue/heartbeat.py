"""Says that the worker lives, from a thread that a busy event loop cannot starve."""

import faulthandler
import os
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta

import psycopg

from gristmill.ids import WorkerId
from gristmill.queue.statements import SQL
from gristmill.telemetry import log

STUCK = 70  # exit code of a worker whose loop stands still (EX_SOFTWARE)


class Heartbeat:
    """Renews one worker row; calls `lost` once when the leases can no longer be counted on."""

    def __init__(
        self, url: str, worker: WorkerId, *, every: timedelta, lease: timedelta, stall: timedelta,
        lost: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._url = url
        self._worker = worker
        self._every = every.total_seconds()
        # stop a good while before others may take our tasks
        self._trusted = lease.total_seconds() * 0.75
        self._stall = stall.total_seconds()
        self._lost = lost
        self._end = threading.Event()
        self._ticked = time.monotonic()
        self.renewed = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._end.set()

    def tick(self) -> None:
        """Called by the event loop: it still turns."""
        self._ticked = time.monotonic()

    @property
    def fresh(self) -> bool:
        """Whether the leases were renewed lately and the loop turns."""
        now = time.monotonic()
        return now - self.renewed < self._trusted and now - self._ticked < max(5.0, self._every)

    def _run(self) -> None:
        connection: psycopg.Connection | None = None
        pause = 0.0
        while not self._end.wait(pause):
            self._watch_the_loop()
            sent = time.monotonic()
            try:
                connection = connection or self._connect()
                held = connection.execute(SQL["heartbeat"], {"worker": self._worker}).fetchone()
                if held is None:
                    return self._lost("its leases were taken back")
                # counted from before it was sent: the database may have written it that early
                self.renewed = sent
                pause = self._every
            except psycopg.Error as error:
                log.warning("heartbeat.failed", worker=self._worker, error=str(error).strip()[:200])
                connection = self._closed(connection)
                pause = min(1.0, self._every / 4)
            if time.monotonic() - self.renewed > self._trusted:
                return self._lost("it could not renew its leases in time")
        self._closed(connection)
        return None

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(
            self._url, autocommit=True, connect_timeout=5, application_name="gristmill heartbeat",
            options=f"-c statement_timeout={int(max(self._every, 1) * 1000)}",
            tcp_user_timeout=int(max(self._every, 1) * 1000),
        )  # fmt: skip

    @staticmethod
    def _closed(connection: psycopg.Connection | None) -> None:
        if connection is not None:
            connection.close()

    def _watch_the_loop(self) -> None:
        if time.monotonic() - self._ticked > self._stall:
            # a handler that never awaits holds everything: better to die, and have its task found out, than to hang
            log.error("worker.stuck", worker=self._worker, seconds=round(time.monotonic() - self._ticked))
            faulthandler.dump_traceback(file=sys.stderr)
            os._exit(STUCK)
