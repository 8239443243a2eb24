"""Serves the application: in the process of `gristmill up`, or alone as `gristmill serve`."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gristmill.db import Database
from gristmill.errors import Refused
from gristmill.hosts import is_loopback
from gristmill.knowledge import Finder
from gristmill.rooms import Room
from gristmill.settings import Settings, WebSettings
from gristmill.web.access.keys import has_key
from gristmill.web.access.signing_in import make_link

if TYPE_CHECKING:  # the commands that only ask come by this file, too, and uvicorn and FastAPI take half a second
    import uvicorn

TRIES = 20  # ports that `up` tries one after the other before it takes any


@dataclass(frozen=True)
class Serving:
    """A server that listens."""

    link: str  # with a token that signs the operator in once, where only this machine can reach the server
    port: int
    is_elsewhere: bool  # whether the configured port was taken


@asynccontextmanager
async def open_web(
    db: Database, settings: Settings, rooms: Sequence[Room], finder: Finder, *, roams: bool = False
) -> AsyncGenerator[Serving]:
    """Serve the API and the console until the end; with `roams`, on the next free port if theirs is taken."""
    from gristmill.web.application import create_app  # noqa: PLC0415 as above

    await refuse_open_door(db, settings.web)
    listening = listen(settings.web, roams=roams)
    app = create_app(db, settings, rooms, finder)
    server = make_server(app, settings.web)
    running = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        await wait_until_started(server, running)
        yield await describe_serving(db, settings.web, listening.getsockname()[1])
    finally:
        server.should_exit = True
        await running
        listening.close()
        await app.state.services.close()


async def refuse_open_door(db: Database, settings: WebSettings) -> None:
    """On any address but loopback, other machines can call: there must be a key."""
    if is_loopback(settings.host):
        return
    async with db.transaction() as tx:
        if not await has_key(tx):
            raise Refused(
                f"Others can reach {settings.host}, and there is no key yet: make one with gristmill key add NAME, "
                "or leave the setting web.host at 127.0.0.1."
            )


def listen(settings: WebSettings, *, roams: bool) -> socket.socket:
    """The configured port; where it is taken, the next ones if the server `roams`, else a sentence."""
    ports = [settings.port]
    if roams and settings.port:
        ports += [port for port in range(settings.port + 1, settings.port + TRIES) if port <= 65535] + [0]
    for port in ports[:-1]:
        try:
            return bind(settings.host, port)
        except OSError:
            continue
    try:
        return bind(settings.host, ports[-1])
    except OSError as error:
        where = f"{settings.host}:{settings.port}"
        raise Refused(
            f"The API and the console cannot listen on {where} ({error.strerror or error}): "
            "choose another port with GRISTMILL_WEB_PORT."
        ) from error


def bind(host: str, port: int) -> socket.socket:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, address = found[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(2048)
    except OSError:
        listening.close()
        raise
    return listening


def make_server(app: object, settings: WebSettings) -> "uvicorn.Server":
    import uvicorn  # noqa: PLC0415 as above

    class Server(uvicorn.Server):
        """Leaves signals to the command that it is a part of."""

        @contextmanager
        def capture_signals(self) -> Generator[None]:
            yield

    config = uvicorn.Config(
        app,  # pyright: ignore[reportArgumentType] an ASGI application, of which uvicorn wants to know more than FastAPI says
        log_config=None,
        access_log=False,  # it would show the tokens of links
        log_level="error",
        lifespan="off",
        ws="none",  # there are none: a foreign page that tries one is answered as by any other address
        server_header=False,
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=list(settings.proxies),
        timeout_graceful_shutdown=max(1, round(settings.stop.total_seconds())),
    )
    return Server(config)


async def wait_until_started(server: "uvicorn.Server", running: asyncio.Task[None]) -> None:
    while not server.started:
        if running.done():
            running.result()
            raise Refused("The API and the console could not be started: see the log.")
        await asyncio.sleep(0.01)


async def describe_serving(db: Database, settings: WebSettings, port: int) -> Serving:
    token = None
    if is_loopback(settings.host):
        async with db.transaction() as tx:
            token = await make_link(tx, settings)
    return Serving(format_link(settings, port, token), port, is_elsewhere=settings.port not in (0, port))


def format_link(settings: WebSettings, port: int, token: str | None) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{port}/" + (f"?token={token}" if token else "")
