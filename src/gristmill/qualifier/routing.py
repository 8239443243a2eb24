"""Sends an item where a decision says: to the archive, into the line, to a later time, to another item, into parts.

A decision that is made again, because a new version or another mail came, may only raise what an item has: nothing that
is in line is taken out of it by itself.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from gristmill.db import Tx
from gristmill.errors import Permanent
from gristmill.ids import DecisionId, WorkItemId
from gristmill.qualifier.identifiers import copy_identifiers
from gristmill.qualifier.line import send_run
from gristmill.qualifier.model import (
    AT_WORK,
    FEWEST_PARTS,
    MOST_PARTS,
    UNDECIDED,
    URGENCIES,
    ChildItem,
    ItemState,
    Outcome,
    Route,
    Urgency,
    WorkItem,
)
from gristmill.qualifier.moving import move_item, note_event
from gristmill.qualifier.store import SQL, ItemDraft, add_message, hold_item, list_copies, make_item
from gristmill.queue import open_group, seal

DECIDABLE: tuple[ItemState, ...] = (*UNDECIDED, "error")  # any route is a step forward
RANKS = {"info_only": 1, "handled": 1, "consolidate": 1, "later": 2, "now": 3, "decompose": 3}


@dataclass(frozen=True)
class Decided:
    """A decision as it is written into events: which one, why, and by what."""

    decision: DecisionId | None
    why: str
    by: str


async def apply_route(tx: Tx, item: WorkItem, route: Route, *, decision: DecisionId | None, why: str, by: str) -> None:
    """Write what a route means for an item; a route below what the item has leaves an event, and nothing else."""
    said = Decided(decision, why, by)
    route = guard_route(item, route)
    if not rises(item, route):
        await _stay(tx, item, route, said)
        return
    match route.to:
        case "info_only" | "handled":
            await _close(tx, item, route.to, said)
        case "now":
            await start_work(tx, item, route, said)
        case "later":
            await _schedule_copy(tx, item, route, said)
        case "consolidate":
            await _consolidate(tx, item, route, said)
        case "decompose":
            await _decompose(tx, item, route, said)


def guard_route(item: WorkItem, route: Route) -> Route:
    """An item of which something could not be read is never filed by silence: somebody must look."""
    return replace(route, to="now") if not item.is_whole and route.to == "info_only" else route


def rank_item(item: WorkItem) -> int:
    """How far the item was taken by earlier decisions."""
    if item.state in DECIDABLE:
        return 0
    if item.state == "scheduled" or item.outcome == "scheduled":
        return 2
    return 1 if item.state == "done" else 3


def rises(item: WorkItem, route: Route) -> bool:
    """Whether a route asks for more than the item has; work that is done may be asked for again."""
    if item.state == "completed":
        return route.to in ("now", "later", "decompose")
    return RANKS[route.to] > rank_item(item)


def raise_urgency(one: Urgency, other: Urgency) -> Urgency:
    return URGENCIES[max(URGENCIES.index(one), URGENCIES.index(other))]


def choose_deadline(one: datetime | None, other: datetime | None) -> datetime | None:
    """The nearer of two."""
    return min(filter(None, (one, other)), default=None)


async def _stay(tx: Tx, item: WorkItem, route: Route, said: Decided) -> None:
    """Decided again, with no more to do than before: only urgency and deadline may have become nearer."""
    await raise_item(tx, item, route.urgency, route.deadline)
    if said.decision is not None:
        await tx.execute(SQL["set_decision"], id=item.id, decision=said.decision)
    if item.outcome == "scheduled" and route.to == "later" and route.scheduled_at is not None:
        await _hasten_copy(tx, item, route.scheduled_at, said)
    await note_event(tx, item.id, why=f"Decided again, stays as it is: {said.why}", by=said.by)


async def raise_item(tx: Tx, item: WorkItem, urgency: Urgency, deadline: datetime | None) -> None:
    """Let an item become more urgent, never less."""
    await tx.execute(
        SQL["raise_item"],
        id=item.id,
        urgency=raise_urgency(item.urgency, urgency),
        deadline=choose_deadline(item.deadline, deadline),
    )


async def _close(tx: Tx, item: WorkItem, outcome: Outcome, said: Decided) -> None:
    await move_item(
        tx, item.id, "done", since=[item.state], outcome=outcome, why=said.why, by=said.by, decision=said.decision
    )


async def start_work(tx: Tx, item: WorkItem, route: Route, said: Decided) -> None:
    """Into the line of the executor; copies that waited for a later time are not needed any more."""
    urgency = raise_urgency(item.urgency, route.urgency) if item.state not in DECIDABLE else route.urgency
    for copy in await list_copies(tx, item.id) if item.outcome == "scheduled" else ():
        why = f"Item {item.id} is worked on now."
        await move_item(
            tx, copy.id, "done", since=["scheduled"], outcome="consolidated", why=why, by=said.by, merged_into=item.id
        )
    await move_item(
        tx,
        item.id,
        "ready_for_execution",
        since=[item.state],
        why=said.why,
        by=said.by,
        urgency=urgency,
        deadline=choose_deadline(item.deadline, route.deadline),
        decision=said.decision,
        task=await send_run(tx, item, urgency),
    )


async def _schedule_copy(tx: Tx, item: WorkItem, route: Route, said: Decided) -> None:
    """The copy waits for its time; the item itself is done, unless its work was done before."""
    if route.scheduled_at is None:
        raise Permanent("A route to a later time must say which: scheduled_at is missing.")
    copy = await make_item(
        tx,
        ItemDraft(
            scope=item.scope,
            type="scheduled",
            title=item.title,
            state="scheduled",
            why=f"A copy of item {item.id}, for later: {said.why}",
            by=said.by,
            document=item.document,
            text=item.text,
            note=item.note,
            urgency=route.urgency,
            written_at=item.written_at,
            deadline=route.deadline,
            scheduled_at=route.scheduled_at,
            zone=item.zone,
            origin=item.id,
            warning=item.warning,
        ),
    )
    await copy_identifiers(tx, item.id, copy)
    if item.state == "completed":
        await note_event(tx, item.id, why=f"Item {copy} is a copy of it for later: {said.why}", by=said.by)
    elif item.state == "done":  # it was filed: it stays done, and says now that its copy waits
        changed = {"deadline": route.deadline, "decision": said.decision}
        await tx.execute(SQL["set_outcome"], id=item.id, outcome="scheduled", **changed)
        await note_event(tx, item.id, why=said.why, by=said.by)
    else:
        changed = {"urgency": route.urgency, "deadline": route.deadline, "decision": said.decision}
        await move_item(
            tx, item.id, "done", since=[item.state], outcome="scheduled", why=said.why, by=said.by, **changed
        )


async def _hasten_copy(tx: Tx, item: WorkItem, scheduled_at: datetime, said: Decided) -> None:
    for copy in await list_copies(tx, item.id):
        if copy.state == "scheduled" and copy.scheduled_at and copy.scheduled_at > scheduled_at:
            await tx.execute(SQL["set_schedule"], id=copy.id, scheduled_at=scheduled_at, warning=None)
            await note_event(tx, copy.id, why=f"Its time is nearer than before: {said.why}", by=said.by)


async def _consolidate(tx: Tx, item: WorkItem, route: Route, said: Decided) -> None:
    """Give what an item says to an item about the same thing, which is opened again if it was completed.

    If that item was closed in another way meanwhile, this one is work itself.
    """
    target = await hold_item(tx, route.into) if route.into is not None and route.into != item.id else None
    if target is None or target.state == "done":
        await start_work(tx, item, route, said)
        return
    told = f"Item {item.id} is about the same thing: {item.title}"
    await add_message(tx, target.id, "item", told, by=said.by, document=item.document)
    if target.state == "completed":
        by_whom = f"Item {item.id} “{item.title}” is about the same thing and is to be done now."
        await start_work(tx, target, route, replace(said, decision=target.decision, why=by_whom))
    await raise_item(tx, target, route.urgency, route.deadline)
    await note_event(tx, target.id, why=f"Item {item.id} was consolidated into it: {said.why}", by=said.by)
    await _wake_scheduled(tx, target, route, said)
    await move_item(
        tx,
        item.id,
        "done",
        since=[item.state],
        outcome="consolidated",
        why=said.why,
        by=said.by,
        merged_into=target.id,
        decision=said.decision,
    )


async def _wake_scheduled(tx: Tx, target: WorkItem, route: Route, said: Decided) -> None:
    """An item that waits for its time is due earlier if the other one is; without a time, it is worked on now."""
    if target.state != "scheduled" or target.cron is not None or target.scheduled_at is None:
        return
    if route.scheduled_at is None:
        await start_work(tx, target, replace(route, to="now"), said)
    elif route.scheduled_at < target.scheduled_at:
        await tx.execute(SQL["set_schedule"], id=target.id, scheduled_at=route.scheduled_at, warning=None)


async def _decompose(tx: Tx, item: WorkItem, route: Route, said: Decided) -> None:
    """Make two to six items of one; it waits until all of them have ended."""
    if not FEWEST_PARTS <= len(route.children) <= MOST_PARTS:
        raise Permanent(
            f"An item is decomposed into {FEWEST_PARTS} to {MOST_PARTS} parts, not into {len(route.children)}."
        )
    group = await open_group(tx, label=f"item {item.id}: {item.title[:100]}", scope=item.scope)
    await move_item(
        tx,
        item.id,
        "waiting_for_children",
        since=[item.state],
        why=said.why,
        by=said.by,
        urgency=route.urgency,
        deadline=choose_deadline(item.deadline, route.deadline),
        decision=said.decision,
        task=group,
    )
    for child in route.children:
        id_ = await _make_child(tx, item, child, route, said)
        part = await hold_item(tx, id_)
        assert part is not None, "it was made in this transaction"
        task = await send_run(tx, part, parent=group)
        await tx.execute(SQL["set_task"], id=id_, task=task)
    await seal(tx, group)


async def _make_child(tx: Tx, item: WorkItem, child: ChildItem, route: Route, said: Decided) -> WorkItemId:
    return await make_item(
        tx,
        ItemDraft(
            scope=item.scope,
            type=item.type,
            title=child.title,
            state="ready_for_execution",
            why=f"A part of item {item.id}: {said.why}",
            by=said.by,
            document=item.document,
            text=child.text,
            note=item.note,
            foreground=item.foreground,
            urgency=route.urgency,
            written_at=item.written_at,
            deadline=child.deadline or route.deadline,
            zone=item.zone,
            parent=item.id,
        ),
    )


async def close_handled(tx: Tx, item: WorkItem, *, why: str, by: str) -> bool:
    """We have answered it ourselves: nothing is left to do."""
    since: tuple[ItemState, ...] = (*UNDECIDED, *AT_WORK, "scheduled", "error")
    return await move_item(tx, item.id, "done", since=since, outcome="handled", why=why, by=by)
