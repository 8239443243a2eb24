"""The third phase: the people and things that every chunk names, and how they belong together."""

from collections.abc import Sequence
from functools import partial

from gristmill.db import Database
from gristmill.documents import store
from gristmill.documents.letters import BuildGraph
from gristmill.documents.model import Document
from gristmill.documents.phases.definition import GRAPH
from gristmill.documents.phases.vector import GONE
from gristmill.ids import ChunkId, DocumentId
from gristmill.knowledge import Chunk, chunks, graph
from gristmill.models import Extraction, Extractor, TextPassage
from gristmill.queue import Done, Skip


async def build_graph(
    letters: Sequence[BuildGraph], *, db: Database, extractor: Extractor
) -> list[Done | Skip | Exception]:
    async with db.transaction() as tx:
        documents = await store.load_documents(tx, {letter.document for letter in letters})
        units = [(letter.document, letter.page, letter.ordinal) for letter in letters]
        found = await chunks.load(tx, units)
        passages = {
            chunk.id: passage
            for chunk in found
            if chunk is not None
            and chunk.document in documents
            and (passage := _make_passage(chunk, documents[chunk.document]))
        }
        keys = {
            chunk.id: graph.extraction_key(documents[chunk.document].client, passages[chunk.id], extractor.version)
            for chunk in found
            if chunk is not None and chunk.id in passages
        }
        known = await graph.find_extractions(tx, list(keys.values()))
    drawn: dict[ChunkId, Extraction | Exception] = {id_: known[key] for id_, key in keys.items() if key in known}
    missing = [id_ for id_ in keys if id_ not in drawn]
    drawn |= zip(missing, await extractor.extract([passages[id_] for id_ in missing]), strict=True)
    return [_outcome(chunk, documents, keys, drawn) for chunk in found]


def _make_passage(chunk: Chunk, document: Document) -> TextPassage | None:
    """The first chunk brings its document's head: the sender of a mail is named there, not in the sentences."""
    text, kind = chunks.choose_sentences(chunk.text, chunk.kind)
    if not text:
        return None
    first = chunk.page == 1 and chunk.ordinal == 0
    about = {"type": document.type, "title": document.title, "meta": dict(document.meta)} if first else {}
    return TextPassage(text, chunk.heading, kind, chunk.language, about)


def _outcome(
    chunk: Chunk | None,
    documents: dict[DocumentId, Document],
    keys: dict[ChunkId, bytes],
    drawn: dict[ChunkId, Extraction | Exception],
) -> Done | Skip | Exception:
    if chunk is None or chunk.document not in documents:
        return GONE
    document = documents[chunk.document]
    then = document.unit_after(GRAPH, chunk.page, chunk.ordinal)
    if chunk.id not in keys:
        return Skip(f"a {chunk.kind} has no sentences to draw from", then=then)
    extraction = drawn[chunk.id]
    if isinstance(extraction, Exception):
        return extraction
    client = document.client
    write = partial(graph.save, chunk_id=chunk.id, client=client, extraction=extraction, key=keys[chunk.id])
    return Done(write, then)
