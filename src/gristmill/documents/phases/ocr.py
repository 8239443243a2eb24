"""The first phase: every page becomes Markdown, and the Markdown chunks."""

from collections.abc import Sequence
from functools import partial

from gristmill.db import Database, Tx
from gristmill.documents import store
from gristmill.documents.blobs import Spool
from gristmill.documents.desk import Desk, Read
from gristmill.documents.model import VECTOR, Document
from gristmill.documents.phases.opening import REMOVED
from gristmill.knowledge import chunks
from gristmill.queue import Done, Envelope, Skip
from gristmill.tasks import EmbedChunk, ReadPage


async def read_page(letter: ReadPage, *, db: Database, desk: Desk, spool: Spool) -> Done | Skip:
    async with db.transaction() as tx:
        document = (await store.load(tx, [letter.document])).get(letter.document)
        if document is None:
            return REMOVED
        key = desk.key(document, letter.page)
        known = await store.page_by_key(tx, key)
    if known is not None:
        read = await desk.split(known, document.title or "")
    else:
        read = await desk.read(await spool.file(document.hash, document.size), document, letter.page)
    write = partial(_write, document=document, number=letter.page, read=read, key=key)
    then = _embeddings(document, letter.page, read)
    if read.page.method == "copied":
        return Skip(f"{document.type} carries its text and needs no reading", write, then)
    return Done(write, then)


def _embeddings(document: Document, page: int, read: Read) -> Sequence[Envelope]:
    group = document.phases[VECTOR]
    return [
        Envelope(EmbedChunk(document.id, page, ordinal), parent=group, owner=document.owner)
        for ordinal in range(len(read.pieces))
    ]


async def _write(tx: Tx, *, document: Document, number: int, read: Read, key: bytes) -> None:
    await store.save_page(tx, document, number, read.page, key)
    await chunks.save(tx, document.scope, document.id, number, read.pieces)
