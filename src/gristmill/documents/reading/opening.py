"""The two questions one can ask of a file: what is it, and what does one page say; asked in child processes."""

import importlib
import os
from typing import Protocol, cast

from gristmill.documents.reading import refusals, tidy
from gristmill.documents.reading.limits import Limits
from gristmill.documents.reading.results import BEGINNING, Bookmark, Inspection, PageText, Type
from gristmill.errors import Permanent

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
}


TYPES = frozenset(FORMATS)


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
    return PageText(tidy.page(page.text), page.method)


def _format(type: Type) -> Format:
    return cast(Format, importlib.import_module(f"gristmill.documents.reading.{FORMATS[type]}"))
