"""The duties of every worker beside its tasks: take back lost leases, fire schedules, clean up, sample counters."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from gristmill.db import Database
from gristmill.processes import find_gone_processes
from gristmill.queue import journal
from gristmill.queue.link import LOST
from gristmill.queue.loops import run_together
from gristmill.queue.upkeep.janitor import clean
from gristmill.queue.upkeep.rescuer import Rescued, list_processes, rescue
from gristmill.queue.upkeep.sampler import sample, time_until_sample
from gristmill.queue.upkeep.schedules import fire, next_fire
from gristmill.settings import QueueSettings
from gristmill.telemetry import log

CLEAN_EVERY = 10.0
JUST_AFTER = 0.5  # seconds after a minute has ended
CLEAN_SHARE = 0.1  # of the time, while there is much to clean: tasks come first


async def maintain(db: Database, settings: QueueSettings) -> None:
    """Run all duties until cancelled; any number of workers may do so at the same time."""
    await run_together(
        _again(lambda: _rescue(db, settings), "rescue"),
        _again(lambda: _fire(db, settings), "schedules"),
        _again(lambda: _clean(db, settings), "janitor"),
        _again(lambda: _sample(db, settings), "sampler"),
    )


async def _again(duty: Callable[[], Awaitable[float]], name: str) -> None:
    """Do it, and again after as many seconds as it says; an outage only delays it."""
    while True:
        try:
            pause = await duty()
        except LOST as error:
            log.warning("maintenance.failed", duty=name, error=str(error).strip()[:200])
            pause = 1.0
        except Exception as error:  # noqa: BLE001 a bug of ours: log it, the other duties go on
            log.error("maintenance.broken", duty=name, exc_info=error)
            pause = 10.0
        await asyncio.sleep(pause)


async def take_back(db: Database) -> list[Rescued]:
    """Take back the leases of workers that are silent, or whose process is gone from this machine."""
    async with db.transaction() as tx:
        gone = find_gone_processes(await list_processes(tx))
        rescued = await rescue(tx, gone=gone)
    for one in rescued:
        log.warning(
            "worker.rescued",
            worker=one.worker,
            name=one.name,
            back=len(one.back),
            suspects=len(one.suspects),
            buried=len(one.buried),
        )
        if one.journal:
            journal.remove_journal(one.journal)
    return rescued


async def _rescue(db: Database, settings: QueueSettings) -> float:
    await take_back(db)
    return settings.rescue.total_seconds()


async def _fire(db: Database, settings: QueueSettings) -> float:
    async with db.transaction() as tx:
        for fired in await fire(tx):
            log.info("schedule.fired", schedule=fired.name, task=fired.task, due=fired.due.isoformat())
            if fired.problem:
                log.error("schedule.disabled", schedule=fired.name, problem=fired.problem)
    async with db.transaction() as tx:
        wait = await next_fire(tx)
    longest = settings.poll.total_seconds()
    return longest if wait is None else min(longest, max(0.02, wait.total_seconds()))


async def _clean(db: Database, settings: QueueSettings) -> float:
    began = time.monotonic()
    async with db.transaction() as tx:
        cleaned = await clean(tx, settings)
    return (time.monotonic() - began) / CLEAN_SHARE if cleaned.more else CLEAN_EVERY


async def _sample(db: Database, settings: QueueSettings) -> float:
    async with db.transaction() as tx:
        await sample(tx, settings)
        return await time_until_sample(tx) + JUST_AFTER
