"""A connection for one loop alone; it connects again after it was lost."""

import asyncio
from types import TracebackType
from typing import Self

import psycopg

from gristmill.db import Connection, Database
from gristmill.errors import Refused, Unreachable
from gristmill.telemetry import log

BACKOFF = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
LOST = (psycopg.OperationalError, psycopg.InterfaceError, OSError, TimeoutError, Unreachable)


class DatabaseLink:
    """`connection` connects when there is none, patiently; `drop` forgets one that failed."""

    def __init__(self, db: Database, name: str, **session: str) -> None:
        self._db = db
        self._name = name
        self._session = session
        self._connection: Connection | None = None
        self.failures = 0

    async def connection(self) -> Connection:
        while self._connection is None or self._connection.closed:
            try:
                self._connection = await self._db.connect(self._name, **self._session)
                if self.failures:
                    await self._db.refresh()
            except LOST as error:
                await self._wait(error)
        return self._connection

    async def drop(self, error: BaseException) -> None:
        """The connection failed: close it and wait a little, a little longer each time."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
        await self._wait(error)

    def ok(self) -> None:
        self.failures = 0

    async def _wait(self, error: BaseException) -> None:
        pause = BACKOFF[min(self.failures, len(BACKOFF) - 1)]
        log.warning("database.lost", link=self._name, error=str(error).strip()[:200], retry_in=pause)
        self.failures += 1
        await asyncio.sleep(pause)
        try:
            await self._db.revive()
        except (OSError, Refused) as trouble:
            log.warning("database.down", error=str(trouble)[:200])

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._connection is not None:
            await self._connection.close()
