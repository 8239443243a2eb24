"""Connections to the one database that decides."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from psycopg import AsyncConnection, Error, InterfaceError, IsolationLevel, OperationalError, ProgrammingError
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow
from psycopg.waiting import wait_async
from psycopg_pool import AsyncConnectionPool, PoolTimeout
from typing_extensions import override

from gristmill.db.embedded import Embedded
from gristmill.db.migrate import migrate
from gristmill.db.tx import Tx
from gristmill.errors import Refused, Transient, Unreachable
from gristmill.settings import Settings

R = TypeVar("R")

# that a connection was lost is reported by whoever needed it
logging.getLogger("psycopg.pool").setLevel(logging.ERROR)

# a network that swallows what we send is found out within half a minute instead of after two hours
WATCHFUL = {"keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000}
PATIENCE = 20.0  # seconds until a connection is lent


class Connection(AsyncConnection[TupleRow]):
    """Whoever is cancelled while it waits for the server gives the connection up, at once.

    psycopg would ask the server to cancel the statement and wait up to ten seconds for its answer; behind a broken
    network, where we are cancelled because there is no answer, that is time which belongs to the next attempt. And
    if the connection broke meanwhile, psycopg would raise that instead, and the cancellation would be lost.
    """

    @override
    async def wait(self, gen: PQGen[R], interval: float = 0.1, timeout: float | None = None) -> R:
        try:
            return await wait_async(gen, self.pgconn.socket, interval=interval, timeout=timeout)
        except (asyncio.CancelledError, KeyboardInterrupt):
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                self.pgconn.finish()
            raise


Pool = AsyncConnectionPool[Connection]


class _Pools(NamedTuple):
    """Whose connections are lent."""

    usual: Pool
    beside: Pool  # for what is read beside something else

    async def close(self, timeout: float = 5) -> None:
        await asyncio.gather(*(pool.close(timeout) for pool in self))


class Database:
    """Connections to be lent, `size` at most and as many for what is read beside; `async with Database(url) as db`."""

    def __init__(self, url: str, *, size: int = 4, revive: Callable[[], str] | None = None) -> None:
        _parts(url)  # refused before anything can print it
        self.url = url
        self._size = size
        self._revive = revive
        self._pools: _Pools | None = None
        self._refreshing = asyncio.Lock()

    async def __aenter__(self) -> Self:
        self._pools = await self._opened()
        return self

    async def _opened(self) -> _Pools:
        pools = _Pools(self._pool(), self._pool())
        for pool in pools:
            await pool.open()
        return pools

    def _pool(self) -> Pool:
        return AsyncConnectionPool(
            self.url,
            connection_class=Connection,
            min_size=0,
            max_size=self._size,
            open=False,
            timeout=PATIENCE,
            configure=_observed,
            kwargs={"application_name": "gristmill", "connect_timeout": 10, **self.watchful},
        )

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pools:
            await self._pools.close()

    @asynccontextmanager
    async def transaction(self, *, snapshot: bool = False) -> AsyncGenerator[Tx]:
        """One transaction: committed at the end, rolled back on any error; all of a `snapshot` is of one moment.

        Unreachable if the server goes away meanwhile.
        """
        async with self._borrowed(autocommit=False) as connection:
            tx = Tx(connection)
            await connection.set_isolation_level(IsolationLevel.REPEATABLE_READ if snapshot else None)
            yield tx
            await tx.flush()

    @asynccontextmanager
    async def reading(self, *, beside: bool = False) -> AsyncGenerator[Tx]:
        """For those in a hurry who only read: each statement is of its own moment, and nothing is said around them.

        Who has two statements at work at a time sends the same one of them `beside` each time, by a connection of its
        own. A process runs where it ran last, if it may: those of two connections that take turns at everything end up
        on one core, one behind the other.
        """
        async with self._borrowed(autocommit=True, beside=beside) as connection:
            yield Tx(connection)

    @asynccontextmanager
    async def _borrowed(self, *, autocommit: bool, beside: bool = False) -> AsyncGenerator[Connection]:
        assert self._pools, "open the database first: async with Database(url) as db"
        connection = None
        try:
            pool = self._pools.beside if beside else self._pools.usual
            async with pool.connection() as connection:
                if connection.autocommit != autocommit:
                    await connection.set_autocommit(autocommit)
                yield connection
        except PoolTimeout as error:
            await self.refresh()
            raise Unreachable(f"the database at {self.shown} does not answer") from error
        except (OperationalError, InterfaceError) as error:
            if connection is None or connection.closed:  # none: the pool was exchanged while we waited for it
                raise Unreachable(f"the connection to the database at {self.shown} was lost") from error
            raise

    async def connect(self, name: str, **session: str) -> Connection:
        """A connection of one's own, with session settings beside those of the URL; the caller closes it."""
        given = conninfo_to_dict(self.url).get("options")
        options = " ".join([*([str(given)] if given else []), *(f"-c {key}={value}" for key, value in session.items())])
        connection = await Connection.connect(
            self.url,
            autocommit=True,
            prepare_threshold=0,
            application_name=f"gristmill {name}",
            options=options,
            connect_timeout=10,
            **self.watchful,
        )
        await _observed(connection)
        return connection

    @property
    def watchful(self) -> dict[str, Any]:
        """How connections notice a dead network, unless the URL says it otherwise."""
        given = conninfo_to_dict(self.url)
        return {name: value for name, value in WATCHFUL.items() if name not in given}

    async def refresh(self) -> None:
        """After an outage, start with new pools: the old ones wait ever longer, for minutes, before they try again."""
        async with self._refreshing:
            old = self._pools
            if old and any(pool.get_stats().get("connections_errors") for pool in old):
                self._pools = await self._opened()
                await old.close(timeout=0)

    async def revive(self) -> None:
        """Start the embedded server again if it is down; any other server is its owner's business."""
        if self._revive:
            await asyncio.to_thread(self._revive)

    @property
    def shown(self) -> str:
        """Where the database is, without its password."""
        parts = _parts(self.url)
        return f"{parts.get('host', 'localhost')}/{parts.get('dbname', '')}"


async def _observed(connection: Connection) -> None:
    """Let the server notice in the middle of a statement that we are gone: its locks must not outlive us."""
    autocommit = connection.autocommit
    await connection.set_autocommit(True)
    with suppress(Error):  # not every system can
        await connection.execute("SET client_connection_check_interval = '500ms'")
    await connection.set_autocommit(autocommit)


@asynccontextmanager
async def open_database(settings: Settings, *, size: int = 4) -> AsyncGenerator[Database]:
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
        raise Refused(
            f"The database at {db.shown} cannot be reached ({_reason(error)}): check GRISTMILL_DATABASE_URL."
        ) from error
    async with connection:
        await migrate(connection)


@contextmanager
def plainly() -> Generator[None]:
    """For those who talk to people: what the driver raises, as one of our errors and in one sentence."""
    try:
        yield
    except (OperationalError, InterfaceError) as error:
        raise Transient(f"The database does not answer ({_reason(error)}): run gristmill doctor.") from error
    except Error as error:
        raise Refused(f"The database refuses this: {_reason(error)}.") from error


def _reason(error: Error) -> str:
    """What happened, without the driver's advice about it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.strip().startswith("Is the")]
    text = error.diag.message_primary or (lines or [type(error).__name__])[-1]
    return text.removeprefix("connection failed: ").rstrip(".")


def without_secret(url: str) -> tuple[str, str | None]:
    """Where to connect, and the password apart: a program's arguments are for everybody on the machine to read."""
    parts = _parts(url)
    secret = parts.pop("password", None)
    return (url, None) if secret is None else (make_conninfo("", **parts), str(secret))


def _parts(url: str) -> dict[str, Any]:
    try:
        return dict(conninfo_to_dict(url))
    except ProgrammingError:
        # the driver repeats what it cannot read, passwords and all
        raise Refused(
            "GRISTMILL_DATABASE_URL cannot be read: write postgresql://user:password@host:5432/name."
        ) from None
