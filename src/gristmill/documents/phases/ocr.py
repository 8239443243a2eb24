"""The first phase: every page becomes Markdown."""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from functools import partial

from gristmill.db import Database
from gristmill.documents import store
from gristmill.documents.letters import ReadPage
from gristmill.documents.model import Document
from gristmill.documents.parsers import PageToRead, Parsers
from gristmill.documents.phases.definition import OCR
from gristmill.documents.phases.opening import REMOVED
from gristmill.documents.reading import PageText
from gristmill.documents.spool import Spool
from gristmill.errors import Permanent, Transient
from gristmill.ids import DocumentId
from gristmill.queue import Answer, Done, Skip, Snooze
from gristmill.telemetry import log

LATER = Snooze(timedelta(0), "it takes long to read, and as many as can be read at a time are being read")
AGAIN = Snooze(timedelta(seconds=1), "its file had to make space for others before it was read")
Documents = Mapping[DocumentId, Document]


async def read_pages(
    letters: Sequence[ReadPage], *, db: Database, parsers: Parsers, spool: Spool
) -> AsyncIterator[tuple[int, Answer | Exception]]:
    """Read many pages in one call, and answer each as soon as it is read.

    A page that carries its text is read faster than one can ask for it.
    """
    async with db.transaction() as tx:
        documents = await store.load_documents(tx, {letter.document for letter in letters})
        keys = {
            one: parsers.page_key(documents[one.document], one.page) for one in letters if one.document in documents
        }
        known = await store.find_pages(tx, list(keys.values()))
    unread: dict[DocumentId, list[int]] = {}
    for place, letter in enumerate(letters):
        if letter not in keys:
            yield place, REMOVED
        elif keys[letter] in known:
            yield place, _outcome(documents, letter, known[keys[letter]], keys[letter])
        else:
            unread.setdefault(letter.document, []).append(place)
    taken = choose_fitting({one: documents[one].size for one in unread}, spool.space)
    for place in (place for one in unread if one not in taken for place in unread[one]):
        yield place, LATER
    wanted = {place: (documents[one], letters[place].page) for one in taken for place in unread[one]}
    with spool.hold([documents[one].hash for one in taken]):
        async for place, found in _read(wanted, parsers, spool):
            letter = letters[place]
            yield place, _outcome(documents, letter, found, keys[letter]) if isinstance(found, PageText) else found


def choose_fitting(sizes: Mapping[DocumentId, int], space: int) -> list[DocumentId]:
    """The first documents whose files fit into this space together; at least one."""
    taken: list[DocumentId] = []
    for document, size in sizes.items():
        space -= size
        if taken and space < 0:
            break
        taken.append(document)
    return taken


async def _read(
    pages: Mapping[int, tuple[Document, int]], parsers: Parsers, spool: Spool
) -> AsyncIterator[tuple[int, PageText | Snooze | Exception]]:
    """Read the pages of one document after each other, so that its file is opened once for all of them."""
    documents = {document.id: document for document, _ in pages.values()}
    files = {id_: await _file(spool, document) for id_, document in documents.items()}
    wanted: dict[int, PageToRead] = {}
    for place, (document, number) in pages.items():
        file = files[document.id]
        if isinstance(file, str):
            wanted[place] = _page_to_read(document, file, number)
        else:
            yield place, file
    places = list(wanted)
    async for at, found in parsers.read(list(wanted.values())):
        place = places[at]
        if isinstance(found, Exception) and _is_gone(wanted[place]):
            yield place, AGAIN
        else:
            yield place, LATER if found is None else found


def _is_gone(page: PageToRead) -> bool:
    """Another worker on this machine may have needed the space: no fault of the page."""
    return not os.path.exists(page.path)


async def _file(spool: Spool, document: Document) -> str | Permanent | Transient:
    """The path of the document's copy, or the error why there is none."""
    try:
        return str(await spool.fetch(document.hash, document.size))
    except (Permanent, Transient) as error:
        return error


def _page_to_read(document: Document, file: str, page: int) -> PageToRead:
    assert document.type is not None, "a page is read when its document was opened"
    return PageToRead(file, document.type, page)


def _outcome(documents: Documents, letter: ReadPage, page: PageText, key: bytes) -> Done | Skip:
    document = documents[letter.document]
    write = partial(store.save_page, document=document, number=letter.page, page=page, key=key)
    then = document.unit_after(OCR, letter.page)
    if page.silence and page.method == "ocr":  # there is something, and nobody else would notice
        log.warning("page.silent", document=document.id, name=document.name, page=letter.page)
    reason = page.find_skip_reason(document.type)
    return Skip(reason, write, then) if reason else Done(write, then)
