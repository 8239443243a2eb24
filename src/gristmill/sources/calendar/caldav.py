"""Calendars at a server, by CalDAV: what has another ETag than before is fetched."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple, Self
from urllib.parse import quote, unquote, urljoin, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from pydantic import Field, field_validator, model_validator

from gristmill.errors import Permanent, Transient
from gristmill.hosts import is_loopback
from gristmill.settings import Reference, Slice, read_reference
from gristmill.sources.calendar.events import describe_event
from gristmill.sources.http import HttpAnswer, Provider, open_provider
from gristmill.sources.model import Batch, Checkpoint, Connector, ConnectorContext, Kind, Listed, RawItem, Source
from gristmill.sources.site import check_plain
from gristmill.sources.store import check_external
from gristmill.wording import format_count

AT_ONCE = 50  # events that are asked for in one request
DAV, CAL = "{DAV:}", "{urn:ietf:params:xml:ns:caldav}"
STATE = (
    '<propfind xmlns="DAV:" xmlns:s="http://calendarserver.org/ns/"><prop><sync-token/><s:getctag/></prop></propfind>'
)
LISTING = '<propfind xmlns="DAV:"><prop><getetag/><resourcetype/></prop></propfind>'
MULTIGET = (
    '<c:calendar-multiget xmlns="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav">'
    "<prop><getetag/><c:calendar-data/></prop>{hrefs}</c:calendar-multiget>"
)
XML = {"Content-Type": "application/xml; charset=utf-8"}


class CalDavOptions(Slice):
    """A calendar at a server."""

    url: str = Field(pattern="^https?://", description="The address of the calendar.")
    user: str = Field(min_length=1, description="The name to sign in with.")
    password: Reference = Field(description="The password: env:NAME or file:/path.")

    @field_validator("url")
    @classmethod
    def check_url(cls, url: str) -> str:
        return check_plain(url)

    @model_validator(mode="after")
    def check_line(self) -> Self:
        parts = urlsplit(self.url)
        if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
            raise ValueError("http:// would send the password in clear: write https://…")
        return self


class Resource(NamedTuple):
    """An event at the server."""

    href: str
    etag: str
    data: bytes | None


@dataclass(frozen=True)
class CalDavConnector:
    """The checkpoint is the state of the calendar as the server names it: unchanged, it is not even listed."""

    provider: Provider
    path: str
    context: ConnectorContext

    async def check(self) -> str:
        return f"The calendar has {format_count(len(await self._list()), 'event')}."

    async def changes(self, checkpoint: Checkpoint) -> AsyncIterator[Batch]:
        state = await self._find_state()
        if state and state == checkpoint.get("state"):
            yield Batch(checkpoint)
            return
        listed = await self._list()
        for start in range(0, len(listed), AT_ONCE):
            unlike = await self.context.known.find_unlike(listed[start : start + AT_ONCE])
            if unlike:
                yield Batch(checkpoint, [item async for item in self.fetch([one.external for one in unlike])])
        yield Batch({"state": state})

    async def list_ids(self) -> AsyncIterator[Sequence[Listed]]:
        yield await self._list()

    async def fetch(self, ids: Sequence[str]) -> AsyncIterator[RawItem]:
        for start in range(0, len(ids), AT_ONCE):
            hrefs = "".join(f"<href>{escape(quote(one))}</href>" for one in ids[start : start + AT_ONCE])
            answer = await self._ask("REPORT", MULTIGET.format(hrefs=hrefs), depth="1")
            for found in _read_resources(answer.body):
                if found.data is not None:
                    yield RawItem(check_external(unquote(found.href)), found.data, found.etag)

    async def _find_state(self) -> str:
        """What the server calls the state of the calendar; empty if it has no such thing."""
        answer = await self._ask("PROPFIND", STATE, depth="0")
        root = _parse(answer.body)
        said = (root.findtext(f".//{DAV}sync-token"), root.findtext(".//{http://calendarserver.org/ns/}getctag"))
        return next((one for one in said if one), "")

    async def _list(self) -> list[Listed]:
        answer = await self._ask("PROPFIND", LISTING, depth="1")
        return [Listed(check_external(unquote(one.href)), one.etag) for one in _read_resources(answer.body)]

    async def _ask(self, method: str, body: str, *, depth: str) -> HttpAnswer:
        answer = await self.provider.call(method, self.path, data=body.encode(), headers={**XML, "Depth": depth})
        assert answer is not None
        if answer.status != 207:
            raise Permanent(f"{self.provider.host} is no CalDAV server: it answers {method} with {answer.status}.")
        return answer


def _parse(body: bytes) -> ElementTree.Element:
    if b"<!DOCTYPE" in body[:1000] or b"<!ENTITY" in body:
        raise Permanent("The server sent XML with definitions of its own, which are not read.")
    try:
        return ElementTree.fromstring(body)
    except ElementTree.ParseError as error:
        raise Transient(f"The answer is no XML, or was cut off after {len(body):,} bytes.") from error


def _read_resources(body: bytes) -> Iterator[Resource]:
    """The events of an answer: what has an ETag, is no collection, and was found."""
    for response in _parse(body).iter(f"{DAV}response"):
        href = response.findtext(f"{DAV}href") or ""
        for props in response.iter(f"{DAV}propstat"):
            etag = props.findtext(f".//{DAV}getetag")
            if " 200 " not in f"{props.findtext(f'{DAV}status') or ''} " or not etag:
                continue
            if props.find(f".//{DAV}collection") is None and not href.endswith("/"):
                data = props.findtext(f".//{CAL}calendar-data")
                yield Resource(href, etag, data.encode() if data else None)


@asynccontextmanager
async def _sign_in(options: CalDavOptions) -> AsyncGenerator[tuple[Provider, str]]:
    """The server, and the path of the calendar there."""
    secret = await asyncio.to_thread(read_reference, options.password)
    header = "Basic " + b64encode(f"{options.user}:{secret}".encode()).decode()
    async with open_provider(urljoin(options.url, "/"), {"Authorization": header}) as provider:
        yield provider, urlsplit(options.url).path or "/"


@asynccontextmanager
async def open_caldav(options: CalDavOptions, context: ConnectorContext) -> AsyncGenerator[Connector]:
    async with _sign_in(options) as (provider, path):
        yield CalDavConnector(provider, path, context)


async def put_event(source: Source, name: str, calendar: bytes) -> bool:
    """Put an event under a name of its own into the calendar of a source; False if it is there already.

    The server takes no second event of this name: a caller that does not know whether it arrived may put it again.
    """
    async with _sign_in(CalDavOptions.model_validate(dict(source.options))) as (provider, path):
        place = f"{path.rstrip('/')}/{quote(name, safe='')}.ics"
        headers = {"Content-Type": "text/calendar; charset=utf-8", "If-None-Match": "*"}
        answer = await provider.change("PUT", place, calendar, headers, taken=(412,))
    return answer.status != 412


CALDAV = Kind("caldav", "A calendar at a server, by CalDAV.", CalDavOptions, open_caldav, describe_event)
