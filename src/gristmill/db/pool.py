"""Connections to the one database that decides."""

import asyncio
import logging
import select
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from psycopg import (
    AsyncConnection,
    AsyncCursor,
    Error,
    InterfaceError,
    IsolationLevel,
    OperationalError,
    ProgrammingError,
)
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.errors import DiskFull
from psycopg.pq import TransactionStatus
from psycopg.rows import DictRow, TupleRow, dict_row
from psycopg.waiting import wait_async
from psycopg_pool import AsyncConnectionPool, PoolTimeout
from typing_extensions import override

from gristmill.db.embedded import Embedded
from gristmill.db.migrate import SchemaState, migrate, schema_state
from gristmill.db.roles import TENANT
from gristmill.db.tx import Tx
from gristmill.errors import Disconnected, NoSpace, Refused, Transient, Unreachable
from gristmill.settings import Settings

R = TypeVar("R")

# that a connection was lost is reported by whoever needed it
logging.getLogger("psycopg.pool").setLevel(logging.ERROR)

# a network that swallows what we send is found out within half a minute instead of after two hours
WATCHFUL = {"keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000}
PATIENCE = 20.0  # seconds until a connection is lent
FIX_SEARCH_PATH = """
SELECT set_config('search_path', string_agg(quote_ident(name), ', '), false) FROM unnest(current_schemas(false)) name
"""
LOOK_INTO_FIRST = """
SELECT set_config('search_path', quote_ident(%s) || ', ' || current_setting('search_path'), true)
"""  # until the transaction ends
BECOME_TENANT = f"SET ROLE {TENANT}"
LOOK_FROM = "SELECT set_config('gristmill.client', %s, false), set_config('gristmill.project', %s, false)"


class Viewpoint(Protocol):
    """From where the database is seen: a client and perhaps one of its projects; without either it is GLOBAL."""

    @property
    def client(self) -> str: ...

    @property
    def project(self) -> str: ...


class Connection(AsyncConnection[TupleRow]):
    """A connection that is given up at once when its user is cancelled while the server works.

    psycopg would ask the server to cancel the statement, and wait up to ten seconds for the answer. Often a user is
    cancelled because the network is broken: no answer comes, and the next attempt loses these seconds. If the
    connection breaks while psycopg waits, psycopg raises that error, and the cancellation is lost.
    """

    seen_from: tuple[str, str] | None = (
        None  # the client and project that the session was told, of a tenant's connection
    )

    @override
    async def wait(self, gen: PQGen[R], interval: float = 0.1, timeout: float | None = None) -> R:
        try:
            return await wait_async(gen, self.pgconn.socket, interval=interval, timeout=timeout)
        except (asyncio.CancelledError, KeyboardInterrupt):
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                self.pgconn.finish()
            raise

    @property
    def has_ended(self) -> bool:
        """Whether the server hung up while nobody used the connection.

        An idle connection has nothing to read but the farewell of its server. To look for it costs no round trip.
        """
        if self.closed:
            return True
        look = select.poll()
        look.register(self.pgconn.socket, select.POLLIN)
        return bool(look.poll(0))


class Pool(AsyncConnectionPool[Connection]):
    """Lends no connection whose server was restarted meanwhile: its borrower could not know, and would fail."""

    @override
    async def getconn(self, timeout: float | None = None) -> Connection:
        while (connection := await super().getconn(timeout)).has_ended:
            await connection.close()
            await self.putconn(connection)  # the pool opens another in its place
        return connection


class _Pools(NamedTuple):
    """The connections that are lent: those that see everything, and those that see what one client may see."""

    usual: Pool
    beside: Pool  # for statements that run at the same time as another one
    tenant: Pool
    tenant_beside: Pool

    async def close(self, timeout: float = 5) -> None:
        await asyncio.gather(*(pool.close(timeout) for pool in self))


class Database:
    """Connections to be lent, at most `size` of each kind; `async with Database(url) as db`.

    Without `row_security`, only the program's own filters keep clients apart.
    """

    def __init__(
        self, url: str, *, size: int = 4, revive: Callable[[], str] | None = None, row_security: bool = True
    ) -> None:
        _parts(url)  # refused before anything can print it
        self.url = url
        self._row_security = row_security
        self._size = size
        self._revive = revive
        self._pools: _Pools | None = None
        self._refreshing = asyncio.Lock()

    async def __aenter__(self) -> Self:
        self._pools = await self._open_pools()
        return self

    async def _open_pools(self) -> _Pools:
        tenant = _become_tenant if self._row_security else _let_server_watch
        pools = _Pools(
            self._make_pool(_let_server_watch),
            self._make_pool(_let_server_watch),
            self._make_pool(tenant),
            self._make_pool(tenant),
        )
        for pool in pools:
            await pool.open()
        return pools

    def _make_pool(self, configure: Callable[[Connection], Awaitable[None]]) -> Pool:
        return Pool(
            self.url,
            connection_class=Connection,
            min_size=0,
            max_size=self._size,
            open=False,
            timeout=PATIENCE,
            configure=configure,
            kwargs={"application_name": "gristmill", "connect_timeout": 10, **self.watchful},
        )

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pools:
            await self._pools.close()

    @asynccontextmanager
    async def transaction(self, *, snapshot: bool = False, seen_from: Viewpoint | None = None) -> AsyncGenerator[Tx]:
        """One transaction: committed at the end, rolled back on any error; all of a `snapshot` is of one moment.

        With `seen_from`, the database shows and changes only the rows that this client or project may see and change.
        Unreachable if the server goes away meanwhile.
        """
        async with self._borrow_connection(autocommit=False, seen_from=seen_from) as connection:
            tx = Tx(connection, seen_from=seen_from)
            await connection.set_isolation_level(IsolationLevel.REPEATABLE_READ if snapshot else None)
            yield tx
            await tx.flush()

    @asynccontextmanager
    async def reading(self, *, beside: bool = False, seen_from: Viewpoint | None = None) -> AsyncGenerator[Tx]:
        """Statements that only read, without a transaction around them: each sees the moment at which it runs.

        A caller that runs two statements at the same time sends one of them `beside`, and always the same one: it has
        connections of its own. The system wakes a server process on the core where it ran last. Two connections that
        take turns at everything would end up on one core, one behind the other.
        """
        async with self._borrow_connection(autocommit=True, beside=beside, seen_from=seen_from) as connection:
            yield Tx(connection, seen_from=seen_from)

    @asynccontextmanager
    async def _borrow_connection(
        self, *, autocommit: bool, beside: bool = False, seen_from: Viewpoint | None = None
    ) -> AsyncGenerator[Connection]:
        assert self._pools, "open the database first: async with Database(url) as db"
        connection = None
        try:
            async with self._choose_pool(beside, seen_from).connection() as connection:
                if seen_from is not None and connection.seen_from != (seen_from.client, seen_from.project):
                    await _look_from(connection, seen_from)
                if connection.autocommit != autocommit:
                    await connection.set_autocommit(autocommit)
                yield connection
        except PoolTimeout as error:
            await self.refresh()
            raise Unreachable(f"the database at {self.shown} does not answer") from error
        except DiskFull as error:
            raise NoSpace(f"the disk of the database at {self.shown} is full") from error
        except (OperationalError, InterfaceError) as error:
            if connection is None or connection.closed:  # none: the pool was exchanged while we waited for it
                raise Disconnected(f"the connection to the database at {self.shown} was lost") from error
            raise

    @asynccontextmanager
    async def lend_cursor(self, schema: str) -> AsyncGenerator[AsyncCursor[DictRow]]:
        """One transaction for a library that runs its own statements: they find its tables in this schema first."""
        async with self._borrow_connection(autocommit=False) as connection:
            await connection.set_isolation_level(None)
            await connection.execute(LOOK_INTO_FIRST, [schema])
            async with connection.cursor(binary=True, row_factory=dict_row) as cursor:
                yield cursor

    async def examine_schema(self) -> SchemaState:
        """How the tables compare with this program, by a connection that is lent."""
        async with self._borrow_connection(autocommit=True) as connection:
            return await schema_state(connection)

    def _choose_pool(self, beside: bool, seen_from: Viewpoint | None) -> Pool:
        assert self._pools
        if seen_from is None:
            return self._pools.beside if beside else self._pools.usual
        return self._pools.tenant_beside if beside else self._pools.tenant

    def _options(self, session: Mapping[str, str]) -> str:
        """Session settings beside those of the URL."""
        given = conninfo_to_dict(self.url).get("options")
        return " ".join([*([str(given)] if given else []), *(f"-c {key}={value}" for key, value in session.items())])

    async def connect(self, name: str, **session: str) -> Connection:
        """A connection of one's own, with session settings beside those of the URL; the caller closes it."""
        connection = await Connection.connect(
            self.url,
            autocommit=True,
            prepare_threshold=0,
            application_name=f"gristmill {name}",
            options=self._options(session),
            connect_timeout=10,
            **self.watchful,
        )
        await _let_server_watch(connection)
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
                self._pools = await self._open_pools()
                await old.close(timeout=0)

    async def revive(self) -> None:
        """Start the embedded server again if it is down; any other server is its owner's business."""
        if self._revive:
            await asyncio.to_thread(self._revive)

    def leave_down(self) -> None:
        """From now on, do not start the embedded server again: a process that ends has no more use for it."""
        self._revive = None

    @property
    def shown(self) -> str:
        """Where the database is, without its password."""
        parts = _parts(self.url)
        return f"{parts.get('host', 'localhost')}/{parts.get('dbname', '')}"


async def _let_server_watch(connection: Connection) -> None:
    """Let the server notice in the middle of a statement that we are gone: its locks must not outlive us."""
    autocommit = connection.autocommit
    await connection.set_autocommit(True)
    with suppress(Error):  # not every system can
        await connection.execute("SET client_connection_check_interval = '500ms'")
    await connection.set_autocommit(autocommit)


async def _become_tenant(connection: Connection) -> None:
    """Bind the session to row-level security, and make sure that it is bound.

    A start-up option would do the same, unless a proxy between us and the server drops it: then everything would be
    seen. The search path is that of the owner: `$user` in it would name another schema.
    """
    await _let_server_watch(connection)
    await connection.set_autocommit(True)
    await connection.execute(FIX_SEARCH_PATH)
    await connection.execute(BECOME_TENANT)
    found = await (await connection.execute("SELECT current_user::text")).fetchone()
    if found != (TENANT,):
        raise Refused(f"The server does not let us act as {TENANT}: connect to it without a proxy in between.")
    await connection.set_autocommit(False)


async def _look_from(connection: Connection, seen_from: Viewpoint) -> None:
    """Tell the session where it looks from, before its transaction begins: rolling back must not undo it."""
    connection.seen_from = None
    await connection.set_autocommit(True)
    await connection.execute(LOOK_FROM, [seen_from.client, seen_from.project])
    connection.seen_from = (seen_from.client, seen_from.project)


@asynccontextmanager
async def open_database(settings: Settings, *, size: int = 4) -> AsyncGenerator[Database]:
    """The configured database, started if it is the embedded one, with its tables up to date."""
    revive = None
    if settings.database_url:
        url = settings.database_url
    else:
        revive = Embedded(settings.data).start
        url = await asyncio.to_thread(revive)
    async with Database(url, size=size, revive=revive, row_security=settings.row_security) as db:
        await _migrate(db, row_security=settings.row_security)
        yield db


async def _migrate(db: Database, *, row_security: bool) -> None:
    try:
        connection = await db.connect("migrate")
    except OperationalError as error:
        raise Refused(
            f"The database at {db.shown} cannot be reached ({_reason(error)}): check GRISTMILL_DATABASE_URL."
        ) from error
    async with connection:
        await migrate(connection, row_security=row_security)


@contextmanager
def plainly() -> Generator[None]:
    """Turn what the driver raises into one of our errors, in one sentence for a person."""
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
