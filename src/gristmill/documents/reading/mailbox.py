"""Mailboxes: many mails in one file, each a part of its own."""

import mmap
import re
from collections.abc import Iterator

from gristmill.documents.reading import refusals
from gristmill.documents.reading.limits import Limits
from gristmill.documents.reading.open_files import OpenFile
from gristmill.documents.reading.plain import stem
from gristmill.documents.reading.portions import portion
from gristmill.documents.reading.results import BEGINNING, Bookmark, Inspection, PageText, Part, Type

# A line "From somebody date" after a blank line; a sentence may begin with "From", but it bears no time and year.
# Atomic: the first time and the first year after it decide, however many there are in a hostile line.
ENVELOPE = re.compile(rb"(?:\A|\n\r?\n)((?>From (?>[^\n]*?\d\d:\d\d)[^\n]*?\b\d{4}\b)[^\n]*+\n)")
QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)


def inspect(path: str, name: str, type: Type, limits: Limits, start: Bookmark = BEGINNING) -> Inspection:
    places = envelopes.get(path)
    if len(places) > limits.parts:
        raise refusals.too_many("messages", len(places), limits.parts)
    parts = portion(_messages(path, places, start.parts))
    more = start.parts + len(parts) < len(places)
    return Inspection("mailbox", 0, stem(name), {"messages": len(places)}, parts=parts, more=more)


def read(path: str, type: Type, number: int, limits: Limits) -> PageText:
    raise refusals.no_such_page(number, 0)


def _envelopes(path: str) -> list[tuple[int, int]]:
    """Where each message begins and ends, without its envelope."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        found = [match.span(1) for match in ENVELOPE.finditer(data)]
        stops = [start for start, _ in found[1:]] + [len(data)]
    return [(begin, stop) for (_, begin), stop in zip(found, stops, strict=True)]


envelopes = OpenFile(_envelopes)


def _messages(path: str, places: list[tuple[int, int]], offset: int) -> Iterator[Part]:
    with open(path, "rb") as file:
        for number, (start, stop) in enumerate(places[offset:], offset + 1):
            file.seek(start)
            data = QUOTED.sub(rb"\1", file.read(stop - start))
            yield Part(f"message-{number}.eml", data, f"message={number}")
