"""What agents write down themselves: single chunks and whole texts, searchable when the call returns."""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

import orjson

from gristmill.db import Database, Row, Tx, queries
from gristmill.errors import Refused
from gristmill.ids import ChunkId, DocumentId, ScopeId
from gristmill.knowledge import chunks, graph, vectors
from gristmill.knowledge.chunks import Chunk, Piece, embedded
from gristmill.knowledge.language import language_of
from gristmill.knowledge.lexicon import folding, folding_after
from gristmill.knowledge.scopes import GLOBAL, Scope, scope_id
from gristmill.knowledge.search import Hits, search
from gristmill.knowledge.terms import terms_of
from gristmill.knowledge.vectors import Embedders, make_searchable
from gristmill.models import tokens
from gristmill.queue import send_many

SQL = queries("gristmill.knowledge", "notebook.sql")

LARGE = 40_000  # characters from which a text is divided by length alone …
LENGTH, OVERLAP = 4_000, 200  # … into parts of so many, each of which repeats the end of the one before


async def store_chunk(
    db: Database, embedder: Embedders, document_id: str, content: str, node_key: str, *,
    entity_types: Sequence[str] = (), graph_refs: Sequence[str] = (), knowledge_type: str = "DOCUMENT",
    scope: Scope = GLOBAL,
) -> ChunkId:  # fmt: skip
    """Keeps one chunk as it is, in the document with this URN, and links it with a node; the same one only once."""
    _check(document_id, content)
    piece = _piece(content, 0)
    vector = await vectors.made(db, embedder, {piece.hash: piece.embedded})
    async with db.transaction() as tx:
        own = await _locked(tx, scope, document_id)
        document, text = await _document(tx, own, document_id, content, knowledge_type)
        known = await tx.value(SQL["same_chunk"], document=document, hash=piece.hash)
        chunk = ChunkId(known or await _appended(tx, own, document, text, piece, vector))
        types = [*entity_types, *(key.partition("::")[0] for key in (node_key, *graph_refs)[len(entity_types) :])]
        for key, type in zip((node_key, *graph_refs), types, strict=False):
            await graph.create_node_with_rag_links(tx, scope, key, type, {}, [chunk])
        if letters := folding_after(chunk, own):
            await send_many(tx, letters)
    return chunk


async def search_hybrid(
    db: Database, embedder: Embedders, query: str, alpha: float = 0.5, max_results: int = 10,
    knowledge_types: Sequence[str] | None = None, *, scope: Scope = GLOBAL,
) -> Hits:  # fmt: skip
    """The hits of `search`, of all types or of these."""
    if not knowledge_types:
        return await search(db, embedder, query, scope, alpha=alpha, limit=max_results)
    found = Hits()
    for type in dict.fromkeys(one.casefold() for one in knowledge_types):
        hits = await search(db, embedder, query, scope, alpha=alpha, limit=max_results, type=type)
        found.note = found.note or hits.note
        found += hits
    found.sort(key=lambda hit: -hit.score)
    del found[max_results:]
    return found


async def index_document(
    db: Database, embedder: Embedders, document_id: str, content: str, title: str, location: str, *,
    knowledge_type: str = "DOCUMENT", related_docs: Sequence[str] = (), scope: Scope = GLOBAL,
) -> DocumentId:  # fmt: skip
    """Keeps a whole text in place of what was kept under this URN; a large one in parts of 4,000 characters."""
    _check(document_id, content)
    pieces = [_piece(content[a:b], a, title) for a, b in parts(content)] if len(content) >= LARGE else chunks.split(
        content, title=title
    )  # fmt: skip
    made = await vectors.made(db, embedder, {piece.hash: piece.embedded for piece in pieces})
    meta = {"location": location, "related": list(related_docs)}
    async with db.transaction() as tx:
        own = await _locked(tx, scope, document_id)
        old = await _latest(tx, own, document_id)
        if old and old.text == content:
            return DocumentId(old.id)
        version = old.version + 1 if old else 1
        document = await _made(tx, own, document_id, content, knowledge_type, title=title, meta=meta, version=version)
        await chunks.save(tx, own, document, 1, pieces)
        for chunk in await chunks.load(tx, [(document, 1, n) for n in range(len(pieces))]):
            assert chunk
            await make_searchable(tx, chunk, made[chunk.hash], terms_of(chunk.embedded, chunk.language))
        await _drop_older(tx, scope=own, urn=document_id, version=version)
        await send_many(tx, [folding(own)])
    return document


def parts(text: str) -> Iterator[tuple[int, int]]:
    """Where each part of a large text begins and ends; at a blank where there is one near."""
    start = 0
    while start < len(text):
        stop = min(start + LENGTH, len(text))
        if stop < len(text) and (blank := text.rfind(" ", stop - OVERLAP, stop)) > 0:
            stop = blank
        if text[start:stop].strip():
            yield start, stop
        start = stop if stop == len(text) else stop - OVERLAP


def _check(urn: str, content: str) -> None:
    if not urn.strip():
        raise Refused("A document needs a URN: where it comes from, for example confluence:4711.")
    if not content.strip() or "\0" in content:
        raise Refused(f"The text of {urn} is empty or holds a NUL character: there is nothing to keep.")


def _piece(text: str, start: int, heading: str = "") -> Piece:
    whole = embedded(heading, text)
    count = tokens.count(whole) + chunks.SPECIAL
    digest = sha256(whole.encode()).digest()
    return Piece(start, start + len(text), "prose", language_of(text), heading, text, count, digest)


async def _locked(tx: Tx, scope: Scope, urn: str) -> ScopeId:
    own = await scope_id(tx, scope)
    await tx.one(SQL["lock_source"], urn=urn, scope=own)
    return own


async def _latest(tx: Tx, scope: ScopeId, urn: str) -> Row | None:
    """What was written down under this URN; a file's own would be lost with its next version, or it with this one."""
    found = await tx.one(SQL["latest"], scope=scope, urn=urn)
    if found and found.from_file:
        raise Refused(f"{urn} was read from a file: write it down under a URN of its own, for example note:{found.id}.")
    return found


async def _document(tx: Tx, scope: ScopeId, urn: str, content: str, type: str) -> tuple[DocumentId, str]:
    """The one that single chunks are added to, and its text so far."""
    if found := await _latest(tx, scope, urn):
        return DocumentId(found.id), found.text or ""
    return await _made(tx, scope, urn, content, type, text=""), ""


async def _made(
    tx: Tx, scope: ScopeId, urn: str, content: str, type: str, *, text: str | None = None, title: str | None = None,
    meta: Mapping[str, Any] | None = None, version: int = 1,
) -> DocumentId:  # fmt: skip
    """Its work is done when it is written: there are no tasks of it."""
    body = content.encode()
    digest = sha256(body).digest()
    await tx.execute(SQL["keep_blob"], hash=digest, size=len(body))
    await tx.execute(SQL["keep_bytes"], hash=digest, bytes=body)
    document = await tx.value(
        SQL["make_document"], scope=scope, urn=urn, version=version, hash=digest, name=title or urn, title=title,
        type=type.casefold(), meta=orjson.dumps(dict(meta or {})).decode(),
    )  # fmt: skip
    await tx.execute(SQL["make_page"], document=document, text=content if text is None else text, key=digest)
    return DocumentId(document)


async def _drop_older(tx: Tx, **source: Any) -> None:
    """The versions before this one, and their bytes if nothing else has them."""
    hashes = [row.hash for row in await tx.all(SQL["lock_older_blobs"], **source)]
    older = [row.id for row in await tx.all(SQL["older"], **source)]
    await graph.hand_down(tx, older)
    stated = await graph.at_stake(tx, older)
    await tx.execute(SQL["drop"], documents=older)
    await tx.execute(SQL["drop_unused_blobs"], hashes=hashes)
    await graph.unstate(tx, stated)


async def _appended(
    tx: Tx, scope: ScopeId, document: DocumentId, text: str, piece: Piece, made: Mapping[bytes, Mapping[int, bytes]]
) -> int:
    before = f"{text}\n\n" if text else ""
    start = len(before)
    stop = start + len(piece.text)
    await tx.execute(SQL["extend_page"], document=document, text=before + piece.text)
    given = {"tokens": piece.tokens, "kind": piece.kind, "language": piece.language, "heading": piece.heading}
    row = await tx.one(
        SQL["add_chunk"], scope=scope, document=document, start=start, stop=stop, text=piece.text, hash=piece.hash,
        **given,
    )  # fmt: skip
    assert row is not None
    (chunk,) = await chunks.load(tx, [(document, 1, row.ordinal)])
    assert isinstance(chunk, Chunk)
    await make_searchable(tx, chunk, made[piece.hash], terms_of(piece.embedded, piece.language))
    return row.id
