"""One request of a client and the answer to it, which is written in as few pieces as can be."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Protocol

from gristmill.router.priority import Sender
from gristmill.router.wire import headers_to_backend

PHRASES = {item.value: item.phrase for item in HTTPStatus}
MOST_WAITING = 1024**2  # bytes of a body that is taken while it comes, before its client is paused
JSON_TYPE = "application/json; charset=utf-8"

Headers = Iterable[tuple[bytes, bytes]]


class Outlet(Protocol):
    """The client's end of a connection."""

    full: bool

    def write(self, data: bytes) -> None: ...

    async def wait_until_drained(self) -> None:
        """Wait until the client has taken enough for more to be sent."""
        ...


class Head:
    """The first line and the headers of a request; most clients repeat them on their connection."""

    __slots__ = (
        "_session",
        "cors",
        "expects",
        "fields",
        "method",
        "modern",
        "passed_on",
        "path",
        "priority",
        "query",
        "remote",
        "sender",
        "streams_body",
    )

    def __init__(
        self,
        method: str,
        path: str,
        headers: list[tuple[bytes, bytes]],
        *,
        query: str = "",
        modern: bool = True,
        remote: str = "",
    ) -> None:
        self.method, self.path, self.query, self.remote = method, path, query, remote
        self.modern = modern  # HTTP/1.1: chunks are understood
        self.fields = dict(headers)  # names in small letters
        self.passed_on = headers_to_backend(headers)
        self.expects = self.fields.get(b"expect", b"").lower() == b"100-continue"  # to be told to send the body
        self.priority = self.header(b"x-ollama-priority")
        self.sender: Sender | None = None  # set once the request is admitted
        self.streams_body = False  # whether the call takes its body while it comes
        self.cors = b""  # header lines of the answer that a browser needs
        self._session = (self.header(b"x-router-session") or "")[:200]

    def header(self, name: bytes) -> str | None:
        """A header's value, asked for in small letters."""
        value = self.fields.get(name)
        return None if value is None else value.decode("latin-1")

    def session(self, sender: Sender) -> str:
        """The session a P0 reserves a GPU for: the client's own name for it, else its key and address."""
        if not self._session:
            self._session = f"{sender.name}@{self.remote}"
        return self._session


class BodyPieces:
    """A body that is taken while it comes, because it may be larger than the memory."""

    def __init__(self, resume: Callable[[], None]) -> None:
        self._resume = resume
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._arrival: asyncio.Event = asyncio.Event()
        self.complete = False

    def add(self, piece: bytes) -> bool:
        """Take a piece; true when enough is waiting to be read."""
        self._pieces.append(piece)
        self._size += len(piece)
        self._arrival.set()
        return self._size > MOST_WAITING

    def finish(self) -> None:
        self.complete = True
        self._arrival.set()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self._pieces or not self.complete:
            while self._pieces:
                yield self._pieces.popleft()
            if self._size > MOST_WAITING:
                self._resume()
            self._size = 0
            if not self.complete:
                self._arrival.clear()
                await self._arrival.wait()


class Request:
    """A client's request, and the only way to answer it."""

    __slots__ = ("_outlet", "_start", "body", "ended", "head", "keeps", "path", "pieces", "status")

    def __init__(self, outlet: Outlet, head: Head) -> None:
        self._outlet, self.head, self.path = outlet, head, head.path
        self.body = b""
        self.pieces: BodyPieces | None = None  # instead of the body, for a call that takes it while it comes
        self.keeps = True  # whether the connection serves another request afterwards
        self.status = 0  # of the answer; 0 until it has begun
        self.ended = False
        self._start = b""  # the answer's head, until it is sent with the first piece

    def answer(self, status: int, body: bytes, content_type: str = JSON_TYPE, more: Headers = ()) -> None:
        """The whole answer in one write."""
        self.status, self.ended = status, True
        start = _start(status, content_type, self.keeps, self.head.modern)
        head = b"%bContent-Length: %d\r\n%b%b%b\r\n" % (
            start,
            len(body),
            _date(int(time.time())),
            self.head.cors,
            _lines(more),
        )
        self._outlet.write(head if self.head.method == "HEAD" else head + body)

    def answer_without_body(self, status: int, more: Headers = ()) -> None:
        """An answer of a kind that never has a body, like 204."""
        self.status, self.ended = status, True
        start = _start(status, "", self.keeps, self.head.modern)
        self._outlet.write(b"%b%b%b%b\r\n" % (start, _date(int(time.time())), self.head.cors, _lines(more)))

    def begin(self, content_type: str, more: Headers = ()) -> None:
        """The answer will come in pieces; its head goes with the first of them."""
        self.status = 200
        modern = self.head.modern
        framing = b"Transfer-Encoding: chunked\r\n" if modern else b""
        self.keeps = self.keeps and modern  # without chunks the end of the connection is the end of the answer
        start = _start(200, content_type, self.keeps, modern)
        self._start = b"%b%b%b%b%b\r\n" % (start, framing, _date(int(time.time())), self.head.cors, _lines(more))

    async def write(self, data: bytes) -> None:
        """A piece of the answer; waits for a client that reads slowly."""
        self._outlet.write(self._start + self._frame(data))
        self._start = b""
        if self._outlet.full:
            await self._outlet.wait_until_drained()

    def end(self, data: bytes = b"") -> None:
        """The last piece of the answer."""
        self.ended = True
        piece = self._frame(data) if data else b""
        self._outlet.write(b"%b%b%b" % (self._start, piece, b"0\r\n\r\n" if self.head.modern else b""))

    def _frame(self, data: bytes) -> bytes:
        return b"%x\r\n%b\r\n" % (len(data), data) if self.head.modern else data


@lru_cache(maxsize=256)
def _start(status: int, content_type: str, keeps: bool, modern: bool) -> bytes:
    connection = "Connection: close\r\n" if not keeps else "" if modern else "Connection: keep-alive\r\n"
    phrase = PHRASES.get(status, "Unknown")
    kind = f"Content-Type: {content_type}\r\n" if content_type else ""
    return f"HTTP/1.1 {status} {phrase}\r\n{kind}{connection}".encode()


def _lines(headers: Headers) -> bytes:
    return b"".join([b"%b: %b\r\n" % item for item in headers])


@lru_cache(maxsize=2)
def _date(second: int) -> bytes:
    return f"Date: {formatdate(second, usegmt=True)}\r\n".encode()
