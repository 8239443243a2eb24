"""Confluence on a server of your own (Server, Data Center)."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from gristmill.sources.http import Provider
from gristmill.sources.model import Listed, RawItem
from gristmill.sources.moments import go_back, sort_moment
from gristmill.sources.values import dig, dig_text, read_things
from gristmill.sources.wiki.content import WikiComment, WikiEntry, WikiFile, WikiPage, name_labels
from gristmill.sources.wiki.page import ATTACHMENT, COMMENT, PAGE
from gristmill.wording import format_count

LISTED = 100  # things of one page of a listing
AGAIN = 5  # of them are listed again with the next: so many may be deleted meanwhile, and none is missed
API = "/rest/api/content"
TYPES = {PAGE: "page", ATTACHMENT: "attachment", COMMENT: "comment"}
WHOLE = "body.storage,version,space,ancestors,metadata.labels,history"
PART = "version,space,container"
SAID = f"{PART},body.storage,extensions.inlineProperties,extensions.resolution"


class WikiServer:
    """Everything is found by CQL, whose dates are meant in the time zone of the account that asks."""

    comments: Sequence[str] = (COMMENT,)

    def __init__(self, provider: Provider, url: str, spaces: Sequence[str], max_bytes: int) -> None:
        self._provider = provider
        self._url = url
        self._spaces = spaces
        self._max_bytes = max_bytes

    @property
    def now(self) -> datetime | None:
        return self._provider.now

    async def check(self) -> str:
        answer = await self._provider.get("/rest/api/search", {"cql": write_cql(PAGE, self._spaces, ""), "limit": 1})
        return f"It has {format_count(int(answer.read_dict().get('totalSize') or 0), 'page')}."

    async def list_newest(self, sort: str, since: str) -> AsyncIterator[Sequence[WikiEntry]]:
        cql, start = write_cql(sort, self._spaces, since), 0
        while True:
            expand = "version,space" if sort == PAGE else PART
            asked = {"cql": cql, "start": start, "limit": LISTED, "expand": expand}
            answer = await self._provider.get(f"{API}/search", asked)
            found = answer.read_dicts("results")
            yield [
                WikiEntry(Listed(sort + dig_text(one, "id"), _mark(one)), sort_moment(dig(one, "version", "when")))
                for one in found
                if not _lies_in_blog(one)
            ]
            if not found or not dig(answer.read_dict(), "_links", "next"):
                return
            start += max(len(found) - AGAIN, 1)

    async def fetch(self, ids: Sequence[str]) -> list[RawItem]:
        found = [await self._fetch_one(one) for one in ids]
        return [item for item in found if item is not None]

    async def _fetch_one(self, id_: str) -> RawItem | None:
        if id_.startswith(PAGE):
            return await self._fetch_page(id_)
        return await (self._fetch_file(id_) if id_.startswith(ATTACHMENT) else self._fetch_comment(id_))

    async def _find(self, id_: str, expand: str) -> dict[str, Any] | None:
        """A page or file that is there, in a space that we look at."""
        answer = await self._provider.find(f"{API}/{id_}", {"expand": expand})
        found = answer.read_dict() if answer else {}
        wanted = not self._spaces or dig_text(found, "space", "key") in self._spaces
        return found if wanted and found.get("status") == "current" and not _lies_in_blog(found) else None

    async def _fetch_page(self, id_: str) -> RawItem | None:
        page = await self._find(id_.removeprefix(PAGE), WHOLE)
        if page is None:
            return None
        above = read_things(page.get("ancestors"))[-1:]
        return WikiPage(
            id=dig_text(page, "id"),
            space=dig_text(page, "space", "key"),
            title=page.get("title"),
            body=dig(page, "body", "storage", "value"),
            labels=name_labels(dig(page, "metadata", "labels", "results")),
            parent="".join(dig_text(one, "id") for one in above),
            parent_title="".join(dig_text(one, "title") for one in above),
            author=dig_text(page, "history", "createdBy", "displayName"),
            editor=dig_text(page, "version", "by", "displayName"),
            modified=dig_text(page, "version", "when"),
            version=dig_text(page, "version", "number"),
            url=self._url + dig_text(page, "_links", "webui"),
        ).make_item(_mark(page))

    async def _fetch_file(self, id_: str) -> RawItem | None:
        file = await self._find(id_.removeprefix(ATTACHMENT), PART)
        if file is None:
            return None
        found = WikiFile(
            id=dig_text(file, "id"),
            name=dig_text(file, "title"),
            page=dig_text(file, "container", "id"),
            page_title=dig_text(file, "container", "title"),
            space=dig_text(file, "space", "key"),
            modified=dig_text(file, "version", "when"),
            author=dig_text(file, "version", "by", "displayName"),
            size=int(dig(file, "extensions", "fileSize") or 0),
            place=dig_text(file, "_links", "download"),
        )
        return await found.make_item(self._provider, _mark(file), self._max_bytes)

    async def _fetch_comment(self, id_: str) -> RawItem | None:
        said = await self._find(id_.removeprefix(COMMENT), SAID)
        if said is None:
            return None
        return WikiComment(
            id=dig_text(said, "id"),
            page=dig_text(said, "container", "id"),
            page_title=dig_text(said, "container", "title"),
            space=dig_text(said, "space", "key"),
            body=dig(said, "body", "storage", "value"),
            author=dig_text(said, "version", "by", "displayName"),
            modified=dig_text(said, "version", "when"),
            state=dig_text(said, "extensions", "resolution", "status"),
            about=dig_text(said, "extensions", "inlineProperties", "originalSelection"),
            url=self._url + dig_text(said, "_links", "webui"),
        ).make_item(COMMENT, _mark(said))


def write_cql(sort: str, spaces: Sequence[str], since: str) -> str:
    """A search, the newest first; a whole day is added, so that no time zone loses anything."""
    bounds = [f"type = {TYPES[sort]}"]
    if spaces:
        quoted = ", ".join(f'"{key}"' for key in spaces)
        bounds.append(f"space in ({quoted})")
    if since:
        bounds.append(f'lastmodified >= "{go_back(since, timedelta(days=1))[:10]}"')
    return f"{' and '.join(bounds)} order by lastmodified desc"


def _lies_in_blog(found: dict[str, Any]) -> bool:
    """Blog posts are not read: a comment or file of one would belong to a page that is not here."""
    return dig(found, "container", "type") == "blogpost"


def _mark(found: dict[str, Any]) -> str:
    places = (("version", "number"), ("space", "key"), ("container", "id"))
    return ":".join(dig_text(found, *path) for path in places)
