"""One connection to a plain-HTTP backend: an asyncio.Protocol around httptools, and the exchanges on it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import httptools
from typing_extensions import override

from gristmill.router.breaker import BackendFailure
from gristmill.router.upstream import AttemptFailed

MOST_HEAD = 256 * 1024  # bytes of an answer's headers
HIGH_WATER = 256 * 1024  # unread bytes after which the backend is paused: a slow reader costs no memory

Parting = Callable[["RouterConnection"], None]


class StaleConnection(AttemptFailed):
    """The connection ended before a byte of the answer came."""


class PlainExchange:
    """A conversation on one connection of ours."""

    __slots__ = (
        "_arrived",
        "_connection",
        "_error",
        "_gone",
        "_loop",
        "_size",
        "_waiter",
        "again",
        "at",
        "complete",
        "headers",
        "status",
    )

    def __init__(self, connection: "RouterConnection", now: float) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.complete = False
        self.at = now  # when something last happened, for the sweep
        self.again: Callable[[PlainExchange], Awaitable[RouterConnection]] | None = None
        self._connection: RouterConnection | None = connection
        self._loop = connection.loop
        self._arrived: list[bytes] = []
        self._size = 0
        self._error: BaseException | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._gone: asyncio.Future[None] | None = None

    async def wait_for_headers(self) -> None:
        while not self.status:
            try:
                await self.wait_for_data()
            except StaleConnection:
                if self.again is None:
                    raise
                # the backend had closed a kept connection meanwhile, which is no failure
                again, self.again, self._error = self.again, None, None
                self._connection = await again(self)
                if self._error is not None:  # told to stop meanwhile
                    self._connection.abort()

    def take(self) -> bytes | None:
        if self._error is not None:  # the exchange was stopped: later data belongs to no client
            raise self._error
        if not self._arrived:
            return b"" if self.complete else None
        data = self._arrived[0] if len(self._arrived) == 1 else b"".join(self._arrived)
        self._arrived.clear()
        if self._size > HIGH_WATER and self._connection is not None:
            self._connection.resume()
        self._size = 0
        return data

    async def wait_for_data(self) -> None:
        if self._error is not None:
            raise self._error
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def interrupt(self, error: BaseException) -> None:
        if not self.complete and self._error is None:
            self._error = error
            self.wake()

    async def stop(self, patience: float) -> bool:
        # half-closed, not closed: a server ends the request and then closes its side, which is its word
        connection = self._connection
        if connection is None:
            return True
        self._gone = self._loop.create_future()
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

    # ── reports of the connection ───────────────────────────────────────────

    def on_headers(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.status, self.headers = status, headers

    def on_body(self, data: bytes) -> bool:
        """Take data; true when enough is waiting to be read."""
        if self._gone is not None:
            return False
        self._arrived.append(data)
        self._size += len(data)
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
        self.wake()

    def wake(self) -> None:
        """Let the reader look again; once per packet, not per piece of it."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class RouterConnection(asyncio.Protocol):
    """One kept-alive connection; it serves one exchange after another."""

    __slots__ = (
        "_forget",
        "_head",
        "_headers",
        "_keep",
        "_parser",
        "_parting",
        "_paused",
        "exchange",
        "loop",
        "transport",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, keep: Parting, forget: Parting) -> None:
        self.loop, self._keep, self._forget = loop, keep, forget
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

    @override
    def data_received(self, data: bytes) -> None:
        if (exchange := self.exchange) is None:  # data without a request must not become the next answer
            self.abort()
            return
        exchange.at = self.loop.time()
        if not exchange.status:
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
        else:
            exchange.wake()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._forget(self)
        if (exchange := self.exchange) is None:
            return
        self.exchange = None
        if exchange.status and not self._is_framed():
            exchange.on_complete()  # HTTP/1.0 style: the end of the connection is the end of the body
        else:
            kind = AttemptFailed if exchange.status else StaleConnection
            exchange.on_lost(kind(BackendFailure.BROKEN, "the backend closed the connection"))

    def _is_framed(self) -> bool:
        return any(name in (b"content-length", b"transfer-encoding") for name, _ in self._headers)

    def _lose(self, why: str) -> None:
        exchange, self.exchange = self.exchange, None
        if exchange is not None:
            exchange.on_lost(AttemptFailed(BackendFailure.BROKEN, why))
        self.abort()

    # ── httptools ───────────────────────────────────────────────────────────

    def on_message_begin(self) -> None:
        if self.exchange is None:  # a second answer in the packet of the first: its rest would become the next answer
            self.abort()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.exchange is not None and not self.exchange.status:  # else it is a trailer
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:  # 100 or 103: the answer itself is yet to come
            self._headers = []
        elif self.exchange is not None:
            self.exchange.on_headers(status, self._headers)

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
        exchange = self.exchange
        if exchange is None or not exchange.status:
            return
        self.exchange = None
        self.resume()
        if self._parser.should_keep_alive() and not self._parting:
            self._keep(self)
        else:
            self.abort()
        exchange.on_complete()
