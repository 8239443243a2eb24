"""Calls to a provider over HTTP: every way in which it can fail becomes one of our errors."""

from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import SplitResult, urljoin, urlsplit

import orjson

from gristmill.errors import Overloaded, Permanent, Transient, Unsent
from gristmill.queue import Limit
from gristmill.settings import FetchSettings
from gristmill.sources.failures import explain_failure, name_place
from gristmill.sources.fetch import Fetcher, NotThere
from gristmill.sources.fetch.answers import LONGEST_PAUSE, PAUSE, read_date, read_retry_after

if TYPE_CHECKING:  # it takes a tenth of a second, and few processes call a provider
    from aiohttp import ClientResponse, ClientSession

PATIENCE = timedelta(minutes=5)  # for one answer
LONGEST = 64 << 20  # bytes of one answer
BUSY = (429, 503)
# after these, a change may have been made: a gateway gave up while its server went on, or the new thing is elsewhere
UNSURE = (303, 503)
NOT_HERE = (301, 404, 410)  # never there, gone, or moved away for good: an issue that belongs to another repository now
REDIRECTS = (301, 302, 303, 307, 308)
MOST_REDIRECTS = 5  # of one download
RESETS = ("X-RateLimit-Reset", "RateLimit-Reset")  # when calls are allowed again: seconds since 1970, or a time
LEFT = ("X-RateLimit-Remaining", "RateLimit-Remaining")


class HttpAnswer:
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

    def read_dict(self) -> dict[str, Any]:
        """The body, which ought to be one JSON object."""
        found = self.json
        if not isinstance(found, dict):
            raise Transient("The answer is not the thing that was asked for.")
        return cast(dict[str, Any], found)

    def read_dicts(self, key: str | None = None) -> list[dict[str, Any]]:
        """The body, or the value of one of its keys, which ought to be a list of JSON objects."""
        found: Any = self.json if key is None else self.read_dict().get(key)
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in cast(list[Any], found)):
            raise Transient("The answer is not the list that was asked for.")
        return cast(list[dict[str, Any]], found)

    @property
    def at(self) -> datetime | None:
        """When it was given, by the clock of the provider."""
        return read_date(self.headers.get("Date"))

    @property
    def has_next(self) -> bool:
        """Whether its `Link` header names another page."""
        return 'rel="next"' in self.headers.get("Link", "")


class Provider:
    """One server of a provider, with what every call to it carries."""

    def __init__(
        self, session: "ClientSession", base: str, headers: Mapping[str, str], max_bytes: int, abroad: Fetcher
    ) -> None:
        self._session = session
        self._base = base.rstrip("/")
        self._headers = headers
        self._max_bytes = max_bytes
        self.now: datetime | None = None  # by the clock of the server, as its last answer told it
        self._abroad = abroad  # for files that the provider keeps elsewhere

    @property
    def host(self) -> str:
        return urlsplit(self._base).hostname or self._base

    @property
    def place(self) -> str:
        parts = urlsplit(self._base)
        return name_place(self.host, parts.port or {"http": 80, "https": 443}.get(parts.scheme))

    async def call(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        missing: bool = False,
        redirects: bool = False,
    ) -> HttpAnswer | None:
        """The answer; None where something may be `missing` and is not there, or not there any more."""
        import aiohttp  # noqa: PLC0415 as above

        url = find_own(path, self._base) or self._base + path
        sent = {**self._headers, **(headers or {})}
        try:
            async with self._session.request(
                method, url, params=params, data=data, headers=sent, allow_redirects=False
            ) as response:
                body = await self._read(response)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Transient(explain_failure(self.place, error)) from error
        self.now = read_date(response.headers.get("Date")) or self.now
        if missing and response.status in NOT_HERE:
            return None
        if redirects and (response.status in REDIRECTS or response.status in NOT_HERE):
            return HttpAnswer(response.status, response.headers, body)
        check_status(response.status, response.headers, self.host, body)
        return HttpAnswer(response.status, response.headers, body)

    async def get(self, path: str, params: Mapping[str, str | int] | None = None) -> HttpAnswer:
        """The answer to a plain question."""
        answer = await self.call("GET", path, params=_write_params(params))
        assert answer is not None  # nothing may be missing
        return answer

    async def find(self, path: str, params: Mapping[str, str | int] | None = None) -> HttpAnswer | None:
        """… about something that may be gone."""
        return await self.call("GET", path, params=_write_params(params), missing=True)

    async def ask(self, path: str, body: Any) -> HttpAnswer:
        """The answer to a question that does not fit into an address."""
        sent = {"Content-Type": "application/json"}
        answer = await self.call("POST", path, data=orjson.dumps(body), headers=sent)
        assert answer is not None  # as above
        return answer

    async def download(self, path: str) -> bytes | None:
        """The bytes of a file, wherever the provider keeps them; None if it is gone.

        Keys stay with their server. Any other place is fetched as a stranger's address is: no name and no redirect
        leads into a network of our own.
        """
        url = self._base + path if path.startswith("/") else path
        for _ in range(MOST_REDIRECTS):
            own = find_own(url, self._base)
            if own is None:
                return await self._download_abroad(url)
            answer = await self.call("GET", own, redirects=True)
            assert answer is not None  # only where it may be missing
            if answer.status not in REDIRECTS:
                return None if answer.status in NOT_HERE else answer.body
            url = urljoin(own, answer.headers.get("Location", ""))
        raise Permanent(f"{self.host} sends us from one address to the next.")

    async def _download_abroad(self, url: str) -> bytes | None:
        try:
            return (await self._abroad.get(url, types=("*/*",))).body
        except NotThere as error:
            if error.status in NOT_HERE:
                return None
            raise

    async def _read(self, response: "ClientResponse") -> bytes:
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
    ) -> HttpAnswer:
        """Change something at the provider; `taken` are statuses that the caller understands beside success.

        Unsent if the provider was not reached, Transient if it did not say whether it was done.
        """
        import aiohttp  # noqa: PLC0415 as above

        sent = {"Content-Type": "application/json", **self._headers, **(headers or {})}
        try:
            async with self._session.request(
                method, self._base + path, data=data, headers=sent, allow_redirects=False
            ) as response:
                body = await self._read(response)
        except aiohttp.ClientConnectorError as error:
            raise Unsent(explain_failure(self.place, error)) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Transient(explain_failure(self.place, error)) from error
        except Permanent as error:  # its answer was too long: what it did before, it did
            raise Transient(str(error)) from error
        if response.status in UNSURE and response.status not in taken:
            raise Transient(f"{self.host} did not say whether it was done ({response.status}).")
        if response.status not in taken:
            check_status(response.status, response.headers, self.host, body)
        return HttpAnswer(response.status, response.headers, body)


def find_own(url: str, base: str) -> str | None:
    """The address if it is one of the server at `base`: only such a one gets our keys.

    A server behind a proxy may believe that it speaks http: it is asked by https as it was named.
    """
    try:
        asked, own = urlsplit(url), urlsplit(base)
        if _name_origin(asked) == _name_origin(own):
            return url
        upgraded = asked._replace(scheme="https")
        is_plain = asked.scheme == "http" and asked.port is None
        return upgraded.geturl() if is_plain and _name_origin(upgraded) == _name_origin(own) else None
    except ValueError:  # an address with a port that is no number
        return None


def _name_origin(parts: SplitResult) -> tuple[str, str | None, int | None, bool]:
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname, port, "@" in parts.netloc


def _write_params(params: Mapping[str, str | int] | None) -> dict[str, str]:
    return {name: str(value) for name, value in (params or {}).items()}


def check_status(status: int, headers: Mapping[str, str], host: str, body: bytes = b"") -> None:
    """Raise the error of an answer that is no success."""
    if status < 300:
        return
    if status in BUSY or (status == 403 and is_limit(headers, body)):
        raise Overloaded(f"{host} asks us to come again later ({status}).", read_wait(headers))
    if status in (401, 403):
        raise Permanent(f"{host} refuses us ({status}): the key or password has expired, or may not do this.")
    if status < 400:
        raise Permanent(f"{host} sends us to another address ({status}): name that address instead.")
    if status in (404, 410):
        raise Permanent(f"{host} has no such thing ({status}): its name is wrong, or our key may not see it.")
    if status in (408, 425) or status >= 500:
        raise Transient(f"{host} failed ({status}).")
    raise Permanent(f"{host} refuses our request ({status}).")


def is_limit(headers: Mapping[str, str], body: bytes) -> bool:
    """Whether a refusal only means that we called too often, as GitHub says it: by headers, or in words alone."""
    used_up = any(headers.get(name) == "0" for name in LEFT)
    return "Retry-After" in headers or used_up or b"rate limit" in body[:2000].lower()


def read_wait(headers: Mapping[str, str]) -> timedelta:
    """How long we are to wait: what `Retry-After` says, or until calls are allowed again; a minute otherwise."""
    if "Retry-After" in headers:
        return read_retry_after(headers["Retry-After"], headers.get("Date"))
    if any(headers.get(name, "0") != "0" for name in LEFT):  # calls are left: another limit is used up
        return PAUSE
    reset = next((headers[name] for name in RESETS if name in headers), None)
    until, now = _read_reset(reset), read_date(headers.get("Date"))
    if until is None or now is None:
        return PAUSE
    return min(max(until - now, timedelta(seconds=1)), LONGEST_PAUSE)


def _read_reset(said: str | None) -> datetime | None:
    try:
        if said and said.strip().isdigit():
            return datetime.fromtimestamp(int(said), UTC)
        found = datetime.fromisoformat(said or "")
    except (ValueError, OverflowError, OSError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _wait_for_nobody(name: str, limit: Limit | None, *, patience: timedelta) -> AbstractAsyncContextManager[None]:
    return nullcontext()


def open_abroad(max_bytes: int) -> Fetcher:
    """Fetches files that a provider keeps elsewhere: it names them for us, so that no robots.txt is asked."""
    settings = FetchSettings(robots=False, timeout=PATIENCE, max_bytes=max_bytes, max_unpacked=max_bytes)
    return Fetcher(settings, take=_wait_for_nobody)


@asynccontextmanager
async def open_provider(
    base: str,
    headers: Mapping[str, str] | None = None,
    *,
    max_bytes: int = LONGEST,
    abroad: Fetcher | None = None,
) -> AsyncGenerator[Provider]:
    import aiohttp  # noqa: PLC0415 as above

    limits = aiohttp.ClientTimeout(total=PATIENCE.total_seconds(), sock_connect=15, sock_read=60)
    async with aiohttp.ClientSession(timeout=limits, cookie_jar=aiohttp.DummyCookieJar()) as session:
        yield Provider(session, base, headers or {}, max_bytes, abroad or open_abroad(max_bytes))
