"""Trees: groups with all their tasks are written down at once, and behave as if they had been sent one by one."""

import pytest
from engine import Bake, Grind, audit, ground, status, task

from gristmill.db import Database, Tx
from gristmill.ids import ScopeId
from gristmill.queue import SUBJECT, Branch, Follower, Leaf, Planted, Seed, Tree, group_progress, plant_trees
from gristmill.scopes import GLOBAL_ID, Scope, scope_id

MANY = 30  # trees: enough that their rows are copied, and not inserted


def a_tree() -> Tree:
    """Opened and read: one page is left to bake; when it is, the second branch may be sealed."""
    done = Leaf(Grind(1), outcome="completed")
    skipped = Leaf(Grind(2), outcome="skipped", reason="there is nothing on it")
    branches = [
        Branch("read", [done, skipped], sealed=True),
        Branch("bake", [Leaf(Bake(3), priority=5)], sealed=True),
        Branch("eat"),
    ]
    return Tree(
        [Leaf(Grind(0), outcome="completed")],
        branches,
        [Follower(Grind(7), after=1), Follower(Grind(8))],
        sealed=True,
    )


def a_seed(label: str = "a book", scope: ScopeId = GLOBAL_ID, *, tree: Tree | None = None, subject: int = 0) -> Seed:
    return Seed(tree or a_tree(), subject, label, f"owner of {label}", scope)


async def plant(tx: Tx, n: int) -> list[Planted]:
    tree = a_tree()
    return await plant_trees(tx, [a_seed(f"book {place}", tree=tree) for place in range(n)])


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
    tree = Tree(branches=[Branch("a", sealed=True)], followers=[Follower(Grind(1), after=0)])
    async with db.transaction() as tx:
        await plant_trees(tx, [a_seed(tree=tree)])
        assert len(await ground(tx, 2)) == 1


@pytest.mark.parametrize("n", [1, MANY])
async def test_a_client_plants_trees_of_its_own(db: Database, n: int) -> None:
    acme = Scope("acme")
    async with db.transaction() as tx:
        own = await scope_id(tx, acme)
    async with db.transaction(seen_from=acme) as tx:  # which knows no COPY
        planted = await plant_trees(tx, [a_seed(f"book {place}", own) for place in range(n)])
    async with db.transaction() as tx:
        assert [await status(tx, one.branches[0]) for one in planted] == ["completed"] * n
        assert (await task(tx, planted[0].root)).payload == {"label": "book 0"}
        await audit(tx)


ROWS = """
SELECT t.id - %(root)s AS id, t.parent - %(root)s AS parent, t.after - %(root)s AS after, t.scope, t.lane, t.priority,
       t.attempts, t.outcome::text, t.wait::text, t.foreground, t.awaited, t.queue, t.kind, t.payload, t.error,
       t.started_at IS NULL, t.finished_at = t.created_at AS at_once, k.seq - %(root)s AS seq, k.lane AS ticket_lane,
       g.pending, g.completed, g.skipped, g.done, g.sealed, g.status::text, g.parent - %(root)s AS above
  FROM task t LEFT JOIN ticket k USING (id) LEFT JOIN task_group g USING (id)
 WHERE t.owner = %(owner)s ORDER BY t.id
"""
ODD = 'a "book",\twith 100 %% of \\ and\nč ř ß \\N %s'


async def test_one_tree_and_many_are_written_down_alike(db: Database) -> None:
    """Few are inserted and many are copied, whatever characters are in their labels and reasons."""
    skipped = Leaf(Grind(SUBJECT), outcome="skipped", reason=ODD)
    tree = Tree(
        [Leaf(Grind(SUBJECT), foreground=True)],
        [Branch(ODD, [skipped, Leaf(Bake(SUBJECT), priority=-3)], sealed=True, done=2), Branch("eat")],
        [Follower(Grind(SUBJECT), after=1), Follower(Bake(7))],
        priority=4,
        foreground=True,
    )
    found: list[list[tuple[object, ...]]] = []
    for owner, n in (("few", 1), ("many", 3 * MANY)):
        async with db.transaction() as tx:
            first = Seed(tree, 41, ODD, owner, GLOBAL_ID)
            planted = await plant_trees(tx, [first, *[a_seed(tree=tree)] * (n - 1)])
            rows = await tx.all(ROWS, root=planted[0].root, owner=owner)
            found.append([tuple(row) for row in rows])
            await audit(tx)
    assert found[0] == found[1]
    assert [row[13] for row in found[0]] == [
        *({"label": ODD}, {"label": ODD}, {"label": "eat"}),
        *({"grain": 41}, {"grain": 41}, {"loaf": 41}, {"grain": 41}, {"loaf": 7}),
    ]


@pytest.mark.parametrize("n", [1, MANY])
async def test_units_that_were_done_before_count_and_have_no_tasks(db: Database, n: int) -> None:
    tree = Tree(
        branches=[Branch("read", sealed=True, done=3), Branch("bake", [Leaf(Bake(1))], sealed=True)], sealed=True
    )
    async with db.transaction() as tx:
        planted = await plant_trees(tx, [a_seed(tree=tree)] * n)
        read = [await group_progress(tx, one.branches[0]) for one in planted]
        assert {(one.status, one.completed, one.total) for one in read} == {("completed", 3, 3)}
        assert {await status(tx, one.root) for one in planted} == {"pending"}
        await audit(tx)
        await ground(tx, n, queues=("oven",))
        assert {await status(tx, one.root) for one in planted} == {"completed"}
