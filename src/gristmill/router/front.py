"""The front door: clients' connections, parsed by llhttp, one request after the other on each."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, cast
from urllib.parse import unquote_to_bytes, urlsplit

import httptools
from typing_extensions import override

from gristmill.router.requests import BodyPieces, Head, Request
from gristmill.router.wire import BadRequest, api_of, error_body

MOST_HEAD = 64 * 1024  # bytes of a request's first line and headers
MOST_AHEAD = 16  # requests that a client may send before the first of them is answered
KEPT = 75.0  # seconds that a connection without a request is kept
LINGER = 5.0  # seconds in which a refused client may read why before it is hung up on
LAST_WORDS = 1.0  # seconds in which clients may read their last lines when the router stops
LENGTH = (b"Content-Length", b"content-length")  # as good as every client spells it
UPGRADES = (b"upgrade", b"connection", b"http2-settings")
NO_HEAD = Head("GET", "/", [])

Said = tuple[bytes, bytes, str, list[tuple[bytes, bytes]]]  # method, address, version, headers


class Front:
    """Listens, and hands every request to the server; one timer watches over all connections."""

    def __init__(
        self,
        admit: Callable[[Head], None],
        handle: Callable[[Request], Coroutine[Any, Any, None]],
        *,
        body_limit: int,
        patience: float,
    ) -> None:
        self.admit, self.handle, self.body_limit, self.patience = admit, handle, body_limit, patience
        self.connections: set[ClientConnection] = set()
        self.loop = asyncio.get_running_loop()
        self.now = self.loop.time()  # to the second, which is all that patience needs
        self._server: asyncio.Server | None = None
        self._timer = self.loop.call_later(1.0, self._sweep)

    async def listen(self, host: str, port: int) -> int:
        """Begin to take connections; the port."""
        server = self._server = await self.loop.create_server(lambda: ClientConnection(self), host, port, backlog=1024)
        return server.sockets[0].getsockname()[1]

    def configure(self, *, body_limit: int, patience: float) -> None:
        """Go by these limits from now on, and look at every client's head anew: its key may be gone."""
        self.body_limit, self.patience = body_limit, patience
        for connection in self.connections:
            connection.forget_head()

    async def close(self) -> None:
        """Close every connection; clients may read the rest of their answers for a moment."""
        self._timer.cancel()
        if self._server is not None:
            self._server.close()
        workers = [connection.worker for connection in self.connections if connection.worker is not None]
        for connection in list(self.connections):
            connection.part()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS):
                await self._wait_until_empty()
        for connection in list(self.connections):
            connection.hang_up()
        await asyncio.gather(*workers, return_exceptions=True)

    async def _wait_until_empty(self) -> None:
        while self.connections:  # noqa: ASYNC110 the router is stopping
            await asyncio.sleep(0.005)

    def _sweep(self) -> None:
        self.now = self.loop.time()
        for connection in list(self.connections):
            connection.check(self.now)
        self._timer = self.loop.call_later(1.0, self._sweep)


class ClientConnection(asyncio.Protocol):
    """One client's connection; when the client closes it, its request ends."""

    __slots__ = (
        "_arrival",
        "_body",
        "_front",
        "_head",
        "_headers",
        "_length",
        "_parser",
        "_parting",
        "_plain",
        "_ready",
        "_receiving",
        "_remote",
        "_request",
        "_said",
        "_serving",
        "_since",
        "_size",
        "_transport",
        "_unsent",
        "_url",
        "_waiter",
        "_wrong",
        "full",
        "worker",
    )

    def __init__(self, front: Front) -> None:
        self._front = front
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._remote = ""
        self._receiving = False
        self._plain = b""
        self._url, self._headers = b"", list[tuple[bytes, bytes]]()
        self._length = 0  # of the body, as far as the client says it: the header that differs from request to request
        self._said: Said | None = None  # the raw parts of the last head
        self._head = NO_HEAD
        self._body: bytes | bytearray = b""
        self._size = 0  # of the head while it comes, then of the body
        self._request: Request | None = None  # whose body is coming
        self._ready: deque[Request] = deque()
        self._arrival: asyncio.Future[None] | None = None  # wakes the worker when the next request is there
        self._serving = False
        self._wrong: BadRequest | None = None  # the refusal, sent once the earlier requests are answered
        self._parting = False  # nothing more is read
        self._since = front.now  # when its present state began
        self._unsent: int = 0
        self._waiter: asyncio.Future[None] | None = None
        self.full = False
        self.worker: asyncio.Task[None] | None = None  # one for all requests: making one costs more than waking it

    # ── for requests ─────────────────────────────────────────────────────────

    def write(self, data: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            raise ConnectionResetError("the client is gone")
        self._transport.write(data)

    async def wait_until_drained(self) -> None:
        self._waiter = self._front.loop.create_future()
        await self._waiter

    def hang_up(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def forget_head(self) -> None:
        self._said = None

    def part(self) -> None:
        """Hang up once the present request is answered."""
        self._parting = True
        if not self._serving and not self._ready and self._transport is not None:
            self._transport.close()

    def check(self, now: float) -> None:
        """Part with a client that keeps us waiting: for a request, for the rest of one, or for its reading."""
        silent = now - self._since
        if self.full:
            self._check_reading(silent, now)
        elif self._serving or self._ready:
            if self._request is not None and self._request.pieces is not None and silent > self._front.patience:
                self.hang_up()  # in the middle of a body that is taken while it comes
        elif self._receiving and not self._parting:
            if silent > self._front.patience:
                self._refuse(BadRequest("the request did not come to its end in time", 408))
        elif silent > (LINGER if self._parting else KEPT):
            self.hang_up()

    def _check_reading(self, silent: float, now: float) -> None:
        unsent: int = self._transport.get_write_buffer_size() if self._transport is not None else 0
        if unsent != self._unsent:
            self._unsent, self._since = unsent, now
        elif silent > self._front.patience:
            self.hang_up()

    # ── asyncio ─────────────────────────────────────────────────────────────

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self._remote = peer[0] if peer else ""
        self._front.connections.add(self)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._front.connections.discard(self)
        self._ready.clear()
        if self.worker is not None:
            self.worker.cancel()

    @override
    def pause_writing(self) -> None:
        self.full = True
        self._since, self._unsent = self._front.now, 0

    @override
    def resume_writing(self) -> None:
        self.full = False
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    @override
    def data_received(self, data: bytes) -> None:
        while data and not self._parting and self._wrong is None:
            data = self._read(data)

    def _read(self, data: bytes) -> bytes:
        """Parse data; returns the part to parse again, after a request in it that offered another protocol."""
        if self._request is None:
            self._size += len(data)
        else:
            self._since = self._front.now
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            return self._decline_upgrade(data[offer.args[0] :])
        except httptools.HttpParserCallbackError as error:
            if not isinstance(wrong := error.__context__, BadRequest):
                raise
            self._refuse(wrong)
        except httptools.HttpParserError:
            self._refuse(BadRequest("this is not HTTP as it should be"))
        else:
            if self._size > MOST_HEAD and self._receiving and self._request is None:
                self._refuse(_too_wordy())
        return b""

    def _decline_upgrade(self, rest: bytes) -> bytes:
        """A request that offers another protocol (Java's client does) as if it had not offered it."""
        head, self._plain = self._plain, b""
        if not head:
            self._refuse(BadRequest("tunnels are not for here", 405))
            return b""
        self._parser = httptools.HttpRequestParser(self)
        return head + rest

    # ── httptools ───────────────────────────────────────────────────────────

    def on_message_begin(self) -> None:
        self._receiving, self._headers, self._length = True, [], 0
        self._since = self._front.now

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._request is not None:
            return  # a trailer, which the router does not use
        if name in LENGTH:
            self._length = int(value)
        else:
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        parser = self._parser
        if parser.should_upgrade():
            if parser.get_method() != b"CONNECT":
                length = [(b"content-length", b"%d" % self._length)] if self._length else []
                self._plain = _without_upgrade(parser.get_method(), self._url, self._headers + length)
            self._url, self._size = b"", 0
            return
        said = (parser.get_method(), self._url, parser.get_http_version(), self._headers)
        if said == self._said:
            self._request = Request(self, self._head)
        else:
            self._meet(said)
        self._url, self._size = b"", 0
        if self._head.streams_body:
            self._begin_body(self._request)
        elif self._length > self._front.body_limit:
            raise self._too_large()
        if self._head.expects and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _meet(self, said: Said) -> None:
        """Look at a head that is not the one before, and keep it if it is admitted."""
        method, url, version, headers = said
        small = [(name.lower(), value) for name, value in headers]
        path, query = _path_and_query(url)
        modern = version == "1.1"
        head = Head(method.decode(), path, small, query=query, modern=modern, remote=self._remote)
        self._request = Request(self, head)
        if (named := sum(name == b"host" for name, _ in small)) != 1 and (modern or named):
            raise BadRequest("a request of HTTP/1.1 names its host, once")
        if self._size > MOST_HEAD and sum(map(len, (url, *(part for pair in headers for part in pair)))) > MOST_HEAD:
            raise _too_wordy()
        self._front.admit(head)
        self._head, self._said = head, said

    def _begin_body(self, request: Request | None) -> None:
        """Serve a request whose body is taken while it comes."""
        assert request is not None
        request.pieces = BodyPieces(self._resume)
        request.keeps = False  # until the body has come to its end
        self._hand_over(request)

    def _resume(self) -> None:
        if self._transport is not None:
            self._transport.resume_reading()

    def on_body(self, body: bytes) -> None:
        if self._request is not None and (pieces := self._request.pieces) is not None:
            if pieces.add(body) and self._transport is not None:
                self._transport.pause_reading()
            return
        if not self._body:
            self._body = body  # as good as every body comes in one piece
        elif isinstance(self._body, bytes):
            self._body = bytearray(self._body) + body
        else:
            self._body += body
        self._size += len(body)
        if self._size > self._front.body_limit:
            raise self._too_large()

    def on_message_complete(self) -> None:
        request, self._request, self._receiving = self._request, None, False
        if request is None:
            return
        request.keeps = self._parser.should_keep_alive()
        if request.pieces is not None:
            request.pieces.finish()
            return
        request.body, self._body, self._size = bytes(self._body), b"", 0
        self._hand_over(request)

    def _hand_over(self, request: Request) -> None:
        """Queue a request: it is served when the earlier ones are answered."""
        self._ready.append(request)
        if self._arrival is not None:
            self._arrival.set_result(None)
            self._arrival = None
        elif self.worker is None:
            self.worker = self._front.loop.create_task(self._serve())
        elif len(self._ready) == MOST_AHEAD and self._transport is not None:
            self._transport.pause_reading()

    # ── one request after the other ─────────────────────────────────────────

    async def _serve(self) -> None:
        """Answer requests for as long as the client is there; its end cancels this."""
        while (transport := self._transport) is not None and not transport.is_closing():
            if not self._ready:
                self._arrival = self._front.loop.create_future()
                await self._arrival
            if len(self._ready) == MOST_AHEAD:
                transport.resume_reading()
            request, self._serving = self._ready.popleft(), True
            try:
                await self._front.handle(request)
            except ConnectionResetError:
                pass  # the client is gone
            finally:
                self._serving = False
                self._end_request(request)

    def _end_request(self, request: Request) -> None:
        transport = self._transport
        if transport is None:
            return
        if not request.ended:
            transport.abort()  # cut off, so that it cannot be taken for a whole answer
        elif not request.keeps or (self._parting and not self._ready):
            transport.close()
        elif self._wrong is not None and not self._ready:
            self._tell(self._wrong)
        else:
            self._since = self._front.now

    def _refuse(self, wrong: BadRequest) -> None:
        self._wrong = wrong
        if not self._serving and not self._ready:
            self._tell(wrong)

    def _tell(self, wrong: BadRequest) -> None:
        """Send the refusal and stop listening, but let the client read it before hanging up."""
        known = self._url if self._url.startswith(b"/") else b"/"  # it may be the address that is wrong
        request = self._request or Request(self, Head("GET", _path_and_query(known)[0], []))
        request.keeps = False
        self._parting, self._since = True, self._front.now
        if self._transport is None or self._transport.is_closing():
            return
        request.answer(wrong.status, error_body(api_of(request.path), wrong.status, str(wrong), wrong.code))
        self._transport.write_eof()

    def _too_large(self) -> BadRequest:
        return BadRequest(f"the body is larger than {self._front.body_limit} bytes", 413)


def _too_wordy() -> BadRequest:
    return BadRequest(f"the request's headers are larger than {MOST_HEAD} bytes", 431)


def _without_upgrade(method: bytes, url: bytes, headers: list[tuple[bytes, bytes]]) -> bytes:
    kept = [item for item in headers if item[0].lower() not in UPGRADES]
    return b"%b %b HTTP/1.1\r\n%b\r\n" % (method, url, b"".join([b"%b: %b\r\n" % item for item in kept]))


def _path_and_query(url: bytes) -> tuple[str, str]:
    """The path and the query that a request line names; a proxy's client names the host too."""
    query = b""
    if not url.startswith(b"/"):
        try:
            _, _, url, query, _ = urlsplit(url)
        except ValueError:
            raise BadRequest("the address is none") from None
    elif b"?" in url:
        url, _, query = url.partition(b"?")
    if b"%" in url:
        url = unquote_to_bytes(url)
    return url.decode("utf-8", "replace"), query.decode("latin-1")
