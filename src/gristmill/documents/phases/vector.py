"""The second phase: every chunk gets its vector and its terms, and can be found from then on."""

from collections.abc import Sequence
from functools import partial

from gristmill.db import Database
from gristmill.documents import store
from gristmill.documents.model import GRAPH, Document
from gristmill.ids import DocumentId
from gristmill.knowledge import Chunk, chunks, make_searchable, terms_of, vectors
from gristmill.models import Embedder
from gristmill.queue import Done, Envelope, Skip
from gristmill.tasks import BuildGraph, EmbedChunk

GONE = Skip("its chunk was removed")


async def embed_chunks(letters: Sequence[EmbedChunk], *, db: Database, embedder: Embedder) -> list[Done | Skip]:
    await embedder.prepare()
    async with db.transaction() as tx:
        model = await vectors.register(tx, embedder)
        documents = await store.load(tx, {letter.document for letter in letters})
        found = await chunks.load(tx, [(letter.document, letter.page, letter.ordinal) for letter in letters])
        known = await vectors.known(tx, model.id, [chunk.hash for chunk in found if chunk is not None])
    new = {chunk.hash: chunk.embedded for chunk in found if chunk is not None and chunk.hash not in known}
    known |= zip(new, await embedder.embed(list(new.values())), strict=True)
    return [_outcome(chunk, documents, model.id, known) for chunk in found]


def _outcome(
    chunk: Chunk | None, documents: dict[DocumentId, Document], model: int, known: dict[bytes, bytes]
) -> Done | Skip:
    if chunk is None or chunk.document not in documents:
        return GONE
    document = documents[chunk.document]
    terms = terms_of(chunk.embedded, chunk.language)
    then = BuildGraph(chunk.document, chunk.page, chunk.ordinal)
    return Done(
        write=partial(make_searchable, chunk=chunk, vectors={model: known[chunk.hash]}, terms=terms),
        then=(Envelope(then, parent=document.phases[GRAPH], owner=document.owner),),
    )
