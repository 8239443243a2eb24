"""The local service: answers the commands of the same user on a Unix socket in the data folder."""

import asyncio
import fcntl
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec

from gristmill.db import Database
from gristmill.documents import find_in_documents
from gristmill.errors import GristmillError, Refused
from gristmill.knowledge import Finder, Hits
from gristmill.settings import Settings
from gristmill.web.local.messages import SEARCH, Refusal, SearchRequest, encode_hits, identify_target
from gristmill.web.local.sockets import bind_socket, socket_in

if TYPE_CHECKING:  # the commands that only ask pass through this file, too, and aiohttp takes a tenth of a second
    from aiohttp import web

GRACE = 1.0  # seconds for searches that run while the service ends


@asynccontextmanager
async def open_search_service(db: Database, settings: Settings, finder: Finder) -> AsyncGenerator[None]:
    """Answer searches until the end, with a model that is loaded from the beginning."""

    async def answer(request: SearchRequest) -> Hits:
        return await find_in_documents(
            db,
            finder,
            request.query,
            request.scope,
            type=request.type,
            alpha=request.alpha,
            limit=request.limit,
            after=request.after,
            columns=request.columns,
            expand=request.expand,
        )

    async with LocalService(settings, answer) as service:
        warming = asyncio.create_task(finder.warm_up()) if service.is_serving else None
        try:
            yield
        finally:
            if warming:
                warming.cancel()
                await asyncio.gather(warming, return_exceptions=True)


class LocalService:
    """Listens while it is open. Where it cannot listen it does nothing: commands then do the work themselves.

    It cannot where another one listens already, or where the data folder cannot be written.
    """

    def __init__(self, settings: Settings, answer: Callable[[SearchRequest], Awaitable[Hits]]) -> None:
        self.is_serving = False
        self._target = identify_target(settings)
        self._answer = answer
        self._path = socket_in(settings)
        self._lock: int | None = None
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        self._lock = _take_lock(self._path.with_suffix(".lock"))
        if self._lock is not None:
            with suppress(OSError):
                await self._listen()
                self.is_serving = True
        return self

    async def _listen(self) -> None:
        """Whoever holds the lock is the only one: a socket that lies there was left by a process that is gone."""
        from aiohttp import web  # noqa: PLC0415 as above

        self._path.unlink(missing_ok=True)
        listening = bind_socket(self._path)
        app = web.Application()
        app.router.add_post(SEARCH, self._search)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=GRACE)
        await self._runner.setup()
        await web.SockSite(self._runner, listening).start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner:
            self._path.unlink(missing_ok=True)  # before it ends: no command should wait for it
            await self._runner.cleanup()
        if self._lock is not None:
            os.close(self._lock)

    async def _search(self, http: "web.Request") -> "web.Response":
        try:
            request = msgspec.json.decode(await http.read(), type=SearchRequest)
        except msgspec.DecodeError:  # of another version of the program
            return _reply(400)
        if request.target != self._target:
            return _reply(409)
        try:
            return _reply(200, encode_hits(await self._answer(request)))
        except Refused as refused:
            return _reply(422, msgspec.json.encode(Refusal(str(refused))))
        except GristmillError:
            return _reply(503)


def _reply(status: int, body: bytes = b"") -> "web.Response":
    from aiohttp import web  # noqa: PLC0415 as above

    return web.Response(status=status, body=body, content_type="application/json")


def _take_lock(path: Path) -> int | None:
    """A lock that the system takes back when this process ends; None if another process has it."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        return None
    return file
