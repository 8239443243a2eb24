"""Bulk actions: one action on all tasks that a filter fits, previewed, run in portions, stopped, and undone."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, ClassVar, Literal, NamedTuple

import msgspec

from gristmill.db import Column, Database, Tx, queries
from gristmill.errors import Refused, Unknown
from gristmill.ids import ScopeId, TaskId
from gristmill.queue.letters import Unique, to_json
from gristmill.queue.operate.changes import KINDS, Locked, lock, lock_with_followers, read_was
from gristmill.queue.operate.counts import count_tasks
from gristmill.queue.operate.lookup import Task
from gristmill.queue.operate.search import Spot, TaskFilter, load_tasks, look_for
from gristmill.queue.send import send
from gristmill.queue.sender import find_sender
from gristmill.scopes import Scope

SQL = queries("gristmill.queue.operate", "bulk.sql")
PORTION = 500  # tasks of one transaction
LOOK = 0.5  # seconds that a portion looks for tasks that fit
PACE = 1_500.0  # tasks a second, as long as nothing was measured
SAMPLES = 10
MOST_COUNTED = 20_000

Action = Literal["retry", "cancel", "purge", "priority", "foreground", "position"]


@dataclass(frozen=True)
class RunBulk:
    """Runs portions of a bulk action."""

    kind: ClassVar[str] = "bulk.run"
    bulk: int


@dataclass(frozen=True)
class BulkPreview:
    """How many tasks an action would change (at least, if not `exact`), some of them, and about how long it takes."""

    count: int
    exact: bool
    samples: tuple[Task, ...]
    duration: timedelta


@dataclass(frozen=True)
class Bulk:
    """One row of the table `bulk_action`."""

    id: int
    scope: ScopeId
    everywhere: bool
    created_at: datetime
    finished_at: datetime | None
    created_by: str
    action: Action
    filter_text: str
    value: int | None
    status: str
    step: int
    spot: Any
    last_id: TaskId
    expected: int | None
    examined: int
    changed: int
    refused: int
    undone: int
    problem: str | None
    now: datetime

    @property
    def filter(self) -> TaskFilter:
        return msgspec.json.decode(self.filter_text, type=TaskFilter)

    @property
    def is_open(self) -> bool:
        return self.finished_at is None

    @property
    def can_undo(self) -> bool:
        ended = self.status in ("done", "stopped", "failed")
        return ended and self.changed > 0 and KINDS[self.action].undo is not None

    @property
    def start(self) -> Spot | None:
        return None if self.spot is None else msgspec.convert(self.spot, Spot)


def check_action(action: Action, wanted: TaskFilter, value: int | None) -> TaskFilter:
    """The filter with the status that the action is for, or one sentence about what is wrong."""
    if action not in KINDS:
        raise Refused(f"“{action}” is no action; there are {', '.join(KINDS)}.")
    statuses = KINDS[action].statuses
    if wanted.status is not None and wanted.status not in statuses:
        raise Refused(f"{action} is for tasks that are {' or '.join(statuses)}, not {wanted.status}.")
    if action == "priority" and (value is None or not -100 <= value <= 100):
        raise Refused("The priority goes from -100 to 100, higher first.")
    if action == "foreground" and value not in (0, 1):
        raise Refused("The foreground is 1 or 0: whether people wait for these tasks.")
    if action in ("retry", "cancel", "purge") and value is not None:
        raise Refused(f"{action} takes no value.")
    if wanted.fingerprint is not None:
        return wanted
    return replace(wanted, status=wanted.status or statuses[0])


async def preview_bulk(tx: Tx, action: Action, wanted: TaskFilter, value: int | None = None) -> BulkPreview:
    """Changes nothing."""
    wanted = check_action(action, wanted, value)
    look = await look_for(tx, wanted, limit=MOST_COUNTED, groups=False)
    count, exact = len(look.ids), look.next is None
    if not exact and (counted := await _read_counters(tx, wanted)) is not None:
        count, exact = counted, True
    pace = await tx.value(SQL["pace"], Decimal, action=action)
    duration = timedelta(seconds=round(count / float(pace or PACE), 1))
    return BulkPreview(count, exact, await load_tasks(tx, look.ids[:SAMPLES]), duration)


async def _read_counters(tx: Tx, wanted: TaskFilter) -> int | None:
    """The exact number, if the filter names nothing but a queue, a status and a scope."""
    if wanted != TaskFilter(queue=wanted.queue, status=wanted.status, scope=wanted.scope) or wanted.status is None:
        return None
    counts = await count_tasks(tx, scope=wanted.scope)
    return sum(getattr(one, wanted.status) for one in counts if wanted.queue in (None, one.queue))


async def start_bulk(
    tx: Tx, action: Action, wanted: TaskFilter, *, value: int | None = None, by: str, expected: int | None = None
) -> int:
    """Begin it: a worker runs it in portions, on the tasks that are there now; its number.

    It does what the caller may do: for a client, on its own tasks.
    """
    wanted = check_action(action, wanted, value)
    scope = await find_sender(tx)
    bulk = await tx.only_value(
        SQL["add"],
        int,
        scope=scope,
        everywhere=tx.seen_from is None,
        by=by,
        action=action,
        filter=to_json(wanted),
        value=value,
        expected=expected,
    )
    await _send_runner(tx, bulk, scope)
    return bulk


async def _send_runner(tx: Tx, bulk: int, scope: ScopeId) -> None:
    await send(tx, RunBulk(bulk), scope=scope, foreground=True, unique=Unique(_key_of(bulk)))


def _key_of(bulk: int) -> str:
    return f"bulk:{bulk}"


async def get_bulk(tx: Tx, bulk: int) -> Bulk:
    row = await tx.one(SQL["get"], Bulk, id=bulk)
    if row is None:
        raise Unknown(f"There is no bulk action {bulk}.")
    return row


async def list_bulks(tx: Tx, *, limit: int = 50, before: int | None = None) -> list[Bulk]:
    """The latest first."""
    return await tx.all(SQL["latest"], Bulk, limit=limit, before=before)


async def find_runner(tx: Tx, bulk: int) -> TaskId | None:
    """The task that runs the next portions: one can ask why it waits."""
    return await tx.value(SQL["runner"], Column[TaskId], key=_key_of(bulk))


async def stop_bulk(tx: Tx, bulk: int) -> None:
    """After the portion that runs now; what was changed stays changed."""
    if await tx.one(SQL["stop"], id=bulk) is None:
        found = await get_bulk(tx, bulk)
        if found.status != "stopping":
            raise Refused(f"Bulk action {bulk} is {found.status}: only a running one can be stopped.")


async def undo_bulk(tx: Tx, bulk: int) -> None:
    """Make every changed task as it was before, as far as nothing happened to it since."""
    found = await tx.one(SQL["lock"], Bulk, id=bulk)
    if found is None:
        raise Unknown(f"There is no bulk action {bulk}.")
    if KINDS[found.action].undo is None:
        raise Refused(f"Bulk action {bulk} removed tasks: that cannot be undone.")
    if not found.can_undo:
        raise Refused(
            f"Bulk action {bulk} is {found.status}, with {found.changed} tasks changed: nothing can be undone."
        )
    await tx.one(SQL["undo"], id=bulk)
    await _send_runner(tx, bulk, found.scope)


# --- portions


async def run_portion(db: Database, bulk: int) -> Bulk:
    """Do the next portion, in a transaction of its own, with the rights of the one who began it; how it stands then.

    The portion, and the mark where the next one begins, commit together: whoever runs it, and however often it is
    killed, each portion is done once.
    """
    viewpoint = await _find_viewpoint(db, bulk)
    try:
        async with db.transaction(seen_from=viewpoint) as tx:
            found = await tx.one(SQL["lock"], Bulk, id=bulk)
            if found is not None and found.is_open:
                await _run(tx, found)
            return await get_bulk(tx, bulk)
    except Refused as refused:
        if isinstance(refused, Unknown):
            raise
        async with db.transaction() as tx:
            await tx.execute(SQL["finish"], id=bulk, status="failed", problem=str(refused))
            return await get_bulk(tx, bulk)


async def _find_viewpoint(db: Database, bulk: int) -> Scope | None:
    async with db.reading() as tx:
        found = await get_bulk(tx, bulk)
        if found.everywhere:
            return None
        row = await tx.one(SQL["viewpoint"], Scope, scope=found.scope)
    if row is None:
        raise Unknown(f"There is no bulk action {bulk}.")
    return row


async def _run(tx: Tx, found: Bulk) -> None:
    match found.status:
        case "stopping":
            await tx.execute(SQL["finish"], id=found.id, status="stopped", problem=None)
        case "undoing":
            await _undo(tx, found)
        case _:
            await _apply(tx, found)


async def _apply(tx: Tx, found: Bulk) -> None:
    kind = KINDS[found.action]
    look = await look_for(
        tx, found.filter, limit=PORTION, start=found.start, budget=LOOK, last_id=found.last_id, groups=False
    )
    tasks = await (lock_with_followers if kind.with_followers else lock)(tx, look.ids) if look.ids else []
    changed = set(await kind.apply(tx, tasks, found.value)) if tasks else set[TaskId]()
    if kind.undo is not None:
        await tx.execute(
            SQL["remember"], bulk=found.id, changes=to_json([_keep(one) for one in tasks if one.id in changed])
        )
    spot = None if look.next is None else to_json(look.next)
    refused = len(look.ids) - len(changed.intersection(look.ids))
    counts = {"examined": look.looked, "changed": len(changed), "refused": refused}
    await tx.execute(SQL["advance"], id=found.id, spot=spot, **counts)


def _keep(one: Locked) -> dict[str, Any]:
    return {"task": one.id, "scope": one.scope, "was": msgspec.Raw(one.was.encode())}


class _ChangeRow(NamedTuple):
    """A task that was changed, and what of it was different before."""

    task: TaskId
    was: Any


async def _undo(tx: Tx, found: Bulk) -> None:
    undo = KINDS[found.action].undo
    assert undo is not None
    rows = await tx.all(SQL["recall"], _ChangeRow, bulk=found.id, n=PORTION)
    undone = await undo(tx, {row.task: read_was(row.was) for row in rows}, found.value) if rows else 0
    await tx.execute(SQL["take_back"], id=found.id, undone=undone, more=len(rows) == PORTION)
