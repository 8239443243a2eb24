"""Hears what other sessions of the database say on a channel (NOTIFY)."""

from types import TracebackType
from typing import Self

from psycopg import InterfaceError, OperationalError
from psycopg.sql import SQL, Identifier

from gristmill.db.pool import Connection, Database
from gristmill.errors import Unreachable


class Notices:
    """Listens on one channel, over a connection of its own: `async with Notices(db, "gristmill_request") as notices`.

    What is said before it is entered is not heard. Unreachable if the connection is lost: listen anew, and look.
    """

    def __init__(self, db: Database, channel: str) -> None:
        self._db = db
        self._channel = channel
        self._connection: Connection | None = None

    async def __aenter__(self) -> Self:
        try:
            self._connection = await self._db.connect(f"listen {self._channel}")
            await self._connection.execute(SQL("LISTEN {}").format(Identifier(self._channel)))
        except (OperationalError, InterfaceError, OSError) as error:
            raise Unreachable(f"the database at {self._db.shown} does not answer") from error
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._connection is not None:
            await self._connection.close()

    async def wait(self, seconds: float) -> list[str]:
        """What was said, as soon as something is; nothing after so many seconds of silence."""
        assert self._connection, "enter it first: async with Notices(…)"
        try:
            return [notice.payload async for notice in self._connection.notifies(timeout=seconds, stop_after=1)]
        except (OperationalError, InterfaceError, OSError) as error:
            raise Unreachable(f"the connection to the database at {self._db.shown} was lost") from error
