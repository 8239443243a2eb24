"""Removes documents with everything that was made of them, and counts it."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gristmill.db import Column, Database, Tx, Viewpoint
from gristmill.documents import store
from gristmill.documents.blobs import drop_unused_bytes, lock_bytes
from gristmill.documents.model import owner_of
from gristmill.documents.progress import find_parts, find_with_parts
from gristmill.documents.store import SQL
from gristmill.documents.versions import forget_texts, keep_texts, sources_of
from gristmill.errors import Unknown
from gristmill.ids import ChunkId, DocumentId, ScopeId
from gristmill.knowledge import graph, lexicon
from gristmill.queue import cancel, forget_owners, send_many
from gristmill.scopes import Scope, find_scope

PORTION = 200  # documents removed in one transaction


@dataclass(frozen=True)
class Removed:
    """How much was removed, and how many nodes and edges only lost some of their evidence."""

    documents: int
    pages: int
    chunks: int
    tasks: int
    nodes: int
    edges: int
    nodes_weaker: int
    edges_weaker: int


@dataclass
class RemovedSoFar:
    """What was removed so far: a node may lose some evidence in one transaction, and the rest in the next."""

    documents: int = 0
    pages: int = 0
    chunks: int = 0
    tasks: int = 0
    nodes: set[graph.NodeRef] = field(default_factory=set[graph.NodeRef])
    edges: set[graph.EdgeRef] = field(default_factory=set[graph.EdgeRef])
    nodes_weaker: set[graph.NodeRef] = field(default_factory=set[graph.NodeRef])
    edges_weaker: set[graph.EdgeRef] = field(default_factory=set[graph.EdgeRef])

    def lose(self, losses: graph.Losses) -> None:
        self.nodes.update(losses.nodes_gone)
        self.edges.update(losses.edges_gone)
        self.nodes_weaker = self.nodes_weaker.union(losses.nodes_weaker) - self.nodes
        self.edges_weaker = self.edges_weaker.union(losses.edges_weaker) - self.edges

    def keep(self, stated: Iterable[graph.NodeRef]) -> None:
        """Statements with evidence that only others see: their nodes are weaker, and not gone."""
        kept = self.nodes.intersection(stated)
        self.nodes -= kept
        self.nodes_weaker |= kept

    def sum_up(self) -> Removed:
        return Removed(
            self.documents,
            self.pages,
            self.chunks,
            self.tasks,
            len(self.nodes),
            len(self.edges),
            len(self.nodes_weaker),
            len(self.edges_weaker),
        )


class _DeletedRow(NamedTuple):
    documents: int
    scopes: list[ScopeId]


class _ContentsRow(NamedTuple):
    pages: int
    chunks: list[ChunkId]


@dataclass(frozen=True)
class Deleted:
    """How many documents there still were, in which scopes, and the statements that lost some of their evidence."""

    documents: int
    scopes: Sequence[ScopeId]
    stated: Sequence[graph.NodeRef]


async def remove(tx: Tx, ids: Iterable[DocumentId]) -> Removed:
    """Remove documents and their parts; a worker that is busy with one of them writes nothing any more."""
    account = RemovedSoFar()
    await _remove(tx, list(ids), account, named=list(ids))
    if not account.documents:
        raise Unknown("There is no such document.")
    return account.sum_up()


async def preview_removal(tx: Tx, ids: Iterable[DocumentId]) -> Removed:
    """What `remove` would take with these documents at this moment; nothing is changed and nobody waits."""
    named = list(ids)
    meant = await find_with_parts(tx, named)
    if not meant:
        raise Unknown("There is no such document.")
    contents = await tx.one(SQL["contents"], _ContentsRow, ids=meant)
    assert contents is not None
    listed = {*named, *await find_parts(tx, named)}.intersection(meant)
    account = RemovedSoFar(documents=len(listed), pages=contents.pages, chunks=len(contents.chunks))
    account.lose(await graph.find_losses(tx, contents.chunks))
    account.tasks = await tx.only_value(SQL["count_tasks"], int, owners=[owner_of(one) for one in meant])
    return account.sum_up()


async def remove_source(tx: Tx, scope: Scope, urn: str) -> Removed:
    """Remove all versions of a source, and their parts; all counts are 0 if there is no such source."""
    account = RemovedSoFar()
    own = await find_scope(tx, scope)
    if own is not None:
        await store.lock_source(tx, own, urn)
        versions = await tx.values(SQL["versions"], Column[DocumentId], scope=own, urn=urn)
        if versions:
            await _remove(tx, versions, account, named=versions)
    return account.sum_up()


async def replace(tx: Tx, older: Sequence[DocumentId]) -> None:
    """Remove the versions that a newer one takes the place of; the caller has the terms put in order.

    Statements about a chunk that the newer version has, too, go over to that chunk. Versions that another transaction
    removed first do not matter.
    """
    meant, _ = await _stop_work(tx, older)
    await keep_texts(tx, meant)
    await graph.hand_down_statements(tx, meant)
    await _delete(tx, meant)


async def remove_in_portions(
    db: Database,
    ids: Sequence[DocumentId],
    tell: Callable[[int, int], None] = lambda done, of: None,
    *,
    seen_from: Viewpoint | None = None,
    note: Callable[[Tx], Awaitable[None]] | None = None,
) -> Removed:
    """As `remove`, in many transactions if many documents lie in these; if it is interrupted, ask for it again.

    A container goes last: what is left of it can be found by it. It is not opened any further meanwhile. `note` writes
    down the removal in the transaction with which it begins.
    """
    async with db.transaction(seen_from=seen_from) as tx:
        known = await store.load_documents(tx, ids)
        for id_ in ids:
            if id_ not in known:
                raise Unknown(f"There is no document {id_}.", listed_by="gristmill documents")
        meant = await find_with_parts(tx, ids)
        if note:
            await note(tx)
        if len(meant) <= PORTION:
            return await remove(tx, ids)
        await cancel(tx, [one.task for one in known.values() if one.phases], reason="its document is being removed")
    account = RemovedSoFar()
    for some in _portions([id_ for id_ in meant if id_ not in known]):
        async with db.transaction(seen_from=seen_from) as tx:
            await _remove(tx, some, account, named=())
        tell(account.documents, len(meant))
    async with db.transaction(seen_from=seen_from) as tx:
        await _remove(tx, ids, account, named=ids)
    return account.sum_up()


async def thin_out(db: Database, document: DocumentId) -> None:
    """Remove many parts of older versions portion by portion, before a whole version takes their place."""
    async with db.transaction() as tx:
        older = await tx.values(SQL["older_versions"], Column[DocumentId], id=document)
        meant = await find_with_parts(tx, older) if older else []
        if len(meant) <= PORTION:
            return
        await tx.execute(SQL["hand_over"], id=document, older=older)
        await tx.flush()
        meant = await find_with_parts(tx, older)
    for some in _portions([id_ for id_ in meant if id_ not in older]):
        async with db.transaction() as tx:
            await replace(tx, some)


def _portions(ids: Sequence[DocumentId]) -> Iterator[Sequence[DocumentId]]:
    return (ids[at : at + PORTION] for at in range(0, len(ids), PORTION))


async def _remove(tx: Tx, ids: Sequence[DocumentId], account: RemovedSoFar, *, named: Sequence[DocumentId]) -> None:
    """`named` are those of these that somebody asked to remove."""
    meant, tasks = await _stop_work(tx, ids)
    contents = await tx.one(SQL["contents"], _ContentsRow, ids=meant)
    assert contents is not None
    account.lose(await graph.find_losses(tx, contents.chunks))
    gone = await _delete(tx, meant, named)
    account.keep(gone.stated)
    await send_many(tx, [lexicon.fold_letter(scope) for scope in gone.scopes])
    account.documents += gone.documents
    account.pages += contents.pages
    account.chunks += len(contents.chunks)
    account.tasks += tasks


async def _delete(tx: Tx, ids: Sequence[DocumentId], named: Sequence[DocumentId] = ()) -> Deleted:
    """Delete documents, with the bytes and statements that nothing else needs."""
    hashes = await tx.values(SQL["hashes_of"], bytes, ids=ids)
    await lock_bytes(tx, hashes)  # before the documents: every removal locks in this order
    stated = await graph.statements_at_stake(tx, ids)
    sources = await sources_of(tx, ids)
    gone = await tx.one(SQL["delete_documents"], _DeletedRow, ids=ids, named=list(named))
    assert gone is not None
    await drop_unused_bytes(tx, hashes)
    await forget_texts(tx, sources)
    return Deleted(gone.documents, gone.scopes, await graph.retract_statements(tx, stated))


async def _stop_work(tx: Tx, ids: Sequence[DocumentId]) -> tuple[list[DocumentId], int]:
    """End all work on documents and on the parts that lie in them: these documents, and how many tasks were removed."""
    known: dict[DocumentId, None] = {}  # in the order in which they were found
    tasks = 0
    # again: one that was being opened while we waited for it may have brought more parts
    while fresh := [
        one for one in await tx.values(SQL["with_parts"], Column[DocumentId], ids=list(ids)) if one not in known
    ]:
        tasks += await forget_owners(tx, [owner_of(document) for document in fresh])
        known |= dict.fromkeys(fresh)
    return list(known), tasks
