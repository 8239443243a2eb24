"""Calls to a provider over HTTP: every way in which it can fail becomes one of our errors."""

from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import orjson

from gristmill.errors import Overloaded, Permanent, Transient, Unsent

TIMEOUT = aiohttp.ClientTimeout(total=300, sock_connect=15, sock_read=60)
UNSAID = timedelta(minutes=1)  # until we come again, if the other side asks for a pause and does not say how long
LONGEST = 64 << 20  # bytes of one answer
BUSY = (429, 503)


class Answer:
    """What a provider answered."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self) -> Any:
        """The body as JSON; one that was cut off on its way is asked for again."""
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError as error:
            raise Transient(f"The answer is no JSON, or was cut off after {len(self.body):,} bytes.") from error


class Provider:
    """One server of a provider, with what every call to it carries."""

    def __init__(self, session: aiohttp.ClientSession, base: str, headers: Mapping[str, str], max_bytes: int) -> None:
        self._session = session
        self._base = base.rstrip("/")
        self._headers = headers
        self._max_bytes = max_bytes

    @property
    def host(self) -> str:
        return urlsplit(self._base).hostname or self._base

    async def call(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        missing: bool = False,
    ) -> Answer | None:
        """The answer; None for a 404 or 410 where something may be `missing`."""
        url = path if path.startswith(("http://", "https://")) else self._base + path
        is_own = urlsplit(url).netloc == urlsplit(self._base).netloc
        own = self._headers if is_own else dict[str, str]()  # keys stay with their server
        try:
            async with self._session.request(
                method, url, params=params, data=data, headers={**own, **(headers or {})}, allow_redirects=False
            ) as response:
                body = await self._read(response)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Transient(f"{self.host} cannot be reached ({type(error).__name__}).") from error
        if missing and response.status in (404, 410):
            return None
        check_status(response.status, response.headers, self.host)
        return Answer(response.status, response.headers, body)

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        pieces, size = list[bytes](), 0
        async for piece in response.content.iter_chunked(1 << 16):
            pieces.append(piece)
            size += len(piece)
            if size > self._max_bytes:
                raise Permanent(f"{self.host} sent more than {self._max_bytes:,} bytes.")
        return b"".join(pieces)

    async def change(
        self,
        method: str,
        path: str,
        data: bytes,
        headers: Mapping[str, str] | None = None,
        *,
        taken: Collection[int] = (),
    ) -> Answer:
        """Change something at the provider; `taken` are statuses that the caller understands beside success.

        Unsent if the provider was not reached, Transient if it did not say whether it was done.
        """
        sent = {"Content-Type": "application/json", **self._headers, **(headers or {})}
        try:
            async with self._session.request(
                method, self._base + path, data=data, headers=sent, allow_redirects=False
            ) as response:
                body = await self._read(response)
        except aiohttp.ClientConnectorError as error:
            raise Unsent(f"{self.host} cannot be reached ({type(error).__name__}).") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Transient(f"{self.host} did not answer ({type(error).__name__}).") from error
        if response.status not in taken:
            check_status(response.status, response.headers, self.host)
        return Answer(response.status, response.headers, body)


def check_status(status: int, headers: Mapping[str, str], host: str) -> None:
    """Raise what an answer means that is no success."""
    if status < 300:
        return
    if status in BUSY or (status == 403 and "Retry-After" in headers):
        raise Overloaded(
            f"{host} asks us to come again later ({status}).",
            read_pause(headers.get("Retry-After"), headers.get("Date")),
        )
    if status in (401, 403):
        raise Permanent(f"{host} refuses us ({status}): the key or password has expired, or may not do this.")
    if status < 400:
        raise Permanent(f"{host} sends us to another address ({status}): name that address instead.")
    if status in (408, 425) or status >= 500:
        raise Transient(f"{host} is in trouble ({status}).")
    raise Permanent(f"{host} does not understand us ({status}).")


def read_pause(said: str | None, date: str | None = None) -> timedelta:
    """`Retry-After`: seconds, or a date, which is compared with the date of the same answer; a minute otherwise."""
    if said is None:
        return UNSAID
    if said.strip().isdigit():
        return timedelta(seconds=min(int(said), 86_400 * 30))
    try:
        wait = parsedate_to_datetime(said) - parsedate_to_datetime(date or "")
    except (ValueError, TypeError):
        return UNSAID
    return max(wait, timedelta(seconds=1))


@asynccontextmanager
async def open_provider(
    base: str, headers: Mapping[str, str] | None = None, *, max_bytes: int = LONGEST
) -> AsyncGenerator[Provider]:
    async with aiohttp.ClientSession(timeout=TIMEOUT, cookie_jar=aiohttp.DummyCookieJar()) as session:
        yield Provider(session, base, headers or {}, max_bytes)
