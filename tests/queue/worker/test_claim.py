"""The order of claim, and what it costs: the same whether ten tasks wait or a hundred thousand."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from engine import LOWEST, Bake, Grind, audit, claimed, ground, promote, registered, settled
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gristmill.db import Connection, Database, Tx
from gristmill.ids import TaskId, WorkerId
from gristmill.queue import Envelope, send, send_many
from gristmill.queue.claim import Claim
from gristmill.queue.outcome import Retry
from gristmill.queue.settle import settle
from gristmill.queue.worker.claimer import CLAIM_SESSION, SQL
from gristmill.queue.worker.give_back import give_back_claims

NOW = timedelta(0)
_queues = count()


async def emptied(tx: Tx, *queues: str, at_once: int = 100) -> list[TaskId]:
    """All that is ready, in the order of claim."""
    worker = await registered(tx, *queues)
    ids: list[TaskId] = []
    while claims := await claimed(tx, worker, at_once, queues=queues):
        ids += [claim.id for claim in claims]
        await settled(tx, worker, claims)
    return ids


# --- the order


async def test_positions_come_first_then_people_then_priority_then_age(db: Database) -> None:
    async with db.transaction() as tx:
        old, young, urgent, later_people, people, second, first = await send_many(
            tx,
            [
                Envelope(Grind(0)),
                Envelope(Grind(1)),
                Envelope(Grind(2), priority=1),
                Envelope(Grind(3), foreground=True),
                Envelope(Grind(4), foreground=True, priority=1),
                Envelope(Grind(5), position=2),
                Envelope(Grind(6), position=1),
            ],
        )
        assert await emptied(tx, "mill", at_once=3) == [first, second, people, later_people, urgent, old, young]


@pytest.mark.parametrize("retries_first", [True, False])
async def test_retries_come_before_new_work_of_their_rank_where_the_queue_says_so(
    db: Database, retries_first: bool
) -> None:
    async with db.transaction() as tx:
        people = await send(tx, Grind(0), foreground=True)
        failed, new = await send_many(tx, [Grind(1), Grind(2)])
        worker = await registered(tx)
        claims = await claimed(tx, worker, 2)
        first = frozenset({"mill"}) if retries_first else frozenset[str]()
        await settle(tx, worker, [(claim, Retry(NOW, "busy")) for claim in claims], retries_first=first)
        await promote(tx, 9)
        newer_people = await send(tx, Grind(3), foreground=True)
        expected = [people, newer_people, failed, new] if retries_first else [people, newer_people, new, failed]
        assert await emptied(tx, "mill") == expected


async def test_the_most_urgent_of_all_queues_comes_first(db: Database) -> None:
    async with db.transaction() as tx:
        grind = await send(tx, Grind())
        bake = await send(tx, Bake(), foreground=True)
        placed = await send(tx, Grind(), position=1)
        assert await emptied(tx, "mill", "oven") == [placed, bake, grind]


async def test_age_is_the_order_in_which_tasks_entered_the_line(db: Database) -> None:
    async with db.transaction() as tx:
        before = await send(tx, Bake())
        waiting = await send(tx, Grind(1), after=before)
        ready = await send(tx, Grind(2))
        await ground(tx, queues=["oven"])
        assert await emptied(tx, "mill") == [ready, waiting]


@dataclass(frozen=True)
class Sent:
    """What the model knows of a task."""

    position: int | None
    foreground: bool
    priority: int
    retried: bool

    def rank(self, retries_first: bool) -> tuple[Any, ...]:
        if self.position is not None:
            return (0, self.position)
        return (1, not self.foreground, -self.priority, not (self.retried and retries_first))


SENT = st.builds(
    Sent,
    position=st.none() | st.integers(-(2**40), 2**40),
    foreground=st.booleans(),
    priority=st.integers(-100, 100) | st.sampled_from([-1, 0, 1]),
    retried=st.booleans(),
)


def unique_positions(sent: list[Sent]) -> bool:
    positions = [one.position for one in sent if one.position is not None]
    return len(positions) == len(set(positions))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    sent=st.lists(SENT, min_size=1, max_size=12).filter(unique_positions),
    retries_first=st.booleans(),
    at_once=st.integers(1, 5),
)
async def test_claims_follow_a_sorted_list(db: Database, sent: list[Sent], retries_first: bool, at_once: int) -> None:
    queue = f"q{next(_queues)}"
    async with db.transaction() as tx:
        ids = await send_many(
            tx,
            [
                Envelope(Grind(), queue=queue, position=one.position, foreground=one.foreground, priority=one.priority)
                for one in sent
            ],
        )
        await _fail(tx, queue, {id_ for id_, one in zip(ids, sent, strict=True) if one.retried}, retries_first)
        # a retry gets a new place behind its rank; tasks that fail together keep their order
        entered = sorted(zip(ids, sent, strict=True), key=lambda one: one[1].retried)
        again = [one for one in entered if one[1].retried]
        again.sort(key=lambda one: one[1].rank(retries_first))
        entered[len(entered) - len(again) :] = again
        model = sorted(entered, key=lambda one: one[1].rank(retries_first))
        assert await emptied(tx, queue, at_once=at_once) == [id_ for id_, _ in model]


async def _fail(tx: Tx, queue: str, failing: set[TaskId], retries_first: bool) -> None:
    worker = await registered(tx, queue)
    claims = await claimed(tx, worker, 99, queues=[queue])
    first = frozenset({queue}) if retries_first else frozenset[str]()
    failed = [claim for claim in claims if claim.id in failing]
    rest = [claim for claim in claims if claim.id not in failing]
    await give_back_claims(tx, worker, rest)
    if failed:
        await settle(tx, worker, [(claim, Retry(NOW, "busy")) for claim in failed], retries_first=first)
        await promote(tx, 99)


async def test_a_large_claim_keeps_the_order_too(db: Database) -> None:
    async with db.transaction() as tx:
        ids = await send_many(tx, [Grind(i) for i in range(3000)])
        people = await send_many(tx, [Envelope(Grind(i), foreground=True) for i in range(700)])
        assert await emptied(tx, "mill", at_once=900) == people + ids
        await audit(tx)


async def test_nobody_is_handed_what_another_has(db: Database) -> None:
    async with db.transaction() as tx:
        ids = await send_many(tx, [Grind(i) for i in range(40)])
        mine, other = await registered(tx), await registered(tx)
    async with db.transaction() as one, db.transaction() as two:
        a = await claimed(one, mine, 10)
        b = await claimed(two, other, 10)
        assert [claim.id for claim in (*a, *b)] == ids[:20]


# --- what it costs


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


async def explained(connection: Connection, worker: WorkerId, lanes: Sequence[Any], n: int = 100) -> dict[str, Any]:
    """The plan of a claim that really happens, under the settings of a worker's connection."""
    params = {
        "worker": worker,
        "lease": 7,
        "n": n,
        "queues": [row.queue for row in lanes],
        "lanes": [row.lane for row in lanes],
        "marks": [LOWEST] * len(lanes),
        "limits": [n] * len(lanes),
    }
    cursor = await connection.execute("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + SQL["claim"], params)
    row = await cursor.fetchone()
    assert row is not None
    plans = row[0] if isinstance(row[0], list) else json.loads(row[0])
    return plans[0]["Plan"]


async def planned(db: Database, backlog: int, *, analyze: bool = False) -> dict[str, Any]:
    async with db.transaction() as tx:
        await send_many(tx, [Grind(i) for i in range(backlog)])
        lanes = await tx.all(SQL["lanes"], queues=["mill"]) or await _a_lane(tx)
        worker = await registered(tx)
    connection = await db.connect("test", **CLAIM_SESSION)
    try:
        if analyze:
            await connection.execute("VACUUM ANALYZE ticket, task")
        await connection.execute("BEGIN")
        plan = await explained(connection, worker, lanes)
        await connection.execute("ROLLBACK")
    finally:
        await connection.close()
    return plan


async def _a_lane(tx: Tx) -> list[Any]:
    return await tx.all("SELECT 'mill' AS queue, 1203 AS lane")


@pytest.mark.parametrize("backlog", [0, 10, 100_000])
@pytest.mark.parametrize("analyze", [False, True])
async def test_a_claim_reads_the_line_by_its_index_and_sorts_nothing(db: Database, backlog: int, analyze: bool) -> None:
    plan = await planned(db, backlog, analyze=analyze)
    found = list(nodes(plan))
    indexes = {node["Index Name"] for node in found if "Index Name" in node}
    assert "ticket_ready" in indexes
    assert not [
        node for node in found if node["Node Type"] in ("Seq Scan", "Bitmap Heap Scan") and "Relation Name" in node
    ]
    assert not [node for node in found if "Sort" in node["Node Type"]]


def buffers(plan: dict[str, Any]) -> int:
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


async def test_what_a_claim_costs_does_not_grow_with_the_backlog(db: Database) -> None:
    small = buffers(await planned(db, 1_000, analyze=True))
    large = buffers(await planned(db, 100_000, analyze=True))
    assert large <= small * 1.5


async def test_what_a_claim_costs_does_not_grow_with_what_was_claimed_before_while_a_snapshot_is_held(
    db: Database,
) -> None:
    """A claim starts at the mark of its lane: it reads no dead entries before it, even if vacuum cannot remove them."""
    async with db.transaction() as tx:
        await send_many(tx, [Grind(i) for i in range(5_000)])
        worker = await registered(tx)
        (lane,) = await tx.all(SQL["lanes"], queues=["mill"])
    async with db.transaction() as held:
        await held.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        await held.one("SELECT count(*) FROM ticket")
        claims: list[Claim] = []
        for _ in range(8):
            async with db.transaction() as tx:
                claims = await claimed(tx, worker, 500)
                await settled(tx, worker, claims)
        connection = await db.connect("test", **CLAIM_SESSION)
        try:
            await connection.execute("BEGIN")
            params = {"worker": worker, "n": 100, "queues": ["mill"], "lanes": [lane.lane], "limits": [100]}
            costs: list[int] = []
            for lease, mark in ((10**6, LOWEST), (10**6 + 1, claims[-1].seq)):
                asked = params | {"lease": lease, "marks": [mark]}
                cursor = await connection.execute("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + SQL["claim"], asked)
                row = await cursor.fetchone()
                assert row is not None
                costs.append(buffers(row[0][0]["Plan"]))
            await connection.execute("ROLLBACK")
        finally:
            await connection.close()
    assert costs[1] < costs[0]
