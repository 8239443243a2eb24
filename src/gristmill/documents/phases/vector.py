"""The second phase: every chunk gets its vector and its terms, and can be found from then on."""

from collections.abc import Sequence
from functools import partial

from gristmill.db import Database
from gristmill.documents import store
from gristmill.documents.letters import EmbedChunk
from gristmill.documents.model import Document
from gristmill.documents.phases.definition import VECTOR
from gristmill.ids import DocumentId
from gristmill.knowledge import Chunk, Embedders, chunks, lexicon, make_searchable, terms_of, vectors
from gristmill.queue import Done, Skip

GONE = Skip("its chunk was removed")


async def embed_chunks(letters: Sequence[EmbedChunk], *, db: Database, embedders: Embedders) -> list[Done | Skip]:
    async with db.transaction() as tx:
        documents = await store.load_documents(tx, {letter.document for letter in letters})
        found = await chunks.load(tx, [(letter.document, letter.page, letter.ordinal) for letter in letters])
    made = await vectors.make_vectors(
        db, embedders, {chunk.hash: chunk.text_to_embed for chunk in found if chunk is not None}
    )
    return [_outcome(chunk, documents, made) for chunk in found]


def _outcome(
    chunk: Chunk | None, documents: dict[DocumentId, Document], made: dict[bytes, dict[int, bytes]]
) -> Done | Skip:
    if chunk is None or chunk.document not in documents:
        return GONE
    document = documents[chunk.document]
    terms = terms_of(chunk.text_to_embed, chunk.language)
    return Done(
        write=partial(make_searchable, chunk=chunk, vectors=made[chunk.hash], terms=terms),
        then=(
            *document.unit_after(VECTOR, chunk.page, chunk.ordinal),
            *lexicon.fold_letters_after(chunk.id, chunk.scope),
        ),
    )
