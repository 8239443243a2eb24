"""Ways from some chunks to others: what they mention, by its usual name, and what that is related to."""

from collections.abc import Sequence
from dataclasses import dataclass

from gristmill.db import Tx, queries
from gristmill.ids import ChunkId
from gristmill.scopes import Scope, visible

SQL = queries("gristmill.knowledge.graph", "leads.sql")
NODES = 40  # things that the chunks mention, those that they mention most
EDGES = 100  # of each thing that are looked at, in each direction …
TYPED = 8  # … and those that say more than that two names stand in one sentence
FEW = 20  # chunks: what more than these mention leads everywhere
KINDS = ["person", "organisation", "place", "name"]  # of things that texts are about; a date or an amount is not


@dataclass(frozen=True, slots=True)
class Lead:
    """A name that a chunk leads to."""

    chunk: ChunkId
    origin: str  # the thing that the chunk mentions, as it is written there
    name: str  # what others call it, or what it is related to
    is_related: bool  # by an edge; else it is the same thing


async def find_leads(tx: Tx, scope: Scope | None, chunks: Sequence[ChunkId]) -> list[Lead]:
    """The names that these chunks lead to; without a scope everything is seen, as in search."""
    if not chunks:
        return []
    client, scopes = (scope.client, await visible(tx, scope)) if scope else ("", None)
    return await tx.all(
        SQL["leads"],
        Lead,
        client=client,
        scopes=scopes,
        chunks=list(chunks),
        nodes=NODES,
        edges=EDGES,
        typed=TYPED,
        few=FEW,
        kinds=KINDS,
    )
