"""Confluence Cloud, by version 2 of its API."""

from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

from gristmill.errors import Permanent
from gristmill.sources.http import Provider
from gristmill.sources.model import Listed, RawItem
from gristmill.sources.moments import sort_moment
from gristmill.sources.values import dig, dig_text
from gristmill.sources.wiki.content import WikiComment, WikiEntry, WikiFile, WikiPage, name_labels
from gristmill.sources.wiki.page import ATTACHMENT, COMMENT, PAGE, REMARK
from gristmill.wording import format_count

LISTED = 250  # things of one page of a listing
API = "/api/v2"
LISTS = {PAGE: "pages", ATTACHMENT: "attachments", COMMENT: "footer-comments", REMARK: "inline-comments"}


class Cloud:
    """It names spaces and people by numbers: what a number stands for is asked for once."""

    comments: Sequence[str] = (COMMENT, REMARK)

    def __init__(self, provider: Provider, url: str, spaces: Sequence[str], max_bytes: int) -> None:
        self._provider = provider
        self._url = url
        self._wanted = spaces
        self._max_bytes = max_bytes
        self._spaces: dict[str, str] | None = None  # the keys of the wanted spaces by their numbers
        self._keys: dict[str, str] = {}
        self._people: dict[str, str] = {}
        self._pages: dict[str, dict[str, Any]] = {}

    @property
    def now(self) -> datetime | None:
        return self._provider.now

    async def check(self) -> str:
        await self._provider.get(f"{API}/pages", {"limit": 1})
        spaces = f" in {format_count(len(await self._load_spaces()), 'space')}" if self._wanted else ""
        return f"Its pages{spaces} can be read."

    async def list_newest(self, sort: str, since: str) -> AsyncIterator[Sequence[WikiEntry]]:
        asked: dict[str, str | int] = {"sort": "-modified-date", "limit": LISTED}
        if sort not in self.comments:
            asked["status"] = "current"
        if self._wanted and sort == PAGE:
            asked["space-id"] = ",".join(await self._load_spaces())
        while True:
            answer = await self._provider.get(f"{API}/{LISTS[sort]}", asked)
            found = answer.read_dicts("results")
            times = [sort_moment(dig(one, "version", "createdAt")) for one in found]
            fresh = [one for one, time in zip(found, times, strict=True) if time >= since]
            yield await self._make_entries(sort, fresh)
            cursor = _read_cursor(dig_text(answer.read_dict(), "_links", "next"))
            if not cursor or len(fresh) < len(found):
                return
            asked["cursor"] = cursor

    async def _make_entries(self, sort: str, found: Sequence[dict[str, Any]]) -> list[WikiEntry]:
        if sort != PAGE:
            pages = await self._load_pages({dig_text(one, "pageId") for one in found})
            found = [one for one in found if dig_text(one, "pageId") in pages]
        marks = [_mark_page(one) if sort == PAGE else _mark_part(one) for one in found]
        return [
            WikiEntry(Listed(sort + dig_text(one, "id"), mark), sort_moment(dig(one, "version", "createdAt")))
            for one, mark in zip(found, marks, strict=True)
        ]

    async def fetch(self, ids: Sequence[str]) -> list[RawItem]:
        found = [await self._fetch_one(one) for one in ids]
        return [item for item in found if item is not None]

    async def _fetch_one(self, id_: str) -> RawItem | None:
        if id_.startswith(PAGE):
            return await self._fetch_page(id_)
        return await (self._fetch_file(id_) if id_.startswith(ATTACHMENT) else self._fetch_comment(id_))

    async def _fetch_page(self, id_: str) -> RawItem | None:
        asked = {"body-format": "storage", "include-labels": "true"}
        answer = await self._provider.find(f"{API}/pages/{id_.removeprefix(PAGE)}", asked)
        page = answer.read_dict() if answer else {}
        if not await self._is_wanted(page):
            return None
        names = await self._name_people([dig_text(page, "authorId"), dig_text(page, "version", "authorId")])
        return WikiPage(
            id=dig_text(page, "id"),
            space=await self._name_space(dig_text(page, "spaceId")),
            title=page.get("title"),
            body=dig(page, "body", "storage", "value"),
            labels=name_labels(dig(page, "labels", "results")),
            parent=dig_text(page, "parentId"),
            parent_title="",  # its own page says it
            author=names[0],
            editor=names[1],
            modified=dig_text(page, "version", "createdAt"),
            version=dig_text(page, "version", "number"),
            url=self._url + dig_text(page, "_links", "webui"),
        ).make_item(_mark_page(page))

    async def _fetch_file(self, id_: str) -> RawItem | None:
        answer = await self._provider.find(f"{API}/attachments/{id_.removeprefix(ATTACHMENT)}")
        file = answer.read_dict() if answer else {}
        page_id = dig_text(file, "pageId")
        page = (await self._load_pages({page_id})).get(page_id)
        if page is None or file.get("status") != "current":
            return None
        found = WikiFile(
            id=dig_text(file, "id"),
            name=dig_text(file, "title"),
            page=page_id,
            page_title=dig_text(page, "title"),
            space=await self._name_space(dig_text(page, "spaceId")),
            modified=dig_text(file, "version", "createdAt"),
            author=(await self._name_people([dig_text(file, "version", "authorId")]))[0],
            size=int(file.get("fileSize") or 0),
            place=dig_text(file, "downloadLink"),
        )
        return await found.make_item(self._provider, _mark_part(file), self._max_bytes)

    async def _fetch_comment(self, id_: str) -> RawItem | None:
        sort, _, number = id_.partition("/")
        sort += "/"
        answer = await self._provider.find(f"{API}/{LISTS[sort]}/{number}", {"body-format": "storage"})
        said = answer.read_dict() if answer else {}
        page_id = dig_text(said, "pageId")
        page = (await self._load_pages({page_id})).get(page_id)
        if page is None or said.get("status") != "current":
            return None
        return WikiComment(
            id=dig_text(said, "id"),
            page=page_id,
            page_title=dig_text(page, "title"),
            space=await self._name_space(dig_text(page, "spaceId")),
            body=dig(said, "body", "storage", "value"),
            author=(await self._name_people([dig_text(said, "version", "authorId")]))[0],
            modified=dig_text(said, "version", "createdAt"),
            state=dig_text(said, "resolutionStatus"),
            about=dig_text(said, "properties", "inlineOriginalSelection"),
            url=self._url + dig_text(said, "_links", "webui"),
        ).make_item(sort, _mark_part(said))

    # --- what numbers stand for

    async def _load_spaces(self) -> dict[str, str]:
        if self._spaces is None:
            asked = {"keys": ",".join(self._wanted), "limit": LISTED}
            found = (await self._provider.get(f"{API}/spaces", asked)).read_dicts("results")
            self._spaces = {dig_text(one, "id"): dig_text(one, "key") for one in found}
            missing = sorted(set(self._wanted) - set(self._spaces.values()))
            if missing:
                raise Permanent(f"{self._provider.host} has no space {', '.join(missing)}, or our key may not see it.")
        return self._spaces

    async def _name_space(self, id_: str) -> str:
        if id_ not in self._keys:
            answer = await self._provider.get(f"{API}/spaces/{id_}")
            self._keys[id_] = dig_text(answer.read_dict(), "key")
        return self._keys[id_]

    async def _is_wanted(self, page: dict[str, Any]) -> bool:
        """Whether a page is there, and in a space that we look at: one in the trash can still be asked for."""
        if page.get("status") != "current":
            return False
        return not self._wanted or dig_text(page, "spaceId") in await self._load_spaces()

    async def _load_pages(self, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        """The pages with these ids, if they are in a space that we look at."""
        unknown = sorted(one for one in set(ids) if one and one not in self._pages)
        for start in range(0, len(unknown), LISTED):
            some = unknown[start : start + LISTED]
            asked = {"id": ",".join(some), "status": "current", "limit": LISTED}
            for page in (await self._provider.get(f"{API}/pages", asked)).read_dicts("results"):
                if await self._is_wanted(page):
                    self._pages[dig_text(page, "id")] = page
        return {one: self._pages[one] for one in ids if one in self._pages}

    async def _name_people(self, accounts: Sequence[str]) -> list[str]:
        """The names of accounts; empty where we may not know them."""
        unknown = sorted({one for one in accounts if one and one not in self._people})
        if unknown:
            try:
                answer = await self._provider.ask(f"{API}/users-bulk", {"accountIds": unknown})
                for one in answer.read_dicts("results"):
                    name = dig_text(one, "displayName") or dig_text(one, "publicName")
                    self._people[dig_text(one, "accountId")] = name
            except Permanent:
                pass  # a page without the name of its author is better than none
        return [self._people.get(one, "") for one in accounts]


def _read_cursor(link: str) -> str:
    return next(iter(parse_qs(urlsplit(link).query).get("cursor", [])), "")


def _mark_page(page: dict[str, Any]) -> str:
    """Its version, space and parent: a page that is moved keeps its version, and must be read again."""
    return ":".join(dig_text(page, *path) for path in (("version", "number"), ("spaceId",), ("parentId",)))


def _mark_part(part: dict[str, Any]) -> str:
    """The mark of a file or a comment; a comment that is resolved keeps its version, so its state is in the mark."""
    places = (("version", "number"), ("pageId",), ("resolutionStatus",))
    return ":".join(filter(None, (dig_text(part, *path) for path in places)))
