"""A provider that fails on purpose, and the connector for it: what trackers and wikis look like from here."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web
from fake_server import open_site

from gristmill.errors import Permanent
from gristmill.settings import Reference, Slice, read_reference
from gristmill.sources.cursor import CursorPage, walk_updates
from gristmill.sources.http import Provider, open_provider
from gristmill.sources.model import (
    Batch,
    Checkpoint,
    Connector,
    ConnectorContext,
    Description,
    Fetched,
    Kind,
    Listed,
    RawItem,
)

PAGE = 10


class FeedOptions(Slice):
    url: str
    key: Reference = "env:FEED_KEY"


@dataclass
class Post:
    id: str
    updated: str
    body: bytes


@dataclass
class FeedServer:
    """Its posts by key. `fault` is asked before each answer, and may give another one."""

    posts: dict[str, Post] = field(default_factory=dict)
    fault: Callable[[web.Request, int], web.StreamResponse | None] = lambda request, n: None
    moves: Callable[[int], None] = lambda n: None  # what happens between two answers
    calls: int = 0
    token: str = "good"
    url: str = ""
    _clock: int = 0

    def put(self, key: str, text: str = "", *, at: str | None = None, body: bytes | None = None) -> None:
        self._clock += 1
        id_ = self.posts[key].id if key in self.posts else key
        content = body if body is not None else orjson.dumps({"key": key, "text": text})
        self.posts[key] = Post(id_, at or f"{self._clock:06}", content)

    def drop(self, key: str) -> None:
        del self.posts[key]

    def renumber(self) -> None:
        for key, post in self.posts.items():
            post.id = f"new-{key}"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.calls += 1
        if (wrong := self.fault(request, self.calls)) is not None:
            return wrong
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.Response(status=401)
        self.moves(self.calls)
        if (one := request.match_info.get("id")) is not None:
            found = next((post for post in self.posts.values() if post.id == one), None)
            return web.json_response(_show(found)) if found else web.Response(status=404)
        return web.json_response(self._page(request))

    def _page(self, request: web.Request) -> dict[str, Any]:
        since, skip = request.query.get("since", ""), int(request.query.get("skip", 0))
        posts = sorted((post for post in self.posts.values() if post.updated >= since), key=lambda p: (p.updated, p.id))
        page = posts[skip : skip + PAGE]
        return {"items": [_show(post) for post in page], "more": len(posts) > skip + PAGE}


def _show(post: Post) -> dict[str, str]:
    return {"id": post.id, "updated": post.updated, "body": post.body.decode("latin-1")}


@asynccontextmanager
async def a_feed() -> AsyncGenerator[FeedServer]:
    server = FeedServer()
    app = web.Application()
    app.router.add_get("/items", server.answer)
    app.router.add_get("/items/{id}", server.answer)
    async with open_site(app) as url:
        server.url = url
        yield server


class FeedConnector:
    def __init__(self, provider: Provider, bench: ConnectorContext) -> None:
        self._provider = provider
        self._bench = bench

    async def check(self) -> str:
        await self._page("", 0)
        return "It answers."

    def changes(self, checkpoint: Checkpoint) -> AsyncIterator[Batch]:
        return walk_updates(self._page, checkpoint)

    async def _page(self, since: str, skip: int) -> CursorPage:
        answer = await self._provider.call("GET", "/items", params={"since": since, "skip": str(skip)})
        assert answer is not None
        found = answer.json
        return CursorPage(
            [_item(one) for one in found["items"]], [one["updated"] for one in found["items"]], found["more"]
        )

    async def list_ids(self) -> AsyncIterator[Sequence[Listed]]:
        async for batch in self.changes({}):
            yield [Listed(item.external, item.mark) for item in batch.items]

    async def fetch(self, ids: Sequence[str]) -> AsyncIterator[RawItem]:
        for id_ in ids:
            if (answer := await self._provider.call("GET", f"/items/{id_}", missing=True)) is not None:
                yield _item(answer.json)


def _item(found: dict[str, str]) -> RawItem:
    return RawItem(found["id"], found["body"].encode("latin-1"), found["updated"])


@asynccontextmanager
async def open_feed(options: FeedOptions, bench: ConnectorContext) -> AsyncGenerator[Connector]:
    headers = {"Authorization": f"Bearer {await asyncio.to_thread(read_reference, options.key)}"}
    async with open_provider(options.url, headers) as provider:
        yield FeedConnector(provider, bench)


def describe_post(item: Fetched) -> Description:
    try:
        found = json.loads(item.content)
    except ValueError as error:
        raise Permanent("It is no JSON.") from error
    body = f"{found['key']}\n\n{found['text']}".encode()
    return Description(
        f"feed::{found['key']}",
        "bugtracker",
        found["key"],
        found["text"],
        title=found.get("title"),
        reading="text",
        content=body,
        messages=found.get("messages", ()),
    )


FEED = Kind("feed", "A provider for tests.", FeedOptions, open_feed, describe_post)
