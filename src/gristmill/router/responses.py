"""A whole answer to a client, written in one go: a proxy needs little of what a web application does."""

import time
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import HttpVersion11
from typing_extensions import override

PHRASES = {item.value: item.phrase for item in HTTPStatus}
LARGE = 64 * 1024


class Whole(web.StreamResponse):
    """Status, headers and body that are known before the first byte."""

    def __init__(self, status: int, content_type: str, body: bytes, more: list[tuple[str, str]] | None = None) -> None:
        super().__init__(status=status)
        self._type, self._text, self._more = content_type, body, more
        self._kept = True

    @property
    @override
    def keep_alive(self) -> bool:
        return self._kept

    @override
    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        transport = request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client is gone")
        self._kept = request.keep_alive
        more = "".join([f"{name}: {value}\r\n" for name, value in self._more]) if self._more else ""
        if not self._kept:
            more += "Connection: close\r\n"
        elif request.version < HttpVersion11:
            more += "Connection: keep-alive\r\n"
        head = (
            f"{_start(self.status)}Content-Type: {self._type}\r\nContent-Length: {len(self._text)}\r\n"
            f"{_date(int(time.time()))}{more}\r\n"
        )
        transport.write(head.encode("latin-1", "replace") + self._text)
        if len(self._text) > LARGE:
            await request.writer.drain()
        return None

    @override
    async def write_eof(self, data: bytes = b"") -> None:
        del data  # all of it went with the head


@lru_cache(maxsize=64)
def _start(status: int) -> str:
    phrase = PHRASES.get(status, "Unknown")
    return f"HTTP/1.1 {status} {phrase}\r\n"


@lru_cache(maxsize=2)
def _date(second: int) -> str:
    return f"Date: {formatdate(second, usegmt=True)}\r\n"
