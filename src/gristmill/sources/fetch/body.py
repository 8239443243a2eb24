"""Reads an answer piece by piece, and stops at the first byte too many, packed or unpacked."""

import zlib
from collections.abc import AsyncIterator

from gristmill.errors import Permanent, Transient

PIECE = 64 * 1024
GZIP_OR_ZLIB = 47  # window bits: zlib looks at the first bytes
RAW_DEFLATE = -15


async def read_body(
    pieces: AsyncIterator[bytes], encoding: str, *, max_bytes: int, max_unpacked: int, whom: str
) -> bytes:
    """The unpacked body; `encoding` is the Content-Encoding, `whom` names the place in errors."""
    unpack = _choose_unpacker(encoding.strip().lower(), max_unpacked, whom)
    arrived = 0
    async for piece in pieces:
        arrived += len(piece)
        if arrived > max_bytes:
            raise Permanent(f"{whom} sends more than {max_bytes} bytes (fetch.max_bytes).")
        unpack.feed(piece)
    return unpack.finish()


def _choose_unpacker(encoding: str, limit: int, whom: str) -> "_Plain":
    match encoding:
        case "" | "identity":
            return _Plain(limit, whom)
        case "gzip" | "x-gzip" | "deflate":
            return _Packed(limit, whom)
        case _:
            raise Permanent(f"{whom} answers in the encoding “{encoding[:40]}”, which we did not ask for.")


class _Plain:
    """Gathers what comes, up to a limit."""

    def __init__(self, limit: int, whom: str) -> None:
        self._limit = limit
        self._whom = whom
        self._body = bytearray()

    def feed(self, piece: bytes) -> None:
        self._add(piece)

    def finish(self) -> bytes:
        return bytes(self._body)

    def _add(self, piece: bytes) -> None:
        if len(self._body) + len(piece) > self._limit:
            raise Permanent(f"{self._whom} unpacks to more than {self._limit} bytes (fetch.max_unpacked).")
        self._body += piece


class _Packed(_Plain):
    """gzip, perhaps of several members, zlib, or deflate without a header, as some servers send it."""

    def __init__(self, limit: int, whom: str) -> None:
        super().__init__(limit, whom)
        self._unpack = zlib.decompressobj(GZIP_OR_ZLIB)
        self._begun = False

    def feed(self, piece: bytes) -> None:
        try:
            self._inflate(piece)
        except zlib.error:
            if self._begun:
                raise Transient(f"{self._whom} sent a compressed answer that is damaged.") from None
            self._unpack = zlib.decompressobj(RAW_DEFLATE)
            self._begun = True
            self.feed(piece)

    def finish(self) -> bytes:
        if self._begun and not self._unpack.eof:
            raise Transient(f"{self._whom} sent a compressed answer that ends too early.")
        return super().finish()

    def _inflate(self, piece: bytes) -> None:
        while piece:
            if self._unpack.eof:  # the next member of a gzip
                self._unpack = zlib.decompressobj(GZIP_OR_ZLIB)
            self._add(self._unpack.decompress(piece, PIECE))
            self._begun = True
            piece = self._unpack.unconsumed_tail or self._unpack.unused_data
