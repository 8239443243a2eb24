"""The whole life of tasks and groups, in any order of events, agrees with a small model."""

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

from engine import Grind, audit, claimed, claimed_suspect, journal_of, promote, registered, settled, travel
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from model import DONE, OPEN, Group, Model, Task

from gristmill.db import Database, Tx
from gristmill.ids import TaskId
from gristmill.queue.claim import Claim
from gristmill.queue.groups import open_group, seal
from gristmill.queue.letters import Envelope, Unique, lane
from gristmill.queue.operate.cancel import cancel
from gristmill.queue.operate.revive import retry
from gristmill.queue.outcome import Bury, Done, Outcome, Retry, Skip, Snooze, Stop
from gristmill.queue.send import send_many
from gristmill.queue.upkeep.rescuer import rescue
from gristmill.queue.worker.give_back import give_back_claims

HOUR = timedelta(hours=1)
FOREVER = timedelta(days=36_500)
TABLES = (
    "task, ticket, lease, task_group, serial_head, worker, task_failure, task_progress, "
    "queue_tally, queue_depth, dead_tally, queue_health, queue"
)
THOROUGH = settings.get_current_profile_name() == "thorough"
BRIEF = settings(max_examples=30, stateful_step_count=30, print_blob=True)
FULL = settings(settings.default, stateful_step_count=60)

INDEX = st.integers(0, 1000)


def test_the_queue_agrees_with_its_model(url: str) -> None:
    with asyncio.Runner() as runner:
        db = Database(url)
        runner.run(db.__aenter__())
        try:
            run_state_machine_as_test(
                lambda: Mill(runner, db),
                settings=settings(FULL if THOROUGH else BRIEF, deadline=None, suppress_health_check=list(HealthCheck)),
            )
        finally:
            runner.run(db.__aexit__(None, None, None))


class Mill(RuleBasedStateMachine):
    """Does everything twice: in the database and in the model."""

    def __init__(self, runner: asyncio.Runner, db: Database) -> None:
        super().__init__()
        self.runner, self.db = runner, db
        self.model = Model()
        self.claims: dict[int, Claim] = {}
        self.workers: list[int] = []
        self.processes = 0

    def act(self, doing: Any, *args: Any, **options: Any) -> Any:
        """In a transaction of its own, at the model's hour."""

        async def acting() -> Any:
            async with self.db.transaction() as tx:
                await travel(tx, HOUR * self.model.hour)
                return await doing(tx, *args, **options)

        coroutine: Coroutine[Any, Any, Any] = acting()
        return self.runner.run(coroutine)

    @initialize()
    def start(self) -> None:
        self.act(cleared)
        self.register()

    @rule()
    def register(self) -> None:
        if len(self.workers) < 3:
            self.processes += 1
            name = f"process {self.processes}"
            self.workers.append(self.act(registered, process=name, lease=FOREVER))

    # --- sending

    @rule(n=st.integers(1, 3), priority=st.sampled_from([0, 0, 5]), foreground=st.booleans(), into=st.none() | INDEX)
    def send_plain(self, n: int, priority: int, foreground: bool, into: int | None) -> None:
        parent = self.open_group_at(into)
        envelope = Envelope(Grind(), priority=priority, foreground=foreground, parent=parent)
        for id in self.act(send_many, [envelope] * n):
            self.model.send(Task(id, lane(envelope), parent))

    @rule(
        into=st.none() | INDEX,
        after=st.none() | INDEX,
        serial=st.none() | st.sampled_from("ab"),
        unique=st.none() | st.sampled_from("xy"),
        conflict=st.sampled_from(["ignore", "replace"]),
        hours=st.sampled_from([0, 0, 1, 2]),
        priority=st.sampled_from([0, 5]),
        most=st.sampled_from([None, 1, 2]),
    )
    def send_instructed(
        self,
        into: int | None,
        after: int | None,
        serial: str | None,
        unique: str | None,
        conflict: Any,
        hours: int,
        priority: int,
        most: int | None,
    ) -> None:
        if unique and conflict == "replace":  # a replacement may not change hands: only what is free can be replaced
            into = after = serial = None
        parent, first = self.open_group_at(into), self.prerequisite_at(after)
        envelope = Envelope(
            Grind(),
            priority=priority,
            parent=parent,
            after=first,
            serial_key=serial,
            max_attempts=most,
            delay=HOUR * hours if hours else None,
            unique=Unique(unique, conflict) if unique else None,
        )
        (id,) = self.act(send_many, [envelope])
        due = self.model.hour + hours if hours else 0
        holder = self.model.holder_of(unique) if unique else None
        if holder is not None:
            assert id == holder.id
            if conflict == "replace" and holder.holder is None:
                self.model.replace(holder, lane(envelope), due)
        elif envelope.plain:
            self.model.send(Task(id, lane(envelope), parent, max_attempts=most or 3))
        else:
            self.model.send(Task(id, lane(envelope), parent, first, serial, unique, due, most or 3))

    @rule(into=st.none() | INDEX)
    def open_group(self, into: int | None) -> None:
        parent = self.open_group_at(into)
        id = self.act(open_group, parent=parent)
        self.model.groups[id] = Group(id, parent)

    @precondition(lambda self: self.unsealed())
    @rule(which=INDEX)
    def seal(self, which: int) -> None:
        group = pick(self.unsealed(), which)
        self.act(seal, TaskId(group.id))
        self.model.seal(group)

    # --- working

    @precondition(lambda self: self.workers)
    @rule(n=st.integers(1, 4), who=INDEX)
    def claim(self, n: int, who: int) -> None:
        worker = pick(self.workers, who)
        claims = self.act(claimed, worker, n)
        expected = self.model.line()[:n]
        in_order = sorted(claims, key=lambda claim: (claim.lane, claim.seq))
        assert [claim.id for claim in in_order] == [task.id for task in expected]
        self.take(worker, claims)

    @precondition(lambda self: self.workers)
    @rule(who=INDEX)
    def claim_suspect(self, who: int) -> None:
        worker = pick(self.workers, who)
        claim = self.act(claimed_suspect, worker)
        expected = self.model.line(suspects=True)[:1]
        assert ([claim.id] if claim else []) == [task.id for task in expected]
        self.take(worker, [claim] if claim else [])

    def take(self, worker: int, claims: list[Claim]) -> None:
        for claim in claims:
            self.model.claim(self.model.tasks[claim.id], worker)
            assert claim.attempt == self.model.tasks[claim.id].attempts
            self.claims[claim.id] = claim

    @precondition(lambda self: self.claims)
    @rule(
        who=INDEX,
        n=st.integers(1, 3),
        hours=st.sampled_from([0, 1]),
        how=st.sampled_from(["done", "done", "result", "skip", "snooze", "retry", "bury", "stop"]),
    )
    def settle(self, who: int, n: int, how: str, hours: int) -> None:
        worker, claims = self.in_hand(who, n)
        outcomes: dict[str, Outcome] = {
            "done": Done(),
            "result": Done(result=1),
            "skip": Skip("empty"),
            "snooze": Snooze(HOUR * hours),
            "retry": Retry(HOUR * hours, "busy"),
            "bury": Bury("stone"),
            "stop": Stop(),
        }
        self.act(settled, worker, claims, outcomes[how])
        tasks = [self.model.tasks[claim.id] for claim in claims]
        ends = {"done": "completed", "result": "completed", "skip": "skipped", "bury": "failed", "stop": "cancelled"}
        if how in ends:
            self.model.end(tasks, ends[how])
        else:
            self.model.again(tasks, hours, counts=how == "retry")

    @precondition(lambda self: self.claims)
    @rule(who=INDEX, n=st.integers(1, 3))
    def give_back(self, who: int, n: int) -> None:
        worker, claims = self.in_hand(who, n)
        self.act(give_back_claims, worker, claims)
        tasks = [self.model.tasks[claim.id] for claim in claims]
        for task in tasks:
            self.model.put_back(task)
        asked = [task for task in tasks if task.cancel]
        if asked:
            self.model.end(asked, "cancelled")

    @precondition(lambda self: self.workers)
    @rule(who=INDEX, begun=st.integers(0, 4))
    def lose_a_worker(self, who: int, begun: int) -> None:
        worker = pick(self.workers, who)
        self.workers.remove(worker)
        held = self.model.held(worker)
        started = held[:begun]
        process = self.act(process_of, worker)
        self.act(rescue, gone=[process], read=journal_of(*(self.claims[task.id] for task in started)))
        sentenced = [t for t in held if t.cancel]
        buried = [
            t for t in started if not t.cancel and len(started) == 1 and t.suspect and t.attempts >= t.max_attempts
        ]
        for task in held:
            del self.claims[task.id]
            if task not in sentenced and task not in buried:
                self.model.put_back(task, started=task in started)
        for tasks, outcome in ((buried, "failed"), (sentenced, "cancelled")):
            for task in tasks:
                self.model.leave(task)
                task.outcome = outcome
        if buried or sentenced:
            self.model.conclude([task.id for task in (*buried, *sentenced)])

    # --- operating

    @precondition(lambda self: self.model.tasks)
    @rule(which=INDEX)
    def cancel(self, which: int) -> None:
        id = pick([*self.model.tasks, *self.model.groups], which)
        self.act(cancel, [TaskId(id)])
        self.model.cancel([id])

    @precondition(lambda self: self.model.tasks)
    @rule(which=INDEX, any_outcome=st.booleans())
    def retry(self, which: int, any_outcome: bool) -> None:
        ended = [task for task in self.model.tasks.values() if task.outcome is not None]
        task = pick(ended or list(self.model.tasks.values()), which)
        revived = self.act(retry, [TaskId(task.id)], any_outcome=any_outcome)
        wanted = task.outcome is not None and (any_outcome or task.outcome not in DONE)
        taken = task.unique is not None and self.model.holder_of(task.unique) is not None
        stranded = task.after is not None and self.model.outcome(task.after) == "cancelled"
        assert bool(revived.tasks) == (wanted and not taken and not stranded)
        if revived.tasks:
            self.model.retry(task)

    @rule(hours=st.sampled_from([0, 1, 3]))
    def wait_and_promote(self, hours: int) -> None:
        self.model.hour += hours
        self.act(promoted)
        self.model.promote()

    # --- what must always be true

    @invariant()
    def agrees(self) -> None:
        tasks, groups = self.act(seen)
        assert tasks == {
            t.id: (t.status, t.wait, t.attempts, t.suspect, t.cancel, t.holder) for t in self.model.tasks.values()
        }
        assert groups == {
            g.id: (g.sealed, self.model.group_status(g), g.outcome, self.model.counts(g.id))
            for g in self.model.groups.values()
        }

    # --- choosing

    def unsealed(self) -> list[Group]:
        return [group for group in self.model.groups.values() if not group.sealed]

    def open_group_at(self, index: int | None) -> TaskId | None:
        return TaskId(pick(self.unsealed(), index).id) if index is not None and self.unsealed() else None

    def prerequisite_at(self, index: int | None) -> TaskId | None:
        usable = [id for id in (*self.model.tasks, *self.model.groups) if self.model.outcome(id) != "cancelled"]
        return TaskId(pick(usable, index)) if index is not None and usable else None

    def in_hand(self, who: int, n: int) -> tuple[int, list[Claim]]:
        """Up to `n` claims of one worker, who lets go of them."""
        first = pick(list(self.claims), who)
        worker = self.model.tasks[first].holder
        assert worker is not None
        tasks = [task.id for task in self.model.held(worker)][:n]
        return worker, [self.claims.pop(id) for id in tasks]


def pick(choices: list[Any], index: int) -> Any:
    return choices[index % len(choices)]


async def cleared(tx: Tx) -> None:
    await tx.execute(f"TRUNCATE {TABLES}")


async def process_of(tx: Tx, worker: int) -> str:
    return await tx.value("SELECT process FROM worker WHERE id = %(id)s", id=worker)


async def promoted(tx: Tx) -> None:
    await promote(tx, 500)


async def seen(tx: Tx) -> tuple[dict[int, tuple[Any, ...]], dict[int, tuple[Any, ...]]]:
    """What the database holds, as the model would say it."""
    await audit(tx)
    rows = await tx.all(
        "SELECT id, status, wait, attempts, suspect, cancel_requested, CASE WHEN status = 'processing' THEN worker END"
        "  FROM tasks WHERE queue IS NOT NULL"
    )
    groups = await tx.all("SELECT g.*, t.outcome AS ended FROM task_group g JOIN task t USING (id)")
    names = (*OPEN, *DONE, "failed", "cancelled")
    return (
        {row.id: tuple(row[1:]) for row in rows},
        {g.id: (g.sealed, g.status, g.ended, {name: n for name in names if (n := getattr(g, name))}) for g in groups},
    )
