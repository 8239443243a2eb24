"""The server: every path of both APIs and of the router itself, on one port."""

import asyncio
import contextlib
import gc
import ipaddress
import signal
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import structlog
from aiohttp import web
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import StreamReader

from gristmill.errors import Refused
from gristmill.router.admin import Admin
from gristmill.router.catalogue import Catalogue
from gristmill.router.priority import Priority, Sender, Senders
from gristmill.router.relay import Relay
from gristmill.router.replies import JSON_TYPE
from gristmill.router.scheduler import Scheduler
from gristmill.router.wire import CALLS, BadRequest, as_object, error_body
from gristmill.settings import RouterSettings

log = structlog.get_logger(__name__)

Handler = Callable[[web.BaseRequest, Sender], Awaitable[Any]]
LOOPBACK_ADMIN = Sender("anonymous", Priority.CRITICAL, admin=True)


class Server:
    """Dispatches requests. No framework's router or middleware: a dict look-up is all that a proxy needs."""

    def __init__(self, settings: RouterSettings, scheduler: Scheduler) -> None:
        self._settings, self._scheduler = settings, scheduler
        self._senders = Senders(settings)
        self._relay = Relay(settings, scheduler)
        self._catalogue = Catalogue(scheduler)
        self._on_loopback = _is_loopback(settings.host)
        admin = Admin(settings, scheduler)
        self._admin: dict[tuple[str, str], Handler] = {
            ("POST", "/router/announce"): admin.announce,
            ("POST", "/router/release"): admin.release,
            ("POST", "/router/drain"): admin.drain,
            ("GET", "/router/status"): admin.status,
        }
        self._about: dict[tuple[str, str], Callable[[], Any]] = {
            ("GET", "/api/tags"): self._catalogue.tags,
            ("GET", "/api/ps"): self._catalogue.loaded,
            ("GET", "/api/version"): self._catalogue.version,
            ("GET", "/v1/models"): self._catalogue.openai,
            ("GET", "/healthz"): lambda: {"status": "ok"},
        }

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        try:
            call = CALLS.get(path)
            if call is None:
                return await self._other(request, path)
            if request.method != "POST":
                raise BadRequest("use POST", 405)
            sender = self._sender(request)
            self._expect(request)
            return await self._relay.serve(request, call, sender)
        except BadRequest as wrong:
            return _error(path, wrong.status, str(wrong))
        except web.HTTPRequestEntityTooLarge:
            return _error(path, 413, f"the body is larger than {self._settings.body_limit} bytes")
        except (ConnectionResetError, web.HTTPException):
            raise
        except Exception as bug:  # noqa: BLE001 the last resort, so that a client gets an answer
            log.error("request failed", error=type(bug).__name__, place=_place(bug))
            return _error(path, 500, "internal error")

    async def _other(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        method = "GET" if request.method == "HEAD" else request.method
        if path.startswith("/router/"):
            if (handler := self._admin.get((method, path))) is None:
                raise BadRequest("no such call", 404)
            return _json(await handler(request, self._administrator(request)))
        if (about := self._about.get((method, path))) is not None:
            if path != "/healthz":
                self._sender(request)
            return _json(about())
        if path == "/metrics" and method == "GET":
            return web.Response(
                body=self._scheduler.metrics.text(),
                headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"},
            )
        if path == "/readyz" and method == "GET":
            return self._ready()
        if path == "/" and method == "GET":
            return web.Response(text="Ollama is running")  # the words that Ollama's clients look for
        return await self._asked_of_a_model(request, method, path)

    async def _asked_of_a_model(self, request: web.BaseRequest, method: str, path: str) -> web.StreamResponse:
        self._sender(request)
        if method == "POST" and path == "/api/show":
            try:
                body = as_object(orjson.loads(await request.read()))
            except orjson.JSONDecodeError:
                raise BadRequest("the body is not valid JSON") from None
            if body is None:
                raise BadRequest("the body must be a JSON object")
            return _json(await self._catalogue.show(body))
        if method == "GET" and path.startswith("/v1/models/"):
            return _json(self._catalogue.openai_model(path.removeprefix("/v1/models/")))
        raise BadRequest("no such call", 404)

    def _ready(self) -> web.Response:
        lanes = self._scheduler.lanes
        up = any(backend.breaker.alive() and not backend.draining for backend in lanes.backends.values())
        ready = up and not lanes.draining
        reason = "ok" if ready else "draining" if lanes.draining else "no backend is up"
        return web.Response(
            status=200 if ready else 503,
            body=orjson.dumps({"status": reason}),
            headers={"Content-Type": JSON_TYPE},
        )

    # ── who may ─────────────────────────────────────────────────────────────

    def _sender(self, request: web.BaseRequest) -> Sender:
        sender = self._senders.known(request.headers.get("Authorization"), request.remote)
        if sender is None:
            raise BadRequest("this key is not known here", 401)
        return sender

    def _administrator(self, request: web.BaseRequest) -> Sender:
        sender = self._senders.known(request.headers.get("Authorization"), request.remote)
        if sender is not None and sender.admin:
            return sender
        # a web page in the operator's browser can reach loopback too, but cannot hide where it came from
        if self._on_loopback and self._settings.admin_key is None and "Origin" not in request.headers:
            return LOOPBACK_ADMIN
        raise BadRequest("this needs the router's admin key, as a bearer token", 403)

    def _expect(self, request: web.BaseRequest) -> None:
        headers = request.headers
        if int(headers.get("Content-Length") or 0) > self._settings.body_limit:
            raise BadRequest(f"the body is larger than {self._settings.body_limit} bytes", 413)
        if "Expect" in headers and request.transport is not None:
            request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")


def _json(body: Any) -> web.Response:
    return web.Response(body=orjson.dumps(body), headers={"Content-Type": JSON_TYPE})


def _error(path: str, status: int, message: str) -> web.Response:
    api = "openai" if path.startswith("/v1/") else "ollama"
    headers = {"Content-Type": JSON_TYPE}
    if status == 503:
        headers["Retry-After"] = "1"
    return web.Response(status=status, body=error_body(api, status, message), headers=headers)


def _place(bug: BaseException) -> str:
    """Where it happened; neither its text nor the variables around it, which may hold a part of a request."""
    return " < ".join(
        f"{Path(frame.filename).name}:{frame.lineno}"
        for frame in reversed(traceback.extract_tb(bug.__traceback__)[-4:])
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@asynccontextmanager
async def running(settings: RouterSettings) -> AsyncGenerator[tuple[Scheduler, int]]:
    """A router that serves until the block ends; the port it listens on."""
    scheduler = Scheduler(settings)
    server = Server(settings, scheduler)
    limit = settings.body_limit

    def request(
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: Any,
        writer: Any,
        task: "asyncio.Task[None]",
    ) -> web.BaseRequest:
        return web.BaseRequest(message, payload, protocol, writer, task, protocol._loop, client_max_size=limit)  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType, reportUnknownArgumentType] aiohttp's own default does the same

    web_server = web.Server(
        server.handle,
        request_factory=request,
        handler_cancellation=True,
        access_log=None,
        keepalive_timeout=75,
    )
    runner = web.ServerRunner(web_server, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await scheduler.start()
        site = web.TCPSite(runner, settings.host, settings.port, backlog=1024)
        try:
            await site.start()
        except OSError as taken:
            raise Refused(f"The router cannot listen on {settings.host}:{settings.port}: {taken.strerror}.") from taken
        port = runner.addresses[0][1]
        log.info("router serves", host=settings.host, port=port, backends=list(scheduler.adapters))
        yield scheduler, port
    finally:
        await scheduler.stop()
        await runner.cleanup()


async def serve(settings: RouterSettings) -> None:
    """Serve until SIGINT or SIGTERM."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):  # Windows
            loop.add_signal_handler(number, stop.set)
    async with running(settings):
        # what lives now lives on, and requests leave few cycles behind: collecting seldom costs least
        gc.freeze()
        gc.set_threshold(20_000, 20, 50)
        await stop.wait()
