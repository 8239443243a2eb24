"""The first phase: every page becomes Markdown."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from functools import partial

from gristmill.db import Database
from gristmill.documents import store
from gristmill.documents.blobs import Spool
from gristmill.documents.desk import Desk, Sheet
from gristmill.documents.model import SPLIT, Document
from gristmill.documents.phases.opening import REMOVED
from gristmill.documents.reading import PageText
from gristmill.errors import Permanent, Transient
from gristmill.ids import DocumentId
from gristmill.queue import Answer, Done, Skip, Snooze
from gristmill.tasks import ReadPage, SplitPage
from gristmill.telemetry import log

LATER = Snooze(timedelta(0), "it takes long to read, and as many as can be read at a time are being read")
Documents = Mapping[DocumentId, Document]


async def read_pages(
    letters: Sequence[ReadPage], *, db: Database, desk: Desk, spool: Spool
) -> AsyncIterator[tuple[int, Answer | Exception]]:
    """Many at a time, because a page that carries its text takes less than asking for it; each answered when read."""
    async with db.transaction() as tx:
        documents = await store.load(tx, {letter.document for letter in letters})
        keys = {one: desk.page_key(documents[one.document], one.page) for one in letters if one.document in documents}
        known = await store.pages_by_key(tx, list(keys.values()))
    new = [place for place, letter in enumerate(letters) if letter in keys and keys[letter] not in known]
    files = {one: await _file(spool, documents[one]) for one in {letters[place].document for place in new}}
    unread: list[int] = []
    sheets: list[Sheet] = []
    for place, letter in enumerate(letters):
        if letter not in keys:
            yield place, REMOVED
        elif keys[letter] in known:
            yield place, _outcome(documents, letter, known[keys[letter]], keys[letter])
        elif isinstance(file := files[letter.document], Exception):
            yield place, file
        else:
            unread.append(place)
            sheets.append(_sheet(documents[letter.document], file, letter.page))
    async for at, found in desk.read(sheets):
        place, letter = unread[at], letters[unread[at]]
        if found is None:
            yield place, LATER
        else:
            yield place, found if isinstance(found, Exception) else _outcome(documents, letter, found, keys[letter])


async def _file(spool: Spool, document: Document) -> str | Permanent | Transient:
    """Where its bytes are, or why they are not there."""
    try:
        return str(await spool.file(document.hash, document.size))
    except (Permanent, Transient) as error:
        return error


def _sheet(document: Document, file: str, page: int) -> Sheet:
    assert document.type is not None, "a page is read when its document was opened"
    return Sheet(file, document.type, page)


def _outcome(documents: Documents, letter: ReadPage, page: PageText, key: bytes) -> Done | Skip:
    document = documents[letter.document]
    write = partial(store.save_page, document=document, number=letter.page, page=page, key=key)
    splitting = SplitPage(letter.document, letter.page)
    then = (document.unit(SPLIT, splitting, letter.page),)
    if page.silence:
        if page.method == "ocr":  # there is something, and nobody else would notice
            log.warning("page.silent", document=document.id, name=document.name, page=letter.page)
        return Skip(page.silence, write, then)
    if page.method == "copied":
        return Skip(f"{document.type} carries its text and needs no reading", write, then)
    return Done(write, then)
