"""Documents with chunks, in any scope, for tests of knowledge."""

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from itertools import count

from gristmill.db import Tx
from gristmill.ids import DocumentId, ScopeId
from gristmill.knowledge import Chunk, chunks, make_searchable, terms_of
from gristmill.models import Embedder
from gristmill.scopes import GLOBAL, Scope, scope_id

_names = count(1)


async def placed(
    tx: Tx,
    *,
    scope: Scope = GLOBAL,
    urn: str | None = None,
    name: str | None = None,
    kind: str = "markdown",
    title: str | None = None,
    written_at: datetime | None = None,
    version: int = 1,
) -> DocumentId:
    """A document without pages."""
    number = next(_names)
    name = name or f"note-{number}.md"
    digest = sha256(f"{name} {version} {number}".encode()).digest()
    await tx.execute("INSERT INTO blob (hash, size) VALUES (%(hash)s, 0) ON CONFLICT DO NOTHING", hash=digest)
    return DocumentId(
        await tx.value(
            """INSERT INTO document (scope, urn, version, hash, name, type, title, written_at, pages, task, opening)
               VALUES (%(scope)s, %(urn)s, %(version)s, %(hash)s, %(name)s, %(type)s, %(title)s, %(written)s, 1, 0, 0)
               RETURNING id""",
            scope=await scope_id(tx, scope),
            urn=urn or f"test:{number}",
            version=version,
            hash=digest,
            name=name,
            type=kind,
            title=title,
            written=written_at,
        )
    )


async def chunked(tx: Tx, document: DocumentId, text: str, *, page: int = 1, title: str = "") -> list[Chunk]:
    """A page of this document, split and saved, but not yet searchable."""
    scope = ScopeId(await tx.value("SELECT scope FROM document WHERE id = %(id)s", id=document))
    pieces = chunks.split(text, title=title)
    await chunks.save(tx, scope, document, page, pieces)
    return present(await chunks.load(tx, [(document, page, n) for n in range(len(pieces))]))


def present(found: Sequence[Chunk | None]) -> list[Chunk]:
    assert None not in found
    return [one for one in found if one]


async def searchable(tx: Tx, chunk: Chunk, *, model: int | None = None, embedder: Embedder | None = None) -> None:
    """Makes a chunk searchable, as the task of its vector does it."""
    found = {}
    if model is not None and embedder is not None:
        found[model] = (await embedder.embed([chunk.text_to_embed]))[0]
    await make_searchable(tx, chunk, found, terms_of(chunk.text_to_embed, chunk.language))
