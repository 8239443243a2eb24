"""Documents that a program writes down: whole texts and single notes, with their chunks, in one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import orjson

from gristmill.db import Column, Tx, queries
from gristmill.documents.blobs import drop_unused_bytes, hash_of, keep_bytes, lock_bytes
from gristmill.documents.tally import fold_tally
from gristmill.documents.versions import keep_texts
from gristmill.ids import ChunkId, DocumentId, ScopeId
from gristmill.knowledge import Piece, chunks, graph, lexicon, make_searchable, terms_of
from gristmill.queue import send_many

if TYPE_CHECKING:
    from gristmill.documents.take_in import Note, WholeText

SQL = queries("gristmill.documents", "written.sql")


@dataclass(frozen=True)
class Searchable:
    """The chunks of a text, and the vectors of each by its hash and the number of the model."""

    pieces: Sequence[Piece]
    vectors: Mapping[bytes, Mapping[int, bytes]]


NOTHING = Searchable((), {})  # of a text that is only looked at before it is prepared


@dataclass(frozen=True)
class WrittenVersion:
    """The newest version under a URN, and the hash of its text if it has one."""

    id: DocumentId
    version: int
    title: str | None
    from_file: bool
    hash: bytes | None


def name_of(item: "WholeText | Note") -> str:
    return getattr(item, "title", "") or item.urn


async def find_written(tx: Tx, scope: ScopeId, urn: str) -> WrittenVersion | None:
    return await tx.one(SQL["find_written"], WrittenVersion, scope=scope, urn=urn)


async def put_text(tx: Tx, scope: ScopeId, item: "WholeText", last: WrittenVersion | None) -> tuple[DocumentId, bool]:
    """The document of a text, and whether it is new: the same text under the same title is only described anew.

    Notes under the same URN stay, and parts that lie in the document.
    """
    body = item.text.encode()
    hash_ = hash_of(body)
    about = _describe(item.type, item.metadata, item.written_at, item.container)
    if last and (last.hash, last.title) == (hash_, item.title):
        await tx.execute(SQL["describe"], document=last.id, **about)
        return last.id, False
    source: dict[str, Any] = {"scope": scope, "urn": item.urn, "version": last.version + 1 if last else 1}
    hashes = await tx.values(SQL["hashes"], bytes, scope=scope, urn=item.urn)
    await lock_bytes(tx, [hash_, *hashes])  # all at once: two texts that change places would wait for each other
    await keep_bytes(tx, body)
    document = DocumentId(
        await tx.only_value(
            SQL["make_document"], int, **source, hash=hash_, name=item.title or item.urn, title=item.title, **about
        )
    )
    await _write_page(tx, scope, document, "copied", item.text, item.chunks)
    if last:
        await _move_notes(tx, last.id, document)
        await _drop_older(tx, document, hashes, **source)
    await send_many(tx, [lexicon.fold_letter(scope)])
    await fold_tally(tx, scope)
    return document, True


async def put_note(tx: Tx, scope: ScopeId, item: "Note", last: WrittenVersion | None) -> tuple[DocumentId, bool]:
    """The document of a note, and whether the note is new in it."""
    document = last.id if last else await _begin_notes(tx, scope, item)
    (piece,) = item.chunks.pieces
    if await find_note(tx, document, piece.hash) is not None:
        return document, False
    # on a page of its own: to add one costs the same however many there are
    (chunk,) = await _write_page(tx, scope, document, "note", item.text, item.chunks)
    if letters := lexicon.fold_letters_after(chunk, scope):
        await send_many(tx, letters)
    return document, True


async def find_note(tx: Tx, document: DocumentId, hash_: bytes) -> ChunkId | None:
    """The chunk of a note with this hash."""
    return await tx.value(SQL["find_note"], Column[ChunkId], document=document, hash=hash_)


async def _begin_notes(tx: Tx, scope: ScopeId, item: "Note") -> DocumentId:
    """A document that notes are added to. Its hash is that of no bytes: it was not handed in as a whole."""
    await keep_bytes(tx, b"")
    document = await tx.only_value(
        SQL["make_document"],
        int,
        scope=scope,
        urn=item.urn,
        version=1,
        hash=hash_of(b""),
        name=item.urn,
        title=None,
        **_describe(item.type, {}, None, None),
    )
    return DocumentId(document)


def _describe(
    type_: str, metadata: Mapping[str, Any], written_at: datetime | None, container: DocumentId | None
) -> dict[str, Any]:
    meta = orjson.dumps(dict(metadata)).decode()
    return {"type": type_.casefold(), "meta": meta, "written_at": written_at, "container": container}


async def _move_notes(tx: Tx, old: DocumentId, new: DocumentId) -> None:
    """Move the notes to the new version. Their chunks keep their ids, and so their vectors and their nodes."""
    places = await tx.pairs(SQL["move_note_pages"], dict[int, int], old=old, new=new)
    if places:
        await chunks.move(tx, old, new, places)


async def _drop_older(tx: Tx, document: DocumentId, hashes: Sequence[bytes], **source: Any) -> None:
    """The versions before this one, and their bytes if nothing else has them."""
    older = await tx.values(SQL["older"], Column[DocumentId], **source)
    await keep_texts(tx, older)
    await tx.execute(SQL["hand_over_parts"], new=document, older=older)
    await graph.hand_down_statements(tx, older)
    stated = await graph.statements_at_stake(tx, older)
    await tx.execute(SQL["drop"], documents=older)
    await drop_unused_bytes(tx, hashes)
    await graph.retract_statements(tx, stated)


async def _write_page(
    tx: Tx, scope: ScopeId, document: DocumentId, method: str, text: str, searchable: Searchable
) -> list[ChunkId]:
    """A page with its chunks, each of which can be found from then on."""
    pieces = searchable.pieces
    key = sha256(text.encode()).digest()
    number = await tx.only_value(SQL["add_page"], int, document=document, method=method, text=text, key=key)
    await chunks.save(tx, scope, document, number, pieces)
    found = [chunk for chunk in await chunks.load(tx, [(document, number, n) for n in range(len(pieces))]) if chunk]
    for chunk in found:
        await make_searchable(tx, chunk, searchable.vectors[chunk.hash], terms_of(chunk.text_to_embed, chunk.language))
    return [chunk.id for chunk in found]
