"""A transaction, as handlers and stores see it."""

import dataclasses
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, overload

import orjson
from psycopg import AsyncConnection, AsyncCursor
from psycopg.rows import AsyncRowFactory, RowMaker, TupleRow, namedtuple_row, tuple_row

from gristmill.db.sql import Query

if TYPE_CHECKING:
    from gristmill.db.pool import Viewpoint

R = TypeVar("R")
K = TypeVar("K")
V = TypeVar("V")
COPY_FROM = 20  # rows from which COPY pays
PORTION = 16 * 2**20  # characters or bytes of rows that one statement carries


class Column(Generic[R]):
    """Types the values of a column that are ids: `await tx.values(SQL["children"], Column[TaskId])`.

    A NewType is no class. Given in the place of one, it would make all values Any.
    """


class Tx:
    """Runs statements in one open transaction.

    `execute` and `add` return nothing, so their statements are collected and sent later. Neighbours with the same text
    go to the server together: those of `execute` as one batch, the rows of `add` as one statement. Every method that
    returns rows sends the collected statements first.

    A class after the query types its rows: `await tx.all(SQL["tasks"], Task, queue="ocr")`. Its fields have the names
    of columns; other columns are left out. Where one column is read, the class is that of its values:
    `await tx.value(SQL["now"], datetime)`. A statement without a class says only whether there are rows: the type
    checker knows nothing of them, and lets nobody read them.
    """

    def __init__(self, connection: AsyncConnection[TupleRow], *, seen_from: "Viewpoint | None" = None) -> None:
        self.seen_from = seen_from  # None: every scope is visible
        self._connection = connection
        self._collected: list[_Collected] = []

    async def execute(self, query: Query, **params: Any) -> None:
        self._collected.append(_Collected(query, params))

    async def add(self, query: Query, **row: Any) -> None:
        """Collects one row for a statement that takes an array for each column: a third of the time of a batch.

        The statement must accept two rows with the same key: another writer of this transaction may add one too.
        """
        self._collected.append(_Collected(query, row, is_row=True))

    @overload
    async def one(self, query: Query, /, **params: Any) -> object | None: ...
    @overload
    async def one(self, query: Query, row: type[R], /, **params: Any) -> R | None: ...
    async def one(self, query: Query, row: type[Any] | None = None, /, **params: Any) -> Any:
        """The first row, or None."""
        return await (await self._run(query, _records_of(row), params)).fetchone()

    @overload
    async def all(self, query: Query, /, **params: Any) -> list[object]: ...
    @overload
    async def all(self, query: Query, row: type[R], /, **params: Any) -> list[R]: ...
    async def all(self, query: Query, row: type[Any] | None = None, /, **params: Any) -> list[Any]:
        return await (await self._run(query, _records_of(row), params)).fetchall()

    async def all_binary(self, query: Query, row: type[R], /, **params: Any) -> list[R]:
        """As `all`, in the server's binary form: many bytes are not written out as text."""
        await self.flush()
        cursor = self._connection.cursor(row_factory=_records_of(row), binary=True)
        await cursor.execute(query, params)
        return await cursor.fetchall()

    async def portions(self, query: Query, row: type[R], size: int, /, **params: Any) -> AsyncGenerator[list[R]]:
        """As `all`, but `size` rows at a time: for results that do not fit into memory."""
        await self.flush()
        async with self._connection.cursor("portions", row_factory=_records_of(row)) as cursor:
            await cursor.execute(query, params)
            while rows := await cursor.fetchmany(size):
                yield rows

    async def pairs(self, query: Query, kind: type[dict[K, V]], /, **params: Any) -> dict[K, V]:
        """A dict from the first column to the second, read in the server's binary form."""
        await self.flush()
        cursor = self._connection.cursor(row_factory=tuple_row, binary=True)
        await cursor.execute(query, params)
        return dict(await cursor.fetchall())

    @overload
    async def values(self, query: Query, kind: type["Column[R]"], /, **params: Any) -> list[R]: ...
    @overload
    async def values(self, query: Query, kind: type[R], /, **params: Any) -> list[R]: ...
    async def values(self, query: Query, kind: type[Any], /, **params: Any) -> list[Any]:
        """The first column of all rows."""
        return [row[0] for row in await (await self._run(query, tuple_row, params)).fetchall()]

    @overload
    async def value(self, query: Query, /, **params: Any) -> object | None: ...
    @overload
    async def value(self, query: Query, kind: type["Column[R]"], /, **params: Any) -> R | None: ...
    @overload
    async def value(self, query: Query, kind: type[R], /, **params: Any) -> R | None: ...
    async def value(self, query: Query, kind: type[Any] | None = None, /, **params: Any) -> Any:
        """The first column of the first row, or None."""
        row = await (await self._run(query, tuple_row, params)).fetchone()
        return None if row is None else row[0]

    @overload
    async def only_value(self, query: Query, kind: type["Column[R]"], /, **params: Any) -> R: ...
    @overload
    async def only_value(self, query: Query, kind: type[R], /, **params: Any) -> R: ...
    async def only_value(self, query: Query, kind: type[Any], /, **params: Any) -> Any:
        """The value of a statement that always has one: a count, the clock, the id of a new row."""
        if (found := await self.value(query, kind, **params)) is None:
            raise LookupError(f"a statement has no value: {query}")
        return found

    async def copy(self, query: Query, pieces: Iterable[bytes]) -> None:
        """COPY … FROM STDIN."""
        await self.flush()
        async with self._connection.cursor() as cursor, cursor.copy(query) as copy:
            for piece in pieces:
                await copy.write(piece)

    async def add_rows(
        self, copying: Query, inserting: Query, rows: Sequence[NamedTuple], *, types: Sequence[str] = ()
    ) -> None:
        """Write whole rows: by COPY, or by an INSERT from JSON where COPY does not pay or is not allowed.

        PostgreSQL has no COPY for a client that is bound by row-level security. The `types` of all columns are for a
        COPY in the binary format, in which many bytes are not written out as text.
        """
        if self.seen_from is not None or len(rows) < COPY_FROM:
            if rows:
                await self.execute(
                    inserting, rows=orjson.dumps([row._asdict() for row in rows], default=_to_hex).decode()
                )
            return
        await self.flush()
        async with self._connection.cursor() as cursor, cursor.copy(copying) as copy:
            if types:
                copy.set_types(types)
            for row in rows:
                await copy.write_row(row)

    @asynccontextmanager
    async def savepoint(self) -> AsyncGenerator[None]:
        """What fails within is undone, and the transaction goes on without it."""
        await self.flush()
        try:
            async with self._connection.transaction():
                yield
                await self.flush()
        except BaseException:
            self._collected.clear()
            raise

    async def flush(self) -> None:
        """Send the collected statements."""
        if not self._collected:
            return
        waiting, self._collected = self._collected, []
        async with self._connection.cursor() as cursor:
            for (query, is_row, _), alike in groupby(waiting, key=_batch_key):
                given = [one.params for one in alike]
                if is_row:
                    for rows in _split_by_size(given):
                        await cursor.execute(query, {name: [row[name] for row in rows] for name in rows[0]})
                elif len(given) > 1:
                    await cursor.executemany(query, given)
                else:
                    await cursor.execute(query, given[0])

    async def _run(self, query: Query, rows: AsyncRowFactory[Any], params: Mapping[str, Any]) -> AsyncCursor[Any]:
        await self.flush()
        return await self._connection.cursor(row_factory=rows).execute(query, params)


def _to_hex(value: object) -> str:
    """Bytes as PostgreSQL reads them from text."""
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    raise TypeError(f"{type(value).__name__} is no value of a row")


def _records_of(kind: type[Any] | None) -> AsyncRowFactory[Any]:
    """Makes rows of this dataclass or NamedTuple, from the columns that have the names of its fields."""
    if kind is None:
        return namedtuple_row
    fields: Sequence[str] = getattr(kind, "_fields", None) or [field.name for field in dataclasses.fields(kind)]

    def make_rows(cursor: AsyncCursor[Any]) -> RowMaker[Any]:
        columns = [column.name for column in cursor.description or ()]
        if columns == list(fields):  # as fast as psycopg makes its own
            return getattr(kind, "_make", None) or (lambda values: kind(*values))
        if missing := [field for field in fields if columns and field not in columns]:
            raise TypeError(f"the statement selects no {missing[0]} for {kind.__name__}, but {', '.join(columns)}")
        places = [columns.index(field) for field in fields if columns]
        return lambda values: kind(*[values[place] for place in places])

    return make_rows


class _Collected(NamedTuple):
    """A collected statement, or one row for it."""

    query: Query
    params: Mapping[str, Any]
    is_row: bool = False


def _batch_key(one: _Collected) -> tuple[Query, bool, tuple[str, ...]]:
    return one.query, one.is_row, tuple(one.params)


def _split_by_size(rows: Sequence[Mapping[str, Any]]) -> Iterator[Sequence[Mapping[str, Any]]]:
    """Divides rows into portions, one for each statement.

    Arrays are copied several times on their way, and PostgreSQL accepts none above a gigabyte.
    """
    start = size = 0
    for end, row in enumerate(rows):
        own = sum(len(value) for value in row.values() if isinstance(value, str | bytes | bytearray))
        if size + own > PORTION and end > start:
            yield rows[start:end]
            start, size = end, 0
        size += own
    yield rows[start:]
