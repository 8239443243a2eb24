"""`gristmill worker`: processes that answer tasks, and one that keeps them running."""

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from typing import Annotated

import typer

from gristmill.cli.handlers import list_served, open_handlers, prepare_rooms_of
from gristmill.cli.output import Json, err, say_json
from gristmill.cli.session import Session, session
from gristmill.cli.stopping import KILLED, STOPPED, supervisor_grace, worker_grace
from gristmill.db import Database
from gristmill.errors import Refused
from gristmill.processes import ParentWatch, drop_signals_in_copies, process_key
from gristmill.queue import STUCK, Handlers, HealthPort, Supervisor, Worker
from gristmill.settings import Settings

try:
    from uvloop import run
except ImportError:  # not made for every system
    from asyncio import run

PORT = "Serve /healthz, /readyz and /metrics here, each further process on the next port."
PREPARED = "Who starts it has checked the app and the queues, and prepared the rooms."
LINGER = 5.0  # seconds to close the tools of handlers, and for handlers that still run when the worker has ended


@dataclass(frozen=True)
class Orders:
    """What a worker was told on the command line."""

    queues: tuple[str, ...]
    concurrency: int
    processes: int
    app: str
    host: str
    port: int | None
    once: bool
    name: str | None
    is_prepared: bool

    def command(self) -> list[str]:
        """How the supervisor, which is this process, starts one process that does its share."""
        words = ["-m", "gristmill", "worker", "--child", "--under", process_key()]
        words += ["--app", self.app, "--queues", ",".join(self.queues)]
        words += ["--concurrency", str(self.concurrency), "--processes", str(self.processes), "--host", self.host]
        words += ["--port", str(self.port)] if self.port else []
        words += ["--name", self.name] if self.name else []
        return [*words, "--once"] if self.once else words


def worker(
    queues: Annotated[str, typer.Option(help="Which queues, with commas; all that have handlers if not given.")] = "",
    concurrency: Annotated[int, typer.Option(min=1, help="How many tasks each process runs at once.")] = 16,
    processes: Annotated[int, typer.Option(min=1, max=256, help="How many processes.")] = 1,
    app: Annotated[str | None, typer.Option(help="Where the handlers are: module:name or file.py:name.")] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65_535, help=PORT)] = None,
    host: Annotated[str, typer.Option(help="The address for --port.")] = "127.0.0.1",
    once: Annotated[bool, typer.Option("--once", help="End when nothing is left that will run by itself.")] = False,
    name: Annotated[str | None, typer.Option(help="What it is called; machine and process if not given.")] = None,
    child: Annotated[bool, typer.Option("--child", hidden=True)] = False,
    prepared: Annotated[bool, typer.Option("--prepared", help=PREPARED, hidden=True)] = False,
    solo: Annotated[bool, typer.Option("--solo", hidden=True)] = False,
    under: Annotated[str | None, typer.Option(help="Stop when the process of this key is gone.", hidden=True)] = None,
    json: Json = False,
) -> None:
    """Answer tasks until told to stop: the first Ctrl-C lets running ones finish, the second does not.

    Example: gristmill worker --app examples/mill.py:handlers --queues ocr,vector --concurrency 8 --processes 2
    """
    parent = ParentWatch(under) if under else None  # first of all: nothing may delay the watch over the parent
    names = tuple(dict.fromkeys(part.strip() for part in queues.split(",") if part.strip()))
    orders = Orders(names, concurrency, processes, app or "", host, port, once, name, prepared)
    run(_run_child(orders, solo, parent) if child else _supervise(orders, json, parent))


def register(app: typer.Typer, text: str) -> None:
    app.command("worker")(worker)


async def _supervise(given: Orders, as_json: bool, parent: ParentWatch | None) -> None:
    async with session() as at:
        orders = given if given.is_prepared else await _prepare(given, at)
        supervisor = Supervisor(
            at.db,
            orders.command(),
            queues=orders.queues,
            processes=orders.processes,
            grace=supervisor_grace(at.settings.queue),
            once=orders.once,
        )
        asked = 0

        def stop() -> None:
            nonlocal asked
            asked += 1
            supervisor.stop()

        _on_signals(stop)
        _stop_when_orphaned(parent, stop)
        _announce(as_json, "started", orders)
        await supervisor.run()
        if asked > 1:
            _announce(as_json, "killed", orders)
            raise typer.Exit(130)
        _announce(as_json, "stopped", orders)


async def _prepare(given: Orders, at: Session) -> Orders:
    """Checks the orders, and prepares the rooms; the orders with all defaults."""
    async with _open_handlers(given, at) as handlers:
        orders = _check_orders(given, at.settings, handlers)
        _refuse_taken_ports(orders)
        await prepare_rooms_of(handlers, at.db, at.settings)
    return orders


def _open_handlers(given: Orders, at: Session) -> AbstractAsyncContextManager[Handlers]:
    return open_handlers(given.app or at.settings.app, at.db, at.settings)


def _check_orders(given: Orders, settings: Settings, handlers: Handlers) -> Orders:
    """Checks the options, and fills in the defaults."""
    locator = given.app or settings.app
    served = list_served(handlers, locator)
    for queue in given.queues:
        if queue not in served:
            near = get_close_matches(queue, served, n=1)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(served)}."
            raise Refused(f"No handler in {locator} answers the queue “{queue}”: {hint}")
    return replace(given, app=locator, queues=given.queues or tuple(served))


def _refuse_taken_ports(orders: Orders) -> None:
    for port in _list_ports(orders):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((orders.host, port))
            except OSError as error:
                reason = error.strerror or str(error)
                raise Refused(f"The port {orders.host}:{port} cannot be used ({reason}): choose another.") from error


def _list_ports(orders: Orders) -> Sequence[int]:
    return range(orders.port, orders.port + orders.processes) if orders.port else ()


def _announce(as_json: bool, event: str, orders: Orders) -> None:
    if as_json:
        share = {"processes": orders.processes, "concurrency": orders.concurrency}
        say_json({"event": event, "queues": orders.queues, **share})
        return
    many = f"{orders.processes} processes" if orders.processes > 1 else "one process"
    until = "until nothing is left" if orders.once else "until Ctrl-C"
    share = f"with {many}, {orders.concurrency} tasks at once in each"
    err.print(
        {
            "started": f"Serving {', '.join(orders.queues)} {share}, {until}.",
            "stopped": STOPPED,
            "killed": KILLED,
        }[event],
        soft_wrap=True,
    )


def _on_signals(stop: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for which in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(which, stop)


async def _run_child(given: Orders, solo: bool, parent: ParentWatch | None) -> None:
    async with session(size=4, quiet=True) as at, _open_handlers(given, at) as handlers:
        orders = _check_orders(given, at.settings, handlers)
        worker = Worker(
            at.db,
            handlers,
            at.settings.queue,
            queues=orders.queues,
            concurrency=orders.concurrency,
            name=orders.name,
            solo=solo,
            supervised=True,
            until_idle=orders.once or solo,
            maintenance=not solo,
        )
        health = None if solo else _start_health(orders, worker)
        drop_signals_in_copies()
        stop = _Stop(worker, at.db, worker_grace(at.settings.queue))
        _on_signals(stop.ask)
        _stop_when_orphaned(parent, stop.begin)
        try:
            await worker.run()
        finally:
            if health:
                await asyncio.to_thread(health.stop)
            # a handler that cannot be interrupted would keep its tools and the event loop open for ever
            _end_after(LINGER, 0)


def _start_health(orders: Orders, worker: Worker) -> HealthPort | None:
    """The first port of the range that no other process of this worker has."""
    for port in _list_ports(orders):
        try:
            health = HealthPort(
                orders.host, port, alive=lambda: worker.alive, ready=lambda: worker.ready, metrics=worker.metrics.render
            )
        except OSError:
            continue
        health.start()
        return health
    return None


class _Stop:
    """How a worker process stops: in good order when it is asked once, at once when it is asked again."""

    def __init__(self, worker: Worker, db: Database, most: float) -> None:
        """`most` is how many seconds the good order may take."""
        self._worker = worker
        self._db = db
        self._most = most
        self._has_begun = False

    def ask(self) -> None:
        if self._has_begun:
            os._exit(130)  # whatever it holds is taken back by the next rescuer
        self.begin()

    def begin(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            # whoever stops the workers may stop the database next, and nobody would stop it again
            self._db.leave_down()
            self._worker.stop()
            _end_after(self._most, STUCK)


def _end_after(seconds: float, code: int) -> None:
    """Ends this process from a thread of its own: a busy event loop cannot delay it."""
    timer = threading.Timer(seconds, os._exit, [code])
    timer.daemon = True
    timer.start()


def _stop_when_orphaned(parent: ParentWatch | None, stop: Callable[[], None]) -> None:
    """A parent that was killed cannot tell us to stop."""
    if parent:
        parent.stop_by(partial(asyncio.get_running_loop().call_soon_threadsafe, stop))
