"""The two questions one can ask of a file: what is it, and what does one page say; asked in child processes."""

import importlib
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, cast

from gristmill.documents.reading import refusals, tidy
from gristmill.documents.reading.limits import Limits
from gristmill.documents.reading.places import PlacedSpan, Span
from gristmill.documents.reading.results import BEGINNING, Bookmark, Inspection, PageText, Type
from gristmill.errors import Permanent

if TYPE_CHECKING:
    from gristmill.documents.reading.drawing import Drawing

VERSION = "4"  # of all that turns bytes into text: what was read by another version is read anew

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
DRAWN = frozenset({"pdf", "image"})  # the types whose pages have a picture


class Format(Protocol):
    """What a module of one format offers."""

    def inspect(self, path: str, name: str, type: Type, limits: Limits, start: Bookmark) -> Inspection: ...
    def read(self, path: str, type: Type, number: int, limits: Limits) -> PageText: ...


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
    page = _format(type).read(path, type, number, limits)
    return replace(page, text=tidy.page(page.text))


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
    return type in DRAWN


def refuse_undrawn(type: str | None) -> str:
    kind = f"a page of the type {type}" if type else "a document that was not opened yet"
    return f"There is no picture of {kind}: its text is all that there is to see."


def _format(type: Type) -> Format:
    return cast(Format, importlib.import_module(f"gristmill.documents.reading.{FORMATS[type]}"))
