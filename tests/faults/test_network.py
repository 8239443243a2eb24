"""The network between a worker and its database fails."""

import asyncio
from pathlib import Path
from time import monotonic

import pytest
from network import State, network
from plant import Grain
from watch import ask, closed, crew, proven, until

from gristmill.db import Database
from gristmill.queue.send import send_many

LEASE = 6.0  # a worker trusts it for three quarters of this, and must stop within the last one
LONG = range(6)
LIVE = "SELECT count(*) = 1 FROM worker WHERE name = %(name)s AND state = 'live'"


@pytest.mark.parametrize("state", ["stalled", "refusing"])
async def test_a_worker_that_cannot_renew_its_leases_stops_in_time_and_comes_back(
    state: State, db: Database, url: str, tmp_path: Path
) -> None:
    async with network(url) as net, crew(url, tmp_path, lease=LEASE, heartbeat=0.2, rescue=0.3) as mill:
        far = mill.start(url=net.url, name="far")
        await until(lambda: ask(db, LIVE, name="far"), 20, "the far worker")
        async with db.transaction() as tx:
            await send_many(tx, [Grain(n, 600, once=True) for n in LONG])
        await until(lambda: begun(mill.started()), 10, "six begun")

        net.state = state
        if state == "refusing":
            net.cut()
        await asyncio.sleep(0.1)
        silent = await ask(db, "SELECT extract(epoch FROM clock() - heartbeat_at)::float8 FROM worker")
        lease_ends = monotonic() - silent + LEASE
        mill.start(name="near")
        await until(closed(db), 20, "the near worker doing it")
        interrupted = mill.interrupted()
        assert interrupted.keys() == set(LONG)
        assert max(interrupted.values()) < lease_ends, "it stopped before others could begin"
        await proven(db, LONG)
        attempts = await ask(db, "SELECT array_agg(DISTINCT attempts) FROM task")
        assert attempts == [1], "what the network did is held against no task"

        net.state = "open"
        await until(lambda: ask(db, LIVE, name="far"), 20, "its return")
        async with db.transaction() as tx:
            await send_many(tx, [Grain(n, 0.2) for n in range(10, 69)])
        await until(closed(db), 15, "the rest")
        done_by_far = "SELECT count(*) > 0 FROM task t JOIN worker w ON w.id = t.worker WHERE w.name = 'far'"
        assert await ask(db, done_by_far), "it works again"
        expected = {*LONG, *range(10, 69)}
        await proven(db, expected | {-n for n in expected if n % 10 == 9})
        assert far.poll() is None


async def begun(started: dict[int, int]) -> bool:
    return len(started) == len(LONG)


async def test_nothing_is_lost_or_done_twice_when_the_network_is_cut_under_load(
    db: Database, url: str, tmp_path: Path
) -> None:
    tasks = range(1, 2001)
    async with network(url) as net, crew(net.url, tmp_path, lease=10) as mill:
        mill.start()  # the only one: whatever it forgets stays undone
        await until(lambda: ask(db, "SELECT count(*) = 1 FROM worker"), 20, "the worker")
        async with db.transaction() as tx:
            await tx.execute("INSERT INTO queue (name, retry_base) VALUES ('mill', '50 ms') ON CONFLICT DO NOTHING")
            await send_many(tx, [Grain(n, n % 4 * 0.002) for n in tasks])
        cuts = 0
        while not await closed(db)() and cuts < 20:
            await asyncio.sleep(0.02 + cuts % 5 * 0.02)
            net.cut()
            cuts += 1
        await until(closed(db), 25, "all done")
        assert cuts > 5
        await proven(db, {*tasks, *(-n for n in tasks if n % 10 == 9)})
        assert await ask(db, "SELECT count(*) FROM worker") == 1, "it kept its leases"
        assert await ask(db, "SELECT max(attempts) FROM task") == 1
