"""Sends letters: they become tasks inside the caller's transaction."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple, cast

from gristmill.db import Tx, array, escape_for_copy, queries
from gristmill.errors import Refused, Unknown
from gristmill.ids import ScopeId, TaskId
from gristmill.queue.groups import join_groups
from gristmill.queue.letters import (
    Envelope,
    Letter,
    enclose,
    encode,
    encode_all,
    has_fixed_queue,
    lane,
    queue_of,
    to_json,
)
from gristmill.queue.sender import find_sender
from gristmill.scopes import GLOBAL_ID

SQL = queries("gristmill.queue", "send.sql")
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
MAX_PAYLOAD = 1_000_000
COPY_FROM = 100  # rows from which COPY pays
PIECE = 1_000  # rows of a COPY made at a time
AT_ONCE = 5_000  # rows in one statement: enough to be fast, few enough to hold in memory


@dataclass(frozen=True, slots=True)
class _Terms:
    """What holds for all letters that are sent together."""

    limit: int  # bytes of one payload
    scope: ScopeId  # of the letters whose envelopes name none

    def scope_of(self, envelope: Envelope) -> ScopeId:
        return self.scope if envelope.scope is None else envelope.scope


class _Holder(NamedTuple):
    """The task that holds a unique key of a scope; replaceable while nobody has claimed it."""

    unique_key: str
    scope: ScopeId
    id: TaskId
    queue: str
    replaceable: bool


class _Reserved(NamedTuple):
    """The row of `reserve_ids`."""

    ids: list[TaskId]
    now: datetime


class WrittenLetter(NamedTuple):
    """A letter of `enqueue`: the id that was meant for it, and whether it was written or its unique key was taken."""

    id: TaskId
    place: int
    written: bool


async def send(tx: Tx, letter: Letter, **outside: Any) -> TaskId:
    """Send one letter; `outside` is what Envelope takes: priority, run_at, after, unique …"""
    (task,) = await send_many(tx, [Envelope(letter, **outside)])
    return task


async def send_many(tx: Tx, letters: Iterable[Letter | Envelope], *, max_payload: int = MAX_PAYLOAD) -> list[TaskId]:
    """Send any number of letters; their task ids come back in the same order.

    Under a unique key that is taken, the id is that of the task which holds it.
    """
    given = list(letters)
    terms = _Terms(max_payload, await find_sender(tx) if any(map(_inherits, given)) else GLOBAL_ID)
    if _pays_to_copy(tx, given) and len(kinds := set(map(type, given))) == 1 and _is_bare(kinds.pop()):
        return await _send_bare(tx, cast(list[Letter], given), terms)
    envelopes = [enclose(letter) for letter in given]
    await ensure_queues(tx, check_names({_queue(one) for one in envelopes}))
    # tasks before groups: the order in which settling locks them, too
    await _lock_prerequisites(tx, envelopes)
    await _join_parents(tx, envelopes)
    ids: list[TaskId] = []
    for plain, run in groupby(envelopes, key=lambda one: one.plain):
        ids += await (_send_plain if plain else _send_instructed)(tx, list(run), terms)
    return ids


def _pays_to_copy(tx: Tx, letters: Sequence[Letter | Envelope]) -> bool:
    """Many letters do; but PostgreSQL has no COPY for a client that is bound by row-level security."""
    return len(letters) >= COPY_FROM and tx.seen_from is None


def _inherits(letter: Letter | Envelope) -> bool:
    return not isinstance(letter, Envelope) or letter.scope is None


def _is_bare(kind: type[Letter | Envelope]) -> bool:
    """Whether letters of this class have nothing on the outside, and all go the same way."""
    return not issubclass(kind, Envelope) and has_fixed_queue(kind)


async def reserve_ids(tx: Tx, n: int) -> tuple[list[TaskId], datetime]:
    """Ids for new tasks, and the moment at which they are sent."""
    row = await tx.one(SQL["reserve_ids"], _Reserved, n=n)
    assert row is not None
    return row.ids, row.now


async def ensure_queues(tx: Tx, names: Sequence[str]) -> None:
    """Make the queues among these that do not exist yet."""
    await tx.execute(SQL["ensure_queues"], names=list(names))


async def release_unique_keys(tx: Tx, keys: Sequence[str]) -> None:
    """Free the keys among these whose task has ended and whose period is over."""
    await tx.execute(SQL["release_unique"], keys=list(keys))


def _queue(envelope: Envelope) -> str:
    return envelope.queue or queue_of(envelope.letter)


def check_names(queues: Iterable[str]) -> list[str]:
    """The names of queues, sorted; refused if one cannot be one."""
    for queue in queues:
        if not NAME.fullmatch(queue):
            raise Refused(f"“{queue}” is no name for a queue: use small letters, digits, dots, dashes, at most 63.")
    return sorted(queues)


async def _join_parents(tx: Tx, envelopes: Sequence[Envelope]) -> None:
    # letters with a unique key join later, when they are known to be new
    counts = Counter(one.parent for one in envelopes if one.parent is not None and one.unique is None)
    if counts:
        await join_groups(tx, counts)


async def _send_bare(tx: Tx, letters: Sequence[Letter], terms: _Terms) -> list[TaskId]:
    """Letters of one kind with nothing on the outside: no envelope each, just one for all."""
    head = Envelope(letters[0])
    await ensure_queues(tx, check_names({_queue(head)}))
    return await _copy_alike(tx, head, letters, terms)


async def _send_plain(tx: Tx, envelopes: Sequence[Envelope], terms: _Terms) -> list[TaskId]:
    runs = [list(run) for _, run in groupby(envelopes, key=lambda one: _likeness(one, terms))]
    if len(runs) > 1 and len(envelopes) < COPY_FROM * len(runs):  # few of each
        return await _insert_each(tx, envelopes, terms)
    ids: list[TaskId] = []
    for alike in runs:
        letters = [one.letter for one in alike]
        ids += await (_copy_alike if _pays_to_copy(tx, letters) else _insert_alike)(tx, alike[0], letters, terms)
    return ids


async def _insert_alike(tx: Tx, head: Envelope, letters: Sequence[Letter], terms: _Terms) -> list[TaskId]:
    payloads = b"[" + b",".join([encode(letter, terms.limit) for letter in letters]) + b"]"
    return await tx.only_value(
        SQL["enqueue_alike"],
        list[TaskId],
        payloads=payloads.decode(),
        queue=_queue(head),
        kind=head.letter.kind,
        lane=lane(head),
        priority=head.priority,
        foreground=head.foreground,
        parent=head.parent,
        scope=terms.scope_of(head),
        max_attempts=head.max_attempts,
        owner=head.owner,
    )


async def _insert_each(tx: Tx, envelopes: Sequence[Envelope], terms: _Terms) -> list[TaskId]:
    """Letters of many documents, say, a few of each: one statement for all, and not one for each document."""
    ids: list[TaskId] = []
    for start in range(0, len(envelopes), AT_ONCE):
        some = envelopes[start : start + AT_ONCE]
        ids += await tx.only_value(
            SQL["enqueue_each"],
            list[TaskId],
            payloads=[encode(one.letter, terms.limit).decode() for one in some],
            queues=[_queue(one) for one in some],
            kinds=[one.letter.kind for one in some],
            lanes=array([lane(one) for one in some]),
            priorities=array([one.priority for one in some]),
            foregrounds=[one.foreground for one in some],
            parents=[one.parent for one in some],
            scopes=array([terms.scope_of(one) for one in some]),
            max_attempts=[one.max_attempts for one in some],
            owners=[one.owner for one in some],
        )
    return ids


async def _copy_alike(tx: Tx, head: Envelope, letters: Sequence[Letter], terms: _Terms) -> list[TaskId]:
    """COPY writes whole pages at a time: three times faster than INSERT for thousands."""
    bodies = encode_all(letters, terms.limit)  # before the first is sent: a refusal must not end the COPY
    ids, now = await reserve_ids(tx, len(letters))
    where, queue = lane(head), _queue(head)
    outside = "\t".join(
        _copy_text(value)
        for value in (
            "",
            now.isoformat(),
            head.parent,
            terms.scope_of(head),
            where,
            head.priority,
            head.foreground,
            head.max_attempts,
            queue,
            head.letter.kind,
            head.owner,
            "",
        )
    ).encode()
    place = f"\t{where}\t{queue}\n"
    # piece by piece: the server writes one while we make the next
    pieces = [slice(start, start + PIECE) for start in range(0, len(ids), PIECE)]
    await tx.copy(SQL["copy_tasks"], (_tasks(ids[piece], outside, bodies[piece]) for piece in pieces))
    await tx.copy(
        SQL["copy_tickets"], ("".join([f"{id}\t{id}{place}" for id in ids[piece]]).encode() for piece in pieces)
    )
    told = f"ready {queue} {where} {ids[0]}"
    await tx.execute(SQL["copied"], payload=told, queue=queue, scope=terms.scope_of(head), n=len(ids))
    return ids


def _tasks(ids: Sequence[TaskId], outside: bytes, bodies: Sequence[bytes]) -> bytes:
    """The rows of these tasks, as COPY reads them."""
    escaped = [body.replace(b"\\", b"\\\\") for body in bodies]
    return b"".join([b"%d%s%s\n" % (id, outside, body) for id, body in zip(ids, escaped, strict=True)])


def _copy_text(value: str | int | None) -> str:
    """A value as COPY's text format writes it."""
    return "\\N" if value is None else escape_for_copy(str(value))


def _likeness(envelope: Envelope, terms: _Terms) -> tuple[object, ...]:
    """Letters with the same of these differ only in their payload."""
    return (
        terms.scope_of(envelope),
        _queue(envelope),
        envelope.letter.kind,
        envelope.priority,
        envelope.foreground,
        envelope.parent,
        envelope.max_attempts,
        envelope.owner,
    )


async def _send_instructed(tx: Tx, envelopes: Sequence[Envelope], terms: _Terms) -> list[TaskId]:
    keys = sorted({one.unique.key for one in envelopes if one.unique})
    if keys:
        await release_unique_keys(tx, keys)
    ids: list[TaskId] = []
    for start in range(0, len(envelopes), AT_ONCE):
        slice_ = envelopes[start : start + AT_ONCE]
        rows = "[" + ",".join(_row(one, terms) for one in slice_) + "]"
        written = await tx.all(SQL["enqueue"], WrittenLetter, rows=rows)
        new = [row.id for row in written if row.written]
        joined = Counter(
            one.parent for one, row in zip(slice_, written, strict=True) if one.unique and one.parent and row.written
        )
        if joined:
            await join_groups(tx, joined)
        await tx.one(SQL["admit_new"], ids=array(new))
        ids += await _with_holders(tx, slice_, written, terms)
    return ids


class _OutcomeRow(NamedTuple):
    id: TaskId
    outcome: str | None


async def _lock_prerequisites(tx: Tx, envelopes: Sequence[Envelope]) -> None:
    wanted = sorted({one.after for one in envelopes if one.after is not None})
    if not wanted:
        return
    # locked: a prerequisite that ends meanwhile waits until our letters are there
    lock = SQL["lock_outcomes"] if await tx.value(SQL["all_awaited"], ids=wanted) else SQL["await_tasks"]
    outcomes = {row.id: row.outcome for row in await tx.all(lock, _OutcomeRow, ids=wanted)}
    for task in wanted:
        if task not in outcomes:
            raise Unknown(f"There is no task {task} to come after.")
        if outcomes[task] == "cancelled":
            raise Refused(f"Task {task} was cancelled: nothing can come after it.")


def _row(envelope: Envelope, terms: _Terms) -> str:
    unique = envelope.unique
    fields = {
        "queue": _queue(envelope),
        "kind": envelope.letter.kind,
        "lane": lane(envelope),
        "priority": envelope.priority,
        "foreground": envelope.foreground,
        "position": envelope.position,
        "run_at": envelope.run_at.isoformat() if envelope.run_at else None,
        "delay": f"{envelope.delay.total_seconds()} s" if envelope.delay else None,
        "parent": envelope.parent,
        "after": envelope.after,
        "serial_key": envelope.serial_key,
        "unique_key": unique.key if unique else None,
        "unique_for": f"{unique.period.total_seconds()} s" if unique and unique.period else None,
        "max_attempts": envelope.max_attempts,
        "owner": envelope.owner,
        "scope": terms.scope_of(envelope),
    }
    return to_json(fields)[:-1] + ',"payload":' + encode(envelope.letter, terms.limit).decode() + "}"


async def _with_holders(
    tx: Tx, envelopes: Sequence[Envelope], written: Sequence[WrittenLetter], terms: _Terms
) -> list[TaskId]:
    """The ids in order, with those that hold a taken unique key in place of those that were not written."""
    if all(row.written for row in written):
        return [row.id for row in written]
    keys = [one.unique.key for one in envelopes if one.unique]
    holders = {(row.unique_key, row.scope): row for row in await tx.all(SQL["holders"], _Holder, keys=keys)}
    ids: list[TaskId] = []
    for one, row in zip(envelopes, written, strict=True):
        if row.written or one.unique is None:
            ids.append(row.id)
            continue
        holder = holders.get((one.unique.key, terms.scope_of(one)))
        if holder is None:  # it ended between the two statements, and the key is free
            ids += await _send_instructed(tx, [one], terms)
            continue
        if one.unique.conflict == "error":
            raise Refused(f"The unique key “{one.unique.key}” is taken by task {holder.id}.")
        if one.unique.conflict == "replace" and holder.replaceable and not await _replace(tx, holder, one, terms):
            ids += await _send_instructed(tx, [one], terms)  # somebody claimed or ended it meanwhile: look again
            continue
        ids.append(holder.id)
    return ids


class _ReplacedRow(NamedTuple):
    wait: str | None
    parent: TaskId | None
    after: TaskId | None
    serial_key: str | None
    owner: str | None


async def _replace(tx: Tx, holder: _Holder, envelope: Envelope, terms: _Terms) -> bool:
    """Whether the task was still there to be replaced."""
    task = holder.id
    row = await tx.one(
        SQL["replace"],
        _ReplacedRow,
        id=task,
        was=holder.queue,
        queue=_queue(envelope),
        kind=envelope.letter.kind,
        payload=encode(envelope.letter, terms.limit).decode(),
        max_attempts=envelope.max_attempts,
        lane=lane(envelope),
        priority=envelope.priority,
        foreground=envelope.foreground,
        position=envelope.position,
        run_at=envelope.run_at,
        delay=envelope.delay,
    )
    if row is None:
        return False
    for bond in ("parent", "after", "serial_key", "owner"):
        wanted, kept = getattr(envelope, bond), getattr(row, bond)
        if wanted is not None and wanted != kept:
            raise Refused(f"Task {task} cannot be replaced by one with another {bond} ({wanted} instead of {kept}).")
    if row.wait is None:
        await tx.one(SQL["admit"], ids=array([task]))
    return True
