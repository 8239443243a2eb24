"""The local service: answers the commands of the same user on a Unix socket in the data folder."""

import asyncio
import fcntl
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from gristmill.agents import AskService, Speaker, ask_in_conversation, stream_answer
from gristmill.db import Database
from gristmill.documents import find_in_documents
from gristmill.errors import GristmillError, Refused
from gristmill.knowledge import Finder, Hits
from gristmill.settings import Settings
from gristmill.web.local.messages import (
    ASK,
    SEARCH,
    AskRequest,
    LocalRefusal,
    SearchRequest,
    encode_hits,
    identify_target,
)
from gristmill.web.local.sockets import bind_socket, socket_in

if TYPE_CHECKING:  # the commands that only ask pass through this file, too, and aiohttp takes a tenth of a second
    from aiohttp import web

OPERATOR = Speaker("operator")  # the system lets only the user of this process use the socket: the operator
Pair = tuple[str, dict[str, Any]]  # the name of an event, and its fields
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

    asking = AskService(db, settings, finder)

    def ask(request: AskRequest) -> AsyncGenerator[Pair]:
        if request.conversation is None:
            return stream_answer(asking.answerer, request.question, request.scope)
        number = None if request.conversation is True else int(request.conversation)
        return ask_in_conversation(db, asking.talker, OPERATOR, request.question, request.scope, number)

    async with LocalService(settings, answer, ask) as service:
        warming = asyncio.create_task(finder.warm_up()) if service.is_serving else None
        try:
            yield
        finally:
            if warming:
                warming.cancel()
                await asyncio.gather(warming, return_exceptions=True)
            await asking.close()


class LocalService:
    """Listens while it is open. Where it cannot listen it does nothing: commands then do the work themselves.

    It cannot where another one listens already, or where the data folder cannot be written.
    """

    def __init__(
        self,
        settings: Settings,
        answer: Callable[[SearchRequest], Awaitable[Hits]],
        ask: Callable[[AskRequest], AsyncGenerator[Pair]] | None = None,
    ) -> None:
        self.is_serving = False
        self._target = identify_target(settings)
        self._answer = answer
        self._ask = ask
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
        """Only one process holds the lock: a socket that lies there was left by a process that is gone."""
        from aiohttp import web  # noqa: PLC0415 as above

        self._path.unlink(missing_ok=True)
        listening = bind_socket(self._path)
        app = web.Application()
        app.router.add_post(SEARCH, self._search)
        app.router.add_post(ASK, self._stream)
        # a command that goes away cancels its handler, and so the answer
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=GRACE, handler_cancellation=True)
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
            return _reply(422, msgspec.json.encode(LocalRefusal(str(refused))))
        except GristmillError:
            return _reply(503)

    async def _stream(self, http: "web.Request") -> "web.StreamResponse":
        """The events of an answer, one on each line; a command that goes away stops it."""
        from aiohttp import web  # noqa: PLC0415 as above

        try:
            request = msgspec.json.decode(await http.read(), type=AskRequest)
        except msgspec.DecodeError:  # of another version of the program
            return _reply(400)
        if request.target != self._target or self._ask is None:
            return _reply(409)
        response = web.StreamResponse()
        await response.prepare(http)
        try:
            async with aclosing(self._ask(request)) as pairs:
                async for pair in pairs:
                    await response.write(msgspec.json.encode(pair) + b"\n")
        except GristmillError as error:
            await response.write(msgspec.json.encode(("error", {"detail": str(error)})) + b"\n")
        return response


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
