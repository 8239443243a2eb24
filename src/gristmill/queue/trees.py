"""Opens whole families of tasks: a group, the groups in it, and their tasks, for many at once in a few statements."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from gristmill.db import Tx, queries
from gristmill.ids import ScopeId, TaskId
from gristmill.queue.letters import Letter, encode, lane_of, queue_of, to_json
from gristmill.queue.send import MAX_PAYLOAD, check_names, ensure_queues, reserve_ids

SQL = queries("gristmill.queue", "trees.sql")
Counts = tuple[int, int, int]  # of tasks that are pending, completed and skipped
AT_ONCE = 2_000  # trees that are written together: enough to be fast, few enough to hold in memory


@dataclass(frozen=True, slots=True)
class Leaf:
    """A task of a group. One with an `outcome` is written down as done: somebody did its work before it was sent."""

    letter: Letter
    priority: int = 0
    foreground: bool = False
    outcome: Literal["completed", "skipped"] | None = None
    reason: str | None = None  # why it was skipped


@dataclass(frozen=True, slots=True)
class Branch:
    """A group within the group of a tree. A sealed one gets no more tasks."""

    label: str
    leaves: Sequence[Leaf] = ()
    sealed: bool = False

    @property
    def is_open(self) -> bool:
        return not self.sealed or any(leaf.outcome is None for leaf in self.leaves)


@dataclass(frozen=True, slots=True)
class Follower:
    """A task outside of the groups that comes after a branch, by its place, or after the whole tree."""

    letter: Letter
    after: int | None = None  # None: the tree
    priority: int = 0
    foreground: bool = False


@dataclass(frozen=True, slots=True)
class Tree:
    """A group with everything that it holds when it is opened; all of it has one owner and one scope."""

    label: str
    owner: str
    scope: ScopeId
    leaves: Sequence[Leaf] = ()
    branches: Sequence[Branch] = ()
    followers: Sequence[Follower] = ()
    sealed: bool = False


class Planted(NamedTuple):
    """The ids of a tree."""

    root: TaskId
    branches: list[TaskId]
    leaves: list[TaskId]  # of the tree itself, not those of its branches


class _Task(NamedTuple):
    """A row of `task`; in the order of `copy_tasks`."""

    id: TaskId
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    parent: TaskId | None
    after: TaskId | None
    scope: ScopeId
    lane: int
    priority: int
    attempts: int
    outcome: str | None
    wait: str | None
    foreground: bool
    awaited: bool
    queue: str | None
    kind: str
    owner: str
    payload: str
    error: str | None


class _Group(NamedTuple):
    """A row of `task_group`; in the order of `copy_groups`."""

    id: TaskId
    parent: TaskId | None
    finished_at: datetime | None
    scope: ScopeId
    pending: int
    completed: int
    skipped: int
    sealed: bool
    status: str


class _Ticket(NamedTuple):
    """A row of `ticket`."""

    id: TaskId
    seq: int
    lane: int
    queue: str


class _Rows:
    """The rows of many trees, as they are gathered; for thousands of them, so it does without much ado."""

    def __init__(self, ids: Iterator[TaskId], now: datetime) -> None:
        self._ids = ids
        self._now = now
        self.tasks: list[_Task] = []
        self.groups: list[_Group] = []
        self.tickets: list[_Ticket] = []
        self.counts: Counter[tuple[str, ScopeId, str]] = Counter()  # tasks by queue, scope, and outcome

    def add_tree(self, tree: Tree) -> Planted:
        """A group comes before what is in it: whoever locks several goes from high ids to low ones."""
        awaited = {one.after for one in tree.followers}
        root = next(self._ids)
        branches = [next(self._ids) for _ in tree.branches]
        opened = [branch.is_open for branch in tree.branches]
        pending, completed, skipped = _count(tree.leaves)
        pending, completed = pending + sum(opened), completed + len(opened) - sum(opened)
        self._add_group(root, None, tree, tree.label, (pending, completed, skipped), tree.sealed, None in awaited)
        for place, (id_, branch) in enumerate(zip(branches, tree.branches, strict=True)):
            self._add_group(id_, root, tree, branch.label, _count(branch.leaves), branch.sealed, place in awaited)
        leaves = [self._add_leaf(leaf, root, tree) for leaf in tree.leaves]
        for id_, branch in zip(branches, tree.branches, strict=True):
            for leaf in branch.leaves:
                self._add_leaf(leaf, id_, tree)
        for one in tree.followers:
            before, waits = (
                (root, pending > 0 or not tree.sealed)
                if one.after is None
                else (branches[one.after], opened[one.after])
            )
            self._add_follower(one, before if waits else None, tree)
        return Planted(root, branches, leaves)

    def _add_group(
        self, id_: TaskId, parent: TaskId | None, tree: Tree, label: str, counts: Counts, sealed: bool, awaited: bool
    ) -> None:
        is_open = counts[0] > 0 or not sealed
        now, scope = self._now, tree.scope
        ended = None if is_open else now
        self.groups.append(_Group(id_, parent, ended, scope, *counts, sealed, "pending" if is_open else "completed"))
        outcome, wait = (None, "children") if is_open else ("completed", None)
        payload = to_json({"label": label})
        self.tasks.append(
            _Task(
                *(id_, now, None, ended, parent, None, scope, 0, 0, 0, outcome, wait, False, awaited),
                *(None, "group", tree.owner, payload, None),
            )
        )

    def _add_leaf(self, leaf: Leaf, parent: TaskId, tree: Tree) -> TaskId:
        if leaf.outcome is None:
            return self._add_task(leaf, tree, parent=parent)
        return self._add_task(leaf, tree, parent=parent, done=self._now, outcome=leaf.outcome, error=leaf.reason)

    def _add_follower(self, follower: Follower, after: TaskId | None, tree: Tree) -> None:
        self._add_task(follower, tree, after=after)

    def _add_task(
        self,
        one: Leaf | Follower,
        tree: Tree,
        *,
        parent: TaskId | None = None,
        after: TaskId | None = None,
        done: datetime | None = None,
        outcome: str | None = None,
        error: str | None = None,
    ) -> TaskId:
        id_, queue, lane = next(self._ids), queue_of(one.letter), lane_of(None, one.priority, one.foreground)
        payload = encode(one.letter, MAX_PAYLOAD).decode()
        wait, attempts = "after" if after else None, 1 if done else 0
        self.tasks.append(
            _Task(
                *(id_, self._now, done, done, parent, after, tree.scope, lane, one.priority, attempts, outcome, wait),
                *(one.foreground, False, queue, one.letter.kind, tree.owner, payload, error),
            )
        )
        self.counts[queue, tree.scope, outcome or "opened"] += 1
        if done is None and after is None:
            self.tickets.append(_Ticket(id_, id_, lane, queue))
        return id_


def _count(leaves: Sequence[Leaf]) -> Counts:
    """How many of these are pending, completed and skipped."""
    outcomes = [leaf.outcome for leaf in leaves]
    return outcomes.count(None), outcomes.count("completed"), outcomes.count("skipped")


async def plant_trees(tx: Tx, trees: Sequence[Tree]) -> list[Planted]:
    """Write down these groups with their tasks. All of it is new: no lock is needed, and nobody is waited for."""
    planted: list[Planted] = []
    for start in range(0, len(trees), AT_ONCE):
        planted += await _plant(tx, trees[start : start + AT_ONCE])
    return planted


async def _plant(tx: Tx, trees: Sequence[Tree]) -> list[Planted]:
    ids, now = await reserve_ids(tx, sum(map(_count_tasks, trees)))
    rows = _Rows(iter(ids), now)
    planted = [rows.add_tree(tree) for tree in trees]
    await ensure_queues(tx, check_names({queue for queue, _, _ in rows.counts}))
    await tx.add_rows(SQL["copy_tasks"], SQL["insert_tasks"], rows.tasks)
    await tx.add_rows(SQL["copy_groups"], SQL["insert_groups"], rows.groups)
    await tx.add_rows(SQL["copy_tickets"], SQL["insert_tickets"], rows.tickets)
    await _count_planted(tx, rows)
    return planted


def _count_tasks(tree: Tree) -> int:
    inner = sum([1 + len(branch.leaves) for branch in tree.branches])
    return 1 + inner + len(tree.leaves) + len(tree.followers)


async def _count_planted(tx: Tx, rows: _Rows) -> None:
    """Count the tasks of each queue, and tell workers of those that they can claim."""
    first: dict[tuple[str, int], TaskId] = {}
    for ticket in rows.tickets:
        first.setdefault((ticket.queue, ticket.lane), ticket.id)
    places = sorted({(queue, scope) for queue, scope, _ in rows.counts})
    await tx.execute(
        SQL["count_planted"],
        queues=[queue for queue, _ in places],
        scopes=[scope for _, scope in places],
        opened=[rows.counts[*place, "opened"] for place in places],
        completed=[rows.counts[*place, "completed"] for place in places],
        skipped=[rows.counts[*place, "skipped"] for place in places],
        told=[f"ready {queue} {lane} {id_}" for (queue, lane), id_ in first.items()],
    )
