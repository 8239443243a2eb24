"""Trees: groups with all their tasks are written down at once, and behave as if they had been sent one by one."""

import pytest
from engine import Bake, Grind, audit, ground, status, task

from gristmill.db import Database, Tx
from gristmill.ids import ScopeId
from gristmill.queue import Branch, Follower, Leaf, Planted, Tree, plant_trees
from gristmill.scopes import GLOBAL_ID, Scope, scope_id

MANY = 30  # trees: enough that their rows are copied, and not inserted


def a_tree(label: str = "a book", scope: ScopeId = GLOBAL_ID) -> Tree:
    """Opened and read: one page is left to bake; when it is, the second branch may be sealed."""
    done = Leaf(Grind(1), outcome="completed")
    skipped = Leaf(Grind(2), outcome="skipped", reason="there is nothing on it")
    branches = [
        Branch("read", [done, skipped], sealed=True),
        Branch("bake", [Leaf(Bake(3), priority=5)], sealed=True),
        Branch("eat"),
    ]
    return Tree(
        label,
        f"owner of {label}",
        scope,
        [Leaf(Grind(0), outcome="completed")],
        branches,
        [Follower(Grind(7), after=1), Follower(Grind(8))],
        sealed=True,
    )


async def plant(tx: Tx, n: int) -> list[Planted]:
    return await plant_trees(tx, [a_tree(f"book {place}") for place in range(n)])


@pytest.mark.parametrize("n", [1, MANY])
async def test_groups_count_the_tasks_that_they_are_planted_with(db: Database, n: int) -> None:
    async with db.transaction() as tx:
        planted = await plant(tx, n)
        for one in planted:
            assert [await status(tx, id_) for id_ in (one.root, *one.branches)] == [
                "pending",
                "completed",
                "pending",
                "pending",
            ]
        await audit(tx)


@pytest.mark.parametrize("n", [1, MANY])
async def test_what_was_done_before_is_written_down_with_its_reason(db: Database, n: int) -> None:
    async with db.transaction() as tx:
        planted = await plant(tx, n)
        rows = await tx.all(
            "SELECT outcome::text, error, attempts FROM task WHERE parent = ANY (%(ids)s) ORDER BY id",
            ids=[one.branches[0] for one in planted],
        )
        assert rows == [("completed", None, 1), ("skipped", "there is nothing on it", 1)] * n
        assert [await status(tx, one.leaves[0]) for one in planted] == ["completed"] * n
        label = await task(tx, planted[0].branches[1])
        assert (label.payload, label.owner) == ({"label": "bake"}, "owner of book 0")


@pytest.mark.parametrize("n", [1, MANY])
async def test_what_is_left_is_claimed_and_what_follows_waits_for_its_branch(db: Database, n: int) -> None:
    async with db.transaction() as tx:
        planted = await plant(tx, n)
        waiting = await tx.all("SELECT after FROM task WHERE wait = 'after' ORDER BY id")
        assert {row.after for row in waiting} == {id_ for one in planted for id_ in (one.branches[1], one.root)}
        assert len(await ground(tx, n + 1, queues=("mill", "oven"))) == n
        assert {await status(tx, one.branches[1]) for one in planted} == {"completed"}
        free = await tx.all("SELECT payload FROM task WHERE after IS NOT NULL AND wait IS NULL ORDER BY id")
        assert [row.payload for row in free] == [{"grain": 7}] * n
        await audit(tx)


async def test_what_follows_a_branch_that_is_done_need_not_wait(db: Database) -> None:
    tree = Tree("x", "x", GLOBAL_ID, branches=[Branch("a", sealed=True)], followers=[Follower(Grind(1), after=0)])
    async with db.transaction() as tx:
        await plant_trees(tx, [tree])
        assert len(await ground(tx, 2)) == 1


@pytest.mark.parametrize("n", [1, MANY])
async def test_a_client_plants_trees_of_its_own(db: Database, n: int) -> None:
    acme = Scope("acme")
    async with db.transaction() as tx:
        own = await scope_id(tx, acme)
    async with db.transaction(seen_from=acme) as tx:  # which knows no COPY
        planted = await plant_trees(tx, [a_tree(f"book {place}", own) for place in range(n)])
    async with db.transaction() as tx:
        assert [await status(tx, one.branches[0]) for one in planted] == ["completed"] * n
        assert (await task(tx, planted[0].root)).payload == {"label": "book 0"}
        await audit(tx)
