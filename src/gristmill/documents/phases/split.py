"""Between the first phase and the second: every page falls into chunks."""

from collections.abc import Sequence
from functools import partial

from gristmill.db import Database
from gristmill.documents import store
from gristmill.documents.letters import SplitPage
from gristmill.documents.model import Document
from gristmill.documents.parsers import Parsers
from gristmill.documents.phases.definition import SPLIT
from gristmill.documents.phases.opening import REMOVED
from gristmill.knowledge import Piece
from gristmill.queue import Done, Skip


async def split_pages(letters: Sequence[SplitPage], *, db: Database, parsers: Parsers) -> list[Done | Skip]:
    async with db.transaction() as tx:
        documents = await store.load_documents(tx, {letter.document for letter in letters})
        texts = await store.load_texts(tx, [(letter.document, letter.page) for letter in letters])
        given = {
            one: (texts[one.document, one.page], documents[one.document].title or "")
            for one in letters
            if one.document in documents and (one.document, one.page) in texts
        }
        keys = {one: parsers.split_key(*text) for one, text in given.items()}
        known = await store.find_divided(tx, list(keys.values()))
    new = {keys[one]: text for one, text in given.items() if keys[one] not in known}
    known |= zip(new, await parsers.split(list(new.values())), strict=True)
    return [
        _outcome(documents[one.document], one.page, known[keys[one]], keys[one]) if one in given else REMOVED
        for one in letters
    ]


def _outcome(document: Document, page: int, pieces: Sequence[Piece], key: bytes) -> Done:
    then = [unit for ordinal in range(len(pieces)) for unit in document.unit_after(SPLIT, page, ordinal)]
    return Done(partial(store.save_chunks, document=document, number=page, pieces=pieces, key=key), then)
