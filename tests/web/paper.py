"""Documents for tests of pages, put straight into the tables: read, divided, findable, with the names they mention."""

import hashlib
from collections.abc import Sequence
from itertools import count

from graph_shelf import drawn
from gristmill.db import Database
from gristmill.documents.letters import OpenDocument
from gristmill.errors import Permanent
from gristmill.ids import DocumentId, ScopeId
from gristmill.knowledge import chunks, graph, make_searchable, terms_of
from gristmill.models import TextPassage
from gristmill.queue import Worker, on
from gristmill.scopes import GLOBAL, Scope, scope_id
from gristmill.settings import Settings

BLANK = "The scan is blank."
HOSTILE = "<script>alert(1)</script> [x](javascript:alert(2)) \"onload='x' \u202egnp.exe 🏭"
_numbers = count(1)


async def put_document(
    db: Database,
    *pages: str,
    name: str = "note.md",
    title: str | None = None,
    type: str = "markdown",
    scope: Scope = GLOBAL,
    facts: Sequence[str] = (),
    urn: str = "",
    version: int = 1,
) -> DocumentId:
    """A complete document with these pages; `facts` (`Jane -KNOWS-> Bob`) are drawn from its first chunk."""
    digest = hashlib.sha256(f"{next(_numbers)} {name} {pages}".encode()).digest()
    async with db.transaction() as tx:
        own: ScopeId = await scope_id(tx, scope)
        await tx.execute("INSERT INTO blob (hash, size) VALUES (%(hash)s, 3)", hash=digest)
        document = DocumentId(
            await tx.value(
                """INSERT INTO document
                     (scope, urn, version, hash, name, type, title, pages, completed_at, task, opening)
                   VALUES (%(scope)s, %(urn)s, %(version)s, %(hash)s, %(name)s, %(type)s, %(title)s, %(pages)s,
                           clock(), 0, 0) RETURNING id""",
                scope=own,
                urn=urn or f"test:{digest.hex()[:12]}",
                version=version,
                hash=digest,
                name=name,
                type=type,
                title=title,
                pages=len(pages),
            )
        )
        for number, text in enumerate(pages, 1):
            await tx.execute(
                """INSERT INTO page (document, number, scope, method, text, key)
                   VALUES (%(document)s, %(number)s, %(scope)s, 'text', %(text)s, '')""",
                document=document,
                number=number,
                scope=own,
                text=text,
            )
            pieces = chunks.split(text)
            await chunks.save(tx, own, document, number, pieces)
            for chunk in await chunks.load(tx, [(document, number, n) for n in range(len(pieces))]):
                assert chunk is not None
                await make_searchable(tx, chunk, {}, terms_of(chunk.text_to_embed, chunk.language))
                if facts:
                    key = graph.extraction_key(scope.client, TextPassage(text), "test")
                    await graph.save(tx, chunk.id, scope.client, drawn(*facts), key)
                    facts = ()
    return document


async def fail_to_open(db: Database) -> None:
    """Let everything that waits to be opened fail for good."""

    async def refuse(_: OpenDocument) -> None:
        raise Permanent(BLANK)

    handler = on(OpenDocument, refuse)
    await Worker(db, {OpenDocument.kind: handler}, Settings().queue, until_idle=True).run()
