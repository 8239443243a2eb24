"""The HTTP client for TLS backends: aiohttp's, behind the same calls as our own."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import aiohttp

from gristmill.router.breaker import BackendFailure
from gristmill.router.upstream import AttemptFailed, Timeouts, cause_of

T = TypeVar("T")


class TlsExchange:
    """A conversation over TLS."""

    def __init__(
        self, request: Coroutine[Any, Any, aiohttp.ClientResponse], header_timeout: float, idle_timeout: float
    ) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self._request = request
        self._response: aiohttp.ClientResponse | None = None
        self._header_timeout, self._idle_timeout = header_timeout, idle_timeout
        self._error: BaseException | None = None
        self._data: bytes | None = None
        self._work: asyncio.Future[Any] | None = None

    async def wait_for_headers(self) -> None:
        response = await self._wait_for(self._get_response(), self._header_timeout, BackendFailure.HEADER_TIMEOUT)
        self.status = response.status
        self.headers = [(name.lower(), value) for name, value in response.raw_headers]

    async def _get_response(self) -> aiohttp.ClientResponse:
        # kept at once: the waiting task may be cancelled in this same moment
        self._response = await self._request
        return self._response

    def take(self) -> bytes | None:
        if self._error is not None:
            raise self._error
        data, self._data = self._data, None
        return data

    async def wait_for_data(self) -> None:
        assert self._response is not None
        self._data = await self._wait_for(
            self._response.content.readany(), self._idle_timeout, BackendFailure.IDLE_TIMEOUT
        )

    async def _wait_for(self, work: Coroutine[Any, Any, T], limit: float, kind: BackendFailure) -> T:
        if self._error is not None:
            work.close()
            raise self._error
        task = self._work = asyncio.ensure_future(work)
        try:
            async with asyncio.timeout(limit):
                return await task
        except TimeoutError as late:
            raise AttemptFailed(kind, f"the backend was silent for {limit:g} s", status=504) from late
        except asyncio.CancelledError:
            if self._error is not None:
                raise self._error from None
            raise
        except aiohttp.ClientError as error:
            if not isinstance(error, aiohttp.ClientConnectorError):
                raise AttemptFailed(BackendFailure.BROKEN, "the backend broke off") from error
            message = f"it cannot be reached ({cause_of(error.os_error)})"
            raise AttemptFailed(BackendFailure.CONNECT, message) from error

    def interrupt(self, error: BaseException) -> None:
        if self._error is None:
            self._error = error
            if self._work is not None:
                self._work.cancel()

    async def stop(self, patience: float) -> bool:
        # a closed TLS connection is all the word we can give; the other side has no way to answer it
        del patience
        if self._response is not None:
            self._response.close()
        elif self._work is None:
            self._request.close()
        return True


class TlsClient:
    """Sends requests to one TLS backend."""

    def __init__(self, url: str, limits: Timeouts) -> None:
        self._url = url.rstrip("/")
        self._limits = limits
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))

    def limit(self, limits: Timeouts) -> None:
        self._limits = limits

    def send_at_once(self, method: str, path: str, headers: bytes, body: bytes) -> None:
        """Which connections are open is aiohttp's to know."""
        del method, path, headers, body

    async def send(self, method: str, path: str, headers: bytes, body: bytes) -> TlsExchange:
        lines = (line.partition(":") for line in headers.decode("latin-1").split("\r\n") if line)
        named = {name: value.strip() for name, _, value in lines}
        request = self._session.request(
            method,
            self._url + path,
            data=body or None,
            headers={**named, "Accept-Encoding": "identity"},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._limits.connect),
        )
        return TlsExchange(_response(request), self._limits.header, self._limits.idle)

    async def close(self) -> None:
        await self._session.close()


async def _response(request: Any) -> aiohttp.ClientResponse:
    return await request
