"""A page of a document beside its picture: its text with the chunks, and the words that brought the reader."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from gristmill.db import Database
from gristmill.documents import Document, Page, PageChunk, has_picture
from gristmill.knowledge import mark_words
from gristmill.scopes import Scope
from gristmill.web.console.marking import ChunkSpan, PagePassage, TextSpan, cut_text, join_spans

LONGEST_QUERY = 2_000
MOST_MARKS = 400  # of one page: more would be no help to the eye
SPAN = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")


@dataclass(frozen=True)
class PageWish:
    """What the address says of the page: its number, the words of a search, the passage that was found."""

    page: int = 1
    query: str = ""
    at: TextSpan | None = None

    @property
    def link_query(self) -> str:
        """The same wish for the addresses of other pages: the passage stands on one page only."""
        return urlencode({"q": self.query}) if self.query else ""


@dataclass(frozen=True)
class PageView:
    """A page that was read."""

    document: Document
    page: Page
    chunks: Sequence[PageChunk]
    passages: Sequence[PagePassage]
    marks: Sequence[TextSpan]
    chosen: int | None  # the chunk that was found
    wish: PageWish

    @property
    def number(self) -> int:
        return self.page.number

    @property
    def has_picture(self) -> bool:
        return has_picture(self.document.type)

    @property
    def chunk_by_ordinal(self) -> dict[int, PageChunk]:
        return {chunk.ordinal: chunk for chunk in self.chunks}

    @property
    def marks_query(self) -> str:
        """How the places of the marks on the picture are asked for."""
        if self.wish.query.strip():
            return urlencode({"q": self.wish.query})
        return urlencode({"start": self.marks[0].start, "stop": self.marks[-1].stop}) if self.marks else ""


def read_wish(given: QueryParams) -> PageWish:
    """What cannot be read is left out: a link may be old."""
    number = given.get("page", "")
    span = SPAN.fullmatch(given.get("at", ""))
    return PageWish(
        page=max(1, int(number)) if number.isdecimal() and len(number) < 8 else 1,
        query=given.get("q", "")[:LONGEST_QUERY],
        at=TextSpan(int(span[1]), int(span[2])) if span else None,
    )


async def view_page(
    db: Database, seen_from: Scope, document: Document, page: Page, chunks: Sequence[PageChunk], wish: PageWish
) -> PageView:
    """The page with the words of the search marked; without a search, the passage itself is marked."""
    chosen = find_chunk(chunks, wish.at) if wish.at else None
    marks = await _find_marks(db, seen_from, page, chunks, wish, chosen)
    spans = [ChunkSpan(chunk.ordinal, chunk.start, chunk.stop) for chunk in chunks]
    return PageView(document, page, chunks, cut_text(page.text, spans, marks), marks, chosen, wish)


async def _find_marks(
    db: Database, seen_from: Scope, page: Page, chunks: Sequence[PageChunk], wish: PageWish, chosen: int | None
) -> list[TextSpan]:
    if wish.query.strip():
        language = next((one.language for one in chunks if chosen is None or one.ordinal == chosen), None)
        found = await mark_words(db, seen_from, wish.query, page.text, language)
        return join_spans((TextSpan(*one) for one in found), len(page.text))[:MOST_MARKS]
    return join_spans([wish.at], len(page.text)) if wish.at else []


def find_chunk(chunks: Sequence[PageChunk], span: TextSpan) -> int | None:
    """The chunk in which a passage begins."""
    return next((one.ordinal for one in chunks if one.start <= span.start < max(one.stop, one.start + 1)), None)
