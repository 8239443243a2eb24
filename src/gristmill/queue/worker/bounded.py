"""A worker for one call of cron: so many jobs at most, so much time at most, and what is unfinished is handed back."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Literal

from gristmill.db import Database
from gristmill.queue.handlers import Handler, Handlers
from gristmill.queue.outcome import Snooze
from gristmill.queue.worker.worker import Worker
from gristmill.settings import QueueSettings

GRACE = timedelta(seconds=1)  # for a job that is nearly done when the time is over
SPARE = 5.0  # seconds of the budget that are left for the grace, the interruption and the farewell


@dataclass
class BoundedRun:
    """How many jobs were started, what became of them, and why there were no more."""

    started: int = 0
    finished: int = 0
    failed: int = 0
    handed_back: int = 0
    ended_by: Literal["idle", "jobs", "time"] = "idle"


class _Counter:
    """Counts the jobs of one run, and hands back whatever comes after the last one."""

    def __init__(self, jobs: int) -> None:
        self.run = BoundedRun()
        self.worker: Worker | None = None
        self._jobs = jobs

    def wrap(self, handler: Handler) -> Handler:
        if handler.mode != "async" or handler.batch:
            raise ValueError(f"{handler.letter.kind}: a bounded worker runs coroutines that answer one letter")

        async def answer(letter: Any) -> Any:
            if self.run.started == self._jobs:
                self._end()
                return Snooze(timedelta(0))
            self.run.started += 1
            try:
                found = await handler.run(letter)
            except asyncio.CancelledError:
                self.run.handed_back += 1
                raise
            except BaseException:
                self.run.failed += 1
                raise
            finally:
                if self.run.started == self._jobs:
                    self._end()
            self.run.finished += 1
            return found

        return replace(handler, run=answer)

    def _end(self) -> None:
        if self.run.ended_by == "idle":
            self.run.ended_by = "jobs"
        assert self.worker is not None
        self.worker.stop()


async def run_bounded(
    db: Database,
    handlers: Handlers,
    settings: QueueSettings,
    *,
    queues: Sequence[str],
    jobs: int,
    budget: timedelta,
    name: str | None = None,
) -> BoundedRun:
    """Answer the letters of these queues one after the other, until none is there, or the jobs or the time are used up.

    The duties of a worker are done as well: where nothing runs between two calls, nobody else takes back the tasks of
    workers that died, or fires schedules. Tasks whose time comes later are left to a later call.
    """
    counter = _Counter(jobs)
    own = {kind: counter.wrap(handler) for kind, handler in handlers.items() if handler.queue in queues}
    worker = counter.worker = Worker(
        db,
        own,
        settings.model_copy(update={"stop": GRACE}),
        queues=queues,
        concurrency=1,
        name=name,
        until_idle=True,
        leave_scheduled=True,
    )
    running = asyncio.create_task(worker.run())
    try:
        await asyncio.wait([running], timeout=max(0.1, budget.total_seconds() - SPARE))
        if not running.done():
            counter.run.ended_by = "time"
    finally:
        worker.stop()
        await running
    return counter.run
