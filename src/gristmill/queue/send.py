"""Puts letters into the line, inside the caller's transaction."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from gristmill.db import Tx
from gristmill.errors import Refused
from gristmill.ids import TaskId
from gristmill.queue.letters import Envelope, Letter, dumped, enclosed, encode, lane, queue_of
from gristmill.queue.statements import SQL, array

MAX_PAYLOAD = 1_000_000
AT_ONCE = (
    5_000  # rows in one statement: large enough to be fast, small enough for its parameters to stay in memory
)


async def send(tx: Tx, letter: Letter, **outside: Any) -> TaskId:
    """Send one letter; `outside` is what Envelope takes: priority, run_at, after, unique …"""
    (task,) = await send_many(tx, [Envelope(letter, **outside)])
    return task


async def send_many(
    tx: Tx, letters: Iterable[Letter | Envelope], *, max_payload: int = MAX_PAYLOAD
) -> list[TaskId]:
    """Send any number of letters; their task ids come back in the same order.

    Under a unique key that is taken, the id is that of the task which holds it.
    """
    envelopes = [enclosed(letter) for letter in letters]
    await tx.execute(SQL["ensure_queues"], names=sorted({_queue(one) for one in envelopes}))
    await _join_groups(tx, envelopes)
    ids: list[TaskId] = []
    for plain, run in groupby(envelopes, key=lambda one: one.plain):
        ids += await (_send_plain if plain else _send_instructed)(tx, list(run), max_payload)
    return ids


async def open_group(
    tx: Tx, *, parent: TaskId | None = None, owner: str | None = None, label: str | None = None
) -> TaskId:
    """A group: a task without a handler whose status follows from its children."""
    if parent is not None:
        await _join(tx, {parent: 1})
    payload = dumped({"label": label}) if label else None
    return await tx.value(SQL["open_group"], parent=parent, owner=owner, payload=payload)


async def seal(tx: Tx, group: TaskId) -> None:
    """No more children will come; a group that has nothing left open reaches its end here."""
    row = await tx.one(SQL["seal"], id=group)
    if row is None:
        await _known_group(tx, group)
        return
    if row.pending + row.processing == 0 and await tx.one(SQL["sealed_empty"], id=group):
        await tx.one(SQL["conclude"], ids=array([group]), was=row.status)


async def _known_group(tx: Tx, group: TaskId) -> None:
    if not await tx.all(SQL["lock_groups"], ids=[group]):
        raise Refused(f"There is no group {group}.")


def _queue(envelope: Envelope) -> str:
    return envelope.queue or queue_of(envelope.letter)


async def _join_groups(tx: Tx, envelopes: Sequence[Envelope]) -> None:
    # those under a unique key join when they are known to be new
    counts = Counter(one.parent for one in envelopes if one.parent is not None and one.unique is None)
    if counts:
        await _join(tx, counts)


async def _join(tx: Tx, counts: dict[TaskId, int] | Counter[TaskId]) -> None:
    groups = {row.id: row.sealed for row in await tx.all(SQL["lock_groups"], ids=list(counts))}
    for group in counts:
        if group not in groups:
            raise Refused(f"There is no group {group}.")
        if groups[group]:
            raise Refused(f"Group {group} is sealed: no more children can be added to it.")
    await tx.one(SQL["joined"], ids=array(counts), counts=array(counts.values()))


async def _send_plain(tx: Tx, envelopes: Sequence[Envelope], limit: int) -> list[TaskId]:
    ids: list[TaskId] = []
    for head, run in groupby(envelopes, key=_alike):
        queue, kind, priority, foreground, parent, max_attempts, owner = head
        alike = list(run)
        for start in range(0, len(alike), AT_ONCE):
            slice_ = alike[start : start + AT_ONCE]
            payloads = b"[" + b",".join([encode(one.letter, limit) for one in slice_]) + b"]"
            row = await tx.one(
                SQL["enqueue_alike"], payloads=payloads.decode(), queue=queue, kind=kind, lane=lane(alike[0]),
                priority=priority, foreground=foreground, parent=parent, max_attempts=max_attempts, owner=owner,
            )  # fmt: skip
            assert row is not None
            ids += row.ids
    return ids


def _alike(envelope: Envelope) -> tuple[str, str, int, bool, TaskId | None, int | None, str | None]:
    return (
        _queue(envelope), envelope.letter.kind, envelope.priority, envelope.foreground, envelope.parent,
        envelope.max_attempts, envelope.owner,
    )  # fmt: skip


async def _send_instructed(tx: Tx, envelopes: Sequence[Envelope], limit: int) -> list[TaskId]:
    await _heed_prerequisites(tx, envelopes)
    keys = sorted({one.unique.key for one in envelopes if one.unique})
    if keys:
        await tx.execute(SQL["release_unique"], keys=keys)
    ids: list[TaskId] = []
    for start in range(0, len(envelopes), AT_ONCE):
        slice_ = envelopes[start : start + AT_ONCE]
        rows = "[" + ",".join(_row(one, limit) for one in slice_) + "]"
        written = await tx.all(SQL["enqueue"], rows=rows)
        new = [row.id for row in written if row.written]
        joined = Counter(
            one.parent
            for one, row in zip(slice_, written, strict=True)
            if one.unique and one.parent and row.written
        )
        if joined:
            await _join(tx, joined)
        await tx.one(SQL["admit_new"], ids=array(new))
        ids += await _with_holders(tx, slice_, written, limit)
    return ids


async def _heed_prerequisites(tx: Tx, envelopes: Sequence[Envelope]) -> None:
    wanted = sorted({one.after for one in envelopes if one.after is not None})
    if not wanted:
        return
    # the lock of this update makes a prerequisite that ends meanwhile wait until our letters are there
    await tx.execute(SQL["await_tasks"], ids=wanted)
    outcomes = {row.id: row.outcome for row in await tx.all(SQL["outcomes"], ids=wanted)}
    for task in wanted:
        if task not in outcomes:
            raise Refused(f"There is no task {task} to come after.")
        if outcomes[task] == "cancelled":
            raise Refused(f"Task {task} was cancelled: nothing can come after it.")


def _row(envelope: Envelope, limit: int) -> str:
    unique = envelope.unique
    fields = {
        "queue": _queue(envelope), "kind": envelope.letter.kind, "lane": lane(envelope), "priority": envelope.priority,
        "foreground": envelope.foreground, "position": envelope.position,
        "run_at": envelope.run_at.isoformat() if envelope.run_at else None,
        "delay": f"{envelope.delay.total_seconds()} s" if envelope.delay else None,
        "parent": envelope.parent, "after": envelope.after, "serial_key": envelope.serial_key,
        "unique_key": unique.key if unique else None,
        "unique_for": f"{unique.period.total_seconds()} s" if unique and unique.period else None,
        "max_attempts": envelope.max_attempts, "owner": envelope.owner,
    }  # fmt: skip
    return dumped(fields)[:-1] + ',"payload":' + encode(envelope.letter, limit).decode() + "}"


async def _with_holders(
    tx: Tx, envelopes: Sequence[Envelope], written: Sequence[Any], limit: int
) -> list[TaskId]:
    """The ids in order, with those that hold a taken unique key in place of those that were not written."""
    if all(row.written for row in written):
        return [row.id for row in written]
    keys = [one.unique.key for one in envelopes if one.unique]
    holders = {row.unique_key: row for row in await tx.all(SQL["holders"], keys=keys)}
    ids: list[TaskId] = []
    for one, row in zip(envelopes, written, strict=True):
        if row.written or one.unique is None:
            ids.append(row.id)
            continue
        holder = holders[one.unique.key]
        if one.unique.conflict == "error":
            raise Refused(f"The unique key “{one.unique.key}” is taken by task {holder.id}.")
        if one.unique.conflict == "replace" and holder.replaceable:
            await _replace(tx, holder.id, one, limit)
        ids.append(holder.id)
    return ids


async def _replace(tx: Tx, task: TaskId, envelope: Envelope, limit: int) -> None:
    row = await tx.one(
        SQL["replace"], id=task, payload=encode(envelope.letter, limit).decode(), lane=lane(envelope),
        priority=envelope.priority, foreground=envelope.foreground, position=envelope.position,
        run_at=envelope.run_at, delay=envelope.delay,
    )  # fmt: skip
    if row is not None and row.wait is None:
        await tx.one(SQL["admit"], ids=array([task]))
