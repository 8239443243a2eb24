"""Changes at a wiki: a page is written, or rewritten in its next version."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import orjson

from gristmill.errors import Permanent, Refused
from gristmill.sources.http import HttpAnswer, Provider, open_provider
from gristmill.sources.model import Source
from gristmill.sources.site import sign_in, split_names
from gristmill.sources.values import dig_text
from gristmill.sources.wiki.confluence import ConfluenceOptions

CONFLICT = 409


class FoundPage(NamedTuple):
    """A page as it is now."""

    id: str
    title: str
    space: str
    version: int
    message: str  # of its last change
    url: str


class Confluence:
    """The pages of the spaces that the source names; at Atlassian by version 2 of the API, else by the older one."""

    def __init__(self, provider: Provider, options: ConfluenceOptions, *, cloud: bool) -> None:
        self._provider = provider
        self._spaces = split_names(options.spaces)
        self._url = options.url
        self._cloud = cloud

    async def create(self, space: str, title: str, markdown: str) -> FoundPage:
        self._check(space)
        body = {"value": write_storage(markdown), "representation": "storage"}
        if self._cloud:
            found = (await self._provider.get("/api/v2/spaces", {"keys": space, "limit": 1})).read_dicts("results")
            if not found:
                raise Refused(f"There is no space {space}.")
            sent = {"spaceId": dig_text(found[0], "id"), "status": "current", "title": title, "body": body}
            return self._read((await self._send("POST", "/api/v2/pages", sent)).read_dict(), space)
        sent = {"type": "page", "title": title, "space": {"key": space}, "body": {"storage": body}}
        return self._read((await self._send("POST", "/rest/api/content", sent)).read_dict(), space)

    async def find(self, page: str) -> FoundPage:
        if not page.isdigit():
            raise Refused(f"“{page}” is no page: write its number, as it stands in its address.")
        path = f"/api/v2/pages/{page}" if self._cloud else f"/rest/api/content/{page}"
        asked = {} if self._cloud else {"expand": "version,space"}
        answer = await self._provider.find(path, asked)
        if answer is None:
            raise Refused(f"There is no page {page}, or our key may not see it.")
        told = answer.read_dict()
        space = await self._name_space(dig_text(told, "spaceId")) if self._cloud else dig_text(told, "space", "key")
        self._check(space)
        return self._read(told, space)

    async def update(self, page: FoundPage, markdown: str, message: str) -> bool:
        """Write the version after this one; False if somebody else has written it."""
        body = {"value": write_storage(markdown), "representation": "storage"}
        version = {"number": page.version + 1, "message": message}
        if self._cloud:
            path = f"/api/v2/pages/{page.id}"
            sent = {"id": page.id, "status": "current", "title": page.title, "body": body, "version": version}
        else:
            path = f"/rest/api/content/{page.id}"
            sent = {"type": "page", "title": page.title, "body": {"storage": body}, "version": version}
        return (await self._send("PUT", path, sent, taken=(CONFLICT,))).status != CONFLICT

    async def _name_space(self, number: str) -> str:
        return dig_text((await self._provider.get(f"/api/v2/spaces/{number}")).read_dict(), "key")

    def _check(self, space: str) -> None:
        if self._spaces and space not in self._spaces:
            raise Refused(f"The source has no space {space}; it has {', '.join(self._spaces)}.")

    def _read(self, told: Mapping[str, Any], space: str) -> FoundPage:
        return FoundPage(
            dig_text(told, "id"),
            dig_text(told, "title"),
            space,
            int(dig_text(told, "version", "number") or 1),
            dig_text(told, "version", "message"),
            self._url + dig_text(told, "_links", "webui"),
        )

    async def _send(self, method: str, path: str, body: Mapping[str, Any], taken: tuple[int, ...] = ()) -> HttpAnswer:
        return await self._provider.change(method, path, orjson.dumps(body), taken=taken)


def write_storage(markdown: str) -> str:
    """Markdown as Confluence stores it; HTML within it is text, and no macro can be smuggled in."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 it takes 20 ms, and few processes write pages

    return MarkdownIt("commonmark", {"html": False, "xhtmlOut": True}).enable("table").render(markdown)


@asynccontextmanager
async def open_wiki(source: Source) -> AsyncGenerator[Confluence]:
    """The wiki that a source is, signed in as the source is."""
    if source.kind != "confluence":
        raise Permanent(f"The source {source.name} is no wiki that can be changed.")
    options = ConfluenceOptions.model_validate(dict(source.options))
    async with open_provider(options.url, await sign_in(options)) as provider:
        is_cloud = await provider.find("/api/v2/spaces", {"limit": 1}) is not None
        yield Confluence(provider, options, cloud=is_cloud)
