"""The state machine of items against a small model: whatever happens in whatever order, both agree."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule, run_state_machine_as_test

from gristmill.db import Database
from gristmill.errors import Refused
from gristmill.ids import WorkItemId
from gristmill.qualifier.adding import ItemWish, add_item, answer, cancel_item, reopen_item, say
from gristmill.qualifier.execution import ItemRun, _ask, _end_in_error, _finish, begin_run, claim_item, put_back
from gristmill.qualifier.executor import Checkpoint, ExecutorResult, ItemQuestion
from gristmill.qualifier.model import STATES, ChildItem, ItemEvent, Route, WorkItem
from gristmill.qualifier.moving import move_item
from gristmill.qualifier.routing import apply_route
from gristmill.qualifier.scheduler import dispatch_item
from gristmill.qualifier.store import count_states, get_item, list_events, list_items
from gristmill.scopes import GLOBAL

FAR = datetime(2030, 1, 1, tzinfo=UTC)
CLOSED = ("done", "completed")


@dataclass
class Known:
    """What the model knows of an item."""

    state: str
    unheard: int = 0  # messages since its run began
    parent: int | None = None
    decided: bool = False  # it was executed once, or is a part
    children: list[int] = field(default_factory=list)
    copies: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Seen:
    """What the database says after a step, of one moment."""

    items: list[WorkItem]
    events: dict[int, list[ItemEvent]]  # of the newest items
    counted: list[Any]
    in_line: list[Any]


RANK = {"info_only": 1, "handled": 1, "later": 2, "now": 3, "decompose": 3}


def rank(one: Known, outcome: str | None) -> int:
    if one.state in ("ready_for_qualification", "error"):
        return 0
    if one.state == "scheduled" or outcome == "scheduled":
        return 2
    return 1 if one.state == "done" else 3


class Machine(RuleBasedStateMachine):
    """Every rule is one transaction; what it should change is said in the model first."""

    ids: Any = Bundle("ids")
    db: Database
    loop: asyncio.AbstractEventLoop

    def __init__(self) -> None:
        super().__init__()
        self.model: dict[int, Known] = {}
        self.runs: dict[int, ItemRun] = {}
        self._seen: Seen | None = None
        self.do(self._clear)

    def do(self, action: Any, *given: Any, **more: Any) -> Any:
        self._seen = None

        async def call() -> Any:
            async with self.db.transaction() as tx:
                return await action(tx, *given, **more)

        return self.loop.run_until_complete(call())

    async def _clear(self, tx: Any) -> None:
        await tx.execute("DELETE FROM item")
        await tx.execute("DELETE FROM item_tally")

    def load(self, id_: int) -> WorkItem:
        return self.do(get_item, WorkItemId(id_))

    # --- rules

    @rule(target=ids, foreground=st.booleans())
    def add(self, foreground: bool) -> int:
        item = self.do(add_item, GLOBAL, ItemWish("Do it.", foreground=foreground), by="ana")
        self.model[item.id] = Known("ready_for_qualification")
        return item.id

    @rule(target=ids)
    def add_scheduled(self) -> int:
        item = self.do(add_item, GLOBAL, ItemWish("Do it.", scheduled_at=FAR), by="ana")
        self.model[item.id] = Known("scheduled")
        return item.id

    @rule(id_=ids)
    def dispatch(self, id_: int) -> None:
        item = self.load(id_)
        if item.state == "scheduled":
            self.do(dispatch_item, item, FAR)
            self.model[id_].state = "ready_for_qualification"

    @rule(id_=ids, to=st.sampled_from(["info_only", "handled", "now", "later"]))
    def decide(self, id_: int, to: Any) -> None:
        item, known = self.load(id_), self.model[id_]
        rises = to in ("now", "later") if known.state == "completed" else RANK[to] > rank(known, item.outcome)
        self.do(apply_route, item, Route(to, scheduled_at=FAR), decision=None, why="w", by="rules")
        if not rises:
            return
        if to == "now":
            self._end_copies(known, item)
            self._enter(id_, "ready_for_execution")
        elif to == "later":
            new = max(one.id for one in self.do(list_items, limit=500))
            self.model[new] = Known("scheduled")
            known.copies.append(new)
            if known.state != "completed":
                self._enter(id_, "done")
        else:
            self._enter(id_, "done")

    def _end_copies(self, known: Known, item: WorkItem) -> None:
        if item.outcome == "scheduled":
            for copy in known.copies:
                if self.model[copy].state == "scheduled":
                    self.model[copy].state = "done"

    @rule(target=ids, id_=ids, n=st.integers(2, 6))
    def decompose(self, id_: int, n: int) -> Any:
        item, known = self.load(id_), self.model[id_]
        if known.state != "ready_for_qualification":
            return multiple()
        parts = [ChildItem(f"part {i}", "Do it.") for i in range(n)]
        self.do(apply_route, item, Route("decompose", children=parts), decision=None, why="w", by="rules")
        known.children = sorted(one.id for one in self.do(list_items, limit=500) if one.parent == id_)
        for child in known.children:
            self.model[child] = Known("ready_for_execution", parent=id_, decided=True)
        self._enter(id_, "waiting_for_children")
        return multiple(*known.children)

    @rule(id_=ids)
    def claim(self, id_: int) -> None:
        item, known = self.load(id_), self.model[id_]
        claimed = self.do(claim_item, item.id, item.task) if item.task else None
        assert (claimed is not None) == (known.state in ("ready_for_execution", "dispatched", "running"))
        if claimed is None:
            return
        begun = self.do(begin_run, claimed, lambda run, done, data: Checkpoint(done, data))
        assert begun is not None
        self.runs[id_] = begun
        known.state, known.unheard, known.decided = "running", 0, True

    @rule(id_=ids)
    def interrupt(self, id_: int) -> None:
        known, run = self.model[id_], self.runs.pop(id_, None)
        if run is not None:
            assert self.do(put_back, run.item, why="w") == (known.state == "running")
            if known.state == "running":
                known.state = "ready_for_execution"

    @rule(id_=ids)
    def finish(self, id_: int) -> None:
        known, run = self.model[id_], self.runs.pop(id_, None)
        if run is not None:
            self.do(lambda tx: _finish(tx, run=run, result=ExecutorResult("r"), executor="e"))
            if known.state == "running":
                self._enter(id_, "ready_for_execution" if known.unheard else "completed")

    @rule(id_=ids)
    def ask(self, id_: int) -> None:
        known, run = self.model[id_], self.runs.pop(id_, None)
        if run is not None:
            self.do(lambda tx: _ask(tx, run=run, question=ItemQuestion("q"), executor="e"))
            if known.state == "running":
                self._enter(id_, "ready_for_execution" if known.unheard else "waiting_for_user")

    @rule(id_=ids)
    def fail(self, id_: int) -> None:
        known, run = self.model[id_], self.runs.pop(id_, None)
        if run is not None:
            self.do(lambda tx: _end_in_error(tx, run=run, reason="it broke"))
            if known.state == "running":
                self._enter(id_, "error")

    @rule(id_=ids)
    def speak(self, id_: int) -> None:
        known = self.model[id_]
        self.do(say, WorkItemId(id_), "Hello.", by="ana")
        known.unheard += 1
        if known.state in ("waiting_for_user", *CLOSED):
            self._enter(id_, "ready_for_execution")

    @rule(id_=ids)
    def reply(self, id_: int) -> None:
        known = self.model[id_]
        try:
            self.do(answer, WorkItemId(id_), "Yes.", by="ana")
        except Refused:
            assert known.state != "waiting_for_user"
            return
        assert known.state == "waiting_for_user"
        self._enter(id_, "ready_for_execution")

    @rule(id_=ids)
    def cancel(self, id_: int) -> None:
        known = self.model[id_]
        try:
            self.do(cancel_item, WorkItemId(id_), by="ana")
        except Refused:
            assert known.state in CLOSED
            return
        assert known.state not in CLOSED
        self._enter(id_, "done")

    @rule(id_=ids)
    def reopen(self, id_: int) -> None:
        known = self.model[id_]
        try:
            self.do(reopen_item, WorkItemId(id_), by="ana")
        except Refused:
            assert known.state not in (*CLOSED, "error")
            return
        assert known.state in (*CLOSED, "error")
        self._enter(id_, "ready_for_execution" if known.decided else "ready_for_qualification")
        if known.parent is not None and self.model[known.parent].state in ("error", "completed"):
            self._enter(known.parent, "waiting_for_children")

    # --- the model

    def _enter(self, id_: int, state: str) -> None:
        known = self.model[id_]
        known.state = state
        if state in ("done", "completed", "error") and known.parent is not None:
            self._conclude(known.parent)

    def _conclude(self, parent: int) -> None:
        states = [self.model[child].state for child in self.model[parent].children]
        if self.model[parent].state == "waiting_for_children" and all(
            one in ("done", "completed", "error") for one in states
        ):
            self._enter(parent, "error" if "error" in states else "completed")

    # --- what always holds

    @property
    def seen(self) -> Seen:
        """All invariants look at the same rows: a transaction for each of them would take longer than the rules."""
        return self._seen or self._look()

    def _look(self) -> Seen:
        newest = list(self.model)[-3:]

        async def look(tx: Any) -> Seen:
            events = {id_: await list_events(tx, WorkItemId(id_), limit=1000) for id_ in newest}
            return Seen(await list_items(tx, limit=500), events, await count_states(tx), await open_tasks(tx))

        found: Seen = self.do(look)
        self._seen = found
        return found

    @invariant()
    def agrees_with_the_model(self) -> None:
        found = {item.id: item.state for item in self.seen.items}
        assert found == {id_: known.state for id_, known in self.model.items()}

    @invariant()
    def every_change_has_its_event(self) -> None:
        for id_, events in self.seen.events.items():
            assert events[0].was is None
            assert events[-1].state == self.model[id_].state
            assert all(one.state == two.was for one, two in pairwise(events))

    @invariant()
    def counters_are_exact(self) -> None:
        counted = Counter[str]()
        for row in self.seen.counted:
            counted[row.state] += row.n
        assert +counted == Counter(known.state for known in self.model.values())

    @invariant()
    def an_item_in_line_has_an_open_task_of_its_own(self) -> None:
        rows = self.seen.in_line
        assert all(row.open for row in rows), rows


async def open_tasks(tx: Any) -> Any:
    return await tx.all(
        "SELECT i.id, i.state, t.outcome IS NULL AND t.id IS NOT NULL AS open"
        "  FROM item i LEFT JOIN task t ON t.id = i.task"
        " WHERE i.state IN ('ready_for_qualification', 'ready_for_execution', 'dispatched', 'running')"
    )


def test_items_do_what_the_model_says(url: str) -> None:
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        db = Database(url)
        loop.run_until_complete(db.__aenter__())

        class Bound(Machine):
            pass

        Bound.db, Bound.loop = db, loop
        quick = settings(
            max_examples=40, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        )
        try:
            run_state_machine_as_test(Bound, settings=quick)  # type: ignore[no-untyped-call]
        finally:
            loop.run_until_complete(db.__aexit__(None, None, None))


# --- transitions

ALLOWED = {
    "new": {"ready_for_qualification", "qualifying", "done", "scheduled", "ready_for_execution", "error"},
    "ready_for_qualification": {"qualifying", "done", "scheduled", "ready_for_execution", "error"},
    "qualifying": {"ready_for_qualification", "done", "scheduled", "ready_for_execution", "error"},
    "scheduled": {"ready_for_qualification", "ready_for_execution", "done", "error"},
    "ready_for_execution": {"dispatched", "done", "error"},
    "dispatched": {"running", "ready_for_execution", "done", "error"},
    "running": {"completed", "waiting_for_user", "ready_for_execution", "done", "error"},
    "waiting_for_user": {"ready_for_execution", "done", "error"},
    "waiting_for_children": {"completed", "done", "error"},
    "done": {"ready_for_qualification", "scheduled", "ready_for_execution"},
    "completed": {"ready_for_qualification", "ready_for_execution"},
    "error": {"ready_for_qualification", "scheduled", "ready_for_execution", "done"},
}
DECOMPOSABLE = {"dispatched", "running", "waiting_for_user", "waiting_for_children"}


@pytest.mark.parametrize("was", STATES)
async def test_the_database_knows_which_state_follows_which(db: Database, was: str) -> None:
    async with db.transaction() as tx:
        following = {to for to in STATES if await tx.value("SELECT may_move(%(was)s, %(to)s)", was=was, to=to)}
    parts = set() if was in DECOMPOSABLE else {"waiting_for_children"}
    assert following == ALLOWED[was] | parts


async def test_a_move_from_another_state_changes_nothing(db: Database) -> None:
    async with db.transaction() as tx:
        item = await add_item(tx, GLOBAL, ItemWish("Do it."), by="ana")
        assert not await move_item(tx, item.id, "running", since=["dispatched"], why="w", by="b")
        assert not await move_item(tx, WorkItemId(item.id + 1), "done", since=STATES, why="w", by="b")
        assert await get_item(tx, item.id) == item
