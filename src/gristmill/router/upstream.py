"""The HTTP client for plain-HTTP backends: an asyncio.Protocol around httptools."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol, cast
from urllib.parse import urlsplit

import httptools
from typing_extensions import override

from gristmill.router.breaker import Failure

MOST_HEAD = 256 * 1024  # bytes of an answer's headers
HIGH_WATER = 256 * 1024  # unread bytes after which the backend is paused: a slow reader costs no memory


class AttemptFailed(Exception):
    """One attempt at one backend failed, by the backend's fault."""

    def __init__(
        self,
        kind: Failure,
        message: str,
        *,
        status: int = 502,
        body: bytes = b"",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind, self.status, self.body, self.retry_after = kind, status, body, retry_after


class StaleConnection(AttemptFailed):
    """The connection ended before a byte of the answer came."""


class Exchange(Protocol):
    """A request that was sent, and its answer while it comes."""

    status: int
    headers: list[tuple[bytes, bytes]]

    async def begun(self) -> None:
        """Wait until status and headers are there."""
        ...

    def taken(self) -> bytes | None:
        """What has come since the last call: empty at the end, None when nothing has come yet."""
        ...

    async def news(self) -> None:
        """Wait until there may be something to take."""
        ...

    def interrupt(self, error: BaseException) -> None:
        """Wake whoever reads, with this error."""
        ...

    async def stop(self, patience: float) -> bool:
        """Tell the backend to stop; true when it confirmed that it did."""
        ...


class Client(Protocol):
    """Sends requests to one backend."""

    def sent(self, method: str, path: str, headers: bytes, body: bytes) -> Exchange | None:
        """Send a request at once, on a connection that is open already, if there is one."""
        ...

    async def send(self, method: str, path: str, headers: bytes, body: bytes) -> Exchange:
        """Send a request on a new connection."""
        ...

    async def close(self) -> None: ...


class PlainExchange:
    """A conversation on one connection of ours."""

    __slots__ = (
        "_arrived",
        "_connection",
        "_error",
        "_gone",
        "_size",
        "_waiter",
        "again",
        "at",
        "complete",
        "headers",
        "status",
    )

    def __init__(self, connection: "Connection", now: float) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.complete = False
        self.at = now  # when something last happened, for the sweep
        self.again: Callable[[PlainExchange], Awaitable[Connection]] | None = None
        self._connection: Connection | None = connection
        self._arrived: list[bytes] = []
        self._size = 0
        self._error: BaseException | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._gone: asyncio.Future[None] | None = None

    async def begun(self) -> None:
        while not self.status:
            try:
                await self.news()
            except StaleConnection:
                if self.again is None:
                    raise
                # a kept connection that the backend had closed meanwhile: nobody is to blame
                again, self.again, self._error = self.again, None, None
                self._connection = await again(self)
                if self._error is not None:  # told to stop meanwhile
                    self._connection.abort()

    def taken(self) -> bytes | None:
        if self._error is not None:  # told to stop: what came since is nobody's any more
            raise self._error
        if not self._arrived:
            return b"" if self.complete else None
        data = self._arrived[0] if len(self._arrived) == 1 else b"".join(self._arrived)
        self._arrived.clear()
        if self._size > HIGH_WATER and self._connection is not None:
            self._connection.resume()
        self._size = 0
        return data

    async def news(self) -> None:
        if self._error is not None:
            raise self._error
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def interrupt(self, error: BaseException) -> None:
        if not self.complete and self._error is None:
            self._error = error
            self._wake()

    async def stop(self, patience: float) -> bool:
        # half-closed, not closed: a server ends the request and then closes its side, which is its word
        connection = self._connection
        if connection is None:
            return True
        self._gone = asyncio.get_running_loop().create_future()
        connection.half_close()
        try:
            async with asyncio.timeout(patience):
                await self._gone
        except TimeoutError:
            return False
        finally:
            connection.abort()
        return True

    @property
    def waits_for_backend(self) -> bool:
        return self._waiter is not None or not self.status

    # ── what the connection reports ─────────────────────────────────────────

    def on_headers(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.status, self.headers = status, headers
        self._wake()

    def on_body(self, data: bytes) -> bool:
        """Take data; true when enough is waiting to be read."""
        if self._gone is not None:
            return False
        self._arrived.append(data)
        self._size += len(data)
        self._wake()
        return self._size > HIGH_WATER

    def on_complete(self) -> None:
        self.complete = True
        self._part()

    def on_lost(self, error: AttemptFailed) -> None:
        if not self.complete and self._error is None:
            self._error = error
        self._part()

    def _part(self) -> None:
        self._connection = None
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Connection(asyncio.Protocol):
    """One kept-alive connection; it serves one exchange after another."""

    __slots__ = ("_client", "_head", "_headers", "_parser", "_parting", "_paused", "exchange", "transport")

    def __init__(self, client: "PlainClient") -> None:
        self._client = client
        self._parser = httptools.HttpResponseParser(self)
        self._headers: list[tuple[bytes, bytes]] = []
        self._head = 0  # bytes that came before the headers were complete
        self._paused = False
        self._parting = False
        self.exchange: PlainExchange | None = None
        self.transport: asyncio.Transport | None = None

    @property
    def usable(self) -> bool:
        return self.transport is not None and not self.transport.is_closing()

    def begin(self, message: bytes, exchange: PlainExchange) -> None:
        assert self.transport is not None
        self.exchange = exchange
        self._headers, self._head = [], 0
        self.transport.write(message)

    def resume(self) -> None:
        if self._paused and self.transport is not None:
            self._paused = False
            self.transport.resume_reading()

    def half_close(self) -> None:
        self.resume()
        self._parting = True
        if self.transport is not None and self.transport.can_write_eof() and not self.transport.is_closing():
            self.transport.write_eof()

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    # ── asyncio ─────────────────────────────────────────────────────────────

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        raw = cast("socket.socket | None", transport.get_extra_info("socket"))
        if raw is not None:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @override
    def data_received(self, data: bytes) -> None:
        if self.exchange is None:  # nobody asked: whatever this is, it must not become the next answer
            self.abort()
            return
        self.exchange.at = self._client.loop.time()
        if not self.exchange.status:
            self._head += len(data)
            if self._head > MOST_HEAD and len(data) < self._head:
                self._lose("the backend's headers do not end")
                return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._lose("the backend switched protocols")
        except httptools.HttpParserError:
            self._lose("the backend's answer is not HTTP")

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._client.forget(self)
        if (exchange := self.exchange) is None:
            return
        self.exchange = None
        if exchange.status and not self._is_framed():
            exchange.on_complete()  # HTTP/1.0 style: the end of the connection is the end of the body
        else:
            kind = AttemptFailed if exchange.status else StaleConnection
            exchange.on_lost(kind(Failure.BROKEN, "the backend closed the connection"))

    def _is_framed(self) -> bool:
        return any(name in (b"content-length", b"transfer-encoding") for name, _ in self._headers)

    def _lose(self, why: str) -> None:
        exchange, self.exchange = self.exchange, None
        if exchange is not None:
            exchange.on_lost(AttemptFailed(Failure.BROKEN, why))
        self.abort()

    # ── httptools ───────────────────────────────────────────────────────────

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.exchange is not None and not self.exchange.status:  # else it is a trailer
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        if self.exchange is not None:
            self.exchange.on_headers(self._parser.get_status_code(), self._headers)

    def on_body(self, body: bytes) -> None:
        if (
            self.exchange is not None
            and self.exchange.on_body(body)
            and not self._paused
            and self.transport is not None
        ):
            self._paused = True
            self.transport.pause_reading()

    def on_message_complete(self) -> None:
        exchange, self.exchange = self.exchange, None
        if exchange is None:
            return
        self.resume()
        if self._parser.should_keep_alive() and not self._parting:
            self._client.keep(self)
        else:
            self.abort()
        exchange.on_complete()


class PlainClient:
    """Connections to one backend, kept for the next request."""

    def __init__(
        self, url: str, *, connect_timeout: float, header_timeout: float, idle_timeout: float, keep: int = 64
    ) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._prefix = parts.path.rstrip("/")
        self._host_line = f"Host: {parts.netloc.rpartition('@')[2]}\r\n".encode()
        self._connect_timeout, self._header_timeout, self._idle_timeout = (
            connect_timeout,
            header_timeout,
            idle_timeout,
        )
        self._keep = keep
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()
        self._heads: dict[tuple[str, str], bytes] = {}
        self.loop = asyncio.get_running_loop()
        self._interval = min(1.0, header_timeout / 4, idle_timeout / 4)
        self._sweeper = self.loop.call_later(self._interval, self._sweep)

    def sent(self, method: str, path: str, headers: bytes, body: bytes) -> PlainExchange | None:
        if (connection := self._reused()) is None:
            return None
        message = self._message(method, path, headers, body)
        exchange = PlainExchange(connection, self.loop.time())
        exchange.again = partial(self._begin_anew, message)
        connection.begin(message, exchange)
        return exchange

    async def send(self, method: str, path: str, headers: bytes, body: bytes) -> PlainExchange:
        connection = await self._connect()
        exchange = PlainExchange(connection, self.loop.time())
        connection.begin(self._message(method, path, headers, body), exchange)
        return exchange

    async def _begin_anew(self, message: bytes, exchange: PlainExchange) -> Connection:
        connection = await self._connect()
        connection.begin(message, exchange)
        return connection

    def _message(self, method: str, path: str, headers: bytes, body: bytes) -> bytes:
        return b"%b%bContent-Length: %d\r\n\r\n%b" % (self._head(method, path), headers, len(body), body)

    def _head(self, method: str, path: str) -> bytes:
        if (head := self._heads.get((method, path))) is None:
            head = f"{method} {self._prefix}{path} HTTP/1.1\r\n".encode() + self._host_line
            if len(self._heads) < 256:
                self._heads[method, path] = head
        return head

    def _reused(self) -> Connection | None:
        while self._idle:
            if (connection := self._idle.pop()).usable:
                return connection
        return None

    async def _connect(self) -> Connection:
        try:
            async with asyncio.timeout(self._connect_timeout):
                _, connection = await self.loop.create_connection(lambda: Connection(self), self._host, self._port)
        except (OSError, TimeoutError) as error:
            raise AttemptFailed(Failure.CONNECT, "the backend cannot be reached") from error
        self._all.add(connection)
        return connection

    def keep(self, connection: Connection) -> None:
        if len(self._idle) < self._keep:
            self._idle.append(connection)
        else:
            connection.abort()

    def forget(self, connection: Connection) -> None:
        self._all.discard(connection)

    def _sweep(self) -> None:
        """Find exchanges that are silent for too long: one timer for all of them, not one each."""
        now = self.loop.time()
        for connection in list(self._all):
            exchange = connection.exchange
            if exchange is None or not exchange.waits_for_backend:
                continue
            limit = self._idle_timeout if exchange.status else self._header_timeout
            if now - exchange.at >= limit:
                kind = Failure.IDLE_TIMEOUT if exchange.status else Failure.HEADER_TIMEOUT
                exchange.interrupt(AttemptFailed(kind, f"the backend was silent for {limit:g} s", status=504))
        self._sweeper = self.loop.call_later(self._interval, self._sweep)

    async def close(self) -> None:
        self._sweeper.cancel()
        lost: list[Callable[[], None]] = [connection.abort for connection in self._all]
        for abort in lost:
            abort()
        await asyncio.sleep(0)
