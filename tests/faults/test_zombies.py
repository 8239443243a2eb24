"""A worker that sleeps past its lease is a zombie: it wakes, writes nothing, and registers anew."""

import signal
from pathlib import Path

from plant import Grain
from watch import Crew, ask, closed, crew, proven, until

from gristmill.db import Database
from gristmill.queue.send import send_many

SLOW, TASKS = 4, 200
LIVE = "SELECT count(*) = %(n)s FROM worker WHERE name = %(name)s AND state = %(state)s"


async def test_a_worker_that_was_stopped_past_its_lease_writes_nothing_and_comes_back(
    db: Database, url: str, tmp_path: Path
) -> None:
    async with crew(url, tmp_path, lease=4.0, heartbeat=0.2, rescue=0.3) as mill:
        zombie = mill.start(name="zombie", concurrency=SLOW)
        await until(lambda: ask(db, LIVE, n=1, name="zombie", state="live"), 20, "the first worker")
        async with db.transaction() as tx:
            await send_many(tx, [Grain(n, 600, once=True) for n in range(SLOW)])
        await until(lambda: begun(mill), 10, "all begun")
        zombie.send_signal(signal.SIGSTOP)
        held = await ask(db, "SELECT count(*) FROM ticket WHERE worker IS NOT NULL")
        async with db.transaction() as tx:
            await send_many(tx, [Grain(n, 0.005) for n in range(SLOW, TASKS)])
        mill.start(name="heir")
        mill.start(name="solo", solo=True, stay=True)
        await until(closed(db), 20, "others doing it")
        assert held == SLOW
        assert await ask(db, LIVE, n=1, name="zombie", state="lost")
        before = await ask(db, "SELECT sum(completed + retried + failed)::int FROM queue_tally")
        started = mill.started()
        assert all(started[n] == 2 for n in range(SLOW)), "each of those it held began again elsewhere, once"

        zombie.send_signal(signal.SIGCONT)
        await until(lambda: ask(db, LIVE, n=1, name="zombie", state="live"), 10, "its new registration")
        assert await ask(db, "SELECT sum(completed + retried + failed)::int FROM queue_tally") == before
        followers = {-n for n in range(TASKS) if n % 10 == 9}
        await proven(db, {*range(TASKS), *followers})

        async with db.transaction() as tx:
            await send_many(tx, [Grain(n, 0.2) for n in range(1000, 1040)])
        await until(closed(db), 15, "the new work")
        by = await ask(db, "SELECT count(DISTINCT worker) FROM task WHERE (payload->>'n')::int >= 1000")
        assert by >= 2, "it works again"
        followers |= {-n for n in range(1000, 1040) if n % 10 == 9}
        await proven(db, {*range(TASKS), *range(1000, 1040), *followers})


async def begun(mill: Crew) -> bool:
    return len(mill.started()) == SLOW
