"""Removes documents with everything that was made of them, and says what that was."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gristmill.db import Tx
from gristmill.documents.model import owner_of
from gristmill.documents.store import SQL
from gristmill.errors import Refused
from gristmill.ids import DocumentId, ScopeId
from gristmill.knowledge import graph
from gristmill.queue import Envelope, Unique, forget, send_many
from gristmill.tasks import FoldTerms


@dataclass(frozen=True)
class Removed:
    """What went, and what only lost some of its evidence."""

    documents: int
    pages: int
    chunks: int
    tasks: int
    nodes: int
    edges: int
    nodes_weaker: int
    edges_weaker: int


async def remove(tx: Tx, ids: Iterable[DocumentId]) -> Removed:
    """Remove documents and what lies in them; whatever works on them writes nothing any more."""
    meant, tasks = await _halted(tx, list(ids))
    if not meant:
        raise Refused("There is no such document.")
    held = await tx.one(SQL["contents"], ids=meant)
    assert held is not None
    losses = await graph.losses(tx, held.chunks)
    hashes = [row.hash for row in await tx.all(SQL["lock_blobs"], ids=meant)]
    gone = await tx.one(SQL["delete_documents"], ids=meant)
    assert gone is not None
    await tx.execute(SQL["delete_unused_blobs"], hashes=hashes)
    for scope in gone.scopes:
        await send_many(tx, [folding(scope)])
    return Removed(
        documents=len(meant), pages=held.pages, chunks=len(held.chunks), tasks=tasks, nodes=len(losses.nodes_gone),
        edges=len(losses.edges_gone), nodes_weaker=len(losses.nodes_weaker), edges_weaker=len(losses.edges_weaker),
    )  # fmt: skip


async def _halted(tx: Tx, ids: Sequence[DocumentId]) -> tuple[list[DocumentId], int]:
    """Documents and what lies in them, with no work left on any; and how many tasks went."""
    known: dict[DocumentId, None] = {}  # in the order in which they were found
    tasks = 0
    # again: one that was being opened while we waited for it may have brought more parts
    while fresh := [row.id for row in await tx.all(SQL["with_parts"], ids=list(ids)) if row.id not in known]:
        for document in fresh:
            tasks += await forget(tx, owner_of(document))
        known |= dict.fromkeys(fresh)
    return list(known), tasks


def folding(scope: ScopeId) -> Envelope:
    """Has the terms of this scope put in order, once for all who ask until it begins."""
    return Envelope(FoldTerms(scope), unique=Unique(f"fold:{scope}"))
