"""A bounded worker: so many jobs, so much time, and what is unfinished is handed back unharmed."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from crew import QUICK, sent

from gristmill.db import Database
from gristmill.queue import BoundedRun, Done, Handler, bind, on, run_bounded

PLENTY = timedelta(seconds=60)


@dataclass(frozen=True)
class Sack:
    kind: ClassVar[str] = "sacks.carry"
    number: int


async def bounded(db: Database, handler: Handler, **how: object) -> BoundedRun:
    settings = {"queues": ["sacks"], "jobs": 3, "budget": PLENTY} | how
    return await run_bounded(db, bind(handler), QUICK, **settings)  # type: ignore[arg-type]


async def carry(_: Sack) -> Done:
    return Done()


async def statuses(db: Database) -> list[tuple[str, int]]:
    async with db.transaction() as tx:
        return [tuple(row) for row in await tx.all("SELECT status, attempts FROM tasks ORDER BY id")]


async def test_it_runs_so_many_jobs_and_leaves_the_others_in_line(db: Database) -> None:
    for number in range(5):
        await sent(db, Sack(number))
    assert await bounded(db, on(Sack, carry)) == BoundedRun(started=3, finished=3, ended_by="jobs")
    found = await statuses(db)
    assert [status for status, _ in found] == ["completed"] * 3 + ["pending"] * 2
    assert await bounded(db, on(Sack, carry)) == BoundedRun(started=2, finished=2, ended_by="idle")


async def test_it_ends_when_nothing_is_there_now_whatever_comes_later(db: Database) -> None:
    await sent(db, Sack(1), delay=timedelta(hours=1))
    assert await bounded(db, on(Sack, carry)) == BoundedRun()


async def test_a_job_that_takes_longer_than_the_budget_is_handed_back_and_uses_no_attempt(db: Database) -> None:
    begun = asyncio.Event()

    async def hang(_: Sack) -> Done:
        begun.set()
        await asyncio.Event().wait()
        return Done()

    await sent(db, Sack(1))
    run = await bounded(db, on(Sack, hang), budget=timedelta(seconds=5.5))
    assert begun.is_set()
    assert run == BoundedRun(started=1, handed_back=1, ended_by="time")
    assert await statuses(db) == [("pending", 0)]
    assert await bounded(db, on(Sack, carry)) == BoundedRun(started=1, finished=1)


async def test_two_at_once_do_every_job_once(db: Database) -> None:
    done: list[int] = []

    async def note(sack: Sack) -> Done:
        await asyncio.sleep(0)
        done.append(sack.number)
        return Done()

    for number in range(6):
        await sent(db, Sack(number))
    await asyncio.gather(bounded(db, on(Sack, note)), bounded(db, on(Sack, note)))
    assert sorted(done) == list(range(6))
