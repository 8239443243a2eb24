"""A repository behind HTTP, served by git itself; it refuses, breaks off and lies as a test tells it."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web
from fake_server import open_site

Fault = Callable[[web.Request, bytes], web.StreamResponse | bytes | None]


@dataclass
class GitServer:
    """`fault` gets what git would answer, and gives another answer, fewer bytes, or None: then the line is cut."""

    folder: Path
    fault: Fault = lambda request, said: said
    url: str = ""
    calls: int = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.calls += 1
        given = await request.read()
        words, kind = ["--stateless-rpc"], "result"
        if request.path.endswith("/info/refs"):
            words, kind = [*words, "--advertise-refs"], "advertisement"
        said = await self._ask_git(words, given, request.headers.get("Git-Protocol", ""))
        if kind == "advertisement":
            said = b"001e# service=git-upload-pack\n0000" + said
        wrong = self.fault(request, said)
        if isinstance(wrong, web.StreamResponse):
            return wrong
        response = web.StreamResponse(headers={"Content-Type": f"application/x-git-upload-pack-{kind}"})
        response.content_length = len(said)
        await response.prepare(request)
        await response.write(wrong or b"")
        if wrong != said and request.transport is not None:
            request.transport.abort()
        return response

    async def _ask_git(self, words: list[str], given: bytes, protocol: str) -> bytes:
        process = await asyncio.create_subprocess_exec(
            *("git", "upload-pack", *words, str(self.folder)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={"GIT_PROTOCOL": protocol, "PATH": "/usr/bin:/bin", "GIT_CONFIG_GLOBAL": "/dev/null"},
        )
        said, _ = await process.communicate(given)
        return said


@asynccontextmanager
async def serve_git(folder: Path) -> AsyncGenerator[GitServer]:
    server = GitServer(folder)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    async with open_site(app) as url:
        server.url = f"{url}/mill.git"
        yield server
