"""Pages as people look at them: their text, their chunks with offsets, and how far each chunk is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gristmill.db import Tx, queries
from gristmill.errors import Unknown
from gristmill.ids import ChunkId, DocumentId

SQL = queries("gristmill.documents", "pages.sql")


class Page(NamedTuple):
    """A page that was read."""

    document: DocumentId
    number: int
    method: str  # text: it carried its text; ocr: it was read from its picture; copied; note
    text: str
    words: bytes | None  # where recognised words stand in its picture


@dataclass(frozen=True)
class PageChunk:
    """A chunk, where it stands in the text of its page, and how far it is in each phase of chunks."""

    id: ChunkId
    page: int
    ordinal: int
    start: int
    stop: int
    tokens: int
    kind: str
    language: str | None
    heading: str
    text: str
    phases: dict[str, str]  # status by the name of the phase


class ChunkSurroundings(NamedTuple):
    """A chunk and its neighbours, as the text of the page has them: `text` begins at the character `first`."""

    chunk: ChunkId
    document: DocumentId
    page: int
    start: int  # of the chunk itself …
    stop: int  # … and its end
    first: int
    text: str


async def load_page(tx: Tx, document: DocumentId, number: int) -> Page:
    """One page, counted from 1."""
    page = await tx.one(SQL["load_page"], Page, document=document, number=number)
    if page is None:
        raise Unknown(f"There is no text of page {number} of document {document}, or not yet.")
    return page


async def load_pages(tx: Tx, document: DocumentId, *, after: int = 0, limit: int = 100) -> list[Page]:
    """The pages that were read, in their order."""
    return await tx.all(SQL["load_pages"], Page, document=document, after=after, limit=limit)


async def list_chunks(
    tx: Tx, document: DocumentId, page: int | None = None, *, after: tuple[int, int] = (0, -1), limit: int = 200
) -> list[PageChunk]:
    """The chunks of a page, or of all pages, in their order, from behind this page and ordinal on."""
    return await tx.all(
        SQL["list_chunks"],
        PageChunk,
        document=document,
        page=page,
        after_page=after[0],
        after_ordinal=after[1],
        limit=limit,
    )


async def load_surroundings(tx: Tx, chunks: Sequence[ChunkId]) -> dict[ChunkId, ChunkSurroundings]:
    """These chunks with their neighbours; without chunks that are gone, or that are not seen from here."""
    rows = await tx.all(SQL["load_surroundings"], ChunkSurroundings, chunks=list(chunks))
    return {row.chunk: row for row in rows}
