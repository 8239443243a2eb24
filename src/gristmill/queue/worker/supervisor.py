"""Keeps worker processes running: starts them, starts them again when they die, and runs suspects alone."""

import asyncio
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta

from gristmill.db import Database, queries
from gristmill.queue.link import LOST
from gristmill.queue.upkeep.maintenance import take_back
from gristmill.queue.worker.claimer import has_suspects
from gristmill.telemetry import log

SQL = queries("gristmill.queue.worker", "supervisor.sql")
BACKOFF = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
STEADY = 10.0  # seconds after which a process counts as started well
LOOK = 1.0
MOST_ALONE = 8  # processes for suspects at the same time: each runs one suspect alone
LONG = timedelta(seconds=5)  # the other suspects do not wait for one that has run for so long


class Supervisor:
    """`command` starts a worker process; with --solo, one that runs only suspects, each alone, until none is left."""

    def __init__(
        self,
        db: Database,
        command: Sequence[str],
        *,
        queues: Sequence[str],
        processes: int = 1,
        grace: float = 30.0,
        once: bool = False,
        long: timedelta = LONG,
    ) -> None:
        self._db = db
        self._command = list(command)
        self._queues = list(queues)
        self._processes = processes
        self._grace = grace
        self._once = once
        self._long = long
        self._children: set[Process] = set()
        self._alone: set[asyncio.Task[None]] = set()  # each keeps a process that runs suspects
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Ask every process to stop; a second call ends them at once."""
        again = self._stopping.is_set()
        self._stopping.set()
        self._signal(signal.SIGKILL if again else signal.SIGTERM)
        if not again:
            asyncio.get_running_loop().call_later(self._grace, self._lose_patience)

    def _signal(self, which: signal.Signals) -> None:
        for child in self._children:
            if child.returncode is None:
                child.send_signal(which)

    def _lose_patience(self) -> None:
        """The grace is over: kill the processes that are left; their tasks are taken back."""
        late = [child.pid for child in self._children if child.returncode is None]
        if late:
            log.error("supervisor.killed", processes=late, after=self._grace)
            self._signal(signal.SIGKILL)

    async def run(self) -> None:
        """Until stopped, or until every process has ended by itself with success (--once)."""
        workers = [asyncio.create_task(self._keep(place)) for place in range(self._processes)]
        solo = asyncio.create_task(self._watch_suspects())
        try:
            await asyncio.gather(*workers)
            await self._last_suspects()
        finally:
            for task in (solo, *self._alone):
                task.cancel()
            await asyncio.gather(solo, *self._alone, return_exceptions=True)
            await self._end_children()

    async def _keep(self, place: int) -> None:
        deaths = 0
        while not self._stopping.is_set():
            loop = asyncio.get_running_loop()
            began = loop.time()
            code = await self._run_child([])
            if self._stopping.is_set() or (code == 0 and self._once):
                return
            deaths = 1 if loop.time() - began > STEADY else deaths + 1
            log.error("worker.died", place=place, how=_describe_exit(code), deaths=deaths)
            await self._take_back()
            with suppress(TimeoutError):
                async with asyncio.timeout(BACKOFF[min(deaths - 1, len(BACKOFF) - 1)]):
                    await self._stopping.wait()

    async def _run_child(self, extra: Sequence[str]) -> int:
        child = await asyncio.create_subprocess_exec(sys.executable, *self._command, *extra, start_new_session=True)
        self._children.add(child)
        if self._stopping.is_set():  # it was told while this one was on its way
            child.send_signal(signal.SIGTERM)
        code = await child.wait()
        self._children.discard(child)  # not if we are cancelled: then it still has to be ended
        return code

    async def _take_back(self) -> None:
        """Do not wait for the lease to run out: we have seen it die."""
        try:
            await take_back(self._db)
        except LOST as error:
            log.warning("supervisor.rescue_failed", error=str(error).strip()[:200])

    async def _watch_suspects(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            await self._start_solo_if_needed()

    async def _last_suspects(self) -> None:
        """The workers are done; run the suspects that are left, too."""
        while not self._stopping.is_set() and (await self._start_solo_if_needed() or self._alone):
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK / 4):
                    await self._stopping.wait()

    async def _start_solo_if_needed(self) -> bool:
        """Give waiting suspects a process of their own; whether any wait.

        One process runs them one after another. A suspect may be a task that runs for hours, and its innocent
        neighbours must not wait for it: while every such process is busy with a long one, the next one begins.
        """
        try:
            async with self._db.transaction() as tx:
                waiting = await has_suspects(tx, self._queues)
                held_up = await tx.only_value(SQL["long_suspects"], int, queues=self._queues, long=self._long)
        except LOST:
            return False
        if waiting and len(self._alone) <= min(held_up, MOST_ALONE - 1) and not self._stopping.is_set():
            task = asyncio.create_task(self._run_solo())
            self._alone.add(task)
            task.add_done_callback(self._alone.discard)
        return waiting

    async def _run_solo(self) -> None:
        """Run waiting suspects, each alone, in a process of their own."""
        try:
            code = await self._run_child(["--solo"])
        except OSError as error:  # no process could be started: later, then
            log.error("supervisor.no_process", error=str(error))
            return
        if code != 0 and not self._stopping.is_set():
            log.error("suspect.killed_its_worker", how=_describe_exit(code))
            await self._take_back()

    async def _end_children(self) -> None:
        self._signal(signal.SIGTERM)
        if self._children:
            await asyncio.wait([asyncio.create_task(child.wait()) for child in self._children], timeout=self._grace)
        self._signal(signal.SIGKILL)


def _describe_exit(code: int) -> str:
    known = {number.value: number.name for number in signal.Signals}
    if code < 0:
        return f"killed by {known.get(-code, f'signal {-code}')}"
    return f"exit code {code}"
