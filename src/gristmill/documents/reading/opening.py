"""The two questions one can ask of a file: what is it, and what does one page say; asked in child processes."""

import importlib
import os
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol, cast

from gristmill.documents.reading import refusals, tidy
from gristmill.documents.reading.keys import make_page_key
from gristmill.documents.reading.limits import Limits
from gristmill.documents.reading.open_files import File
from gristmill.documents.reading.places import PlacedSpan, Span
from gristmill.documents.reading.results import BEGINNING, Bookmark, Inspection, PageText, ReadAhead, Type
from gristmill.errors import Permanent

if TYPE_CHECKING:
    from gristmill.documents.reading.drawing import Drawing

# By name: each brings libraries that only the process that reads should load.
FORMATS: dict[Type, str] = {
    "pdf": "pdf",
    "image": "pictures",
    "docx": "office",
    "pptx": "office",
    "xlsx": "office",
    "html": "web",
    "mail": "mail",
    "mailbox": "mailbox",
    "markdown": "plain",
    "text": "plain",
    "csv": "plain",
    "transcript": "transcript",
}


TYPES = frozenset(FORMATS)
AT_HAND = frozenset({"mail", "markdown", "text", "transcript"})  # the types that are read from bytes, too
FEW_PAGES = 20  # that are read ahead: a longer file is read page by page, and people are told how far it is
PICTURES = frozenset({"pdf", "image"})  # the types whose pages have a picture, or are one


class Format(Protocol):
    """What a module of one format offers."""

    def inspect(self, path: Any, name: str, type: Type, limits: Limits, start: Bookmark) -> Inspection: ...
    def read(self, path: Any, type: Type, number: int, limits: Limits) -> PageText: ...


def inspect(
    path: str, name: str, limits: Limits, start: Bookmark = BEGINNING, known_type: Type | None = None
) -> Inspection:
    """What the file is; of containers the parts from `start` on, as many as fit into one answer.

    A type that its source knows is not guessed from its content.
    """
    from gristmill.documents.reading.detect import detect  # noqa: PLC0415 it brings what only children load

    size = os.path.getsize(path)
    if size > limits.bytes:
        raise refusals.too_large(size, limits.bytes)
    type = known_type or detect(path, name, limits)
    return _format(type).inspect(path, name, type, limits, start)


def read(path: str, type: str, number: int, limits: Limits) -> PageText:
    """One page, counted from 1, as Markdown."""
    if type not in FORMATS:
        raise Permanent(f"Nobody knows how to read a file of the type {type}.")
    return _read(path, type, number, limits)


def _read(file: File, type: Type, number: int, limits: Limits) -> PageText:
    page = _format(type).read(file, type, number, limits)
    return PageText(tidy.page(page.text), page.method, page.words)


def read_ahead(data: bytes, name: str, known_type: str | None, limits: Limits) -> ReadAhead | None:
    """The whole of a small file, of which a process has the bytes at hand.

    None if it is not small, if other files lie in it, or if something is wrong with it: then it goes the way of every
    file, and whoever opens it says what is wrong.
    """
    if known_type not in AT_HAND or len(data) > limits.bytes:
        return None
    type = cast(Type, known_type)
    try:
        seen = _format(type).inspect(data, name, type, limits, BEGINNING)
        if seen.parts or seen.pages > FEW_PAGES:
            return None
        pages = [_read(data, type, number, limits) for number in range(1, seen.pages + 1)]
    except (Permanent, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    hash_ = sha256(data).digest()
    keys = [make_page_key(hash_, seen.type, number, limits.pixels) for number in range(1, seen.pages + 1)]
    return ReadAhead(seen, tuple(pages), tuple(keys))


def draw_page(path: str, type: Type, number: int, width: int, limits: Limits) -> "Drawing":
    """A picture of one page, counted from 1, about as wide as this."""
    from gristmill.documents.reading import drawing  # noqa: PLC0415 as above

    return drawing.draw(path, type, number, width, limits)


def find_places(path: str, number: int, text: str, spans: Sequence[Span]) -> list[PlacedSpan]:
    """Where these parts of the text of a PDF's page stand on it."""
    from gristmill.documents.reading import pdf  # noqa: PLC0415 as above

    return pdf.find_places(path, number, text, spans)


def has_picture(type: str | None) -> bool:
    """Whether the pages of this type can be drawn."""
    return type in PICTURES


def refuse_undrawn(type: str | None) -> str:
    kind = f"a page of the type {type}" if type else "a document that was not opened yet"
    return f"There is no picture of {kind}: its text is all that there is to see."


@cache
def _format(type: Type) -> Format:
    return cast(Format, importlib.import_module(f"gristmill.documents.reading.{FORMATS[type]}"))
