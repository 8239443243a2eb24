"""The indexer: hands items on as documents, many at a time; it never talks to the outside."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache, partial
from typing import Any, NamedTuple

import orjson

from gristmill import documents
from gristmill.db import Database, Tx, array, bytes_array, explain_rejection, text_array
from gristmill.documents import (
    Limits,
    ReadAhead,
    Staged,
    Urgency,
    lock_sources,
    of_arrival,
    stage,
    take_in_many,
)
from gristmill.errors import GristmillError, Permanent
from gristmill.ids import DocumentId, ItemId, ScopeId
from gristmill.processes import Crashed, OutOfMemory, ProcessPool, TimedOut
from gristmill.queue import Answer, Done, JointWrite, Skip
from gristmill.scopes import Scope
from gristmill.settings import FetchSettings
from gristmill.sources import store
from gristmill.sources.describing import Described, describe_items
from gristmill.sources.letters import IndexItem, RemoveItem
from gristmill.sources.link import LinkedDocument, note_links
from gristmill.sources.mail.index import rename_mail
from gristmill.sources.model import Describe, Description, Fetched, Kind, SourceItem
from gristmill.sources.removal import drop_document, lock_urn_of
from gristmill.sources.store import SQL
from gristmill.sources.threads import join_threads

OUTDATED = Skip("a newer version has come, or it is indexed already")
LONGEST_TITLE = 300  # characters
LONGEST_ERROR = 500  # characters that are kept of an error
MOST_LINKS = 100  # of a document that stand in the graph …
LONGEST_URL = 500  # … and the characters of each
TOGETHER = 4 << 20  # bytes of the items that one call looks into
SHORT = 12  # characters of a digest that tell two things with one URN apart
TRIES = 3  # for an item in whose company a process died
CHILD_FAILURES = (Crashed, OutOfMemory, TimedOut)
Work = Sequence[tuple[Describe, Fetched]]


class _Twin(NamedTuple):
    """Another item that became a document under the same URN."""

    item: ItemId
    digest: bytes | None
    updated_at: datetime | None
    document: DocumentId


class _Gone(NamedTuple):
    id: ItemId
    urn: str | None
    document: DocumentId | None
    client: str
    project: str


class _Held(NamedTuple):
    id: ItemId
    version: int


@lru_cache(maxsize=64)
def _scope_of(client: str, project: str) -> Scope:
    """Most items of a portion have the same; its names are checked once."""
    return Scope(client, project)


@dataclass(frozen=True)
class _Ready:
    """An item that was looked into, and all that its document is made of."""

    item: SourceItem
    found: Description
    body: bytes | Staged
    ahead: ReadAhead | None
    urgency: Urgency

    @property
    def scope(self) -> Scope:
        return _scope_of(self.item.client, self.item.project)


@dataclass(frozen=True)
class Indexer:
    """Looks into items in child processes, with limits of time and memory."""

    db: Database
    kinds: Mapping[str, Kind]
    processes: ProcessPool
    seconds: float
    memory: int
    limits: Limits
    fetch: FetchSettings

    async def index(self, letters: Sequence[IndexItem]) -> list[Answer | Exception]:
        async with self.db.reading() as tx:
            items = await store.load_items_to_index(tx, letters)
        ready: dict[ItemId, _Ready | Exception] = {}
        for some in await asyncio.gather(*(self._prepare(some) for some in divide_items(list(items.values())))):
            ready |= some
        wanted = [items.get((letter.item, letter.version)) for letter in letters]
        return [OUTDATED if item is None else self._answer(item, ready[item.id]) for item in wanted]

    def _answer(self, item: SourceItem, ready: "_Ready | Exception") -> Answer | Exception:
        if isinstance(ready, Permanent):
            reason = store.make_keepable(str(ready))[:LONGEST_ERROR]
            return Skip(reason, write=partial(_set_aside, item=item, error=reason))
        return ready if isinstance(ready, Exception) else Done(JointWrite(self._hand_on, ready))

    async def _prepare(self, items: Sequence[SourceItem]) -> dict[ItemId, "_Ready | Exception"]:
        """Look into these items, and bring the bytes of their documents."""
        async with self.db.reading() as tx:
            raw = await store.load_raw(tx, [item.id for item in items])
        given = [(item, raw.get(item.id, b"")) for item in items]
        ready: dict[ItemId, _Ready | Exception] = {}
        for place, ((item, content), found) in enumerate(zip(given, await self._describe(given), strict=True)):
            try:
                ready[item.id] = (
                    found if isinstance(found, Exception) else await self._bring(item, found, content, place)
                )
            except GristmillError as error:
                ready[item.id] = error
        return ready

    async def _describe(self, given: Sequence[tuple[SourceItem, bytes]]) -> Sequence[Described | Exception]:
        """What each item is, or why that cannot be said; the one that ends its process is to blame, and no other."""
        unknown = [item.kind for item, _ in given if item.kind not in self.kinds]
        if not unknown:
            work = [
                (self.kinds[item.kind].describe, Fetched(item.source_name, item.external, item.note, content))
                for item, content in given
            ]
            try:
                return await self._look_into(work)
            except CHILD_FAILURES as error:
                if len(given) == 1:
                    return [await self._insist(work, error)]
            except GristmillError as error:
                if len(given) == 1:
                    return [error]
        elif len(given) == 1:
            return [Permanent(f"This version of Gristmill knows no sources of the kind {unknown[0]}.")]
        return [(await self._describe([one]))[0] for one in given]

    async def _insist(self, work: Work, error: Crashed | OutOfMemory | TimedOut) -> Described | Exception:
        """Try one item some more times: whatever ended the process may have had nothing to do with it."""
        for _ in range(TRIES - 1):
            if not isinstance(error, Crashed):
                break
            try:
                return (await self._look_into(work))[0]
            except CHILD_FAILURES as again:
                error = again
        return Permanent(f"It ended the process that looked into it: {error}.")

    async def _look_into(self, work: Work) -> Sequence[Described | Exception]:
        return await self.processes.run(describe_items, work, self.limits, timeout=self.seconds, memory=self.memory)

    async def _bring(self, item: SourceItem, found: Described, content: bytes, place: int) -> "_Ready":
        """What its document is made of: small bytes go with it, large ones are staged before."""
        body = content if found.found.content is None else found.found.content
        staged = body if len(body) <= store.PIECE else await stage(self.db, _cut(body))
        return _Ready(item, make_names_keepable(found.found), staged, found.ahead, of_arrival(place))

    async def _hand_on(self, tx: Tx, parts: Sequence["_Ready"]) -> None:
        """Hand these items on. If one of them cannot be written, each is tried alone, and that one is set aside."""
        if len(parts) > 1:
            await self._write(tx, parts)
            return
        try:
            async with tx.savepoint():
                await self._write(tx, parts)
        except Exception as error:
            half = "A value cannot be kept: it holds one half of a surrogate pair."
            reason = half if isinstance(error, UnicodeEncodeError) else explain_rejection(error)
            if reason is None:
                raise
            await _set_aside(tx, item=parts[0].item, error=str(reason))

    async def _write(self, tx: Tx, parts: Sequence["_Ready"]) -> None:
        """Make documents of these items, and write their links down: they are tasks of their own."""
        wanted = await _hold(tx, parts)
        linked: list[LinkedDocument] = []
        for some in divide_by_urn(wanted):
            linked += await _index(tx, some)
        await note_links(tx, linked, settings=self.fetch)

    async def remove(self, letter: RemoveItem) -> Answer:
        return Done(partial(_remove_item, letter=letter))


def divide_items(items: Sequence[SourceItem]) -> list[list[SourceItem]]:
    """Items in portions that one call can take; a large item is alone."""
    portions: list[list[SourceItem]] = []
    room = 0
    for item in items:
        if not portions or item.size > room:
            portions.append([])
            room = TOGETHER
        portions[-1].append(item)
        room -= item.size
    return portions


def divide_by_urn(parts: Sequence[_Ready]) -> list[list[_Ready]]:
    """Items in rounds: of several with one URN, the first becomes a document, and the others are compared with it."""
    rounds: list[list[_Ready]] = []
    seen: Counter[tuple[ScopeId, str]] = Counter()
    for one in parts:
        key = one.item.scope, one.found.urn
        if seen[key] == len(rounds):
            rounds.append([])
        rounds[seen[key]].append(one)
        seen[key] += 1
    return rounds


def make_names_keepable(found: Description) -> Description:
    """With a URN, a name and a title that the database takes, whatever its source put into them."""
    names = {"urn": found.urn, "name": found.name, "title": found.title}
    kept = {what: name and store.make_keepable(name) for what, name in names.items()}
    return found if kept == names else replace(found, **kept)


async def _cut(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), store.PIECE):
        yield body[start : start + store.PIECE]


async def _set_aside(tx: Tx, *, item: SourceItem, error: str) -> None:
    await tx.execute(SQL["set_aside"], id=item.id, version=item.version, error=error)


async def _hold(tx: Tx, parts: Sequence[_Ready]) -> list[_Ready]:
    """Those of these of which no newer version has come; nobody else touches them until the transaction ends.

    First the scopes of threads, then URNs, then items: in one order, so that no two indexers wait for each other.
    """
    for scope in sorted({one.item.scope for one in parts if one.found.messages}):
        await tx.one(SQL["lock_threads"], scope=scope)
    urns = [(one.item.scope, urn) for one in parts for urn in (one.found.urn, one.item.urn) if urn]
    await lock_sources(tx, urns)
    ids, versions = [one.item.id for one in parts], [one.item.version for one in parts]
    rows = await tx.all(SQL["hold_items"], _Held, ids=array(ids), versions=array(versions))
    wanted = {(one.item.id, one.item.version): one for one in parts}
    return [wanted[row.id, row.version] for row in rows]


async def _join_threads(tx: Tx, parts: Sequence[_Ready]) -> dict[ItemId, str]:
    threads: dict[ItemId, str] = {}
    for scope in sorted({one.item.scope for one in parts}):
        mails = [one for one in parts if one.item.scope == scope and one.found.messages]
        if mails:
            names = await join_threads(tx, scope, [one.found.messages for one in mails])
            threads |= {one.item.id: name for one, name in zip(mails, names, strict=True)}
    return threads


async def _index(tx: Tx, parts: Sequence[_Ready]) -> list[LinkedDocument]:
    """Make documents of these items, no two of which have the same URN; the links of those that are new."""
    parts, twins = await _tell_apart(tx, parts)
    newer = [one for one in parts if is_newer(one.found, twins.get(one.item.id))]
    for one in newer:
        del twins[one.item.id]
    threads = await _join_threads(tx, parts)
    for one in parts:
        if one.item.urn and one.item.urn != one.found.urn:
            await drop_document(tx, one.item.id, one.item.urn, one.scope)
    fresh = [one for one in parts if one.item.id not in twins]
    documents_: dict[ItemId, DocumentId] = {id_: twin.document for id_, twin in twins.items()}
    for one, taken in zip(fresh, await take_in_many(tx, [_make_document(one) for one in fresh]), strict=True):
        if taken.document is None:
            await _set_aside(tx, item=one.item, error=taken.reason or "It cannot be taken in.")
        else:
            documents_[one.item.id] = taken.document
    done = [one for one in parts if one.item.id in documents_]
    await _finish_indexing(tx, done, documents_, threads)
    await _follow(tx, [one for one in newer if one.item.id in documents_], documents_)
    return [
        LinkedDocument(one.found.urn, one.scope, one.found.links, documents_[one.item.id])
        for one in done
        if one.item.id not in twins and (one.found.links or one.item.urn)  # a new item without links leaves nothing
    ]


async def _find_twins(tx: Tx, parts: Sequence[_Ready]) -> dict[ItemId, _Twin]:
    rows = await tx.all(
        SQL["find_twins"],
        _Twin,
        ids=array(one.item.id for one in parts),
        scopes=array(one.item.scope for one in parts),
        urns=text_array(one.found.urn for one in parts),
    )
    return {row.item: row for row in rows}


async def _tell_apart(tx: Tx, parts: Sequence[_Ready]) -> tuple[list[_Ready], dict[ItemId, _Twin]]:
    """The items, and which of them are here already; another mail under a known id has a URN of its own.

    The first mail keeps its URN, and neither takes the place of the other.
    """
    twins = await _find_twins(tx, parts)
    others = {one.item.id: _rename(one) for one in parts if _is_other(one, twins.get(one.item.id))}
    if others:
        alike = await _find_twins(tx, list(others.values()))
        twins = {id_: twin for id_, twin in twins.items() if id_ not in others} | alike
    return [others.get(one.item.id, one) for one in parts], twins


def _is_other(one: _Ready, twin: _Twin | None) -> bool:
    """Anybody can write a mail with the id of another one; the key of an issue or event is given by its server."""
    return twin is not None and one.found.type == "email" and one.found.digest != twin.digest


def _rename(one: _Ready) -> _Ready:
    digest = one.found.digest
    assert digest is not None, "it is told apart by its digest"
    return replace(one, found=rename_mail(one.found, f"{one.found.urn}::{digest.hex()[:SHORT]}"))


def is_newer(found: Description, twin: _Twin | None) -> bool:
    """Whether an item takes the place of its twin: by their own times or, where one has none, since it came later."""
    if twin is None or found.type == "email":
        return False
    return found.updated_at is None or twin.updated_at is None or found.updated_at >= twin.updated_at


async def _follow(tx: Tx, parts: Sequence[_Ready], documents_: Mapping[ItemId, DocumentId]) -> None:
    """Let the twins of these items lead to the newest version of their document, too."""
    if parts:
        await tx.execute(
            SQL["follow_document"],
            scopes=array(one.item.scope for one in parts),
            urns=[one.found.urn for one in parts],
            documents=array(documents_[one.item.id] for one in parts),
        )


async def _finish_indexing(
    tx: Tx, parts: Sequence[_Ready], documents_: Mapping[ItemId, DocumentId], threads: Mapping[ItemId, str]
) -> None:
    await tx.execute(
        SQL["finish_indexing"],
        ids=array(one.item.id for one in parts),
        types=text_array(one.found.type for one in parts),
        urns=text_array(one.found.urn for one in parts),
        digests=bytes_array(one.found.digest for one in parts),
        threads=text_array(threads.get(one.item.id) for one in parts),
        sent=[one.found.sent for one in parts],
        documents=array(documents_[one.item.id] for one in parts),
        updates=[one.found.updated_at for one in parts],
        titles=text_array(_name_item(one.found)[:LONGEST_TITLE] for one in parts),
    )


def _name_item(found: Description) -> str:
    """What people call an item in a list: a mail by its subject, which its document reads for itself."""
    return found.title or found.name.removesuffix(".eml")


def _make_document(one: _Ready) -> documents.Item:
    found = one.found
    return documents.Item(
        found.urn,
        found.name,
        one.body,
        one.scope,
        type=found.reading,
        title=found.title,
        written_at=found.written_at,
        metadata={**found.metadata, "source": one.item.source_name, "item": found.type, **_describe_links(found)},
        urgency=one.urgency,
        ahead=one.ahead,
    )


def _describe_links(found: Description) -> dict[str, Any]:
    """What the graph of a document needs to know of its links; the document is read often, so that is kept short."""
    urls = [link.url for link in found.links if len(link.url) <= LONGEST_URL][:MOST_LINKS]
    return {"links": {"in": found.urn, "urls": urls}} if urls else {}


async def _remove_item(tx: Tx, *, letter: RemoveItem) -> None:
    """Remove what was made of it, unless it has come back meanwhile; the report stays with the item."""
    await lock_urn_of(tx, letter.item)  # before the item, as `_hold` does
    gone = await tx.one(SQL["hold_gone"], _Gone, id=letter.item, version=letter.version)
    if gone is None:
        return
    report = await drop_document(tx, gone.id, gone.urn, Scope(gone.client, gone.project)) if gone.urn else {}
    await tx.execute(SQL["finish_removal"], id=gone.id, report=orjson.dumps(report).decode())
    await tx.execute(SQL["drop_raw"], items=[gone.id])
