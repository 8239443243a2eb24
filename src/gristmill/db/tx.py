"""A transaction, as handlers and stores see it."""

from collections.abc import AsyncGenerator, Iterable, Mapping
from itertools import takewhile
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import TupleRow, namedtuple_row, tuple_row

from gristmill.db.sql import Query

Row = Any  # a named tuple of what the query selects


class Tx:
    """Runs statements in one open transaction.

    `execute` answers nothing, so it may wait for company: statements that follow each other and differ only in their
    parameters go to the server as one batch. Whatever asks for rows sends the waiting ones first.
    """

    def __init__(self, connection: AsyncConnection[TupleRow]) -> None:
        self._connection = connection
        self._waiting: list[tuple[Query, Mapping[str, Any]]] = []

    async def execute(self, query: Query, **params: Any) -> None:
        self._waiting.append((query, params))

    async def one(self, query: Query, **params: Any) -> Row | None:
        """The first row, or None."""
        return await (await self._run(query, params)).fetchone()

    async def all(self, query: Query, **params: Any) -> list[Row]:
        return await (await self._run(query, params)).fetchall()

    async def bare(self, query: Query, **params: Any) -> list[Row]:
        """As `all`, in the server's own form: for many bytes, which would else be written out as text."""
        await self.flush()
        cursor = self._connection.cursor(row_factory=namedtuple_row, binary=True)
        await cursor.execute(query, params)
        return await cursor.fetchall()

    async def pairs(self, query: Query, **params: Any) -> dict[Any, Any]:
        """What stands in the second column, by the first; in the server's own form."""
        await self.flush()
        cursor = self._connection.cursor(row_factory=tuple_row, binary=True)
        await cursor.execute(query, params)
        return dict(await cursor.fetchall())

    async def portions(self, query: Query, size: int, **params: Any) -> AsyncGenerator[list[Row]]:
        """As `all`, so many rows at a time: for what does not fit into memory."""
        await self.flush()
        async with self._connection.cursor("portions", row_factory=namedtuple_row) as cursor:
            await cursor.execute(query, params)
            while rows := await cursor.fetchmany(size):
                yield rows

    async def value(self, query: Query, **params: Any) -> Any:
        """The first column of the first row, or None."""
        row = await self.one(query, **params)
        return None if row is None else row[0]

    async def copy(self, query: Query, pieces: Iterable[bytes]) -> None:
        """COPY … FROM STDIN."""
        await self.flush()
        async with self._connection.cursor() as cursor, cursor.copy(query) as copy:
            for piece in pieces:
                await copy.write(piece)

    async def flush(self) -> None:
        """Send what waits."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        async with self._connection.cursor() as cursor:
            while waiting:
                query = waiting[0][0]
                alike = [params for _, params in takewhile(lambda one, query=query: one[0] is query, waiting)]
                del waiting[: len(alike)]
                if len(alike) == 1:
                    await cursor.execute(query, alike[0])
                else:
                    await cursor.executemany(query, alike)

    async def _run(self, query: Query, params: Mapping[str, Any]) -> Any:
        await self.flush()
        cursor = self._connection.cursor(row_factory=namedtuple_row)
        return await cursor.execute(query, params)
