"""The HTTP client for plain-HTTP backends: connections of our own, kept for the next request."""

import asyncio
from collections.abc import Callable
from functools import partial
from urllib.parse import urlsplit

from gristmill.router.breaker import BackendFailure
from gristmill.router.connection import PlainExchange, RouterConnection
from gristmill.router.upstream import AttemptFailed, Timeouts, cause_of


class PlainClient:
    """Connections to one backend, kept for the next request."""

    def __init__(self, url: str, limits: Timeouts, *, keep: int = 64) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._prefix = parts.path.rstrip("/")
        self._host_line = f"Host: {parts.netloc.rpartition('@')[2]}\r\n".encode()
        self._keep = keep
        self._idle: list[RouterConnection] = []
        self._all: set[RouterConnection] = set()
        self._heads: dict[tuple[str, str], bytes] = {}
        self.loop = asyncio.get_running_loop()
        self.limit(limits)
        self._sweeper = self.loop.call_later(self._interval, self._sweep)

    def limit(self, limits: Timeouts) -> None:
        self._limits = limits
        self._interval = min(1.0, limits.header / 4, limits.idle / 4)

    def send_at_once(self, method: str, path: str, headers: bytes, body: bytes) -> PlainExchange | None:
        if (connection := self._reuse()) is None:
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

    async def _begin_anew(self, message: bytes, exchange: PlainExchange) -> RouterConnection:
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

    def _reuse(self) -> RouterConnection | None:
        while self._idle:
            if (connection := self._idle.pop()).usable:
                return connection
        return None

    async def _connect(self) -> RouterConnection:
        try:
            async with asyncio.timeout(self._limits.connect):
                _, connection = await self.loop.create_connection(
                    lambda: RouterConnection(self.loop, self._keep_connection, self._all.discard),
                    self._host,
                    self._port,
                )
        except (OSError, TimeoutError) as error:
            raise AttemptFailed(BackendFailure.CONNECT, f"it cannot be reached ({cause_of(error)})") from error
        self._all.add(connection)
        return connection

    def _keep_connection(self, connection: RouterConnection) -> None:
        if len(self._idle) < self._keep:
            self._idle.append(connection)
        else:
            connection.abort()

    def _sweep(self) -> None:
        """Find exchanges that are silent for too long: one timer for all of them, not one each."""
        now = self.loop.time()
        for connection in list(self._all):
            exchange = connection.exchange
            if exchange is None or not exchange.waits_for_backend:
                continue
            limit = self._limits.idle if exchange.status else self._limits.header
            if now - exchange.at >= limit:
                kind = BackendFailure.IDLE_TIMEOUT if exchange.status else BackendFailure.HEADER_TIMEOUT
                exchange.interrupt(AttemptFailed(kind, f"the backend was silent for {limit:g} s", status=504))
        self._sweeper = self.loop.call_later(self._interval, self._sweep)

    async def close(self) -> None:
        self._sweeper.cancel()
        lost: list[Callable[[], None]] = [connection.abort for connection in self._all]
        for abort in lost:
            abort()
        await asyncio.sleep(0)
