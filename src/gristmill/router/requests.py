"""One request of a client and the answer to it, which is written in as few pieces as can be."""

import time
from collections.abc import Iterable
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Protocol

from gristmill.router.priority import Sender

PHRASES = {item.value: item.phrase for item in HTTPStatus}
JSON_TYPE = "application/json; charset=utf-8"

Headers = Iterable[tuple[bytes, bytes]]


class Line(Protocol):
    """The client's end of a connection."""

    full: bool

    def write(self, data: bytes) -> None: ...

    async def drained(self) -> None:
        """Wait until the client has taken enough for more to be sent."""
        ...


class Request:
    """What a client asked, and the only way to answer it."""

    __slots__ = (
        "_head", "_line", "body", "ended", "fields",
        "headers", "keeps", "method", "modern", "path", "remote", "sender", "status",
    )  # fmt: skip

    def __init__(self, line: Line, method: str, path: str, headers: list[tuple[bytes, bytes]], remote: str) -> None:
        self._line, self.method, self.path, self.remote = line, method, path, remote
        self.headers = headers  # names in small letters
        self.fields = dict(headers)
        self.body = b""
        self.modern = True  # HTTP/1.1: chunks are understood
        self.keeps = True  # whether the connection serves another request afterwards
        self.status = 0  # of the answer; 0 until it has begun
        self.ended = False
        self.sender: Sender | None = None  # who asks, once that is known
        self._head = b""

    def header(self, name: bytes) -> str | None:
        """A header's value, asked for in small letters."""
        value = self.fields.get(name)
        return None if value is None else value.decode("latin-1")

    def answer(self, status: int, body: bytes, content_type: str = JSON_TYPE, more: Headers = ()) -> None:
        """The whole answer in one write."""
        self.status, self.ended = status, True
        head = b"%bContent-Length: %d\r\n%b%b\r\n" % (
            self._start(content_type), len(body), _date(int(time.time())), _lines(more),
        )  # fmt: skip
        self._line.write(head if self.method == "HEAD" else head + body)

    def begin(self, content_type: str, more: Headers = ()) -> None:
        """The answer will come in pieces; its head goes with the first of them."""
        self.status = 200
        framing = b"Transfer-Encoding: chunked\r\n" if self.modern else b""
        self.keeps = self.keeps and self.modern  # without chunks the end of the connection is the end of the answer
        self._head = b"%b%b%b%b\r\n" % (
            self._start(content_type), framing, _date(int(time.time())), _lines(more),
        )  # fmt: skip

    async def write(self, data: bytes) -> None:
        """A piece of the answer; waits for a client who reads slowly."""
        self._line.write(self._head + self._framed(data))
        self._head = b""
        if self._line.full:
            await self._line.drained()

    def end(self, data: bytes = b"") -> None:
        """The last piece of the answer."""
        self.ended = True
        piece = self._framed(data) if data else b""
        self._line.write(b"%b%b%b" % (self._head, piece, b"0\r\n\r\n" if self.modern else b""))

    def _framed(self, data: bytes) -> bytes:
        return b"%x\r\n%b\r\n" % (len(data), data) if self.modern else data

    def _start(self, content_type: str) -> bytes:
        return _start(self.status, content_type, self.keeps, self.modern)


@lru_cache(maxsize=256)
def _start(status: int, content_type: str, keeps: bool, modern: bool) -> bytes:
    connection = "Connection: close\r\n" if not keeps else "" if modern else "Connection: keep-alive\r\n"
    phrase = PHRASES.get(status, "Unknown")
    return f"HTTP/1.1 {status} {phrase}\r\nContent-Type: {content_type}\r\n{connection}".encode()


def _lines(headers: Headers) -> bytes:
    return b"".join([b"%b: %b\r\n" % item for item in headers])


@lru_cache(maxsize=2)
def _date(second: int) -> bytes:
    return f"Date: {formatdate(second, usegmt=True)}\r\n".encode()
