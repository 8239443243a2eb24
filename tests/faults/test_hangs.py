"""A handler that never ends costs its own attempts and nothing else."""

import asyncio
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from plant import LEDGER, Grain, Hang, HangInProcess, HangInThread, enter
from watch import ask, closed, crew, proven, until

from gristmill.db import Database, Tx
from gristmill.queue import Done, Worker, bind, on
from gristmill.queue.letters import Envelope
from gristmill.queue.send import send_many
from gristmill.queue.worker import settler

QUEUES = "mill,bakery,hang"
SETTINGS = (  # without a breaker, which three time-outs in a row would open
    "INSERT INTO queue (name, max_attempts, retry_base, timeout, breaker_threshold)"
    " VALUES ('hang', 2, '50 ms', '400 ms', NULL)"
)


async def test_a_handler_that_hangs_is_interrupted_retried_and_buried(db: Database, url: str, tmp_path: Path) -> None:
    async with crew(url, tmp_path, queues=QUEUES, concurrency=4) as mill:
        async with db.transaction() as tx:
            await tx.execute(SETTINGS)
            hanging = [Hang(0), HangInThread(1), HangInProcess(2)]
            await send_many(tx, [*hanging, *(Grain(n, 0.01) for n in range(10, 110))])
        mill.start()
        await until(closed(db), 25, "all done")
        grains = {*range(10, 110)}
        await proven(db, grains | {-n for n in grains if n % 10 == 9}, dead=range(3))
        async with db.transaction() as tx:
            rows = await tx.all("SELECT kind, attempts, error FROM task WHERE outcome = 'failed' ORDER BY id")
        assert [(row.kind, row.attempts, row.error) for row in rows] == [
            ("hang.loop", 2, "it took longer than 0.4 s"),
            ("hang.thread", 2, "it took longer than 0.4 s"),
            ("hang.process", 2, "it was not done after 0.4 s and its process was killed"),
        ]
        assert {n: mill.started()[n] for n in (0, 1)} == {0: 2, 1: 2}


async def test_a_handler_that_holds_the_loop_ends_its_worker_and_is_found_out(
    db: Database, url: str, tmp_path: Path
) -> None:
    beats: dict[int, set[Any]] = defaultdict(set)

    async def watched() -> bool:
        async with db.transaction() as tx:
            for row in await tx.all(
                "SELECT w.id, w.heartbeat_at FROM worker w JOIN ticket k ON k.worker = w.id"
                " JOIN task t ON t.id = k.id WHERE t.kind = 'hang.loop' AND w.state = 'live'"
            ):
                beats[row.id].add(row.heartbeat_at)
        return await closed(db)()

    async with crew(url, tmp_path, queues=QUEUES, stall=1.5, concurrency=4) as mill:
        async with db.transaction() as tx:
            await tx.execute(SETTINGS)
            letters = [Envelope(Grain(n, 0.1), max_attempts=1) for n in range(10, 30)]
            await send_many(tx, [Hang(0, busy=True), *letters])
        mill.start(supervise=1)
        await until(watched, 28, "all done")
        grains = {*range(10, 30)}
        await proven(db, grains | {-n for n in grains if n % 10 == 9}, dead=[0])
        assert mill.started()[0] == 2
        assert "killed its worker" in await ask(db, "SELECT error FROM task WHERE outcome = 'failed'")
        assert "exit code 70" in mill.said()
        assert "while letter.busy" in mill.said() or "in hang" in mill.said(), "it shows where it stood"
        assert max(map(len, beats.values())) >= 3, "heartbeats kept coming"


async def hang_in_write(tx: Tx) -> None:
    await tx.one("SELECT pg_sleep(3600)")


async def answer(letter: Grain) -> Done:
    return Done(write=partial(enter, n=letter.n) if letter.n else hang_in_write)


async def test_a_write_that_hangs_does_not_hold_up_the_others(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settler, "STATEMENT_LIMIT", 1.5)
    async with db.transaction() as tx:
        await tx.execute(LEDGER)
        await tx.execute("INSERT INTO queue (name, max_attempts, retry_base) VALUES ('mill', 2, '50 ms')")
        await send_many(tx, [Grain(n) for n in range(40)])
    worker = Worker(db, bind(on(Grain, answer)), until_idle=True)
    async with asyncio.timeout(120):
        await worker.run()
    await proven(db, range(1, 40), dead=[0])
    assert await ask(db, "SELECT error FROM task WHERE outcome = 'failed'") == "its write was not done after 1.5 s"
