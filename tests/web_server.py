"""A web server on loopback that answers as a test tells it, and fake names that lead to it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from aiohttp import web

from gristmill.queue import Limit
from gristmill.settings import FetchSettings
from gristmill.sources import Fetcher

Page = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class WebServer:
    """Answers paths by the functions in `pages`; `seen` holds every request that came."""

    port: int = 0
    pages: dict[str, Page] = field(default_factory=dict)
    seen: list[web.Request] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.seen]

    def at(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def serve(self, path: str, body: bytes | str = b"", *, status: int = 200, **headers: str) -> None:
        """Answer a path with a fixed page; `content_type` writes the header Content-Type."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        data = body.encode() if isinstance(body, str) else body

        async def page(_: web.Request) -> web.Response:
            return web.Response(body=data, status=status, headers={"Content-Type": "text/html", **named})

        self.pages[path] = page

    def redirect(self, path: str, to: str, status: int = 302) -> None:
        self.serve(path, status=status, Location=to)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(request)
        self.bodies.append(await request.read())
        page = self.pages.get(request.path)
        return await page(request) if page else web.Response(status=404)


@asynccontextmanager
async def run_web_server() -> AsyncIterator[WebServer]:
    server = WebServer()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.port = runner.addresses[0][1]
    try:
        yield server
    finally:
        await runner.cleanup()


@dataclass
class Turns:
    """Notes who waits for which limiter, and lets everybody through."""

    taken: list[tuple[str, Limit | None]] = field(default_factory=list)

    def take(self, name: str, limit: Limit | None, *, patience: timedelta) -> AbstractAsyncContextManager[None]:
        @asynccontextmanager
        async def turn() -> AsyncIterator[None]:
            self.taken.append((name, limit))
            yield

        return turn()


@dataclass
class Names:
    """A directory of names that a test writes; a list of lists answers each question differently."""

    known: Mapping[str, Sequence[str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def look_up(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        return self.known[host]


def make_fetcher(turns: Turns | None = None, names: Names | None = None, **settings: Any) -> Fetcher:
    """A fetcher that may call loopback."""
    allowed = FetchSettings(**{"allowed_hosts": ("127.0.0.0/8",), "robots": False, **settings})
    return Fetcher(allowed, take=(turns or Turns()).take, look_up=(names or Names()).look_up)
