"""Finding tasks by what one asks for, however many there are."""

import re
from datetime import timedelta
from typing import Any

import pytest
from engine import DAY, Bake, Grind, buried, claimed, ground, later, registered, settled

from gristmill.db import Database, Tx, array
from gristmill.errors import Refused
from gristmill.ids import TaskId
from gristmill.queue.groups import open_group
from gristmill.queue.letters import Envelope
from gristmill.queue.operate.search import NEWER, SQL, Spot, TaskFilter, find_tasks, look_for
from gristmill.queue.outcome import Bury, Done
from gristmill.queue.send import send, send_many
from gristmill.scopes import GLOBAL_ID, Scope, scope_id
from plans import count_rows

ACME = Scope("acme")


async def ids(tx: Tx, *, limit: int = 50, before: TaskId | None = None, **given: Any) -> list[TaskId]:
    start = None if before is None else Spot(before)
    found = await find_tasks(tx, TaskFilter(**given), limit=limit, start=start)
    return [one.id for one in found.tasks]


async def test_tasks_are_listed_newest_first_by_what_one_asks_for(db: Database) -> None:
    async with db.transaction() as tx:
        a, b, c = await send_many(tx, [Grind(i) for i in range(3)])
        group = await open_group(tx)
        child = await send(tx, Bake(1), parent=group)
        await ground(tx, 1)
        await buried(tx, 1)
        worker = await registered(tx)
        await claimed(tx, worker, 1)
        assert await ids(tx) == [child, group, c, b, a]
        assert await ids(tx, limit=2) == [child, group]
        assert await ids(tx, limit=2, before=group) == [c, b]
        assert await ids(tx, queue="mill") == [c, b, a]
        assert await ids(tx, kind="oven.bake") == [child]
        assert await ids(tx, parent=group) == [child]
        assert await ids(tx, parent=group, status="failed") == []
        for status, expected in (("completed", a), ("failed", b), ("processing", c)):
            assert await ids(tx, status=status) == [expected]
            assert await ids(tx, status=status, queue="oven") == []
        assert await ids(tx, status="pending") == [child, group]
        with pytest.raises(Refused, match="“lost” is no status"):
            await ids(tx, status="lost")


async def test_whatever_it_waits_for_it_is_listed_as_pending(db: Database) -> None:
    async with db.transaction() as tx:
        first = await send(tx, Grind(1), serial_key="mill 7")
        second = await send(tx, Grind(2), serial_key="mill 7")
        later_ = await send(tx, Bake(3), delay=timedelta(hours=1))
        after = await send(tx, Bake(4), after=first)
        group = await open_group(tx)
        assert await ids(tx, status="pending") == [group, after, later_, second, first]
        assert await ids(tx, status="pending", limit=2, before=after) == [later_, second]
        assert await ids(tx, status="pending", queue="mill") == [second, first]
        assert await ids(tx, status="pending", kind="oven.bake") == [after, later_]
        assert await ids(tx, status="pending", kind="group") == [group]


async def test_a_group_whose_tasks_run_is_listed_with_them(db: Database) -> None:
    async with db.transaction() as tx:
        outer = await open_group(tx)
        inner = await open_group(tx, parent=outer)
        await open_group(tx)
        task = await send(tx, Grind(1), parent=inner)
        await claimed(tx, await registered(tx))
        assert await ids(tx, status="processing") == [task, inner, outer]


async def test_text_is_found_inside_payload_result_and_error(db: Database) -> None:
    async with db.transaction() as tx:
        a, b, c = await send_many(tx, [Grind(4711), Grind(2), Grind(3)])
        worker = await registered(tx)
        one, two, three = await claimed(tx, worker, 3)
        await settled(tx, worker, [two], Done(result={"flour": "Spelt 50%_fine"}))
        await settled(tx, worker, [one, three])
        await send(tx, Bake(1))
        await buried(tx, 1, "The oven was COLD", queues=("oven",))
        assert await ids(tx, text="4711") == [a]
        assert await ids(tx, text="50%_f") == [b]
        assert await ids(tx, text="spelt 50%") == [b]
        assert await ids(tx, text="5_%") == []
        assert len(await ids(tx, text="oven was cold")) == 1
        assert await ids(tx, text="grain", queue="mill") == [c, b, a]
        with pytest.raises(Refused, match="NUL"):
            await ids(tx, text="a\0b")


async def test_dead_letters_are_listed_by_their_death_and_cluster(db: Database) -> None:
    async with db.transaction() as tx:
        first, second, third = await send_many(tx, [Grind(i) for i in range(3)])
        worker = await registered(tx)
        claims = await claimed(tx, worker, 3)
    async with db.transaction() as tx:
        await settled(tx, worker, claims[1:2], Bury("no water"))
    async with later(db, DAY) as tx:
        await settled(tx, worker, claims[0:1], Bury("no wind"))
        await settled(tx, worker, claims[2:3], Bury("no water"))
        (row,) = await tx.all("SELECT fingerprint FROM task WHERE id = %(id)s", id=second)
        assert await ids(tx, status="failed") == [third, first, second]
        assert await ids(tx, fingerprint=row.fingerprint) == [third, second]
        page = await find_tasks(tx, TaskFilter(fingerprint=row.fingerprint), limit=1)
        assert page.next is not None
        rest = await find_tasks(tx, TaskFilter(fingerprint=row.fingerprint), limit=1, start=page.next)
        assert ([one.id for one in page.tasks], [one.id for one in rest.tasks]) == ([third], [second])
        with pytest.raises(Refused, match="leave the status out"):
            await ids(tx, fingerprint=row.fingerprint, status="pending")


async def test_tasks_are_found_by_the_time_they_were_sent(db: Database) -> None:
    sent: list[TaskId] = []
    for day in range(4):
        async with later(db, day * DAY) as tx:
            sent += await send_many(tx, [Grind(i) for i in range(30)])
    async with db.transaction() as tx:
        moments = {row.id: row.created_at for row in await tx.all("SELECT id, created_at FROM task")}
        begin, end = moments[sent[30]], moments[sent[89]]
        found = await find_tasks(tx, TaskFilter(since=begin, until=end), limit=100)
        assert [one.id for one in found.tasks] == sent[89:29:-1]
        assert found.looked == 60  # those of other days were not even looked at
        assert await ids(tx, until=begin - timedelta(seconds=1), limit=100) == sent[29::-1]


async def test_tasks_of_an_owner_are_found(db: Database) -> None:
    async with db.transaction() as tx:
        mine = await send_many(tx, [Envelope(Grind(i), owner="document:7") for i in range(3)])
        await send(tx, Grind(9), owner="document:8")
        assert await ids(tx, owner="document:7", limit=2) == [mine[2], mine[1]]
        assert await ids(tx, owner="document:7", before=mine[1]) == [mine[0]]


async def test_page_after_page_shows_every_task_once(db: Database) -> None:
    async with db.transaction() as tx:
        sent = await send_many(tx, [Grind(i) for i in range(130)])
        await ground(tx, 70)
        for wanted, expected in (
            (TaskFilter(), sent),
            (TaskFilter(queue="mill"), sent),
            (TaskFilter(status="completed"), sent[:70]),
            (TaskFilter(status="pending"), sent[70:]),
            (TaskFilter(status="pending", queue="mill"), sent[70:]),
            (TaskFilter(text="grain"), sent),
        ):
            seen: list[TaskId] = []
            start: Spot | None = None
            while True:
                page = await find_tasks(tx, wanted, limit=32, start=start)
                seen += [one.id for one in page.tasks]
                if (start := page.next) is None:
                    break
            assert seen == expected[::-1]


async def test_the_oldest_come_first_when_they_are_asked_for(db: Database) -> None:
    async with db.transaction() as tx:
        group = await open_group(tx)
        sent = await send_many(tx, [Envelope(Grind(i), parent=group, owner="document:1") for i in range(120)])
        own = await scope_id(tx, ACME)
        await send_many(tx, [Envelope(Grind(i), scope=own) for i in range(3)])
        await buried(tx, 1)
        for given in ({"queue": "mill", "scope": GLOBAL_ID}, {"parent": group}, {"owner": "document:1"}):
            seen: list[TaskId] = []
            start: Spot | None = None
            while True:
                page = await find_tasks(tx, TaskFilter(**given), limit=32, start=start, oldest_first=True)
                seen += [one.id for one in page.tasks]
                if (start := page.next) is None:
                    break
            assert seen == list(sent)
        dead = await find_tasks(tx, TaskFilter(status="failed"), oldest_first=True)
        assert [one.id for one in dead.tasks] == [sent[0]]
    async with db.reading(seen_from=ACME) as tx:
        found = await find_tasks(tx, TaskFilter(), oldest_first=True)
        assert [one.scope for one in found.tasks] == [own] * 3
        assert found.tasks[0].id < found.tasks[-1].id


async def test_a_look_that_finds_nothing_ends_in_time_and_says_where_to_go_on(db: Database) -> None:
    async with db.transaction() as tx:
        await send_many(tx, [Grind(i) for i in range(500)])
        look = await look_for(tx, TaskFilter(text="nowhere"), limit=50, budget=0)
        assert (look.ids, look.looked) == ((), 50)
        assert look.next is not None
        rest = await look_for(tx, TaskFilter(text="nowhere"), limit=50, start=look.next, budget=60)
        assert (rest.ids, rest.looked, rest.next) == ((), 450, None)


async def test_a_client_finds_its_own_tasks_alone(db: Database) -> None:
    async with db.transaction() as tx:
        await send_many(tx, [Grind(i) for i in range(5)])
        own = await scope_id(tx, ACME)
        await send_many(tx, [Envelope(Grind(i), scope=own) for i in range(3)])
        await send(tx, Grind(9), scope=await scope_id(tx, Scope("beta")))
        assert len(await ids(tx, scope=own)) == 3
        assert len(await ids(tx, scope=GLOBAL_ID)) == 5
    async with db.reading(seen_from=ACME) as tx:
        for given in ({}, {"queue": "mill"}, {"status": "pending"}, {"text": "grain"}, {"kind": "mill.grind"}):
            found = await find_tasks(tx, TaskFilter(**given))
            assert {one.scope for one in found.tasks} == {own}
            assert (len(found.tasks), found.looked) == (3, 3)
    async with db.transaction() as tx:
        await buried(tx, 9)
    async with db.reading(seen_from=ACME) as tx:
        found = await find_tasks(tx, TaskFilter(status="failed"))
        assert (len(found.tasks), found.looked) == (3, 3)


STREAMS = {
    "newest": {},
    "newest_of_queue": {"queue": "mill"},
    "newest_of_scopes": {"scopes": [7, 8]},
    "newest_children": {"parent": 1},
    "newest_of_owner": {"owner": "document:1"},
    "newest_open": {},
    "newest_open_of_queue": {"queue": "oven"},
    "newest_processing": {},
    "oldest": {},
    "oldest_of_queue": {"queue": "mill"},
    "oldest_of_scopes": {"scopes": [7, 8]},
    "oldest_children": {"parent": 1},
    "oldest_of_owner": {"owner": "document:1"},
    "latest_dead": {},
    "latest_dead_of_scopes": {"scopes": [1, 7]},
}


async def test_no_list_reads_the_whole_table(db: Database) -> None:
    async with db.transaction() as tx:
        await send_many(tx, [Grind(1), Bake(1)])
        await send(tx, Grind(2), delay=timedelta(hours=1))
        await send_many(tx, [Envelope(Grind(i), foreground=True) for i in range(300)])
        await ground(tx, 300)
        await send_many(tx, [Grind(i) for i in range(30_000)])  # a small table is read as a whole, and rightly so
    async with await db.connect("test") as connection:
        await connection.execute("VACUUM ANALYZE task, ticket, lease")
    async with db.transaction() as tx:
        for stream, given in STREAMS.items():
            asked = {"before": NEWER, "floor": 0, "after": 0, "ceiling": NEWER, "look": 50, "died_at": None, **given}
            plan = await tx.value("EXPLAIN (ANALYZE, FORMAT JSON) " + SQL[stream], **asked)
            assert count_rows(plan[0]["Plan"]) < 500, stream
            assert not re.search(r"Seq Scan on task\b", str(await tx.all("EXPLAIN " + SQL[stream], **asked))), stream
        unasked = dict.fromkeys(
            ("queue", "kind", "status", "fingerprint", "scopes", "since", "until", "owner", "parent", "last_id")
        )
        fitting = await tx.value(
            "EXPLAIN (ANALYZE, FORMAT JSON) " + SQL["fitting"],
            ids=array(range(1, 51)),
            pattern=None,
            groups=True,
            outcome=None,
            open=False,
            limit=50,
            **unasked,
        )
        assert count_rows(fitting[0]["Plan"]) < 1000
