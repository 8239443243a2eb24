"""Removes documents with everything that was made of them, and says what that was."""

from collections.abc import Iterable
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
    meant = [row.id for row in await tx.all(SQL["with_parts"], ids=list(ids))]
    if not meant:
        raise Refused("There is no such document.")
    held = await tx.one(SQL["contents"], ids=meant)
    assert held is not None
    losses = await graph.losses(tx, held.chunks)
    tasks = 0
    for document in meant:
        tasks += await forget(tx, owner_of(document))
    gone = await tx.one(SQL["delete_documents"], ids=meant)
    assert gone is not None
    await tx.execute(SQL["delete_unused_blobs"], hashes=gone.hashes)
    for scope in gone.scopes:
        await send_many(tx, [folding(scope)])
    return Removed(
        documents=len(meant), pages=held.pages, chunks=len(held.chunks), tasks=tasks, nodes=len(losses.nodes_gone),
        edges=len(losses.edges_gone), nodes_weaker=len(losses.nodes_weaker), edges_weaker=len(losses.edges_weaker),
    )  # fmt: skip


def folding(scope: ScopeId) -> Envelope:
    """Has the terms of this scope put in order, once for all who ask until it begins."""
    return Envelope(FoldTerms(scope), unique=Unique(f"fold:{scope}"))
