"""Opens documents before their phases, seals the phases, and finishes documents after them."""

from functools import partial

from gristmill.db import Database, Tx
from gristmill.documents import removal, store
from gristmill.documents.letters import FinishDocument, OpenDocument, SealPhase
from gristmill.documents.model import Document
from gristmill.documents.parsers import Parsers
from gristmill.documents.reading import Bookmark, Inspection, refusals
from gristmill.documents.spool import Spool
from gristmill.documents.take_in import add_parts
from gristmill.documents.tally import fold_tally
from gristmill.documents.urgency import of_arrival
from gristmill.errors import Permanent
from gristmill.knowledge import lexicon
from gristmill.queue import Done, Envelope, Skip
from gristmill.tasks import DocumentRead

REMOVED = Skip("its document was removed")


async def open_document(
    letter: OpenDocument, *, db: Database, parsers: Parsers, spool: Spool, max_bytes: int, max_depth: int
) -> Done | Skip:
    async with db.transaction() as tx:
        document = (await store.load_documents(tx, [letter.document])).get(letter.document)
    if document is None:
        return REMOVED
    if letter.refusal:
        raise Permanent(letter.refusal)
    if document.size > max_bytes:
        raise refusals.too_large(document.size, max_bytes)
    if document.depth > max_depth:
        raise Permanent(f"It lies within {document.depth} other documents, and at most {max_depth} are opened.")
    start = Bookmark(parts=letter.offset, bytes=letter.unpacked, missing=letter.missing)
    with spool.hold([document.hash]):
        path = await spool.fetch(document.hash, document.size)
        seen = await parsers.inspect(path, document.name, start, document.given.get("type"))
    return Done(write=partial(_save_inspection, document=document, seen=seen, start=start))


async def _save_inspection(tx: Tx, *, document: Document, seen: Inspection, start: Bookmark) -> None:
    parts = enumerate(seen.parts, start.parts)
    await add_parts(tx, [(document, part, of_arrival(place, document.urgency)) for place, part in parts])
    if seen.more:
        await store.open_further(tx, document, start.move_behind(seen.parts))
    else:
        await store.save_inspection(tx, document, seen)


async def seal_phase(letter: SealPhase, *, db: Database) -> Done | Skip:
    async with db.transaction() as tx:
        document = (await store.load_documents(tx, [letter.document])).get(letter.document)
    if document is None:
        return REMOVED
    return Done(then=_tell_qualifier(document, letter.phase), seals=(document.phases[letter.phase].task,))


def _tell_qualifier(document: Document, phase: str) -> tuple[Envelope, ...]:
    """When the phase behind the reading is sealed, every page has been read: an urgent mail waits for no more."""
    if phase != list(document.phases)[1]:
        return ()
    return (Envelope(DocumentRead(document.id), foreground=document.foreground, priority=document.priority),)


async def finish_document(letter: FinishDocument, *, db: Database) -> Done | Skip:
    async with db.transaction() as tx:
        document = (await store.load_documents(tx, [letter.document])).get(letter.document)
        if document is None:
            return REMOVED
        if await store.was_cancelled(tx, document):
            return Skip("some of it was cancelled: it takes the place of nothing")
    await removal.thin_out(db, document.id)
    # a letter of the outcome: its unique key is asked for last, when no lock is wanted any more
    return Done(write=partial(_finish, document=document), then=(lexicon.fold_letter(document.scope),))


async def _finish(tx: Tx, *, document: Document) -> None:
    older = await store.complete(tx, document.id)
    if older:
        await removal.replace(tx, older)
    await store.mend_parts(tx, document)
    await fold_tally(tx, document.scope)
