"""The workers of `gristmill up`: a process of their own, how it is kept running, and how it ends."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from gristmill.cli.handlers import list_served, open_handlers, prepare_rooms_of
from gristmill.cli.output import err
from gristmill.cli.session import Session
from gristmill.cli.stopping import (
    KILLED,
    PATIENCE,
    STOPPED,
    Interruption,
    describe_finishing,
    supervisor_grace,
)
from gristmill.errors import Refused, Unreachable
from gristmill.processes import process_key
from gristmill.queue import list_queues
from gristmill.settings import environment

R = TypeVar("R")
MOST_LOGGED = 10_000_000  # bytes of worker.log
COUNTING = 1.0  # seconds to find out what is running: nobody waits longer to hear that a Ctrl-C was understood
STEADY = 30.0  # seconds after which the process counts as started well
PAUSES = (0.5, 2.0, 5.0)  # seconds before each new start; after one death more, the command ends with an error


class Workers:
    """The process of the workers, the present one of perhaps several."""

    def __init__(self, at: Session, queues: Sequence[str], process: Process) -> None:
        self.process = process
        self._at = at
        self._queues = queues

    async def keep_during(self, doing: Coroutine[Any, Any, R]) -> R:
        """The result of `doing`. Workers that end meanwhile are started again. Refused if they always end at once."""
        main, keeping = asyncio.create_task(doing), asyncio.create_task(self._keep())
        try:
            await asyncio.wait([main, keeping], return_when=asyncio.FIRST_COMPLETED)
            if keeping.done():
                keeping.result()
            return await main
        finally:
            for one in (main, keeping):
                one.cancel()
            await asyncio.gather(main, keeping, return_exceptions=True)

    async def _keep(self) -> None:
        loop, deaths = asyncio.get_running_loop(), 0
        while True:
            began = loop.time()
            await self.process.wait()
            deaths = 1 if loop.time() - began > STEADY else deaths + 1
            if deaths > len(PAUSES):
                raise Refused("The workers end again and again: worker.log in the data folder says why.")
            err.print("The workers ended by themselves and are started again; worker.log says more.", soft_wrap=True)
            await asyncio.sleep(PAUSES[deaths - 1])
            self.process = await _start_workers(self._at, self._queues)


@asynccontextmanager
async def run_workers(at: Session, interruption: Interruption, *, quiet: bool) -> AsyncGenerator[Workers]:
    """Workers in a process of their own: their log would otherwise mix with the board on the screen."""
    queues = await _prepare(at)
    workers = Workers(at, queues, await _start_workers(at, queues))
    interruption.listen(signal.SIGINT)
    try:
        yield workers
    finally:
        await _stop_workers(at, workers.process, interruption, quiet=quiet)


async def _prepare(at: Session) -> list[str]:
    """Prepare the rooms here, where they are loaded: the process that keeps the workers need not load them.

    The queues that the workers serve.
    """
    async with open_handlers(at.settings.app, at.db, at.settings) as handlers:
        queues = list_served(handlers, at.settings.app)
        await prepare_rooms_of(handlers, at.db, at.settings)
    return queues


async def _start_workers(at: Session, queues: Sequence[str]) -> Process:
    words = ["-m", "gristmill", "worker", "--concurrency", str(_count_slots(at)), "--under", process_key()]
    words += ["--prepared", "--app", at.settings.app, "--queues", ",".join(queues)]
    with open_worker_log(at.settings.data) as file:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env=environment(),
            start_new_session=True,
        )


def _count_slots(at: Session) -> int:
    """Enough slots for all phases: one whose child processes are all busy must not take the slots of the others."""
    return 4 * ((at.settings.documents.processes or os.cpu_count() or 1) + 1) + 4


def open_worker_log(folder: Path) -> BinaryIO:
    """Appends to the log that is there; a log that is too large is kept under another name."""
    path = folder / "worker.log"
    folder.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > MOST_LOGGED:
        path.replace(path.with_name("worker.log.1"))
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "wb")


async def _stop_workers(at: Session, worker: Process, interruption: Interruption, *, quiet: bool) -> None:
    """Stop the workers in good order, or at once after a second Ctrl-C. The person who pressed it is told."""
    speaks = interruption.first is not None and not quiet
    if worker.returncode is not None:
        return
    if speaks:
        err.print(describe_finishing(await _count_running(at), at.settings.queue.stop), soft_wrap=True)
    worker.send_signal(signal.SIGTERM)
    ended, again = asyncio.create_task(worker.wait()), asyncio.create_task(interruption.again.wait())
    grace = supervisor_grace(at.settings.queue) + PATIENCE
    await asyncio.wait([ended, again], timeout=grace, return_when=asyncio.FIRST_COMPLETED)
    again.cancel()
    in_good_order = ended.done()
    if not in_good_order:
        await _end_workers(worker)
    await ended
    if speaks:
        err.print(STOPPED if in_good_order else KILLED, soft_wrap=True)


async def _end_workers(worker: Process) -> None:
    """A second signal lets the supervisor kill its processes; it is killed itself if it does not answer."""
    worker.send_signal(signal.SIGTERM)
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            await worker.wait()
    if worker.returncode is None:
        worker.kill()


async def _count_running(at: Session) -> dict[str, int] | None:
    """The running tasks of each queue; None where the database does not answer at once."""
    with suppress(Unreachable, TimeoutError):
        async with asyncio.timeout(COUNTING), at.db.transaction() as tx:
            return {queue.name: queue.processing for queue in await list_queues(tx) if queue.processing}
    return None
