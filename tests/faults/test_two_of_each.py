"""Several schedulers and several rescuers at the same time: each run is fired once, each dead worker rescued once."""

import asyncio
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

from engine import DAY, LEASE, MINUTE, Grind, audit, claimed, later, registered
from plant import Grain
from watch import ask, closed, crew, proven, until

from gristmill.db import Database
from gristmill.ids import TaskId
from gristmill.queue.groups import open_group, seal
from gristmill.queue.letters import Envelope
from gristmill.queue.send import send_many
from gristmill.queue.upkeep.rescuer import Rescued, rescue
from gristmill.queue.upkeep.schedules import Fired, add_schedule, fire

AT_ONCE = 6


async def test_of_many_rescuers_one_rescues_each_dead_worker(db: Database, url: str) -> None:
    async with db.transaction() as tx:
        group = await open_group(tx)
        await send_many(tx, [Envelope(Grind(n), parent=group if n % 2 else None) for n in range(80)])
        workers = [await registered(tx, name=f"host {i}") for i in range(8)]
        held = {worker: await claimed(tx, worker, 10) for worker in workers}
        await seal(tx, group)
    begun = {f"journal of host {i}": frozenset(claim.id for claim in held[w][:4]) for i, w in enumerate(workers)}

    async def one(db: Database) -> list[Rescued]:
        async with later(db, LEASE + MINUTE) as tx:
            return await rescue(tx, read=lambda name: begun[name])

    async with Database(url, size=AT_ONCE) as many:
        rescued = [one for found in await asyncio.gather(*(one(many) for _ in range(AT_ONCE))) for one in found]
    # one may see the worker lost and yet miss a ticket that another is just taking; none may take one twice
    taken = Counter(task for one in rescued for task in (*one.back, *one.suspects))
    assert sorted(one.worker for one in rescued if one.dead) == workers
    assert taken == Counter(claim.id for claims in held.values() for claim in claims)
    async with db.transaction() as tx:
        attempts = {row.id: row.attempts for row in await tx.all("SELECT id, attempts FROM ticket")}
        assert all(attempts[c.id] == (i < 4) for claims in held.values() for i, c in enumerate(claims))
        assert await tx.value("SELECT count(*) FROM task_failure") == 8 * 4
        await audit(tx)


async def test_of_many_schedulers_one_fires_each_run(db: Database, url: str) -> None:
    names = [f"every-{i}" for i in range(30)]
    far = (datetime.now(UTC).hour + 12) % 24  # half a day from now, whenever that is
    async with db.transaction() as tx:
        for name in names:
            await add_schedule(tx, name, Grind(), cron=f"0 {far} * * *")
            await add_schedule(tx, f"{name}.then", Grind(), follows=name, delay=timedelta(hours=1))

    async def one(db: Database, ahead: timedelta) -> list[Fired]:
        fired: list[Fired] = []
        for _ in range(4):
            async with later(db, ahead) as tx:
                fired += await fire(tx, limit=7)
        return fired

    async with Database(url, size=AT_ONCE) as many:
        for day in (1, 2):
            for hours, expected in ((0, names), (2, [f"{name}.then" for name in names])):
                ahead = DAY * day + timedelta(hours=hours) - MINUTE if hours else DAY * day
                runs = await asyncio.gather(*(one(many, ahead) for _ in range(AT_ONCE)))
                fired = Counter(run.name for found in runs for run in found if run.name in expected)
                assert fired == Counter(expected), f"day {day}, {hours} h later"
    assert await ask(db, "SELECT count(*) FROM task") == 4 * len(names)
    assert await ask(db, "SELECT count(DISTINCT id) FROM task") == 4 * len(names)


async def test_processes_share_schedules_and_rescues(db: Database, url: str, tmp_path: Path) -> None:
    runs = range(1, 41)
    async with crew(url, tmp_path) as mill:
        victim = mill.start(name="victim", no_maintenance=True)
        await until(lambda: ask(db, "SELECT count(*) = 1 FROM worker"), 20, "the victim")
        async with db.transaction() as tx:
            held = await send_many(tx, [Grain(n, 1.5) for n in range(101, 105)])
        await until(lambda: all_claimed(db, held), 10, "all claimed")
        for i in range(3):
            mill.start(name=f"heir {i}")
        mill.start(solo=True, stay=True)
        await until(lambda: ask(db, "SELECT count(*) >= 4 FROM worker WHERE state = 'live'"), 20, "the others")
        async with db.transaction() as tx:
            for n in runs:
                due = await tx.value("SELECT clock() + %(wait)s", wait=timedelta(milliseconds=30 * n))
                await add_schedule(tx, f"once-{n}", Grain(n), once_at=due)
        victim.kill()
        victim.wait()
        await until(lambda: ask(db, "SELECT count(*) = 0 FROM schedule WHERE enabled"), 15, "all fired")
        await until(closed(db), 20, "all done")
        expected = {*runs, *range(101, 105)}
        await proven(db, expected | {-n for n in expected if n % 10 == 9})
        events = [json.loads(line) for line in mill.said().splitlines() if line.startswith("{")]
        assert Counter(e["schedule"] for e in events if e["event"] == "schedule.fired") == {
            f"once-{n}": 1 for n in runs
        }
        rescued = [e["worker"] for e in events if e["event"] == "worker.rescued"]
        assert len(rescued) == len(set(rescued)), "each dead worker once"


async def all_claimed(db: Database, tasks: list[TaskId]) -> bool:
    return await ask(db, "SELECT count(*) = %(n)s FROM ticket WHERE worker IS NOT NULL", n=len(tasks))
