"""Opens whole families of tasks: a group, the groups in it, and their tasks, for many at once in a few statements."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import islice
from operator import itemgetter
from typing import Any, Literal, NamedTuple

from gristmill.db import Tx, escape_for_copy, queries
from gristmill.ids import ScopeId, TaskId
from gristmill.queue.letters import Letter, encode, lane_of, queue_of, to_json
from gristmill.queue.send import COPY_FROM, MAX_PAYLOAD, check_names, ensure_queues, reserve_ids

SQL = queries("gristmill.queue", "trees.sql")
Counts = tuple[int, int, int]  # of tasks that are pending, completed and skipped
AT_ONCE = 2_000  # trees that are written together: enough to be fast, few enough to hold in memory
PIECE = 64  # trees whose rows are made at a time: the server writes some while we make the next
SUBJECT = 999_999_999_999_999_999  # in the letters of a tree: the number of what the tree is about


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
    """A group within the group of a tree. A sealed one gets no more tasks.

    Units that were `done` before the tree was planted count as completed, and have no tasks.
    """

    label: str
    leaves: Sequence[Leaf] = ()
    sealed: bool = False
    done: int = 0

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
    """A group with everything that it holds when it is opened.

    Many seeds may share one tree. Its letters have SUBJECT where the number belongs that each seed is about.
    """

    leaves: Sequence[Leaf] = ()
    branches: Sequence[Branch] = ()
    followers: Sequence[Follower] = ()
    sealed: bool = False
    priority: int = 0  # of its group: where what belongs to it stands in line
    foreground: bool = False


@dataclass(frozen=True, slots=True)
class Seed:
    """A tree that is to be planted: what it is about, and whose it is."""

    tree: Tree
    subject: int
    label: str
    owner: str
    scope: ScopeId


class Planted(NamedTuple):
    """The ids of a tree."""

    root: TaskId
    branches: list[TaskId]
    leaves: list[TaskId]  # of the tree itself, not those of its branches


# What differs from seed to seed, by its place among the values of a seed; the ids of its tasks come behind.
NOW, SCOPE, OWNER, ABOUT, LABEL, FIRST_ID = range(6)

TASK = (
    *("id", "created_at", "started_at", "finished_at", "parent", "after", "scope", "lane", "priority", "attempts"),
    *("outcome", "wait", "foreground", "awaited", "queue", "kind", "owner", "payload", "error"),
)
GROUP = ("id", "parent", "finished_at", "scope", "pending", "completed", "skipped", "done", "sealed", "status")
TICKET = ("id", "seq", "lane", "queue")


class _Cell(NamedTuple):
    """A value of a row as text, with `%s` for each value of the seed."""

    format: str
    values: tuple[int, ...] = ()


Row = Sequence[_Cell | None]


class _Table:
    """The rows of one table that every seed of a tree has."""

    def __init__(self, columns: Sequence[str], rows: Sequence[Mapping[str, _Cell | None]]) -> None:
        self._columns = columns
        self._rows = [[row[name] for name in columns] for row in rows]

    @cached_property
    def _copied(self) -> tuple[str, Callable[[Sequence[Any]], tuple[Any, ...]]]:
        """All rows as COPY reads them: one format, and what picks its values (every row has two of them at least)."""
        lines = [
            "\t".join(["\\N" if cell is None else escape_for_copy(cell.format) for cell in row]) for row in self._rows
        ]
        places = [place for row in self._rows for cell in row if cell is not None for place in cell.values]
        return "".join([f"{line}\n" for line in lines]), itemgetter(*places)

    def copy(self, values: Sequence[Any]) -> str:
        if not self._rows:
            return ""
        format_, pick = self._copied
        return format_ % pick(values)

    def insert(self, values: Sequence[Any]) -> list[dict[str, str | None]]:
        return [
            {
                name: None if cell is None else cell.format % tuple([values[place] for place in cell.values])
                for name, cell in zip(self._columns, row, strict=True)
            }
            for row in self._rows
        ]


class _Pattern:
    """A tree, ready to be written down for any number of seeds: what is the same for all of them is reckoned once."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._next = FIRST_ID
        self._tasks: list[Mapping[str, _Cell | None]] = []
        self._groups: list[Mapping[str, _Cell | None]] = []
        self.opened: list[tuple[int, int, str]] = []  # place of the id, lane and queue of what can be claimed at once
        self.counts: Counter[tuple[str, str]] = Counter()  # tasks by queue and outcome
        self._add_tree(tree)
        self.size = self._next - FIRST_ID
        tickets = [
            {"id": _id(place), "seq": _id(place), "lane": _constant(lane), "queue": _constant(queue)}
            for place, lane, queue in self.opened
        ]
        self.tables = _Table(TASK, self._tasks), _Table(GROUP, self._groups), _Table(TICKET, tickets)

    def describe(self, ids: Sequence[TaskId]) -> Planted:
        behind = 1 + len(self._tree.branches)
        return Planted(ids[0], list(ids[1:behind]), list(ids[behind : behind + len(self._tree.leaves)]))

    def _take_place(self) -> int:
        self._next += 1
        return self._next - 1

    def _add_tree(self, tree: Tree) -> None:
        """A group comes before what is in it: whoever locks several goes from high ids to low ones."""
        awaited = {one.after for one in tree.followers}
        root = self._take_place()
        branches = [self._take_place() for _ in tree.branches]
        opened = [branch.is_open for branch in tree.branches]
        pending, completed, skipped = _count(tree.leaves)
        pending, completed = pending + sum(opened), completed + len(opened) - sum(opened)
        self._add_group(root, None, None, (pending, completed, skipped), 0, tree.sealed, None in awaited)
        for place, (id_, branch) in enumerate(zip(branches, tree.branches, strict=True)):
            counts = _count(branch.leaves)
            self._add_group(id_, root, branch.label, counts, branch.done, branch.sealed, place in awaited)
        for leaf in tree.leaves:
            self._add_task(leaf, parent=root, outcome=leaf.outcome, error=leaf.reason)
        for id_, branch in zip(branches, tree.branches, strict=True):
            for leaf in branch.leaves:
                self._add_task(leaf, parent=id_, outcome=leaf.outcome, error=leaf.reason)
        for one in tree.followers:
            before, waits = (
                (root, pending > 0 or not tree.sealed)
                if one.after is None
                else (branches[one.after], opened[one.after])
            )
            self._add_task(one, after=before if waits else None)

    def _add_group(
        self, id_: int, parent: int | None, label: str | None, counts: Counts, done: int, sealed: bool, awaited: bool
    ) -> None:
        """The group of the tree itself has the label of its seed."""
        is_open = counts[0] > 0 or not sealed
        ended = None if is_open else _Cell("%s", (NOW,))
        pending, completed, skipped = counts
        self._groups.append(
            {
                **{"id": _id(id_), "parent": _id(parent), "finished_at": ended, "scope": _Cell("%s", (SCOPE,))},
                **{"pending": _constant(pending), "completed": _constant(completed + done)},
                **{"skipped": _constant(skipped), "done": _constant(done), "sealed": _constant(sealed)},
                "status": _constant("pending" if is_open else "completed"),
            }
        )
        payload = _Cell('{"label":%s}', (LABEL,)) if label is None else _constant(to_json({"label": label}))
        urgency = (self._tree.priority, self._tree.foreground) if parent is None else (0, False)
        self._add_row(
            id_,
            parent,
            urgency,
            finished_at=ended,
            outcome=None if is_open else _constant("completed"),
            wait=_constant("children") if is_open else None,
            awaited=_constant(awaited),
            kind=_constant("group"),
            payload=payload,
        )

    def _add_task(
        self,
        one: Leaf | Follower,
        *,
        parent: int | None = None,
        after: int | None = None,
        outcome: str | None = None,
        error: str | None = None,
    ) -> None:
        id_, queue, lane = self._take_place(), queue_of(one.letter), lane_of(None, one.priority, one.foreground)
        ended = _Cell("%s", (NOW,)) if outcome else None
        self._add_row(
            id_,
            parent,
            (one.priority, one.foreground),
            started_at=ended,
            finished_at=ended,
            after=_id(after),
            lane=_constant(lane),
            attempts=_constant(1 if outcome else 0),
            outcome=_constant(outcome),
            wait=None if after is None else _constant("after"),
            queue=_constant(queue),
            kind=_constant(one.letter.kind),
            payload=_about(encode(one.letter, MAX_PAYLOAD).decode()),
            error=_constant(error),
        )
        self.counts[queue, outcome or "opened"] += 1
        if outcome is None and after is None:
            self.opened.append((id_, lane, queue))

    def _add_row(self, id_: int, parent: int | None, urgency: tuple[int, bool], **cells: _Cell | None) -> None:
        priority, foreground = map(_constant, urgency)
        zero = _constant(0)
        common = {
            **{"id": _id(id_), "parent": _id(parent), "priority": priority, "foreground": foreground},
            **{"created_at": _Cell("%s", (NOW,)), "scope": _Cell("%s", (SCOPE,)), "owner": _Cell("%s", (OWNER,))},
            **{"lane": zero, "attempts": zero, "awaited": _constant(False)},
        }
        self._tasks.append({**dict.fromkeys(TASK), **common, **cells})


def _constant(value: str | int | None) -> _Cell | None:
    """A cell that is the same for all seeds."""
    return None if value is None else _Cell(str(value).replace("%", "%%"))


def _id(place: int | None) -> _Cell | None:
    return None if place is None else _Cell("%s", (place,))


def _about(payload: str) -> _Cell:
    """A letter, with the number that its seed is about."""
    pieces = [piece.replace("%", "%%") for piece in payload.split(str(SUBJECT))]
    return _Cell("%s".join(pieces), (ABOUT,) * (len(pieces) - 1))


def _count(leaves: Sequence[Leaf]) -> Counts:
    """How many of these are pending, completed and skipped."""
    outcomes = [leaf.outcome for leaf in leaves]
    return outcomes.count(None), outcomes.count("completed"), outcomes.count("skipped")


class _Sown(NamedTuple):
    """A seed with its pattern and its ids."""

    seed: Seed
    pattern: _Pattern
    ids: list[TaskId]

    def list_values(self, now: str, escape: Callable[[str], str]) -> list[Any]:
        seed = self.seed
        return [now, seed.scope, escape(seed.owner), seed.subject, escape(to_json(seed.label)), *self.ids]


async def plant_trees(tx: Tx, seeds: Sequence[Seed]) -> list[Planted]:
    """Write down these groups with their tasks. All of it is new: no lock is needed, and nobody is waited for."""
    patterns: dict[int, _Pattern] = {}
    for seed in seeds:
        if id(seed.tree) not in patterns:
            patterns[id(seed.tree)] = _Pattern(seed.tree)
    planted: list[Planted] = []
    for start in range(0, len(seeds), AT_ONCE):
        some = [(seed, patterns[id(seed.tree)]) for seed in seeds[start : start + AT_ONCE]]
        planted += await _plant(tx, some)
    return planted


async def _plant(tx: Tx, seeds: Sequence[tuple[Seed, _Pattern]]) -> list[Planted]:
    ids, now = await reserve_ids(tx, sum([pattern.size for _, pattern in seeds]))
    rest = iter(ids)
    sown = [_Sown(seed, pattern, list(islice(rest, pattern.size))) for seed, pattern in seeds]
    await ensure_queues(tx, check_names({queue for _, pattern in seeds for queue, _ in pattern.counts}))
    if tx.seen_from is None and len(ids) >= COPY_FROM:
        await _copy(tx, sown, now)
    else:
        await _insert(tx, sown, now)
    await _count_planted(tx, sown)
    return [one.pattern.describe(one.ids) for one in sown]


async def _copy(tx: Tx, sown: Sequence[_Sown], now: datetime) -> None:
    values = [one.list_values(now.isoformat(), escape_for_copy) for one in sown]
    for table, query in enumerate((SQL["copy_tasks"], SQL["copy_groups"], SQL["copy_tickets"])):
        await tx.copy(query, _make_pieces(table, sown, values))


def _make_pieces(table: int, sown: Sequence[_Sown], values: Sequence[Sequence[Any]]) -> Iterator[bytes]:
    for start in range(0, len(sown), PIECE):
        some = zip(sown[start : start + PIECE], values[start : start + PIECE], strict=True)
        yield "".join([one.pattern.tables[table].copy(own) for one, own in some]).encode()


async def _insert(tx: Tx, sown: Sequence[_Sown], now: datetime) -> None:
    for table, query in enumerate((SQL["insert_tasks"], SQL["insert_groups"], SQL["insert_tickets"])):
        rows = [row for one in sown for row in one.pattern.tables[table].insert(one.list_values(now.isoformat(), str))]
        if rows:
            await tx.execute(query, rows=to_json(rows))


async def _count_planted(tx: Tx, sown: Sequence[_Sown]) -> None:
    """Count the tasks of each queue, and tell workers of those that they can claim."""
    first: dict[tuple[str, int], TaskId] = {}
    counts: Counter[tuple[str, ScopeId, str]] = Counter()
    for seed, pattern, ids in sown:
        for place, lane, queue in pattern.opened:
            first.setdefault((queue, lane), ids[place - FIRST_ID])
        for (queue, outcome), n in pattern.counts.items():
            counts[queue, seed.scope, outcome] += n
    places = sorted({(queue, scope) for queue, scope, _ in counts})
    await tx.execute(
        SQL["count_planted"],
        queues=[queue for queue, _ in places],
        scopes=[scope for _, scope in places],
        opened=[counts[*place, "opened"] for place in places],
        completed=[counts[*place, "completed"] for place in places],
        skipped=[counts[*place, "skipped"] for place in places],
        told=[f"ready {queue} {lane} {id_}" for (queue, lane), id_ in first.items()],
    )
