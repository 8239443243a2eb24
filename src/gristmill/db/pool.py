"""Connections to the one database that decides."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

from psycopg import AsyncConnection, OperationalError
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from gristmill.db.embedded import Embedded
from gristmill.db.migrate import migrate
from gristmill.db.tx import Tx
from gristmill.errors import Refused, Transient
from gristmill.settings import Settings

Connection = AsyncConnection[TupleRow]


class Database:
    """A pool of connections; `async with Database(url) as db`."""

    def __init__(self, url: str, *, size: int = 4, revive: Callable[[], str] | None = None) -> None:
        self.url = url
        self._size = size
        self._revive = revive
        self._pool: AsyncConnectionPool[Connection] | None = None

    async def __aenter__(self) -> Self:
        self._pool = AsyncConnectionPool(
            self.url,
            min_size=0,
            max_size=self._size,
            open=False,
            timeout=20,
            kwargs={"application_name": "gristmill"},
        )
        await self._pool.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool:
            await self._pool.close()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Tx]:
        """One transaction: committed at the end, rolled back on any error."""
        assert self._pool, "open the database first: async with Database(url) as db"
        try:
            async with self._pool.connection() as connection:
                tx = Tx(connection)
                yield tx
                await tx.flush()
        except PoolTimeout as error:
            raise Transient(f"the database at {self.shown} does not answer") from error

    async def connect(self, name: str, **session: str) -> Connection:
        """A connection of one's own, with session settings; the caller closes it."""
        options = " ".join(f"-c {key}={value}" for key, value in session.items())
        return await AsyncConnection.connect(
            self.url, autocommit=True, prepare_threshold=0, application_name=f"gristmill {name}", options=options,
            connect_timeout=10,
        )  # fmt: skip

    async def revive(self) -> None:
        """Start the embedded server again if it is down; any other server is its owner's business."""
        if self._revive:
            await asyncio.to_thread(self._revive)

    @property
    def shown(self) -> str:
        """Where the database is, without its password."""
        parts = conninfo_to_dict(self.url)
        return f"{parts.get('host', 'localhost')}/{parts.get('dbname', '')}"


@asynccontextmanager
async def open_database(settings: Settings, *, size: int = 4) -> AsyncIterator[Database]:
    """The configured database, started if it is the embedded one, with its tables up to date."""
    revive = None
    if settings.database_url:
        url = settings.database_url
    else:
        revive = Embedded(settings.data).start
        url = await asyncio.to_thread(revive)
    async with Database(url, size=size, revive=revive) as db:
        await _migrated(db)
        yield db


async def _migrated(db: Database) -> None:
    try:
        connection = await db.connect("migrate")
    except OperationalError as error:
        reason = str(error).strip().splitlines()[-1].strip()
        raise Refused(
            f"The database at {db.shown} cannot be reached ({reason}): check GRISTMILL_DATABASE_URL."
        ) from error
    async with connection:
        await migrate(connection)
