"""Places on the pages of a PDF: the rectangles in which a part of their text stands."""

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, cast

import pypdfium2.raw

from gristmill.documents.reading.places import PlacedSpan, Span, match_letters

raw = cast(Any, pypdfium2.raw)  # it comes without types that could be checked
Page: TypeAlias = Any
TextPage: TypeAlias = Any

GAP = 4  # characters without a letter between two of one run
FINE = 100_000  # the steps in which a place on a page is measured


def find_spans(page: Page, textpage: TextPage, text: str, spans: Sequence[Span]) -> Iterator[PlacedSpan]:
    """The rectangles of these parts of a text that was made of this page, line by line."""
    letters = [chr(raw.FPDFText_GetUnicode(textpage, at)) for at in range(textpage.count_chars())]
    offsets = match_letters(text, letters)
    for span in spans:
        yield from _find_span(page, textpage, offsets, span)


def _find_span(page: Page, textpage: TextPage, offsets: Sequence[int | None], span: Span) -> Iterator[PlacedSpan]:
    start, stop = span
    held = [at for at, offset in enumerate(offsets) if offset is not None and start <= offset < stop]
    for first, last in _runs(held):
        for index in range(raw.FPDFText_CountRects(textpage, first, last - first + 1)):
            yield PlacedSpan(start, stop, *_find_rectangle(page, textpage, index))


def _runs(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The first and last of those that stand side by side, but for the blanks and signs between words."""
    first = before = None
    for at in places:
        if first is None or before is None:
            first = at
        elif at - before > GAP:
            yield first, before
            first = at
        before = at
    if first is not None and before is not None:
        yield first, before


def _find_rectangle(page: Page, textpage: TextPage, index: int) -> tuple[float, float, float, float]:
    """One of the rectangles that were counted last, in shares of the page as it is drawn: turned and cropped."""
    sides = [ctypes.c_double() for _ in range(4)]
    raw.FPDFText_GetRect(textpage, index, *map(ctypes.byref, sides))
    left, top, right, bottom = (side.value for side in sides)
    across, down = zip(_find_point(page, left, top), _find_point(page, right, bottom), strict=True)
    return min(across), min(down), max(across), max(down)


def _find_point(page: Page, x: float, y: float) -> tuple[float, float]:
    across, down = ctypes.c_int(), ctypes.c_int()
    raw.FPDF_PageToDevice(page, 0, 0, FINE, FINE, 0, x, y, ctypes.byref(across), ctypes.byref(down))
    return min(max(across.value / FINE, 0.0), 1.0), min(max(down.value / FINE, 0.0), 1.0)
