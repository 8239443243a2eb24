"""The contribution of a chunk to the graph: saved once, and found again by the text that it was extracted from."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import orjson

from gristmill.db import Tx, queries
from gristmill.ids import ChunkId
from gristmill.models import Entity, Extraction, Relation, TextPassage

SQL = queries("gristmill.knowledge.graph", "contributions.sql")


class NodeRef(NamedTuple):
    """A node of a client's graph."""

    client: str
    key: str


class EdgeRef(NamedTuple):
    """An edge of a client's graph."""

    client: str
    source: str
    type: str
    target: str


@dataclass(frozen=True)
class Losses:
    """Nodes and edges that go with some chunks, and those that only lose some of their evidence."""

    nodes_gone: tuple[NodeRef, ...]
    nodes_weaker: tuple[NodeRef, ...]
    edges_gone: tuple[EdgeRef, ...]
    edges_weaker: tuple[EdgeRef, ...]


def extraction_key(client: str, passage: TextPassage, version: str) -> bytes:
    """Identifies the input of an extraction, which is never made twice for the same key; no two clients share one."""
    asked: list[Any] = [
        client,
        passage.text,
        passage.heading,
        passage.kind,
        passage.language,
        dict(passage.context),
        version,
    ]
    return hashlib.sha256(orjson.dumps(asked, option=orjson.OPT_SORT_KEYS)).digest()


class _ExtractionRow(NamedTuple):
    key: bytes
    silent: bool | None
    dropped: int
    entities: list[dict[str, Any]]
    relations: list[dict[str, Any]]


async def find_extractions(tx: Tx, keys: Sequence[bytes]) -> dict[bytes, Extraction]:
    """The extractions that exist already, by their keys."""
    rows = await tx.all(SQL["known_extractions"], _ExtractionRow, keys=list(set(keys))) if keys else []
    return {bytes(row.key): _make_extraction(row) for row in rows}


async def save(tx: Tx, chunk_id: ChunkId, client: str, extraction: Extraction, key: bytes) -> None:
    """Writes the contribution of one chunk in place of its contribution before."""
    await tx.execute(
        SQL["save"],
        chunk=chunk_id,
        client=client,
        key=key,
        entities=orjson.dumps([asdict(one) for one in extraction.entities]).decode(),
        relations=orjson.dumps([asdict(one) for one in extraction.relations]).decode(),
        silent=extraction.silent,
        dropped=extraction.dropped,
    )


def _make_extraction(row: _ExtractionRow) -> Extraction:
    entities = tuple(Entity(**one) for one in row.entities)
    relations = tuple(Relation(**one) for one in row.relations)
    return Extraction(entities, relations, silent=row.silent, dropped=row.dropped)


class _LostNode(NamedTuple):
    client: str
    key: str
    stays: bool  # it has other evidence


class _LostEdge(NamedTuple):
    client: str
    source: str
    type: str
    target: str
    stays: bool


async def find_losses(tx: Tx, chunk_ids: Sequence[ChunkId]) -> Losses:
    """The nodes and edges that would lose evidence if these chunks went."""
    nodes = await tx.all(SQL["lost_nodes"], _LostNode, chunks=list(chunk_ids))
    edges = await tx.all(SQL["lost_edges"], _LostEdge, chunks=list(chunk_ids))
    return Losses(
        nodes_gone=tuple(NodeRef(row.client, row.key) for row in nodes if not row.stays),
        nodes_weaker=tuple(NodeRef(row.client, row.key) for row in nodes if row.stays),
        edges_gone=tuple(EdgeRef(*row[:4]) for row in edges if not row.stays),
        edges_weaker=tuple(EdgeRef(*row[:4]) for row in edges if row.stays),
    )
