"""Dead letters: counted, clustered, replayed, purged."""

from datetime import timedelta

import pytest
from engine import DAY, Bake, Grind, audit, buried, ground, later, status, statuses

from gristmill.db import Database, Tx
from gristmill.errors import Refused
from gristmill.ids import TaskId
from gristmill.queue.groups import open_group, seal
from gristmill.queue.letters import Unique
from gristmill.queue.operate import dead
from gristmill.queue.operate.dead import clusters, dead_letters, purge, replay, stats
from gristmill.queue.send import send, send_many

MONTH = timedelta(days=30)


async def died(tx: Tx, error: str, n: int = 1, letter: type = Grind) -> list[TaskId]:
    await send_many(tx, [letter(i) for i in range(n)])
    return await buried(tx, n, error, queues=[letter.kind.partition(".")[0]])


async def test_the_stats_count_by_queue_and_raise_an_alarm_at_the_threshold(db: Database) -> None:
    async with db.transaction() as tx:
        assert await stats(tx, threshold=1) == dead.DeadStats(0, {}, None, False)
        await died(tx, "burnt", 3, Bake)
        await died(tx, "stone", 1)
        found = await stats(tx, threshold=5)
        assert (found.total, found.by_queue, found.alert) == (4, {"oven": 3, "mill": 1}, False)
        assert found.oldest is not None
        assert (await stats(tx, threshold=4)).alert


async def test_they_are_listed_latest_first_by_what_one_asks_for(db: Database) -> None:
    async with db.transaction() as tx:
        (a,) = await died(tx, "stone 17 in grain")
        (b,) = await died(tx, "burnt", 1, Bake)
        assert [one.id for one in await dead_letters(tx)] == [b, a]
        (only,) = await dead_letters(tx, queue="mill", kind="mill.grind")
        assert (only.id, only.error, only.attempts, only.payload) == (a, "stone 17 in grain", 1, {"grain": 0})
        assert [one.id for one in await dead_letters(tx, fingerprint=only.fingerprint)] == [a]
        assert [one.id for one in await dead_letters(tx, since=only.died_at + timedelta(microseconds=1))] == [b]
        assert await dead_letters(tx, queue="well") == []


async def test_errors_that_differ_only_in_particulars_are_one_cluster(db: Database) -> None:
    async with db.transaction() as tx:
        stones = [(await died(tx, f"stone {n} in /fields/{n}"))[0] for n in range(7)]
        stones += await died(tx, "stone 99 in /fields/99", 1, Bake)
        await died(tx, "burnt", 2, Bake)
        first, second = await clusters(tx)
        assert (first.error, first.count, first.queues) == ("stone <n> in <path>", 8, ("mill", "oven"))
        assert first.kinds == ("mill.grind", "oven.bake")
        assert first.examples == tuple(reversed(stones))[:5]
        assert first.first < first.last
        assert (second.error, second.count) == ("burnt", 2)
        assert [one.count for one in await clusters(tx, "oven")] == [2, 1]


async def test_replay_one_by_queue_or_by_cluster(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead, "REPLAYED_AT_ONCE", 2)
    async with db.transaction() as tx:
        stones = await died(tx, "stone", 5)
        await died(tx, "burnt", 3, Bake)
        assert await replay(tx, ids=stones[:1]) == 1
        assert await status(tx, stones[0]) == "pending"
        assert await replay(tx, fingerprint=(await clusters(tx, "mill"))[0].fingerprint) == 4
        assert await replay(tx, queue="oven") == 3
        assert (await stats(tx, threshold=1)).total == 0
        assert set((await statuses(tx)).values()) == {"pending"}
        await audit(tx)
        with pytest.raises(Refused, match="Say which"):
            await replay(tx)


async def test_what_cannot_be_replayed_stays_dead_and_stops_nobody(db: Database) -> None:
    async with db.transaction() as tx:
        first = await send(tx, Grind(1), unique=Unique("one"))
        await buried(tx)
        await send(tx, Grind(2), unique=Unique("one"))
        await send(tx, Grind(3))
        await buried(tx, 2)
        await send(tx, Grind(4), unique=Unique("one"))
        assert await replay(tx, queue="mill") == 1
        assert await status(tx, first) == "failed"
        await audit(tx)


async def test_the_old_and_those_beyond_what_is_kept_are_purged_in_batches(db: Database) -> None:
    async with db.transaction() as tx:
        old = await died(tx, "stone", 3)
    async with later(db, DAY) as tx:
        new = await died(tx, "stone", 5)
        assert await purge(tx, older_than=MONTH, keep=9) == 0
        assert await purge(tx, older_than=DAY / 2, keep=9, batch=2) == 2
        assert await purge(tx, older_than=DAY / 2, keep=9) == 1
        assert await purge(tx, older_than=MONTH, keep=2) == 3
        left = {one.id for one in await dead_letters(tx)}
        assert len(left) == 2
        assert left < set(new)
        assert not left & set(old)
        await audit(tx)


async def test_those_in_groups_and_with_owners_are_not_purged(db: Database) -> None:
    async with db.transaction() as tx:
        group = await open_group(tx)
        await send(tx, Grind(1), parent=group)
        await seal(tx, group)
        await send(tx, Grind(2), owner="document 1")
        await buried(tx, 2)
        assert await purge(tx, older_than=timedelta(0), keep=0) == 0


async def test_what_waited_for_a_purged_one_is_cancelled_and_does_not_wait_for_ever(db: Database) -> None:
    async with db.transaction() as tx:
        first = await send(tx, Grind(1))
        second = await send(tx, Bake(2), after=first)
        await buried(tx)
        assert await ground(tx, queues=["oven"]) == []
        assert await purge(tx, older_than=timedelta(0), keep=0) == 1
        assert await status(tx, second) == "cancelled"
        await audit(tx)
