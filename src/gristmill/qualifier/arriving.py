"""Writes down what came in: as a new item, as another version of one, as a mail of a thread, or as our own answer."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import orjson

from gristmill.db import Tx, queries
from gristmill.documents import find_families
from gristmill.ids import ScopeId, WorkItemId
from gristmill.qualifier.describing import Arrival, describe_family, find_addresses, mark_double
from gristmill.qualifier.model import OPEN, WorkItem
from gristmill.qualifier.routing import RANKS, close_handled, rank_item
from gristmill.qualifier.store import ItemDraft, add_message, load_items, make_item
from gristmill.sources import find_sent, join_thread, lock_threads

SQL = queries("gristmill.qualifier", "arrivals.sql")
BY = "intake"
LONGEST_TITLE = 300  # characters


@dataclass(frozen=True)
class NotedArrival:
    """What an arrival became: the item, whether it is to be decided now, or why not."""

    arrival: Arrival
    item: WorkItemId | None = None
    needs_decision: bool = False
    reason: str = ""


class _Known(NamedTuple):
    scope: ScopeId
    urn: str
    item: WorkItemId
    known: str | None  # the extent that its last decision knew
    is_double: bool
    describes: bool = True  # the item: no other mail of its thread does


class SameId(NamedTuple):
    """A mail that is here, and the Message-ID that it says."""

    scope: ScopeId
    said_id: str
    urn: str
    digest: str
    item: WorkItemId | None  # None: we sent it ourselves
    is_double: bool


Key = tuple[ScopeId, str]
Identity = tuple[ScopeId, str | None, str | None]  # the Message-ID that a mail says, and what a person sees of it


FindAddresses = Callable[[Tx, Sequence[ScopeId]], Awaitable[Mapping[ScopeId, Collection[str]]]]


async def note_arrivals(tx: Tx, arrivals: Sequence[Arrival], find_own_addresses: FindAddresses) -> list[NotedArrival]:
    """Find or make the item of each; in one order for all callers, so that none waits for another in a circle.

    Mails come first: joining a thread locks all threads of a scope, which must happen before other locks.
    """
    mails = [one for one in arrivals if one.is_mail]
    for scope in sorted({one.scope for one in mails}):
        await lock_threads(tx, scope)
    here = await _find_same_ids(tx, mails)
    doubles = find_doubles(mails, here)
    marked = [mark_double(one) if _key_of(one) in doubles else one for one in arrivals]
    ordered = sorted(marked, key=lambda one: (one.scope, not one.is_mail, one.urn))
    keys = list(map(_key_of, ordered))
    threads = {
        (one.scope, one.urn): await join_thread(tx, one.scope, [one.message, *one.answers])
        for one in ordered
        if one.message is not None
    }
    scopes, urns = [scope for scope, _ in keys], [urn for _, urn in keys]
    await tx.all(SQL["lock_urns"], scopes=scopes, urns=urns)
    ours = {(one.scope, one.said_id, one.digest) for one in here if one.item is None}
    sent = await _find_own(tx, ordered, find_own_addresses)
    sent |= {_key_of(one) for one in ordered if _identify(one) in ours}
    rows = await tx.all(SQL["known_items"], _Known, scopes=scopes, urns=urns)
    known = {(row.scope, row.urn): row for row in rows}
    items = await load_items(tx, [row.item for row in rows])
    same: dict[Identity, WorkItemId] = {(one.scope, one.said_id, one.digest): one.item for one in here if one.item}
    noted: list[NotedArrival] = []
    for one, key in zip(ordered, keys, strict=True):
        if key in sent:
            noted.append(await _note_sent(tx, one, threads[key]))
        elif key in known:
            noted.append(await _note_known(tx, one, items[known[key].item], known[key]))
        elif one.digest and _identify(one) in same:
            noted.append(await _note_again(tx, one, same[_identify(one)]))
        else:
            noted.append(await _note_new(tx, one, threads.get(key)))
        if one.digest and (made := noted[-1].item) is not None:
            same.setdefault(_identify(one), made)
    return noted


def _key_of(arrival: Arrival) -> Key:
    return arrival.scope, arrival.urn


def _identify(mail: Arrival) -> Identity:
    return mail.scope, mail.said_id, mail.digest


async def _find_same_ids(tx: Tx, mails: Sequence[Arrival]) -> list[SameId]:
    ids = [(one.scope, one.said_id) for one in mails if one.said_id and one.digest]
    if not ids:
        return []
    return await tx.all(SQL["same_ids"], SameId, scopes=[scope for scope, _ in ids], ids=[id_ for _, id_ in ids])


def find_doubles(mails: Sequence[Arrival], here: Sequence[SameId]) -> set[Key]:
    """The mails that say the Message-ID of a mail that came before them, and something else.

    The first mail keeps its id: otherwise, anybody who knows the id of a mail could replace its words.
    """
    first: dict[tuple[ScopeId, str], str] = {}
    for row in here:
        if not row.is_double:
            first.setdefault((row.scope, row.said_id), row.digest)
    known = {(row.scope, row.urn) for row in here}
    doubles = {(row.scope, row.urn) for row in here if row.is_double}
    for mail in sorted(mails, key=lambda one: one.family.root.id):
        if mail.said_id is None or mail.digest is None or _key_of(mail) in known:
            continue
        if first.setdefault((mail.scope, mail.said_id), mail.digest) != mail.digest:
            doubles.add(_key_of(mail))
    return doubles


async def _find_own(tx: Tx, arrivals: Sequence[Arrival], find_own_addresses: FindAddresses) -> set[Key]:
    """The mails that we sent ourselves, as their folders say, or as their addresses do."""
    mails = [one for one in arrivals if one.is_mail]
    if not mails:
        return set()
    found = await find_sent(tx, [(one.scope, one.urn) for one in mails])
    ours = await find_own_addresses(tx, list({one.scope for one in mails}))
    outgoing = (one for one in mails if not one.is_double and is_outgoing(one, ours.get(one.scope, ())))
    return found | set(map(_key_of, outgoing))


def is_outgoing(mail: Arrival, ours: Collection[str]) -> bool:
    """Whether one of us sent it to other people alone: a mail from one of us to another is work like any other."""
    senders = find_addresses([str(mail.note.get("sender", ""))])
    recipients = find_addresses(list(map(str, mail.note.get("recipients", ()))))
    return any(one in ours for one in senders) and bool(recipients) and not any(one in ours for one in recipients)


async def _note_sent(tx: Tx, arrival: Arrival, thread: str) -> NotedArrival:
    """What we wrote ourselves is no item; it answers what came before it in its thread."""
    assert arrival.message is not None, "only a mail is sent"
    place = {"scope": arrival.scope, "urn": arrival.urn}
    said = {"message": arrival.message, "written_at": arrival.written_at, "digest": arrival.digest}
    await tx.execute(SQL["note_sent"], **place, **said)
    for item in await _find_open(tx, arrival.scope, thread):
        if item.written_at <= arrival.written_at:
            await close_handled(tx, item, why=f"We answered: {arrival.title[:LONGEST_TITLE]}", by=BY)
    return NotedArrival(arrival, reason="we sent it ourselves")


async def _find_open(tx: Tx, scope: ScopeId, thread: str) -> list[WorkItem]:
    """The open items of a thread, and copies of closed ones that wait for their time."""
    found = await tx.all(SQL["open_in_thread"], WorkItem, scope=scope, thread=thread, states=list(OPEN))
    return found + await tx.all(SQL["copies_in_thread"], WorkItem, scope=scope, thread=thread)


async def _note_known(tx: Tx, arrival: Arrival, item: WorkItem, known: _Known) -> NotedArrival:
    """Another version of what is here, or a page of it that could be read after all."""
    if known.known == arrival.extent:
        return NotedArrival(arrival, item.id, reason="it is decided already")
    await (describe_item if known.describes else _warn)(tx, arrival, item)
    return NotedArrival(arrival, item.id, needs_decision=arrival.family.is_read)


def speaks_for(arrival: Arrival, item: WorkItem, *, is_work: bool) -> bool:
    """Of the mails of a thread, the newest that asks for something describes the item; until one does, the newest."""
    if arrival.family.root.id == item.document:
        return False  # it describes the item already
    has_work = rank_item(item) >= RANKS["later"]
    return arrival.written_at >= item.written_at if is_work == has_work else is_work


async def _warn(tx: Tx, arrival: Arrival, item: WorkItem) -> None:
    warning = arrival.warning if arrival.family.is_read else None
    await tx.execute(SQL["warn"], id=item.id, warning=warning or item.warning)


async def describe_item(tx: Tx, arrival: Arrival, item: WorkItem) -> None:
    """Give an item the title, the head and the words of this document."""
    await tx.execute(
        SQL["describe"],
        id=item.id,
        document=arrival.family.root.id,
        title=arrival.title[:LONGEST_TITLE],
        note=orjson.dumps(dict(arrival.note)).decode(),
        written_at=arrival.written_at,
        warning=arrival.warning if arrival.family.is_read else item.warning,
        type=arrival.type,
    )


async def _note_new(tx: Tx, arrival: Arrival, thread: str | None) -> NotedArrival:
    """A new item, or another mail of an open one."""
    if thread is not None:
        answered_at = await tx.value(SQL["answered_at"], datetime, scope=arrival.scope, thread=thread)
        in_thread = await tx.all(SQL["open_in_thread"], WorkItem, scope=arrival.scope, thread=thread, states=list(OPEN))
        if in_thread:
            return await _append(tx, arrival, in_thread[0], answered_at)
        if answered_at is not None and answered_at >= arrival.written_at:
            return await _note_answered(tx, arrival)
    id_ = await _make(tx, arrival)
    return NotedArrival(arrival, id_, needs_decision=arrival.family.is_read)


async def _note_again(tx: Tx, arrival: Arrival, item: WorkItemId) -> NotedArrival:
    """The same mail by another way, from another mailbox or by hand: there is nothing new to decide."""
    await _add_source(tx, arrival, item)
    await set_known(tx, arrival)
    return NotedArrival(arrival, item, reason="the same mail is here already")


async def _add_source(tx: Tx, arrival: Arrival, item: WorkItemId) -> None:
    await tx.execute(
        SQL["add_source"],
        scope=arrival.scope,
        urn=arrival.urn,
        item=item,
        said_id=arrival.said_id,
        digest=arrival.digest,
        is_double=arrival.is_double,
    )


async def _append(tx: Tx, arrival: Arrival, item: WorkItem, answered_at: datetime | None) -> NotedArrival:
    """Another mail of a thread whose item is open: a message of it, and a new decision."""
    await _add_source(tx, arrival, item.id)
    said = f"{arrival.note.get('sender', '')}: {arrival.title}".strip(": ")
    await add_message(tx, item.id, "mail", said, by=BY, document=arrival.family.root.id)
    await _warn(tx, arrival, item)  # whether it describes the item is known with its decision
    answered = answered_at is not None and answered_at >= arrival.written_at
    return NotedArrival(arrival, item.id, needs_decision=arrival.family.is_read and not answered)


async def _note_answered(tx: Tx, arrival: Arrival) -> NotedArrival:
    """A mail that comes in after our answer to it: there is nothing left to do."""
    id_ = await _make(tx, arrival)
    item = (await load_items(tx, [id_]))[id_]
    await close_handled(tx, item, why="We have answered in its thread since.", by=BY)
    await set_known(tx, arrival)
    return NotedArrival(arrival, id_, reason="we have answered it already")


async def _make(tx: Tx, arrival: Arrival) -> WorkItemId:
    root = arrival.family.root
    id_ = await make_item(
        tx,
        ItemDraft(
            scope=arrival.scope,
            type=arrival.type,
            title=arrival.title,
            state="new",
            why="It came in.",
            by=BY,
            urn=arrival.urn,
            document=root.id,
            message=arrival.message,
            note=arrival.note,
            written_at=arrival.written_at,
            warning=arrival.warning if arrival.family.is_read else None,
        ),
    )
    await _add_source(tx, arrival, id_)
    return id_


async def set_known(tx: Tx, arrival: Arrival) -> None:
    """Remember which documents the decision knew: the same ones are not decided again."""
    await tx.execute(SQL["set_known"], scope=arrival.scope, urn=arrival.urn, known=arrival.extent)


async def warn_unread(tx: Tx, ids: Sequence[WorkItemId]) -> None:
    """Items that are decided although some of their documents are not read yet say so."""
    items = await load_items(tx, ids)
    documents = {item.document: item.id for item in items.values() if item.document is not None and item.urn}
    arrivals = [describe_family(family) for family in await find_families(tx, list(documents))]
    scopes, urns = [one.scope for one in arrivals], [one.urn for one in arrivals]
    rows = await tx.all(SQL["known_items"], _Known, scopes=scopes, urns=urns)
    doubles = {(row.scope, row.urn) for row in rows if row.is_double}
    for one in arrivals:
        arrival = mark_double(one) if _key_of(one) in doubles else one
        family = arrival.family
        if family.root.id in documents:
            await tx.execute(SQL["warn"], id=documents[family.root.id], warning=arrival.warning)
