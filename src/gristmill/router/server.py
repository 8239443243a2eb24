"""The server: every path of both APIs and of the router itself, on one port."""

import asyncio
import contextlib
import gc
import os
import signal
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import structlog

from gristmill.errors import Refused
from gristmill.hosts import is_loopback
from gristmill.router.admin import Admin
from gristmill.router.catalogue import Catalogue
from gristmill.router.front import Front
from gristmill.router.library import BLOBS, Library, is_library_call
from gristmill.router.origins import Origins, preflight_headers
from gristmill.router.priority import Priority, Sender, Senders
from gristmill.router.relay import Relay
from gristmill.router.requests import Head, Request
from gristmill.router.scheduler import Scheduler
from gristmill.router.wire import CALLS, BadRequest, api_of, error_body, read_object
from gristmill.settings import RouterSettings, load

log = structlog.get_logger(__name__)

Json = dict[str, Any]
FIXED = ("host", "port")  # a listening socket is not exchanged while it serves
Handler = Callable[[Request, Sender], Awaitable[Any]]
LOOPBACK_ADMIN = Sender("anonymous", Priority.CRITICAL, admin=True)


class RouterServer:
    """Dispatches requests. No framework's router or middleware: a dict look-up is all that a proxy needs."""

    def __init__(self, settings: RouterSettings, scheduler: Scheduler, reload: Callable[[], Awaitable[Json]]) -> None:
        self._scheduler = scheduler
        self._relay = Relay(settings, scheduler)
        self._catalogue = Catalogue(scheduler)
        self._admin = Admin(settings, scheduler, reload)
        self._commands: dict[tuple[str, str], Handler] = {
            ("POST", "/router/announce"): self._admin.announce,
            ("POST", "/router/release"): self._admin.release,
            ("POST", "/router/drain"): self._admin.drain,
            ("POST", "/router/reload"): self._admin.reload,
            ("GET", "/router/status"): self._admin.status,
        }
        self._about: dict[tuple[str, str], Callable[[], Any]] = {
            ("GET", "/api/tags"): self._catalogue.tags,
            ("GET", "/api/ps"): self._catalogue.list_loaded,
            ("GET", "/api/version"): self._catalogue.version,
            ("GET", "/v1/models"): self._catalogue.openai,
            ("GET", "/healthz"): lambda: {"status": "ok"},
        }
        self.configure(settings)

    def configure(self, settings: RouterSettings) -> None:
        """Go by these settings from now on."""
        self._senders = Senders(settings)
        self._origins = Origins(settings)
        self._library = Library(settings, self._scheduler)
        keyed = settings.admin_key is not None or any(key.admin for key in settings.keys)
        self._open_to_loopback = is_loopback(settings.host) and not keyed
        self._relay.configure(settings)
        self._admin.configure(settings)

    def admit(self, head: Head) -> None:
        """Refuse a request, if possible, before its body has come."""
        self._origins.check(head)
        if head.fields.get(b"content-encoding", b"identity") != b"identity":
            raise BadRequest("bodies must come as they are, without Content-Encoding", 415)
        if head.path in CALLS and head.method != "OPTIONS":
            if head.method != "POST":
                raise BadRequest("use POST", 405)
            head.sender = self._sender(head)
        elif head.path.startswith(BLOBS):
            self._administrator(head, pages=True)
            head.streams_body = head.method == "POST"

    async def handle(self, request: Request) -> None:
        path = request.path
        try:
            if (sender := request.head.sender) is None:
                await self._other(request, path)
            else:
                await self._relay.serve(request, CALLS[path], sender)
        except BadRequest as wrong:
            _refuse(request, wrong.status, str(wrong), wrong.code)
        except ConnectionResetError:
            raise
        except Exception as bug:  # noqa: BLE001 the last resort, so that a client gets an answer
            log.error("request failed", error=type(bug).__name__, place=_place(bug))
            _refuse(request, 500, "internal error")

    async def _other(self, request: Request, path: str) -> None:
        method = "GET" if request.head.method == "HEAD" else request.head.method
        if is_library_call(request.head.method, path):
            self._administrator(request.head, pages=True)
            await self._library.serve(request)
        elif method == "OPTIONS":
            request.answer_without_body(204, preflight_headers(request.head))
        elif path.startswith("/router/"):
            if (handler := self._commands.get((method, path))) is None:
                raise _no_such_call(request)
            _json(request, await handler(request, self._administrator(request.head)))
        elif (about := self._about.get((method, path))) is not None:
            if path != "/healthz":
                self._sender(request.head)
            _json(request, about())
        elif path == "/metrics" and method == "GET":
            request.answer(200, self._scheduler.metrics.text(), "text/plain; version=0.0.4; charset=utf-8")
        elif path == "/readyz" and method == "GET":
            self._ready(request)
        elif path == "/" and method == "GET":
            request.answer(200, b"Ollama is running", "text/plain; charset=utf-8")  # Ollama's clients look for this
        else:
            _json(request, await self._asked_of_a_model(request, method, path))

    async def _asked_of_a_model(self, request: Request, method: str, path: str) -> Any:
        self._sender(request.head)
        if method == "POST" and path == "/api/show":
            return await self._catalogue.show(read_object(request.body))
        if method == "GET" and path.startswith("/v1/models/"):
            return self._catalogue.openai_model(path.removeprefix("/v1/models/"))
        raise _no_such_call(request)

    def _ready(self, request: Request) -> None:
        lanes = self._scheduler.lanes
        up = any(backend.breaker.alive() and not backend.draining for backend in lanes.backends.values())
        ready = up and not lanes.draining
        reason = "ok" if ready else "draining" if lanes.draining else "no backend is up"
        _json(request, {"status": reason}, 200 if ready else 503)

    # ── rights ──────────────────────────────────────────────────────────────

    def _sender(self, head: Head) -> Sender:
        sender = self._senders.find(head.header(b"authorization"), head.remote)
        if sender is None:
            raise BadRequest("this key is not known here", 401)
        return sender._replace(admin=True) if self._open_to_loopback else sender

    def _administrator(self, head: Head, *, pages: bool = False) -> Sender:
        """The sender, if it may command the router; `pages` also admits web pages of an allowed origin."""
        sender = self._senders.find(head.header(b"authorization"), head.remote)
        if sender is not None and sender.admin:
            return sender
        # a web page in the operator's browser can reach loopback too, but cannot hide where it came from
        if self._open_to_loopback and (pages or b"origin" not in head.fields):
            return LOOPBACK_ADMIN
        raise BadRequest("this needs the router's admin key, as a bearer token", 403)


def _json(request: Request, body: Any, status: int = 200) -> None:
    request.answer(status, orjson.dumps(body))


def _no_such_call(request: Request) -> BadRequest:
    return BadRequest(f"there is no call {request.head.method} {request.path[:200]} here", 404, "unknown_url")


def _refuse(request: Request, status: int, message: str, code: str | None = None) -> None:
    """An error in the style of the API that was called; a stream that has begun is cut off instead."""
    if not request.status:
        later = ((b"Retry-After", b"1"),) if status == 503 else ()
        request.answer(status, error_body(api_of(request.path), status, message, code), more=later)


def _place(bug: BaseException) -> str:
    """Where it happened; neither its text nor the variables around it, which may hold a part of a request."""
    return " < ".join(
        f"{Path(frame.filename).name}:{frame.lineno}"
        for frame in reversed(traceback.extract_tb(bug.__traceback__)[-4:])
    )


class Served(NamedTuple):
    """A router that serves: where, and how it is told to read its settings anew."""

    scheduler: Scheduler
    port: int
    reload: Callable[[], Awaitable[Json]]


@asynccontextmanager
async def open_router(
    settings: RouterSettings, reread: Callable[[], RouterSettings] = lambda: load().router
) -> AsyncGenerator[Served]:
    """A router that serves until the block ends; `reread` gives the settings when it is told to reload them."""
    scheduler = Scheduler(settings)
    turn = asyncio.Lock()

    async def reload() -> Json:
        async with turn:
            fresh = reread()
            ignored = [name for name in FIXED if getattr(fresh, name) != getattr(settings, name)]
            fresh = fresh.model_copy(update={name: getattr(settings, name) for name in FIXED})
            changes = await scheduler.configure(fresh)
            server.configure(fresh)
            front.configure(body_limit=fresh.body_limit, patience=fresh.client_timeout.total_seconds())
            log.info("settings reloaded", **changes, ignored=ignored)
            return {"status": "reloaded", **changes, "ignored": ignored}

    server = RouterServer(settings, scheduler, reload)
    front = Front(
        server.admit,
        server.handle,
        body_limit=settings.body_limit,
        patience=settings.client_timeout.total_seconds(),
    )
    try:
        await scheduler.start()
        try:
            port = await front.listen(settings.host, settings.port)
        except OSError as taken:
            raise Refused(f"The router cannot listen on {settings.host}:{settings.port}: {taken.strerror}.") from taken
        log.info("router serves", host=settings.host, port=port, backends=list(scheduler.adapters))
        yield Served(scheduler, port, reload)
    finally:
        await scheduler.finish_work()
        await front.close()
        await scheduler.stop()


async def serve(
    settings: RouterSettings,
    listening: Callable[[int], None] | None = None,
    reread: Callable[[], RouterSettings] = lambda: load().router,
) -> None:
    """Serve until SIGINT, SIGTERM or the end of its terminal; SIGHUP reads the settings anew.

    `listening` is told the port when clients are taken.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):  # Windows
            loop.add_signal_handler(number, stop.set)
    async with open_router(settings, reread) as served:
        reloads = set[asyncio.Task[None]]()
        on_terminal = _has_terminal()

        def hang_up() -> None:
            if on_terminal and not _has_terminal():
                stop.set()
            else:
                task = loop.create_task(_reload(served))
                reloads.add(task)
                task.add_done_callback(reloads.discard)

        if hasattr(signal, "SIGHUP"):
            loop.add_signal_handler(signal.SIGHUP, hang_up)
        if listening is not None:
            listening(served.port)
        # objects of the start live on, and requests leave few cycles: rare collections cost least
        gc.freeze()
        gc.set_threshold(20_000, 20, 50)
        await stop.wait()


async def _reload(served: Served) -> None:
    try:
        await served.reload()
    except Refused as wrong:
        log.error("settings are wrong; the router goes on with those it has", reason=str(wrong))


def _has_terminal() -> bool:
    """Whether standard input is a terminal that is still there."""
    try:
        return os.tcgetpgrp(0) > 0
    except (OSError, AttributeError):
        return False
