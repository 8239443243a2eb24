"""What agents write down themselves: single chunks and whole texts, searchable when the call returns."""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

import orjson

from gristmill.db import Database, Row, Tx, queries
from gristmill.errors import Refused
from gristmill.ids import ChunkId, DocumentId, ScopeId
from gristmill.knowledge import chunks, graph, vectors
from gristmill.knowledge.chunks import Chunk, Piece, text_to_embed
from gristmill.knowledge.keys import block_alias_changes, resolve_keys
from gristmill.knowledge.language import language_of
from gristmill.knowledge.lexicon import fold_letter, fold_letters_after
from gristmill.knowledge.search import Hits, search
from gristmill.knowledge.terms import terms_of
from gristmill.knowledge.vectors import Embedders, make_searchable
from gristmill.knowledge.windows import LongTextEmbedder
from gristmill.models import Embedder, tokens
from gristmill.queue import send_many
from gristmill.scopes import GLOBAL, Scope, scope_id

SQL = queries("gristmill.knowledge", "notebook.sql")

LARGE = 40_000  # characters from which a text is divided by length alone …
LENGTH, OVERLAP = 4_000, 200  # … into parts of so many, each of which repeats the end of the one before
NO_BYTES = sha256().digest()


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
    _check(document_id, content)
    piece = _piece(content, 0)
    made = await vectors.make_vectors(db, _whole(embedder), {piece.hash: piece.text_to_embed})
    async with db.transaction() as tx:
        own = await _locked(tx, scope, document_id)
        document = await _notebook(tx, own, document_id, knowledge_type)
        known = await tx.value(SQL["same_note"], document=document, hash=piece.hash)
        chunk = ChunkId(known or await _noted(tx, own, document, piece, made))
        for key, type in await _nodes(tx, scope, (node_key, *graph_refs), entity_types):
            await graph.create_node_with_rag_links(tx, scope, key, type, {}, [chunk])
        if letters := fold_letters_after(chunk, own):
            await send_many(tx, letters)
    return chunk


async def search_hybrid(
    db: Database,
    embedder: Embedders,
    query: str,
    alpha: float = 0.5,
    max_results: int = 10,
    knowledge_types: Sequence[str] | None = None,
    *,
    scope: Scope = GLOBAL,
) -> Hits:
    """The hits of `search`, of all types or of these."""
    types = [type.casefold() for type in knowledge_types or ()]
    return await search(db, embedder, query, scope, alpha=alpha, limit=max_results, type=types)


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
    _check(document_id, content)
    pieces = (
        [_piece(content[a:b], a, title) for a, b in parts(content)]
        if len(content) >= LARGE
        else chunks.split(content, title=title)
    )
    made = await vectors.make_vectors(db, _whole(embedder), {piece.hash: piece.text_to_embed for piece in pieces})
    told = {"type": knowledge_type.casefold(), "meta": _json({"location": location, "related": list(related_docs)})}
    body = content.encode()
    digest = sha256(body).digest()
    async with db.transaction() as tx:
        own = await _locked(tx, scope, document_id)
        old = await _latest(tx, own, document_id)
        if old and (old.hash, old.title) == (digest, title):
            await tx.execute(SQL["describe"], document=old.id, **told)
            return DocumentId(old.id)
        source: dict[str, Any] = {"scope": own, "urn": document_id, "version": old.version + 1 if old else 1}
        hashes = await _kept(tx, digest, body, scope=own, urn=document_id)
        called = {"name": title or document_id, "title": title}
        document = DocumentId(await tx.value(SQL["make_document"], **source, hash=digest, **called, **told))
        await _written(tx, own, document, "copied", content, pieces, made)
        if old:
            await tx.execute(SQL["move_notes"], old=old.id, new=document)
            await _drop_older(tx, hashes, **source)
        await send_many(tx, [fold_letter(own)])
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
    whole = text_to_embed(heading, text)
    count = tokens.count(whole) + chunks.SPECIAL_TOKENS
    digest = sha256(whole.encode()).digest()
    return Piece(start, start + len(text), "prose", language_of(text), heading, text, count, digest)


async def _locked(tx: Tx, scope: Scope, urn: str) -> ScopeId:
    own = await scope_id(tx, scope)
    await tx.one(SQL["lock_source"], urn=urn, scope=own)
    return own


async def _latest(tx: Tx, scope: ScopeId, urn: str) -> Row | None:
    """What was written down under this URN, and the hash of its text if it has one.

    A file's own document takes nothing: it would be lost with the next version, or that with this.
    """
    found = await tx.one(SQL["latest"], scope=scope, urn=urn)
    if found and found.from_file:
        raise Refused(f"{urn} was read from a file: write it down under a URN of its own, for example note:{found.id}.")
    return found


async def _notebook(tx: Tx, scope: ScopeId, urn: str, type: str) -> DocumentId:
    """The document that single chunks are added to. Its hash is that of no bytes: it was not handed in as a whole."""
    if found := await _latest(tx, scope, urn):
        return DocumentId(found.id)
    await tx.execute(SQL["keep_no_bytes"], hash=NO_BYTES)
    return await tx.value(
        SQL["make_document"],
        scope=scope,
        urn=urn,
        version=1,
        hash=NO_BYTES,
        name=urn,
        title=None,
        type=type.casefold(),
        meta="{}",
    )


async def _nodes(tx: Tx, scope: Scope, keys: Sequence[str], types: Sequence[str]) -> list[tuple[str, str]]:
    """Each with its type, or its namespace; in one order, or two who write of the same ones wait for each other."""
    await block_alias_changes(tx)
    given = [*types, *(key.partition("::")[0] for key in keys[len(types) :])]
    return sorted(zip(await resolve_keys(tx, scope.client, keys), given, strict=False))


async def _kept(tx: Tx, digest: bytes, body: bytes, **source: Any) -> list[bytes]:
    """Keeps the bytes of a version; the hashes of those before, held until it is clear whether others have them."""
    hashes = [row.hash for row in await tx.all(SQL["lock_blobs"], hash=digest, **source)]
    await tx.execute(SQL["keep_blob"], hash=digest, size=len(body))
    await tx.execute(SQL["keep_bytes"], hash=digest, bytes=body)
    return hashes


async def _drop_older(tx: Tx, hashes: Sequence[bytes], **source: Any) -> None:
    """The versions before this one, and their bytes if nothing else has them."""
    older = [row.id for row in await tx.all(SQL["older"], **source)]
    await graph.hand_down_statements(tx, older)
    stated = await graph.statements_at_stake(tx, older)
    await tx.execute(SQL["drop"], documents=older)
    await tx.execute(SQL["drop_unused_blobs"], hashes=list(hashes))
    await graph.retract_statements(tx, stated)


async def _noted(
    tx: Tx, scope: ScopeId, document: DocumentId, piece: Piece, made: Mapping[bytes, Mapping[int, bytes]]
) -> ChunkId:
    """On a page of its own: to add one costs the same however many there are."""
    (chunk,) = await _written(tx, scope, document, "note", piece.text, [piece], made)
    return chunk.id


async def _written(
    tx: Tx,
    scope: ScopeId,
    document: DocumentId,
    method: str,
    text: str,
    pieces: Sequence[Piece],
    made: Mapping[bytes, Mapping[int, bytes]],
) -> list[Chunk]:
    """A page with its chunks, each of which can be found from then on."""
    key = sha256(text.encode()).digest()
    number = await tx.value(SQL["add_page"], document=document, method=method, text=text, key=key)
    await chunks.save(tx, scope, document, number, pieces)
    found = [chunk for chunk in await chunks.load(tx, [(document, number, n) for n in range(len(pieces))]) if chunk]
    for chunk in found:
        await make_searchable(tx, chunk, made[chunk.hash], terms_of(chunk.text_to_embed, chunk.language))
    return found


def _whole(embedder: Embedders) -> list[Embedder]:
    """What is written down may be longer than a model's window."""
    return [LongTextEmbedder(one) for one in vectors.available_embedders(embedder)]


def _json(meta: Mapping[str, Any]) -> str:
    return orjson.dumps(dict(meta)).decode()
