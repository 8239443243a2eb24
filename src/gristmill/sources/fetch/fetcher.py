"""Fetches pages of the web and posts to it: every hop is checked, waits for its turn, and has limits."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import orjson

from gristmill.errors import GristmillError, Permanent, Transient
from gristmill.settings import FetchSettings
from gristmill.sources.fetch.answers import check_status, check_type, read_charset
from gristmill.sources.fetch.body import read_body
from gristmill.sources.fetch.location import Location, check_address
from gristmill.sources.fetch.resolving import LookUp, look_up, pin_connector, resolve
from gristmill.sources.fetch.robots import LARGEST, Robots
from gristmill.sources.fetch.turns import PATIENCE, PATIENCE_BETWEEN, Take, choose_delay, take_turn_of_task

if TYPE_CHECKING:
    from aiohttp import ClientResponse

REDIRECTS = (301, 302, 303, 307, 308)
ANY = ("*/*",)
NO_HEADERS: Mapping[str, str] = {}
RECEIPT = 64 * 1024  # bytes of the answer to a post that are read


@dataclass(frozen=True)
class FetchedPage:
    """A page; `url` is where it was found in the end, and `unchanged` says that it is as it was (then without body)."""

    url: str
    body: bytes
    content_type: str
    charset: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    unchanged: bool = False
    redirects: tuple[str, ...] = ()  # the places that sent us on


@dataclass(frozen=True)
class Posted:
    """The receipt of a post."""

    status: int
    body: bytes


# a place, the headers for it, and the places passed before → its page, or the place that it redirects to
Visit = Callable[[Location, Mapping[str, str], Sequence[Location]], Awaitable[FetchedPage | str]]


class Fetcher:
    """The one safe way to the web.

    `take` waits for the turn of a domain: by default as the task that is being answered; a command gives
    `Limiters(db).take` in its place. `look_up` finds the addresses of a name.
    """

    def __init__(self, settings: FetchSettings, *, take: Take = take_turn_of_task, look_up: LookUp = look_up) -> None:
        self._settings = settings
        self._take = take
        self._look_up = look_up
        self._robots = Robots(settings.agent, self._load_robots)

    async def check(self, url: str) -> None:
        """Raises Unsafe if we must not call this address, or one of the IP addresses that its name has now."""
        await resolve(check_address(url, self._settings), self._settings, self._look_up)

    async def get(
        self,
        url: str,
        *,
        etag: str | None = None,
        last_modified: str | None = None,
        types: Sequence[str] | None = None,
        headers: Mapping[str, str] | None = None,
        check_redirect: Callable[[str], Awaitable[None]] | None = None,
    ) -> FetchedPage:
        """Fetch a page, if its address is safe, its robots.txt allows it and it is of one of these types.

        `etag` and `last_modified` of the last visit spare a page that has not changed. The first host alone gets them
        and `headers`, which may hold a secret. `check_redirect` raises if a place that the page redirects to is not
        meant. Overloaded says when to come back.
        """
        asked = {**(headers or {})}
        if etag:
            asked["If-None-Match"] = etag
        if last_modified:
            asked["If-Modified-Since"] = last_modified
        return await self._follow(url, asked, partial(self._visit, types=types or self._settings.types), check_redirect)

    async def post(self, url: str, json: Any, *, key: str, headers: Mapping[str, str] | None = None) -> Posted:
        """Post JSON; `key` tells the other side that it has heard this before. No redirect is followed.

        Errors name the host alone: the rest of an address to post to is often a secret.
        """
        location = check_address(url, self._settings)
        sent = {"Content-Type": "application/json", "Idempotency-Key": key, **(headers or {})}
        async with self._limit_time(location.host), self._ask("POST", location, sent, orjson.dumps(json)) as answer:
            if answer.status in REDIRECTS:
                raise Permanent(f"{location.host} redirects what we post: write the address that it redirects to.")
            check_status(answer.status, answer.headers, whom=location.host)
            return Posted(answer.status, await answer.content.read(RECEIPT))

    async def _follow(
        self, url: str, headers: Mapping[str, str], visit: Visit, check: Callable[[str], Awaitable[None]] | None = None
    ) -> FetchedPage:
        location = check_address(url, self._settings)
        passed: list[Location] = []
        while True:
            own = headers if not passed or location.origin == passed[0].origin else NO_HEADERS
            found = await visit(location, own, passed)
            if isinstance(found, FetchedPage):
                return replace(found, redirects=tuple(one.url for one in passed))
            passed.append(location)
            location = self._check_hop(location, found, passed)
            if check is not None:
                await check(location.url)

    def _check_hop(self, location: Location, target: str, passed: Sequence[Location]) -> Location:
        if len(passed) > self._settings.max_redirects:
            raise Permanent(f"{passed[0].shown} redirects more than {self._settings.max_redirects} times.")
        following = check_address(urljoin(location.url, target), self._settings)
        if following in passed:
            raise Permanent(f"{passed[0].shown} redirects in a circle.")
        return following

    async def _visit(
        self, location: Location, headers: Mapping[str, str], passed: Sequence[Location], *, types: Sequence[str]
    ) -> FetchedPage | str:
        """The page, or the place that it redirects to, as robots.txt and the delay of the domain allow."""
        rules = await self._robots.check(location) if self._settings.robots else None
        return await self._read_in_turn(location, headers, passed, types, rules.crawl_delay if rules else None)

    async def _read_in_turn(
        self,
        location: Location,
        headers: Mapping[str, str],
        passed: Sequence[Location],
        types: Sequence[str],
        crawl_delay: timedelta | None = None,
    ) -> FetchedPage | str:
        if passed and passed[-1].host == location.host:  # a redirect within a host belongs to the same visit
            return await self._read(location, headers, types)
        name, limit = choose_delay(location.host, self._settings, crawl_delay)
        async with self._take(name, limit, patience=PATIENCE_BETWEEN if passed else PATIENCE):
            return await self._read(location, headers, types)

    async def _read(self, location: Location, headers: Mapping[str, str], types: Sequence[str]) -> FetchedPage | str:
        whom = location.shown
        async with self._limit_time(whom), self._ask("GET", location, headers) as answer:
            if answer.status in REDIRECTS and "Location" in answer.headers:
                return answer.headers["Location"]
            check_status(answer.status, answer.headers, whom=whom)
            if answer.status == 304:
                return _describe(location, answer, b"", "", unchanged=True)
            kind = check_type(answer.headers.get("Content-Type"), types, whom=whom)
            return _describe(location, answer, await self._read_body(answer, whom), kind)

    async def _read_body(self, answer: "ClientResponse", whom: str) -> bytes:
        return await read_body(
            answer.content.iter_any(),
            ", ".join(answer.headers.getall("Content-Encoding", [])),
            max_bytes=self._settings.max_bytes,
            max_unpacked=self._settings.max_unpacked,
            whom=whom,
        )

    @asynccontextmanager
    async def _limit_time(self, whom: str) -> AsyncGenerator[None]:
        seconds = self._settings.timeout.total_seconds()
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError:
            raise Transient(f"{whom} took longer than {seconds:g} s (fetch.timeout).") from None

    @asynccontextmanager
    async def _ask(
        self, method: str, location: Location, headers: Mapping[str, str], body: bytes | None = None
    ) -> "AsyncGenerator[ClientResponse]":
        """One request to one place, on a connection of its own that goes to an address that was checked."""
        import aiohttp  # noqa: PLC0415 it takes a tenth of a second, and few processes fetch
        from yarl import URL  # noqa: PLC0415

        addresses = await resolve(location, self._settings, self._look_up)
        own = {"User-Agent": self._settings.agent, "Accept-Encoding": "gzip, deflate", **headers}
        session = aiohttp.ClientSession(
            connector=pin_connector(location, addresses),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
        )
        url = URL(location.url, encoded=True)
        try:
            async with session, session.request(method, url, headers=own, data=body, allow_redirects=False) as answer:
                yield answer
        except GristmillError:
            raise
        except (aiohttp.ClientError, OSError) as error:
            if isinstance(error, TimeoutError):
                raise
            # `from None`: the error may carry headers and the whole address, and these hold secrets
            raise _translate(error, location) from None

    async def _load_robots(self, url: str) -> bytes:
        async def visit(
            location: Location, headers: Mapping[str, str], passed: Sequence[Location]
        ) -> FetchedPage | str:
            return await self._read_in_turn(location, headers, passed, ANY)

        found = await self._follow(url, NO_HEADERS, visit)
        return found.body[:LARGEST]


def _translate(error: Exception, location: Location) -> GristmillError:
    import aiohttp  # noqa: PLC0415

    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return Permanent(f"The certificate of {location.host} is not valid: {type(error.certificate_error).__name__}.")
    return Transient(f"{location.host} did not answer: {type(error).__name__}.")


def _describe(
    location: Location, answer: "ClientResponse", body: bytes, kind: str, *, unchanged: bool = False
) -> FetchedPage:
    header = answer.headers.get
    return FetchedPage(
        url=location.url,
        body=body,
        content_type=kind,
        charset=read_charset(header("Content-Type")),
        etag=header("ETag"),
        last_modified=header("Last-Modified"),
        unchanged=unchanged,
    )
