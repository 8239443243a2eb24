"""What a chunk contributes to the graph: saved with it, once, and found again by what it was drawn from."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from gristmill.db import Row, Tx, queries
from gristmill.ids import ChunkId
from gristmill.models import Entity, Extraction, Passage, Relation

SQL = queries("gristmill.knowledge.graph", "contributions.sql")

NodeRef = tuple[str, str]  # client, key
EdgeRef = tuple[str, str, str, str]  # client, source, type, target


@dataclass(frozen=True)
class Losses:
    """What the graph loses with some chunks: nodes and edges that go, and those that only lose some evidence."""

    nodes_gone: tuple[NodeRef, ...]
    nodes_weaker: tuple[NodeRef, ...]
    edges_gone: tuple[EdgeRef, ...]
    edges_weaker: tuple[EdgeRef, ...]


def extraction_key(client: str, passage: Passage, version: str) -> bytes:
    """What an extraction was drawn from: the same key never has to be drawn again, and no two clients share one."""
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


async def known_extractions(tx: Tx, keys: Sequence[bytes]) -> dict[bytes, Extraction]:
    """What was drawn before, by its key."""
    rows = await tx.all(SQL["known_extractions"], keys=list(set(keys))) if keys else []
    return {bytes(row.key): _make_extraction(row) for row in rows}


async def save(tx: Tx, chunk_id: ChunkId, client: str, extraction: Extraction, key: bytes) -> None:
    """Writes what one chunk contributes in place of what it contributed before."""
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


def _make_extraction(row: Row) -> Extraction:
    entities = tuple(Entity(**one) for one in row.entities)
    relations = tuple(Relation(**one) for one in row.relations)
    return Extraction(entities, relations, silent=row.silent, dropped=row.dropped)


async def find_losses(tx: Tx, chunk_ids: Sequence[ChunkId]) -> Losses:
    """What would go if these chunks went."""
    nodes = await tx.all(SQL["lost_nodes"], chunks=list(chunk_ids))
    edges = await tx.all(SQL["lost_edges"], chunks=list(chunk_ids))
    return Losses(
        nodes_gone=tuple(row[:2] for row in nodes if not row.stays),
        nodes_weaker=tuple(row[:2] for row in nodes if row.stays),
        edges_gone=tuple(row[:4] for row in edges if not row.stays),
        edges_weaker=tuple(row[:4] for row in edges if row.stays),
    )
