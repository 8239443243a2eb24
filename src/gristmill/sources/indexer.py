"""The indexer: hands items on as documents; it never talks to the outside."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import NamedTuple

import orjson

from gristmill import documents
from gristmill.db import Database, Tx
from gristmill.documents import Staged, Urgency, of_arrival, remove_source, stage, take_in
from gristmill.errors import GristmillError, Permanent
from gristmill.ids import DocumentId, ItemId
from gristmill.processes import Crashed, OutOfMemory, ProcessPool, TimedOut
from gristmill.queue import Answer, Done, Skip
from gristmill.scopes import Scope
from gristmill.settings import FetchSettings
from gristmill.sources import store
from gristmill.sources.describing import describe_item
from gristmill.sources.letters import IndexItem, RemoveItem
from gristmill.sources.link import note_links
from gristmill.sources.model import Description, Fetched, Item, Kind
from gristmill.sources.store import SQL
from gristmill.sources.threads import join_thread

OUTDATED = Skip("a newer version has come, or it is indexed already")
LONGEST_TITLE = 300  # characters
LONGEST_ERROR = 500  # characters that are kept of an error
CHILD_FAILURES = (Crashed, OutOfMemory, TimedOut)


class _Twin(NamedTuple):
    id: ItemId
    digest: bytes | None
    document: DocumentId | None


class _Gone(NamedTuple):
    id: ItemId
    urn: str | None
    document: DocumentId | None
    client: str
    project: str


@dataclass(frozen=True)
class Indexer:
    """Looks into items in child processes, with limits of time and memory."""

    db: Database
    kinds: Mapping[str, Kind]
    processes: ProcessPool
    seconds: float
    memory: int
    fetch: FetchSettings

    async def index(self, letters: Sequence[IndexItem]) -> list[Answer | Exception]:
        async with self.db.transaction() as tx:
            items = await store.begin_indexing(tx, letters)
        async with self.db.reading() as tx:
            small = [item.id for item in items.values() if item.size <= store.PIECE]
            raw = await store.load_raw(tx, small)
        wanted = [items.get((letter.item, letter.version)) for letter in letters]
        answers = (self._answer(item, raw, of_arrival(place)) for place, item in enumerate(wanted))
        return await asyncio.gather(*answers)

    async def _answer(self, item: Item | None, raw: Mapping[ItemId, bytes], urgency: Urgency) -> Answer | Exception:
        if item is None:
            return OUTDATED
        try:
            content = raw.get(item.id, b"") if item.size <= store.PIECE else await self._load_large(item)
            found = await self._describe(item, content)
            body = await self._bring(item, found, content)
        except Permanent as error:
            reason = store.make_keepable(str(error))[:LONGEST_ERROR]
            return Skip(reason, write=partial(_set_aside, item=item, error=reason))
        except GristmillError as error:
            return error
        return Done(partial(self._hand_on, item=item, found=found, body=body, urgency=urgency))

    async def _hand_on(self, tx: Tx, *, item: Item, found: Description, body: bytes | Staged, urgency: Urgency) -> None:
        """Make a document of it, and write its links down: they are tasks of their own."""
        urn = await _index(tx, item, found, body, urgency)
        if urn is not None and (found.links or item.urn):  # a new item without links leaves nothing to write
            scope = Scope(item.client, item.project)
            await note_links(tx, found.links, urn=urn, scope=scope, settings=self.fetch)

    async def _load_large(self, item: Item) -> bytes:
        async with self.db.reading() as tx:
            return (await store.load_raw(tx, [item.id])).get(item.id, b"")

    async def _describe(self, item: Item, content: bytes) -> Description:
        if item.kind not in self.kinds:
            raise Permanent(f"This version of Gristmill knows no sources of the kind {item.kind}.")
        fetched = Fetched(item.source_name, item.external, item.note, content)
        try:
            return await self.processes.run(
                describe_item, self.kinds[item.kind].describe, fetched, timeout=self.seconds, memory=self.memory
            )
        except CHILD_FAILURES as error:
            raise Permanent(f"It ended the process that looked into it: {error}") from error

    async def _bring(self, item: Item, found: Description, content: bytes) -> bytes | Staged:
        """What its document is made of: small bytes go with it, large ones are staged before."""
        body = content if found.content is None else found.content
        if len(body) <= store.PIECE:
            return body
        return await stage(self.db, _cut(body))

    async def remove(self, letter: RemoveItem) -> Answer:
        return Done(partial(_remove_item, letter=letter))


async def _cut(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), store.PIECE):
        yield body[start : start + store.PIECE]


async def _set_aside(tx: Tx, *, item: Item, error: str) -> None:
    await tx.execute(SQL["set_aside"], id=item.id, version=item.version, error=error)


async def _index(tx: Tx, item: Item, found: Description, body: bytes | Staged, urgency: Urgency) -> str | None:
    """The URN under which it is known now.

    None if a newer version has come, it is refused, or the same thing is here under another id.
    """
    thread = await join_thread(tx, item.scope, found.messages) if found.messages else None
    for urn in sorted({found.urn, item.urn or found.urn}):  # in one order, so that nobody waits for each other
        await tx.one(SQL["lock_urn"], scope=item.scope, urn=urn)
    if await tx.one(SQL["hold_item"], id=item.id, version=item.version) is None:
        return None
    twin = await tx.one(SQL["find_twins"], _Twin, scope=item.scope, urn=found.urn, id=item.id)
    if twin and twin.digest != found.digest and found.digest is not None:
        # another message under the same id: neither may take the place of the other
        found, twin = replace(found, urn=f"{found.urn}::{found.digest.hex()[:12]}"), None
    if item.urn and item.urn != found.urn:
        await _drop_document(tx, item.id, item.urn, Scope(item.client, item.project))
    document = twin.document if twin else await _take_in(tx, item, found, body, urgency)
    if document is None:
        return None
    await tx.execute(
        SQL["finish_indexing"],
        id=item.id,
        type=found.type,
        urn=found.urn,
        digest=found.digest,
        thread=thread,
        sent=found.sent,
        document=document,
        title=found.title and found.title[:LONGEST_TITLE],
    )
    await tx.execute(SQL["drop_raw"], items=[item.id])
    return None if twin else found.urn


async def _take_in(tx: Tx, item: Item, found: Description, body: bytes | Staged, urgency: Urgency) -> DocumentId | None:
    """The document that it became; None if it was refused, and is set aside."""
    taken = await take_in(
        tx,
        documents.Item(
            found.urn,
            found.name,
            body,
            Scope(item.client, item.project),
            type=found.reading,
            title=found.title,
            written_at=found.written_at,
            metadata={**found.metadata, "source": item.source_name, "item": found.type},
            urgency=urgency,
        ),
    )
    if taken.document is None:
        await _set_aside(tx, item=item, error=taken.reason or "It cannot be taken in.")
    return taken.document


async def _remove_item(tx: Tx, *, letter: RemoveItem) -> None:
    """Remove what was made of it, unless it has come back meanwhile; the report stays with the item."""
    await tx.one(SQL["lock_urn_of"], id=letter.item)  # before the item, as `_index` does
    gone = await tx.one(SQL["hold_gone"], _Gone, id=letter.item, version=letter.version)
    if gone is None:
        return
    report = await _drop_document(tx, gone.id, gone.urn, Scope(gone.client, gone.project)) if gone.urn else {}
    await tx.execute(SQL["finish_removal"], id=gone.id, report=orjson.dumps(report).decode())
    await tx.execute(SQL["drop_raw"], items=[gone.id])


async def _drop_document(tx: Tx, item: ItemId, urn: str, scope: Scope) -> dict[str, int | bool]:
    """Remove the document of an item, unless another item is the same thing; what went with it.

    Under the lock of its URN: else a twin that comes at this moment would be left without its document.
    """
    await tx.one(SQL["lock_urn_of"], id=item)
    if await tx.value(SQL["has_twin"], id=item, urn=urn):
        return {"kept": True}
    await note_links(tx, (), urn=urn, scope=scope)
    return asdict(await remove_source(tx, scope, urn))
