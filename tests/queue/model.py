"""What the queue promises, in plain Python: a small model that the real one is compared with, step by step."""

from collections.abc import Iterable
from dataclasses import dataclass, field

OPEN = ("pending", "processing")
DONE = ("completed", "skipped")


@dataclass
class Group:
    id: int
    parent: int | None
    sealed: bool = False
    outcome: str | None = None


@dataclass
class Task:
    id: int
    lane: int
    parent: int | None = None
    after: int | None = None
    serial: str | None = None
    unique: str | None = None
    due: int = 0  # the hour from which it may run
    max_attempts: int = 3
    place: int | None = None  # in its lane; None: it has no ticket
    wait: str | None = None
    outcome: str | None = None
    attempts: int = 0
    kept: int = 0  # attempts when it last lost its ticket
    holder: int | None = None  # the worker
    suspect: bool = False
    cancel: bool = False

    @property
    def status(self) -> str:
        return self.outcome or ("processing" if self.holder is not None else "pending")


@dataclass
class Model:
    """Every move returns nothing and leaves the truth behind."""

    hour: int = 0
    tasks: dict[int, Task] = field(default_factory=dict[int, Task])
    groups: dict[int, Group] = field(default_factory=dict[int, Group])
    heads: dict[str, int] = field(default_factory=dict[str, int])
    places: int = 0

    # --- asking

    def outcome(self, id: int) -> str | None:
        return self.tasks[id].outcome if id in self.tasks else self.groups[id].outcome

    def line(self, *, suspects: bool = False) -> list[Task]:
        ready = [t for t in self.tasks.values() if t.place is not None and t.holder is None and t.suspect == suspects]
        return sorted(ready, key=lambda t: (t.lane, t.place))

    def held(self, worker: int) -> list[Task]:
        return [t for t in self.tasks.values() if t.holder == worker]

    def counts(self, group: int) -> dict[str, int]:
        counts: dict[str, int] = {}
        for one in (*self.tasks.values(), *self.groups.values()):
            if one.parent == group:
                status = one.status if isinstance(one, Task) else self.group_status(one)
                counts[status] = counts.get(status, 0) + 1
        return counts

    def group_status(self, group: Group) -> str:
        counts = self.counts(group.id)
        if counts.get("processing"):
            return "processing"
        if counts.get("pending") or not group.sealed:
            return "pending"
        if counts.get("failed"):
            return "failed"
        if counts.get("cancelled") and not counts.get("completed") and not counts.get("skipped"):
            return "cancelled"
        return "completed"

    def holder_of(self, key: str) -> Task | None:
        return next((t for t in self.tasks.values() if t.unique == key and t.outcome is None), None)

    # --- moving

    def send(self, task: Task) -> None:
        self.tasks[task.id] = task
        if task.after is not None and self.outcome(task.after) not in DONE:
            task.wait = "after"
        else:
            self.admit([task])
        self._reopen_groups()

    def replace(self, task: Task, lane: int, due: int) -> None:
        task.lane, task.due = lane, due
        if task.place is not None:
            task.place, task.suspect, task.attempts = None, False, task.kept
        if task.wait not in ("after", "serial"):
            task.wait = None
            self.admit([task])

    def admit(self, tasks: Iterable[Task]) -> None:
        ordered = sorted(tasks, key=lambda t: (t.lane, t.id))
        for task in ordered:
            if task.due > self.hour:
                task.wait = "time"
                continue
            if task.serial is not None and self.heads.setdefault(task.serial, task.id) != task.id:
                task.wait = "serial"
                continue
            task.wait = None
            self.places += 1
            task.place = self.places

    def promote(self) -> None:
        self.admit([t for t in self.tasks.values() if t.wait == "time" and t.due <= self.hour])

    def claim(self, task: Task, worker: int) -> None:
        task.holder = worker
        task.attempts += 1

    def put_back(self, task: Task, *, started: bool = False) -> None:
        task.holder = None
        task.attempts -= not started
        task.suspect = task.suspect or started

    def leave(self, task: Task) -> None:
        """Without a ticket, and held by no worker."""
        task.holder = task.place = None
        task.suspect = task.cancel = False
        task.kept = task.attempts

    def end(self, tasks: Iterable[Task], outcome: str) -> None:
        ended = list(tasks)
        for task in ended:
            self.leave(task)
            task.outcome, task.wait = outcome, None
        self.conclude([task.id for task in ended])

    def again(self, tasks: Iterable[Task], hours: int, *, counts: bool) -> None:
        """Later; those that were to be cancelled are, instead."""
        cancelled: list[Task] = []
        for task in tasks:
            cancel = task.cancel
            task.attempts -= not counts
            self.leave(task)
            task.due = self.hour + hours
            if cancel:
                task.outcome = "cancelled"
                cancelled.append(task)
            else:
                task.wait = "time"
        if cancelled:
            self.conclude([task.id for task in cancelled])

    def conclude(self, ids: list[int]) -> None:
        ended = [*ids, *self._ended_groups()]
        nexts: list[Task] = []
        for key, head in list(self.heads.items()):
            if head in ended:
                waiting = [t for t in self.tasks.values() if t.serial == key and t.wait == "serial"]
                if waiting:
                    first = min(waiting, key=lambda t: (t.lane, t.id))
                    self.heads[key] = first.id
                    nexts.append(first)
                else:
                    del self.heads[key]
        behind = [t for t in self.tasks.values() if t.after in ended and t.wait == "after"]
        self.admit([*nexts, *(t for t in behind if t.after is not None and self.outcome(t.after) in DONE)])
        stranded = [t for t in behind if t.after is not None and self.outcome(t.after) == "cancelled"]
        if stranded:
            self.end(stranded, "cancelled")

    def seal(self, group: Group) -> None:
        group.sealed = True
        self.conclude(self._ended_groups())

    def cancel(self, ids: Iterable[int]) -> None:
        groups = self._below(ids)
        meant = [t for t in self.tasks.values() if t.outcome is None and (t.id in ids or t.parent in groups)]
        for task in meant:
            if task.holder is not None:
                task.cancel = True
        pending = [t for t in meant if t.holder is None]
        if pending:
            self.end(pending, "cancelled")
        for group in groups:
            self.groups[group].sealed = True
        self.conclude(self._ended_groups())

    def retry(self, task: Task) -> None:
        task.outcome = task.wait = None
        task.attempts = task.kept = task.due = 0
        self._reopen_groups()
        if task.after is not None and self.outcome(task.after) not in DONE:
            task.wait = "after"
        else:
            self.admit([task])

    def _below(self, ids: Iterable[int]) -> set[int]:
        found = {id for id in ids if id in self.groups}
        while more := {g.id for g in self.groups.values() if g.parent in found} - found:
            found |= more
        return found

    def _ended_groups(self) -> list[int]:
        """Those that have just come to an end, the innermost first."""
        ended: list[int] = []
        for group in sorted(self.groups.values(), key=lambda g: -g.id):
            status = self.group_status(group)
            if status not in OPEN and group.outcome is None:
                group.outcome = status
                ended.append(group.id)
        return ended

    def _reopen_groups(self) -> None:
        for group in sorted(self.groups.values(), key=lambda g: -g.id):
            if self.group_status(group) in OPEN:
                group.outcome = None
