"""Passages and stored pages for tests of ask."""

from hashlib import sha256
from itertools import count

from gristmill.agents import Passage
from gristmill.db import Database, Tx
from gristmill.ids import ChunkId, DocumentId, ScopeId
from gristmill.knowledge import chunks, make_searchable, terms_of, vectors
from gristmill.models import Embedder
from gristmill.scopes import GLOBAL, Scope, scope_id

_names = count(1)


def passage(text: str, number: int = 1, *, start: int = 0, language: str | None = "en", **more: object) -> Passage:
    """A passage of a page that begins at this character."""
    given = {"title": None, "name": f"note-{number}.md", "heading": "", "page": 1, **more}
    return Passage(
        number=number,
        document=DocumentId(number),
        type="markdown",
        start=start,
        stop=start + len(text),
        language=language,
        text=text,
        score=1.0,
        chunks=(ChunkId(number),),
        **given,  # type: ignore[arg-type]
    )


async def store_page(
    db: Database, text: str, *, name: str = "", title: str = "", scope: Scope = GLOBAL, embedder: Embedder | None = None
) -> DocumentId:
    """A document of one page that can be searched, by its words and, with an embedder, by its meaning."""
    async with db.transaction() as tx:
        own = await scope_id(tx, scope)
        document = await _place(tx, own, name or f"note-{next(_names)}.md", title or None)
        await tx.execute(
            """INSERT INTO page (document, number, scope, method, text, key)
               VALUES (%(document)s, 1, %(scope)s, 'text', %(text)s, %(key)s)""",
            document=document,
            scope=own,
            text=text,
            key=sha256(text.encode()).digest(),
        )
        pieces = chunks.split(text, title=title)
        await chunks.save(tx, own, document, 1, pieces)
        found = await chunks.load(tx, [(document, 1, n) for n in range(len(pieces))])
        model = await vectors.register(tx, embedder) if embedder else None
        for one in found:
            assert one
            made = {model.id: (await embedder.embed([one.text_to_embed]))[0]} if model and embedder else {}
            await make_searchable(tx, one, made, terms_of(one.text_to_embed, one.language))
    return document


async def _place(tx: Tx, scope: ScopeId, name: str, title: str | None) -> DocumentId:
    digest = sha256(f"{name} {next(_names)}".encode()).digest()
    await tx.execute("INSERT INTO blob (hash, size) VALUES (%(hash)s, 0) ON CONFLICT DO NOTHING", hash=digest)
    return DocumentId(
        await tx.value(
            """INSERT INTO document (scope, urn, version, hash, name, type, title, pages, task, opening)
               VALUES (%(scope)s, %(urn)s, 1, %(hash)s, %(name)s, 'markdown', %(title)s, 1, 0, 0) RETURNING id""",
            scope=scope,
            urn=f"test:{digest.hex()[:12]}",
            hash=digest,
            name=name,
            title=title,
        )
    )
