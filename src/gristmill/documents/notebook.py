"""What agents write down themselves: single chunks and whole texts, searchable when the call returns."""

import asyncio
from collections.abc import Iterator, Sequence

from gristmill.db import Database, Tx
from gristmill.documents.take_in import Note, Taken, WholeText, find_refusal, take_in
from gristmill.documents.written import NOTHING, Searchable, find_note
from gristmill.errors import Refused
from gristmill.ids import ChunkId, DocumentId
from gristmill.knowledge import Embedders, LongTextEmbedder, Piece, chunks, graph, keys, vectors
from gristmill.scopes import GLOBAL, Scope

LARGE = 40_000  # characters from which a text is divided by length alone …
LENGTH, OVERLAP = 4_000, 200  # … into parts of so many, each of which repeats the end of the one before


async def store_chunk(
    db: Database,
    embedder: Embedders,
    document_id: str,
    content: str,
    node_key: str,
    *,
    entity_types: Sequence[str] = (),
    graph_refs: Sequence[str] = (),
    knowledge_type: str = "DOCUMENT",
    scope: Scope = GLOBAL,
) -> ChunkId:
    """Keeps one chunk as it is, in the document with this URN, and links it with a node; the same one only once."""
    note = await prepare_chunk(db, embedder, document_id, content, knowledge_type=knowledge_type, scope=scope)
    async with db.transaction() as tx:
        return await put_chunk(tx, note, node_key, entity_types=entity_types, graph_refs=graph_refs)


async def prepare_chunk(
    db: Database, embedder: Embedders, document_id: str, content: str, *, knowledge_type: str, scope: Scope
) -> Note:
    """A note with its vectors, before a transaction writes it down."""
    check_item(Note(document_id, content, NOTHING))
    return Note(document_id, content, await prepare_note(db, embedder, content), scope, knowledge_type)


async def put_chunk(
    tx: Tx, note: Note, node_key: str, *, entity_types: Sequence[str] = (), graph_refs: Sequence[str] = ()
) -> ChunkId:
    """Writes a note down and links it with its nodes."""
    document = document_of_taken(await take_in(tx, note))
    chunk = await find_note(tx, document, note.chunks.pieces[0].hash)
    assert chunk is not None
    for key, type in await _name_nodes(tx, note.scope, (node_key, *graph_refs), entity_types):
        await graph.create_node_with_rag_links(tx, note.scope, key, type, {}, [chunk])
    return chunk


async def index_document(
    db: Database,
    embedder: Embedders,
    document_id: str,
    content: str,
    title: str,
    location: str,
    *,
    knowledge_type: str = "DOCUMENT",
    related_docs: Sequence[str] = (),
    scope: Scope = GLOBAL,
) -> DocumentId:
    """Keeps a whole text in place of the one before under this URN; a large one in parts of 4,000 characters.

    Notes (`store_chunk`) under the same URN stay. The same text under the same title only gets its new type, location
    and relations; a title stands above every chunk, so that another one makes other chunks.
    """
    check_item(WholeText(document_id, title, content, NOTHING))
    prepared = await prepare_text(db, embedder, content, title)
    about = {"location": location, "related": list(related_docs)}
    whole = WholeText(document_id, title, content, prepared, scope, knowledge_type, metadata=about)
    async with db.transaction() as tx:
        return document_of_taken(await take_in(tx, whole))


async def prepare_text(db: Database, embedder: Embedders, text: str, title: str) -> Searchable:
    """The chunks of a text and their vectors: computed before a transaction, since a model takes its time."""
    pieces = await asyncio.to_thread(_split, text, title)  # the loop goes on meanwhile
    return await _embed(db, embedder, pieces)


def _split(text: str, title: str) -> list[Piece]:
    if len(text) >= LARGE:
        return [chunks.make_piece(text[a:b], a, title) for a, b in divide(text)]
    return chunks.split(text, title=title)


async def prepare_note(db: Database, embedder: Embedders, text: str) -> Searchable:
    """A text as one chunk, and its vectors."""
    return await _embed(db, embedder, [chunks.make_piece(text, 0)])


async def _embed(db: Database, embedder: Embedders, pieces: Sequence[Piece]) -> Searchable:
    """All of a piece counts, also where it is longer than a model's window."""
    whole = [LongTextEmbedder(one) for one in vectors.available_embedders(embedder)]
    return Searchable(
        pieces, await vectors.make_vectors(db, whole, {piece.hash: piece.text_to_embed for piece in pieces})
    )


def divide(text: str) -> Iterator[tuple[int, int]]:
    """Where each part of a large text begins and ends; at a blank where there is one near."""
    start = 0
    while start < len(text):
        stop = min(start + LENGTH, len(text))
        if stop < len(text) and (blank := text.rfind(" ", stop - OVERLAP, stop)) > 0:
            stop = blank
        if text[start:stop].strip():
            yield start, stop
        start = stop if stop == len(text) else stop - OVERLAP


def check_item(item: Note | WholeText) -> None:
    """Before a model is asked for nothing."""
    if reason := find_refusal(item):
        raise Refused(reason)


def document_of_taken(taken: Taken) -> DocumentId:
    if taken.document is None:
        raise Refused(taken.reason or "It cannot be taken in.")
    return taken.document


async def _name_nodes(tx: Tx, scope: Scope, names: Sequence[str], types: Sequence[str]) -> list[tuple[str, str]]:
    """The key of each node with its type, or its namespace.

    In one order: two writers of the same nodes would otherwise wait for each other.
    """
    await keys.block_alias_changes(tx)
    given = [*types, *(name.partition("::")[0] for name in names[len(types) :])]
    return sorted(zip(await keys.resolve_keys(tx, scope.client, names), given, strict=False))
