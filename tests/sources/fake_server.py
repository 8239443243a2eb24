"""What the fake providers have in common: they ask for a token, fail on purpose, and keep what they said."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import orjson
from aiohttp import web

START = datetime(2024, 3, 1, tzinfo=UTC)  # long ago: what was changed then does not change again at that moment
Fault = Callable[[web.Request, int], web.StreamResponse | None]
T = TypeVar("T", bound="FakeServer")


def fail_never(request: web.Request, call: int) -> web.StreamResponse | None:
    return None


@dataclass
class Said:
    """An answer that was given."""

    method: str
    path: str  # with names for its parts, as the provider documents it
    status: int
    body: Any


@dataclass
class FakeServer:
    """`fault` is asked before each answer, and may give another one; `moves` is what happens between two answers."""

    fault: Fault = fail_never
    moves: Callable[[int], None] = lambda n: None
    fail_when: Callable[[web.Request], Awaitable[bool]] | None = None  # as long as it says so, with a 500
    token: str = "good"
    url: str = ""
    paths: list[str] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    clock: int = 0
    files: dict[str, bytes] = field(default_factory=dict)  # by their paths

    @property
    def calls(self) -> int:
        return len(self.paths)

    def tick(self) -> datetime:
        """Another second has passed."""
        self.clock += 1
        return START + timedelta(seconds=self.clock)

    def add_routes(self, router: web.UrlDispatcher) -> None:
        raise NotImplementedError

    async def download(self, request: web.Request) -> web.Response:
        found = self.files.get(request.path)
        return web.Response(status=404) if found is None else web.Response(body=found)

    def is_allowed(self, request: web.Request) -> bool:
        return request.headers.get("Authorization") == f"Bearer {self.token}"

    @web.middleware
    async def answer(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        self.paths.append(request.path)
        if (wrong := self.fault(request, self.calls)) is not None:
            return wrong
        if self.fail_when is not None and await self.fail_when(request):
            return web.Response(status=500)
        if not self.is_allowed(request):
            return web.json_response({"message": "Bad credentials"}, status=401)
        self.moves(self.calls)
        response = await handler(request)
        if isinstance(response, web.Response) and response.content_type == "application/json":
            route = request.match_info.route.resource
            path = route.canonical if route else request.path
            self.said.append(Said(request.method, path, response.status, orjson.loads(response.body or b"null")))  # pyright: ignore[reportArgumentType]
        return response


@asynccontextmanager
async def serve(server: T) -> AsyncGenerator[T]:
    app = web.Application(middlewares=[server.answer])
    server.add_routes(app.router)
    async with open_site(app) as url:
        server.url = url
        yield server


@asynccontextmanager
async def open_site(app: web.Application) -> AsyncGenerator[str]:
    """The address at which an application answers."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def write_time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def missing(**how: Any) -> web.Response:
    return web.json_response({"message": "Not Found"}, status=404, **how)
