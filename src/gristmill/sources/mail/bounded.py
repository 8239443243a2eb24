"""Reads from a mail server within limits: a call has so many seconds and so many bytes, however slowly they come."""

import io
import socket
import ssl
from time import monotonic

PATIENCE = 60.0  # seconds until a server that says nothing is given up
GREETING = 120.0  # seconds until we are signed in
LONGEST_CALL = 1200.0  # seconds: a large mail on a slow line
MOST_AROUND = 64 << 20  # bytes that one call may bring beside a mail: a million ids


class TookTooLong(TimeoutError):
    """The server goes on talking, but does not come to an end."""


class SaidTooMuch(OSError):
    """The server said more than anybody asked for."""


class Allowance:
    """What is left of the time and of the bytes that the call under way may take."""

    def __init__(self, most: int, seconds: float = GREETING) -> None:
        self._most = most
        self.renew(seconds)

    def renew(self, seconds: float = LONGEST_CALL) -> None:
        """Another call begins."""
        self._until = monotonic() + seconds
        self._left = self._most

    def check_size(self, size: int) -> None:
        if size > self._left:
            raise SaidTooMuch(f"it announced {size:,} bytes, and {self._left:,} may come")

    def check_time(self) -> float:
        """How many seconds are left."""
        left = self._until - monotonic()
        if left <= 0:
            raise TookTooLong("it did not come to an end")
        return left

    def spend(self, n: int) -> None:
        self._left -= n
        if self._left < 0:
            raise SaidTooMuch("it said more than it may")


class _Metered(io.RawIOBase):
    """The bytes of a socket, counted; a server that sends one byte a minute is not waited for longer than any other."""

    def __init__(self, sock: socket.socket, allowance: Allowance) -> None:
        self._sock = sock  # itself, and no file of its own: that would keep the connection open when it is closed
        self._allowance = allowance

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        left = self._allowance.check_time()
        if self._sock.gettimeout() != 0:  # or it does not wait at all
            self._sock.settimeout(min(left, PATIENCE))
        try:
            n = self._sock.recv_into(buffer)
        except (BlockingIOError, ssl.SSLWantReadError):
            return None  # it does not wait, and nothing is there
        self._allowance.spend(n)
        return n


class BoundedLines:
    """Reads from whichever socket its connection has now: after STARTTLS it is another one."""

    def __init__(self, allowance: Allowance) -> None:
        self._allowance = allowance
        self._opened: tuple[socket.socket, io.BufferedReader] | None = None

    def read(self, sock: socket.socket, size: int) -> bytes:
        self._allowance.check_size(size)  # before memory is made ready for it
        return self._open(sock).read(size)

    def readline(self, sock: socket.socket, longest: int) -> bytes:
        return self._open(sock).readline(longest)

    def _open(self, sock: socket.socket) -> io.BufferedReader:
        """Drop the bytes that were read ahead: they came before the connection was secure."""
        if self._opened is None or self._opened[0] is not sock:
            self._opened = sock, io.BufferedReader(_Metered(sock, self._allowance), 1 << 16)
        return self._opened[1]
