"""Fetches a link that is safe, and hands what is there to documents; links within it are mentioned, never followed."""

import posixpath
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from urllib.parse import unquote, urlsplit

from gristmill.db import Database, Tx
from gristmill.documents import Item, Staged, stage, take_in
from gristmill.errors import NoTurn, Overloaded, Permanent, Unsafe
from gristmill.processes import ProcessPool
from gristmill.queue import Done, Skip, current
from gristmill.scopes import Scope
from gristmill.settings import FetchSettings
from gristmill.sources.fetch import FetchedPage, Fetcher
from gristmill.sources.fetch.location import Location, read_location
from gristmill.sources.link.canonical import canonicalise, name_urn
from gristmill.sources.link.converting import convert_apart
from gristmill.sources.link.deciding import choose_rule, decide_link
from gristmill.sources.link.letters import FetchLink
from gristmill.sources.link.model import Fetchable, FoundLink, LinkDecision, LinkPlace, LinkRule
from gristmill.sources.link.noting import add_found
from gristmill.sources.link.patterns import is_same_site
from gristmill.sources.link.rules import find_rules
from gristmill.sources.link.statements import SQL

HTML = ("text/html", "application/xhtml+xml")
SUFFIXES = {"application/pdf": ".pdf", "text/plain": ".txt", "text/markdown": ".md"}
LARGE = 2**20  # bytes: more of them are staged before the transaction
PIECE = 2**20
MOST_PLACES = 20  # that the target of a redirect is noted for
LONGEST_ERROR = 1_000  # characters


class RedirectedAway(Permanent):
    """A link leads to a place that nobody has allowed; `url` is that place."""

    def __init__(self, message: str, url: str) -> None:
        super().__init__(message)
        self.url = url


@dataclass(frozen=True)
class LinkFetcher:
    """Answers the letters about single links; pages are converted in child processes, with limits."""

    db: Database
    fetcher: Fetcher
    settings: FetchSettings
    processes: ProcessPool
    seconds: float
    memory: int

    async def fetch(self, letter: FetchLink) -> Done | Skip:
        async with self.db.reading() as tx:
            link = await tx.one(SQL["load_fetchable"], Fetchable, id=letter.link)
        if link is None:
            return Skip("somebody decided otherwise meanwhile, or it is fetched already")
        try:
            page = await self._get(link)
            item = None if page.unchanged else await self._make_item(link, page)
        except RedirectedAway as away:
            return Skip(str(away), write=partial(self._note_target, link=link, away=away))
        except Permanent as error:
            state = "refused" if isinstance(error, Unsafe) else "failed"
            return Skip(str(error), write=partial(_fail, link=link, state=state, error=str(error)))
        return Done(write=partial(_finish, link=link, page=page, item=item))

    async def _get(self, link: Fetchable) -> FetchedPage:
        async def check(url: str) -> None:
            await self._check_redirect(link, url)

        try:
            return await self.fetcher.get(
                link.url, etag=link.etag, last_modified=link.last_modified, check_redirect=check
            )
        except NoTurn:  # our own limiter: the host refused nothing
            raise
        except Overloaded:
            current().count_limit(read_location(link.url).host)
            raise

    async def _check_redirect(self, link: Fetchable, url: str) -> None:
        """A page may send us on within its own site; any other place must be allowed like a link.

        Two addresses are judged: the one that would be called, and the one behind a wrapper. A wrapper around an
        allowed address would otherwise make us call a server that nobody allowed.
        """
        meant = canonicalise(url)
        for location in dict.fromkeys((read_location(url), meant)):
            decision = await self._decide(link, location)
            if decision.verdict != "safe":
                raise RedirectedAway(f"It leads to {location.shown}. {decision.reason}", meant.url)

    async def _decide(self, link: Fetchable, location: Location) -> LinkDecision:
        async with self.db.reading() as tx:
            rules = await find_rules(tx, Scope(link.client, link.project), [location])
        if choose_rule(location, rules) is None and is_same_site(location.host, read_location(link.url).host):
            rules = [LinkRule(0, "allow", location.host, "")]
        return decide_link(location, found=None, is_indexed=False, rules=rules, settings=self.settings)

    async def _make_item(self, link: Fetchable, page: FetchedPage) -> Item:
        if page.content_type not in HTML:
            return _describe(link, page, await self._bring(page.body), None, SUFFIXES.get(page.content_type, ""))
        found = await convert_apart(self.processes, page, seconds=self.seconds, memory=self.memory)
        if not found.text:
            raise Permanent("There is no text on the page.")
        return _describe(link, page, await self._bring(found.text.encode()), found.title, ".md", "markdown")

    async def _bring(self, body: bytes) -> bytes | Staged:
        return body if len(body) <= LARGE else await stage(self.db, _cut(body))

    async def _note_target(self, tx: Tx, *, link: Fetchable, away: RedirectedAway) -> None:
        """The place that it leads to is a link of its own, found where this one was."""
        await _fail(tx, link=link, state="failed", error=str(away))
        for place in await tx.all(SQL["list_places"], LinkPlace, link=link.id, limit=MOST_PLACES):
            target = FoundLink(away.url, "", f"{link.url} leads here. {place.context}")
            await add_found(tx, target, place, Scope(link.client, link.project), self.settings)


async def _cut(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), PIECE):
        yield body[start : start + PIECE]


def _describe(
    link: Fetchable,
    page: FetchedPage,
    content: bytes | Staged,
    title: str | None,
    suffix: str,
    type_: str | None = None,
) -> Item:
    return Item(
        name_urn(link.url),
        _name_file(page.url, suffix),
        content,
        Scope(link.client, link.project),
        type=type_,
        title=title,
        metadata={"url": link.url, "found_at": page.url, "item": "link"},
    )


def _name_file(url: str, suffix: str) -> str:
    """`example.org-report.pdf`: the host, and the last part of the path."""
    parts = urlsplit(url)
    last = posixpath.basename(unquote(parts.path).rstrip("/"))
    stem = "".join(char if char.isprintable() and char not in '/\\:*?"<>|' else "_" for char in last)
    stem = stem[: -len(suffix)] if suffix and stem.lower().endswith(suffix) else stem
    return f"{parts.hostname}{'-' + stem[:80] if stem else ''}{suffix}"


async def _finish(tx: Tx, *, link: Fetchable, page: FetchedPage, item: Item | None) -> None:
    document = None
    if item is not None:
        taken = await take_in(tx, item)
        if taken.document is None:
            await _fail(tx, link=link, state="failed", error=taken.reason or "It cannot be taken in.")
            return
        document = taken.document
    etag, modified = page.etag, page.last_modified
    if page.unchanged:  # the answer need not name them again
        etag, modified = etag or link.etag, modified or link.last_modified
    await tx.execute(SQL["finish"], id=link.id, document=document, etag=etag, last_modified=modified)


async def _fail(tx: Tx, *, link: Fetchable, state: str, error: str) -> None:
    await tx.execute(SQL["fail"], id=link.id, state=state, error=error[:LONGEST_ERROR])
