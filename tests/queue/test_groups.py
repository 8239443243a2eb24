"""Groups follow from their children: in every combination, at any depth, whoever settles them at the same time."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from engine import (
    MINUTE,
    Bake,
    Grind,
    audit,
    buried,
    claimed,
    ground,
    group,
    promote,
    registered,
    settled,
    status,
    statuses,
    task,
)
from hypothesis import given
from hypothesis import strategies as st

from gristmill.db import Database, Tx
from gristmill.ids import TaskId, WorkerId
from gristmill.queue import Envelope, Skip, Snooze, open_group, open_groups, seal, send, send_many
from gristmill.queue.claim import Claim
from gristmill.queue.operate.cancel import cancel
from gristmill.queue.operate.revive import retry
from gristmill.queue.outcome import Bury, Done, Outcome, Retry, Stop
from gristmill.queue.settle import settle
from gristmill.queue.worker.give_back import give_back_claims

ENDS: dict[str, Outcome | None] = {
    "pending": None,
    "processing": None,
    "completed": Done(),
    "failed": Bury("bad"),
    "skipped": Skip("no"),
    "cancelled": Stop(),
}


def expected(children: Sequence[str], sealed: bool = True) -> str:
    """The rules of 002 in their order; skipped counts as done, and so do cancelled ones beside others."""
    if "processing" in children:
        return "processing"
    if "pending" in children or not sealed:
        return "pending"
    if "failed" in children:
        return "failed"
    if children and all(child == "cancelled" for child in children):
        return "cancelled"
    return "completed"


async def brought(tx: Tx, worker: WorkerId, children: dict[TaskId, str]) -> None:
    """Bring pending tasks to these statuses."""
    claims = {claim.id: claim for claim in await claimed(tx, worker, len(children))}
    await give_back_claims(tx, worker, [claims[id_] for id_, to in children.items() if to == "pending"])
    ends = [(claims[id_], outcome) for id_, to in children.items() if (outcome := ENDS[to])]
    if ends:
        await settle(tx, worker, ends)


# --- the rules


@pytest.mark.parametrize("sealed", [True, False])
async def test_a_group_follows_the_rules_in_every_combination_of_children(db: Database, sealed: bool) -> None:
    combinations = [present for present in product([False, True], repeat=len(ENDS)) if any(present)]
    async with db.transaction() as tx:
        worker = await registered(tx)
        groups: dict[TaskId, list[str]] = {}
        children: dict[TaskId, str] = {}
        for present in combinations:
            statuses_ = [name for name, here in zip(ENDS, present, strict=True) if here]
            id_ = await open_group(tx)
            groups[id_] = statuses_
            children |= dict(
                zip(await send_many(tx, [Envelope(Grind(), parent=id_) for _ in statuses_]), statuses_, strict=True)
            )
            if sealed:
                await seal(tx, id_)
        assert {await status(tx, id_) for id_ in groups} == {"pending"}
        await brought(tx, worker, children)
        found = {tuple(names): await status(tx, id_) for id_, names in groups.items()}
        assert found == {tuple(names): expected(names, sealed) for names in groups.values()}
        await audit(tx)


@given(st.lists(st.sampled_from(list(ENDS)), max_size=6), st.booleans())
def test_what_the_test_expects_is_what_the_document_says(children: list[str], sealed: bool) -> None:
    done = [child for child in children if child in ("completed", "skipped")]
    if sealed and children and len(done) == len(children):
        assert expected(children) == "completed"
    if "failed" in children and not {"pending", "processing"} & set(children):
        assert expected(children) == "failed"


async def test_a_groups_status_changes_with_each_step_of_its_children(db: Database) -> None:
    async with db.transaction() as tx:
        id_ = await open_group(tx)
        await send_many(tx, [Envelope(Grind(i), parent=id_) for i in range(2)])
        await seal(tx, id_)
        worker = await registered(tx)
        (first,) = await claimed(tx, worker)
        assert await status(tx, id_) == "processing"
        await give_back_claims(tx, worker, [first])
        assert await status(tx, id_) == "pending"
        (first, second) = await claimed(tx, worker, 2)
        await settled(tx, worker, [first], Retry(timedelta(0), "busy"))
        assert (await status(tx, id_), await group(tx, id_)) == ("processing", {"pending": 1, "processing": 1})
        await settled(tx, worker, [second], Snooze(timedelta(0)))
        assert (await status(tx, id_), await group(tx, id_)) == ("pending", {"pending": 2})
        await promote(tx, 9)
        await settled(tx, worker, await claimed(tx, worker, 2))
        row = await task(tx, id_)
        assert (row.status, row.finished_at is not None, row.wait) == ("completed", True, None)
        await audit(tx)


# --- sealing


async def test_a_group_does_not_end_before_it_is_sealed(db: Database) -> None:
    async with db.transaction() as tx:
        id_ = await open_group(tx)
        await send(tx, Grind(1), parent=id_)
        await ground(tx)
        assert await status(tx, id_) == "pending"
        await send(tx, Grind(2), parent=id_)
        await seal(tx, id_)
        assert await status(tx, id_) == "pending"
        await ground(tx)
        assert await status(tx, id_) == "completed"
        await audit(tx)


async def test_an_empty_sealed_group_completes_and_so_do_those_above_it(db: Database) -> None:
    async with db.transaction() as tx:
        outer = await open_group(tx, label="outer")
        inner = await open_group(tx, parent=outer)
        after = await send(tx, Grind(), after=outer)
        await seal(tx, outer)
        assert await statuses(tx) == {outer: "pending", inner: "pending", after: "pending"}
        await seal(tx, inner)
        assert await statuses(tx) == {outer: "completed", inner: "completed", after: "pending"}
        assert await ground(tx) == [after]
        await audit(tx)


async def test_sealing_twice_is_sealing_once(db: Database) -> None:
    async with db.transaction() as tx:
        id_ = await open_group(tx)
        await seal(tx, id_)
        finished = (await task(tx, id_)).finished_at
        await seal(tx, id_)
        assert (await task(tx, id_)).finished_at == finished
        await audit(tx)


@pytest.mark.parametrize("end", [Done(), Bury("bad"), Skip("no"), Stop()])
async def test_sealing_last_gives_the_group_the_status_of_its_children(db: Database, end: Outcome) -> None:
    async with db.transaction() as tx:
        id_ = await open_group(tx)
        (child,) = await send_many(tx, [Envelope(Grind(), parent=id_)])
        await ground(tx, 1, end)
        await seal(tx, id_)
        child_status = await status(tx, child)
        assert await status(tx, id_) == expected([child_status or ""])
        await audit(tx)


async def test_a_group_can_be_filled_by_its_own_children(db: Database) -> None:
    """A document splits into pages, each page into chunks: nobody but the last knows how many there are."""
    async with db.transaction() as tx:
        id_ = await open_group(tx)
        await send(tx, Grind(), parent=id_)
        await ground(tx, 1, Done(lambda tx: seal(tx, id_)))
        assert await status(tx, id_) == "completed"
        await audit(tx)


async def test_a_child_may_send_more_children_while_it_ends(db: Database) -> None:
    async with db.transaction() as tx:
        id_ = await open_group(tx)
        await send(tx, Grind(), parent=id_)
        await ground(tx, 1, Done(then=tuple(Envelope(Bake(i), parent=id_) for i in range(3))))
        assert await group(tx, id_) == {"completed": 1, "pending": 3}
        await seal(tx, id_)
        await ground(tx, 9, queues=["oven"])
        assert await status(tx, id_) == "completed"
        await audit(tx)


# --- depth and size


async def test_what_a_leaf_does_is_seen_at_the_root_at_any_depth(db: Database) -> None:
    async with db.transaction() as tx:
        chain = [await open_group(tx)]
        for _ in range(30):
            chain.append(await open_group(tx, parent=chain[-1]))
        await send(tx, Grind(), parent=chain[-1])
        for id_ in chain:
            await seal(tx, id_)
        worker = await registered(tx)
        claims = await claimed(tx, worker)
        assert {await status(tx, id_) for id_ in chain} == {"processing"}
        await settled(tx, worker, claims, Bury("bad"))
        assert {await status(tx, id_) for id_ in chain} == {"failed"}
        assert await group(tx, chain[0]) == {"failed": 1}
        await retry(tx, [claims[0].id])
        assert {await status(tx, id_) for id_ in chain} == {"pending"}
        await ground(tx)
        assert {await status(tx, id_) for id_ in chain} == {"completed"}
        await audit(tx)


async def test_children_at_different_depths_settled_together_count_once_each(db: Database) -> None:
    async with db.transaction() as tx:
        root = await open_group(tx)
        middle = await open_group(tx, parent=root)
        leaf = await open_group(tx, parent=middle)
        await send_many(tx, [Envelope(Grind(i), parent=id_) for id_ in (root, middle, leaf) for i in range(3)])
        for id_ in (root, middle, leaf):
            await seal(tx, id_)
        worker = await registered(tx)
        claims = await claimed(tx, worker, 9)
        await settled(tx, worker, claims[:8])
        assert await group(tx, root) == {"completed": 3, "processing": 1}
        await settled(tx, worker, claims[8:])
        assert await group(tx, root) == {"completed": 4}
        assert {await status(tx, id_) for id_ in (root, middle, leaf)} == {"completed"}
        await audit(tx)


async def test_ten_thousand_children_of_one_group(db: Database) -> None:
    async with db.transaction() as tx:
        id_ = await open_group(tx)
        await send_many(tx, [Envelope(Grind(i), parent=id_) for i in range(10_000)])
        await seal(tx, id_)
        worker = await registered(tx)

    async def work(n: int) -> None:
        for _ in range(10):
            async with db.transaction() as tx:
                claims = await claimed(tx, worker, 500)
            async with db.transaction() as tx:
                await settled(tx, worker, claims)

    await asyncio.gather(work(0), work(1))
    async with db.transaction() as tx:
        assert await group(tx, id_) == {"completed": 10_000}
        assert await status(tx, id_) == "completed"
        await audit(tx)


# --- at the same time


async def test_several_connections_settle_one_group_and_the_counters_are_exact(db: Database) -> None:
    async with db.transaction() as tx:
        outer = await open_group(tx)
        id_ = await open_group(tx, parent=outer)
        await send_many(tx, [Envelope(Grind(i), parent=id_) for i in range(200)])
        await seal(tx, id_)
        await seal(tx, outer)
        worker = await registered(tx)
        claims = await claimed(tx, worker, 200)

    ends: list[Outcome] = [Done(), Done(result=1), Bury("bad"), Skip("no")]

    async def work(mine: Sequence[Claim]) -> None:
        for start in range(0, len(mine), 10):
            async with db.transaction() as tx:
                batch = mine[start : start + 10]
                await settle(tx, worker, [(claim, ends[i % 4]) for i, claim in enumerate(batch)])

    await asyncio.gather(*(work(claims[i::4]) for i in range(4)))
    async with db.transaction() as tx:
        assert await group(tx, id_) == {"completed": 120, "failed": 40, "skipped": 40}
        assert (await status(tx, id_), await status(tx, outer)) == ("failed", "failed")
        await audit(tx)


async def test_mixed_batches_over_several_groups_never_wait_in_a_circle(db: Database) -> None:
    """One completes here and retries there, another the other way round: PostgreSQL would end one of them."""
    async with db.transaction() as tx:
        outer = await open_group(tx)
        groups = [await open_group(tx, parent=outer) for _ in range(4)]
        await send_many(tx, [Envelope(Grind(i), parent=groups[i % 4]) for i in range(320)])
        worker = await registered(tx)
        claims = await claimed(tx, worker, 320)

    ends: list[Outcome] = [Done(), Retry(MINUTE, "busy"), Skip("no"), Done(then=(Envelope(Bake(), parent=groups[2]),))]

    async def work(mine: Sequence[Claim], turn: int) -> None:
        for start in range(0, len(mine), 4):
            async with db.transaction() as tx:
                batch = mine[start : start + 4]
                await settle(tx, worker, [(claim, ends[(i + turn) % 4]) for i, claim in enumerate(batch)])

    quarter = len(claims) // 4
    await asyncio.gather(*(work(claims[i * quarter : (i + 1) * quarter], i) for i in range(4)))
    async with db.transaction() as tx:
        assert sum([(await group(tx, id_))["completed"] for id_ in groups]) == 160
        await audit(tx)


async def test_claiming_settling_and_sending_into_one_group_at_the_same_time(db: Database) -> None:
    async with db.transaction() as tx:
        id_ = await open_group(tx)
        worker = await registered(tx)

    async def sender() -> None:
        for i in range(20):
            async with db.transaction() as tx:
                await send_many(tx, [Envelope(Grind(i), parent=id_) for _ in range(5)])

    async def work(done: asyncio.Event) -> None:
        while True:
            over = done.is_set()
            async with db.transaction() as tx:
                claims = await claimed(tx, worker, 7)
            async with db.transaction() as tx:
                await settled(tx, worker, claims)
            if over and not claims:
                return

    done = asyncio.Event()
    workers = [asyncio.create_task(work(done)) for _ in range(2)]
    await asyncio.gather(sender(), sender())
    done.set()
    await asyncio.gather(*workers)
    async with db.transaction() as tx:
        await seal(tx, id_)
        assert (await status(tx, id_), await group(tx, id_)) == ("completed", {"completed": 200})
        await audit(tx)


async def test_sealing_while_the_last_child_ends_ends_the_group_once(db: Database) -> None:
    async def ends(worker: WorkerId, claims: Sequence[Claim]) -> None:
        async with db.transaction() as tx:
            await settled(tx, worker, claims)

    async def seals(id_: TaskId) -> None:
        async with db.transaction() as tx:
            await seal(tx, id_)

    for _ in range(20):
        async with db.transaction() as tx:
            id_ = await open_group(tx)
            after = await send(tx, Bake(), after=id_)
            await send(tx, Grind(), parent=id_)
            worker = await registered(tx)
            claims = await claimed(tx, worker)
        await asyncio.gather(ends(worker, claims), seals(id_))
        async with db.transaction() as tx:
            assert await status(tx, id_) == "completed"
            assert (await task(tx, after)).wait is None
    async with db.transaction() as tx:
        await audit(tx)


# --- what follows


async def test_what_comes_after_a_group_starts_when_all_of_it_is_done(db: Database) -> None:
    async with db.transaction() as tx:
        ocr = await open_group(tx)
        await send_many(tx, [Envelope(Grind(i), parent=ocr) for i in range(3)])
        await seal(tx, ocr)
        vector = await send(tx, Bake(), after=ocr)
        await buried(tx)
        await ground(tx, 2)
        assert await status(tx, ocr) == "failed"
        assert (await task(tx, vector)).wait == "after"
        await retry(tx, [ocr])
        assert await status(tx, ocr) == "pending"
        await ground(tx)
        assert await status(tx, ocr) == "completed"
        assert await ground(tx, queues=["oven"]) == [vector]
        await audit(tx)


async def test_a_retried_child_reopens_its_groups_and_only_it_runs_again(db: Database) -> None:
    async with db.transaction() as tx:
        outer = await open_group(tx)
        id_ = await open_group(tx, parent=outer)
        children = await send_many(tx, [Envelope(Grind(i), parent=id_) for i in range(3)])
        for one in (id_, outer):
            await seal(tx, one)
        await buried(tx)
        await ground(tx, 2)
        assert [await status(tx, one) for one in (outer, id_)] == ["failed", "failed"]
        await retry(tx, [children[0]])
        for one in (outer, id_):
            row = await task(tx, one)
            assert (row.status, row.finished_at, row.wait) == ("pending", None, "children")
        assert await ground(tx, 9) == [children[0]]
        assert [await status(tx, one) for one in (outer, id_)] == ["completed", "completed"]
        await audit(tx)


async def test_a_cancelled_group_is_cancelled_with_all_that_is_open_in_it(db: Database) -> None:
    async with db.transaction() as tx:
        id_ = await open_group(tx)
        inner = await open_group(tx, parent=id_)
        await send_many(tx, [Envelope(Grind(i), parent=one) for i in range(2) for one in (id_, inner)])
        after = await send(tx, Bake(), after=id_)
        await cancel(tx, [id_])
        assert set((await statuses(tx)).values()) == {"cancelled"}
        assert f"task {id_}" in (await task(tx, after)).error
        await audit(tx)


async def test_a_label_and_an_owner_stay_with_the_group(db: Database) -> None:
    async with db.transaction() as tx:
        row: Any = await task(tx, await open_group(tx, label="contract.pdf", owner="document 7"))
        assert (row.kind, row.queue, row.payload, row.owner) == ("group", None, {"label": "contract.pdf"}, "document 7")


async def test_groups_that_are_opened_together_are_in_the_order_of_their_labels(db: Database) -> None:
    async with db.transaction() as tx:
        root = await open_group(tx, label="mill")
        inner = await open_groups(tx, ["wash", None, "grind"], parent=root)
        labels = [(await task(tx, one)).payload for one in inner]
        assert labels == [{"label": "wash"}, None, {"label": "grind"}]
        for one in (*inner, root):
            await seal(tx, one)
        assert await status(tx, root) == "completed"
        await audit(tx)
