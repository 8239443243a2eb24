"""A document with chunks, put straight into the tables, for tests of the graph."""

import hashlib
from collections.abc import Sequence
from typing import Any

from gristmill.db import Database
from gristmill.ids import ChunkId
from gristmill.knowledge import graph
from gristmill.models import Entity, Extraction, Relation, TextPassage, make_entity_key


async def shelve(
    db: Database, *texts: str, client: str = "", project: str = "", urn: str = "", version: int = 1
) -> list[ChunkId]:
    """One document with one chunk per text, all on its first page."""
    async with await db.connect("test") as connection:
        rows = await connection.execute(
            "WITH made AS (INSERT INTO scope (client, project) VALUES (%(c)s, %(p)s) "
            "ON CONFLICT DO NOTHING RETURNING id) "
            "SELECT id FROM made UNION ALL SELECT id FROM scope WHERE client = %(c)s AND project = %(p)s",
            {"c": client, "p": project},
        )
        (scope,) = await rows.fetchone() or (None,)
        body = "\n\n".join(texts)
        digest = hashlib.sha256(f"{urn}{body}".encode()).digest()
        await connection.execute("INSERT INTO blob VALUES (%s, %s) ON CONFLICT DO NOTHING", [digest, len(body)])
        rows = await connection.execute(
            "INSERT INTO document (scope, urn, version, hash, name, title, completed_at, task, opening) "
            "VALUES (%s, %s, %s, %s, 'note.md', 'A note', clock(), 0, 0) RETURNING id",
            [scope, urn or f"file:///{digest.hex()[:12]}", version, digest],
        )
        (document,) = await rows.fetchone() or (None,)
        await connection.execute("INSERT INTO page VALUES (%s, 1, %s, 'copied', %s, '\\x00')", [document, scope, body])
        chunks: list[ChunkId] = []
        start = 0
        for ordinal, text in enumerate(texts):
            rows = await connection.execute(
                "INSERT INTO chunk (scope, document, page, ordinal, start, stop, tokens, text, hash) "
                "VALUES (%s, %s, 1, %s, %s, %s, 10, %s, %s) RETURNING id",
                [scope, document, ordinal, start, start + len(text), text, hashlib.sha256(text.encode()).digest()],
            )
            chunks.append(ChunkId((await rows.fetchone() or (0,))[0]))
            start += len(text) + 2
        return chunks


def drawn(*facts: str) -> Extraction:
    """An extraction with persons and relations, from `Jane Doe -SIGNED-> Acme`; a name alone is only mentioned."""
    entities: dict[str, Entity] = {}
    relations: list[Relation] = []
    for fact in facts:
        parts = fact.replace("->", "-").split("-")
        for name in (part.strip() for part in parts[::2]):
            key = make_entity_key("person", name)
            entities[key] = Entity(key, "person", name)
        if len(parts) == 3:
            source, type, target = (part.strip() for part in parts)
            relations.append(Relation(make_entity_key("person", source), type, make_entity_key("person", target)))
    return Extraction(tuple(entities.values()), tuple(relations))


async def contribute(db: Database, chunk: ChunkId, *facts: str, client: str = "") -> bytes:
    key = graph.extraction_key(client, TextPassage("; ".join(facts)), "test")
    async with db.transaction() as tx:
        await graph.save(tx, chunk, client, drawn(*facts), key)
    return key


async def rows(db: Database, query: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    async with await db.connect("test") as connection:
        return await (await connection.execute(query.encode(), params)).fetchall()


async def edges(db: Database) -> list[tuple[Any, ...]]:
    return await rows(db, "SELECT source, type, target, evidence FROM edge ORDER BY 1, 2, 3")


async def nodes(db: Database) -> list[tuple[Any, ...]]:
    return await rows(db, "SELECT key, mentions, chunks FROM node ORDER BY 1")
