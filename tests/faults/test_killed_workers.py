"""Worker processes are killed under load, again and again."""

import asyncio
import random
from pathlib import Path

from plant import Grain
from watch import ask, closed, crew, proven, until

from gristmill.db import Database
from gristmill.queue.groups import open_group, seal
from gristmill.queue.letters import Envelope
from gristmill.queue.send import send_many

TASKS, GROUPED, KILLS = 2000, 600, 7


async def test_nothing_is_lost_or_done_twice_when_workers_are_killed_under_load(
    db: Database, url: str, tmp_path: Path
) -> None:
    chance = random.Random(7)
    async with crew(url, tmp_path) as mill:
        async with db.transaction() as tx:
            # enough attempts that no innocent runs out of them, however often its worker is killed
            await tx.execute("INSERT INTO queue (name, max_attempts, retry_base) VALUES ('mill', 200, '50 ms')")
            groups = [await open_group(tx) for _ in range(3)]
            letters = [
                Envelope(
                    Grain(n, chance.choice([0, 0, 0.002, 0.02, 0.2]), fails=int(n % 20 == 0)),
                    parent=groups[n % 3] if n < GROUPED else None,
                    serial_key=f"wheel {n % 7}" if n % 50 == 1 else None,
                )
                for n in range(TASKS)
            ]
            await send_many(tx, letters)
            for group in groups:
                await seal(tx, group)
        workers = [mill.start(name=f"worker-{i}") for i in range(3)] + [mill.start(name="solo", solo=True, stay=True)]
        await until(lambda: ask(db, "SELECT count(*) = 4 FROM worker"), 20, "four workers")
        kills = 0
        while kills < KILLS and not await closed(db)():
            await asyncio.sleep(chance.uniform(0.4, 0.8))
            place = chance.choice([0, 0, 1, 1, 2, 2, 3])
            workers[place].kill()
            workers[place].wait()
            kills += 1
            extra = {"solo": True, "stay": True} if place == 3 else {}
            workers[place] = mill.start(name=f"again-{kills}", **extra)
        await until(closed(db), 20, "all done")
        assert kills >= 5
        followers = {-n for n in range(TASKS) if n % 10 == 9}
        await proven(db, {*range(TASKS), *followers})
        async with db.transaction() as tx:
            assert {row.status for row in await tx.all("SELECT status FROM task_group")} == {"completed"}
            assert await tx.value("SELECT count(*) FROM ticket") == 0
