"""`gristmill serve`: the API and the console alone; any number of them may serve the same database."""

import asyncio
import signal
from typing import Annotated

import typer

from gristmill.app import ROOMS
from gristmill.cli.output import Json, Misused, err, say_json
from gristmill.cli.session import run, session
from gristmill.knowledge import Finder
from gristmill.web import Serving, open_web

CONNECTIONS = 8  # of each kind to the database, for people and programs that ask at the same time


def register(root: typer.Typer, text: str) -> None:
    root.command("serve")(serve)


def serve(
    host: Annotated[str | None, typer.Option(help="The address to listen on instead of the configured one.")] = None,
    port: Annotated[int | None, typer.Option(help="The port instead of the configured one; 0 takes any.")] = None,
    json: Json = False,
) -> None:
    """Serve the API and the console until Ctrl-C; workers run elsewhere (gristmill worker).

    Example: gristmill serve --port 6455
    """
    if port is not None and not 0 <= port <= 65535:
        raise Misused(f"--port {port} is no port: write a number from 0 (any free port) to 65535.")
    run(_serve({name: value for name, value in (("host", host), ("port", port)) if value is not None}, json))


async def _serve(given: dict[str, str | int], as_json: bool) -> None:
    stopped = asyncio.Event()
    for which in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(which, stopped.set)
    async with session(size=CONNECTIONS) as at:
        settings = at.settings.model_copy(update={"web": at.settings.web.model_copy(update=given)})
        async with Finder(at.db, settings) as finder, open_web(at.db, settings, ROOMS, finder) as serving:
            print_link(serving, as_json=as_json)
            await stopped.wait()


def print_link(serving: Serving, *, as_json: bool) -> None:
    """The one line that a person needs; the link signs in once."""
    if as_json:
        say_json({"console": serving.link})
        return
    elsewhere = " (its usual port is taken: GRISTMILL_WEB_PORT chooses another)" if serving.is_elsewhere else ""
    err.print(f"The console is at {serving.link}{elsewhere}", soft_wrap=True)
