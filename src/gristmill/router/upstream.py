"""The interface of our HTTP clients, over plain connections and over TLS."""

import os
from typing import NamedTuple, Protocol

from gristmill.router.breaker import BackendFailure


class AttemptFailed(Exception):
    """One attempt at one backend failed, by the backend's fault."""

    def __init__(
        self,
        kind: BackendFailure,
        message: str,
        *,
        status: int = 502,
        body: bytes = b"",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind, self.status, self.body, self.retry_after = kind, status, body, retry_after


def cause_of(error: BaseException) -> str:
    """Why a connection failed, in the system's words."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    number = error.errno if isinstance(error, OSError) else None
    if number is not None and number > 0:  # asyncio's own text names addresses instead of the reason
        return os.strerror(number)
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


class Exchange(Protocol):
    """A request that was sent, and its answer while it comes."""

    status: int
    headers: list[tuple[bytes, bytes]]

    async def wait_for_headers(self) -> None:
        """Wait until status and headers are there."""
        ...

    def take(self) -> bytes | None:
        """The data since the last call: empty at the end, None when there is none yet."""
        ...

    async def wait_for_data(self) -> None:
        """Wait until there may be something to take."""
        ...

    def interrupt(self, error: BaseException) -> None:
        """Wake the reader with this error."""
        ...

    async def stop(self, patience: float) -> bool:
        """Tell the backend to stop; true when it confirmed that it did."""
        ...


class Timeouts(NamedTuple):
    """How long a backend may take, in seconds: to be reached, to begin its answer, to go on with it."""

    connect: float
    header: float
    idle: float


class BackendClient(Protocol):
    """Sends requests to one backend."""

    def limit(self, limits: Timeouts) -> None:
        """Go by these limits from now on."""
        ...

    def send_at_once(self, method: str, path: str, headers: bytes, body: bytes) -> Exchange | None:
        """Send a request at once, on a connection that is open already, if there is one."""
        ...

    async def send(self, method: str, path: str, headers: bytes, body: bytes) -> Exchange:
        """Send a request on a new connection."""
        ...

    async def close(self) -> None: ...


async def read_whole(exchange: Exchange, most: int = 64 * 1024**2) -> bytes:
    """All that is left of an answer."""
    parts, size = list[bytes](), 0
    while (data := exchange.take()) != b"":
        if data is None:
            await exchange.wait_for_data()
            continue
        parts.append(data)
        size += len(data)
        if size > most:
            raise AttemptFailed(BackendFailure.BROKEN, "the backend's answer is too large")
    return b"".join(parts)
