"""A task that kills its worker is found out; its neighbours are not harmed."""

import json
import os
import signal
from pathlib import Path

import pytest
from plant import Grain, Poison
from watch import Crew, ask, closed, crew, family, proven, until

from gristmill.db import Database
from gristmill.queue.letters import Envelope
from gristmill.queue.send import send_many

FAST = range(100, 700)
BESIDE = range(10, 14)
UNSTARTED = range(20, 60)


@pytest.mark.parametrize("hows", [("segfault",), ("kill", "segfault")], ids="-".join)
async def test_a_poison_ends_in_the_dead_letters_and_its_neighbours_complete(
    hows: tuple[str, ...], db: Database, url: str, tmp_path: Path
) -> None:
    poisons = range(len(hows))
    async with crew(url, tmp_path, concurrency=6) as mill:
        mill.start(supervise=1)
        await until(lambda: ask(db, "SELECT count(*) > 0 FROM worker"), 20, "a worker")
        async with db.transaction() as tx:
            # fast ones first: whoever settles many a second claims ahead, so that some are in hand but not begun
            letters = [Envelope(Grain(n)) for n in FAST]
            letters += [Envelope(Poison(n, how, 0.3), max_attempts=2 + n) for n, how in enumerate(hows)]
            letters += [Envelope(Grain(n, 0.8), max_attempts=1) for n in BESIDE]
            letters += [Envelope(Grain(n, 0.01), max_attempts=1) for n in UNSTARTED]
            await send_many(tx, letters)
        await until(closed(db), 28, "all done")
        innocents = {*FAST, *BESIDE, *UNSTARTED}
        await proven(db, innocents | {-n for n in innocents if n % 10 == 9}, dead=poisons)

        started = mill.started()
        async with db.transaction() as tx:
            tasks = await tx.all(
                "SELECT (payload->>'n')::int AS n, attempts, error FROM task WHERE kind <> 'bakery.flour'"
            )
        assert {row.n: row.attempts for row in tasks} == started, "an attempt is a start, and nothing else"
        assert max(started[n] for n in innocents) == 2, "the neighbours began again, alone"
        buried = {row.n: row.error for row in tasks if row.error}
        assert buried.keys() == set(poisons)
        assert all("killed its worker" in error and "ran alone" in error for error in buried.values())
        assert max(event["back"] for event in rescues(mill)) > 0, "some were in hand and had not begun"


async def test_suspects_do_not_wait_for_one_that_runs_for_hours(db: Database, url: str, tmp_path: Path) -> None:
    endless, short = 1, range(2, 5)
    async with crew(url, tmp_path, concurrency=6) as mill:
        supervisor = mill.start(supervise=1)
        async with db.transaction() as tx:
            await send_many(tx, [Grain(endless, 3600), *(Grain(n, 3600, once=True) for n in short)])
        await until(lambda: began(mill, {endless, *short}), 20, "all of them")
        os.kill(family(supervisor.pid)[0], signal.SIGKILL)
        await until(lambda: ask(db, "SELECT count(*) = 3 FROM ledger"), 20, "the short ones")
        assert await ask(db, "SELECT status FROM tasks WHERE payload->>'n' = '1'") == "processing"
        assert mill.started()[endless] == 2


async def began(mill: Crew, tasks: set[int]) -> bool:
    return tasks <= mill.started().keys()


def rescues(mill: Crew) -> list[dict[str, int]]:
    events = [json.loads(line) for line in mill.said().splitlines() if line.startswith("{")]
    return [event for event in events if event["event"] == "worker.rescued"]
