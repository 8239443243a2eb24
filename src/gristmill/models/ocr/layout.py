"""Puts the words and lines that were found on a page into the order in which a person reads them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

HYPHENATED = re.compile(r"[^\W\d_]-$")
WIDER = 1.6  # times the usual step from row to row: a new paragraph
PROSE = 15  # characters: columns are made of longer lines than these, columns of a table are not


@dataclass(frozen=True, slots=True)
class TextBox:
    """Some text and where it stands, upright, in pixels."""

    left: float
    top: float
    right: float
    bottom: float
    text: str

    @property
    def height(self) -> float:
        return self.bottom - self.top

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2


def arrange_text(lines: Sequence[TextBox]) -> str:
    """Rows become lines, and paragraphs are separated by blank ones."""
    return "\n\n".join(paragraph for block in split_blocks(lines) for paragraph in _split_paragraphs(block))


def split_blocks(lines: Sequence[TextBox]) -> Iterator[list[TextBox]]:
    """Parts of the page, one after the other: columns, and what stands above, below or between them."""
    gutter = _find_gutter(lines)
    if gutter is None:
        if lines:
            yield list(lines)
        return
    across = sorted((line for line in lines if line.left < gutter < line.right), key=lambda line: line.middle)
    rest = [line for line in lines if not line.left < gutter < line.right]
    together: list[TextBox] = []
    for line in across:
        above = [one for one in rest if one.middle < line.middle]
        if above:
            yield from _flush_boxes(together)
            yield from _split_columns(above, gutter)
            rest = [one for one in rest if one.middle >= line.middle]
        together.append(line)
    yield from _flush_boxes(together)
    yield from _split_columns(rest, gutter)


def _flush_boxes(together: list[TextBox]) -> Iterator[list[TextBox]]:
    if together:
        yield together[:]
        together.clear()


def _split_columns(lines: Sequence[TextBox], gutter: float) -> Iterator[list[TextBox]]:
    yield from split_blocks([line for line in lines if line.right <= gutter])
    yield from split_blocks([line for line in lines if line.left >= gutter])


def _find_gutter(lines: Sequence[TextBox]) -> float | None:
    """Where a gap runs down the page that has prose on both sides; a table's gaps have not."""
    if len(lines) < 8:
        return None
    best: tuple[int, float] | None = None
    for place in _find_gaps(lines):
        left = [line for line in lines if line.right <= place]
        right = [line for line in lines if line.left >= place]
        across = len(lines) - len(left) - len(right)
        if across * 3 < len(lines) and _is_prose(left) and _is_prose(right) and (best is None or across < best[0]):
            best = across, place
    return best[1] if best else None


def _find_gaps(lines: Sequence[TextBox]) -> Iterator[float]:
    """The places just left of where several lines begin."""
    starts = sorted(line.left for line in lines)
    tall = median(line.height for line in lines)
    first = starts[0]
    begun: list[float] = []
    for start in starts:
        if begun and start - begun[-1] > tall:
            begun = []
        begun.append(start)
        if len(begun) == 3 and begun[0] > first + 4 * tall:
            yield begun[0] - tall / 4


def _is_prose(lines: Sequence[TextBox]) -> bool:
    """Whether these lines fill a column rather than stand in one."""
    if len(lines) < 4:
        return False
    wide = max(line.right for line in lines) - min(line.left for line in lines)
    filled = median(line.right - line.left for line in lines) >= wide / 2
    return filled and median(len(line.text) for line in lines) >= PROSE


def group_rows(lines: Sequence[TextBox]) -> list[list[TextBox]]:
    """What stands side by side, from left to right; the rows from top to bottom."""
    found: list[list[TextBox]] = []
    for line in sorted(lines, key=lambda line: line.middle):
        row = found[-1] if found else []
        if row and _is_beside(row, line):
            row.append(line)
        else:
            found.append([line])
    return [sorted(row, key=lambda line: line.left) for row in found]


def _is_beside(row: Sequence[TextBox], line: TextBox) -> bool:
    """Against the nearest of them: a row that is a little bent is still a row."""
    near = min(row, key=lambda one: max(one.left - line.right, line.left - one.right))
    shared = min(near.bottom, line.bottom) - max(near.top, line.top)
    return shared > min(near.height, line.height) / 2


def _split_paragraphs(lines: Sequence[TextBox]) -> Iterator[str]:
    """Rows that follow each other more closely than most belong together."""
    found = group_rows(lines)
    steps = [_find_row_middle(below) - _find_row_middle(above) for above, below in pairwise(found)]
    usual = median(steps) if steps else 0.0
    paragraph: list[str] = []
    for step, row in zip([0.0, *steps], found, strict=True):
        if paragraph and step > WIDER * usual:
            yield "\n".join(_rejoin_words(paragraph))
            paragraph = []
        paragraph.append(" ".join(line.text for line in row))
    yield "\n".join(_rejoin_words(paragraph))


def _find_row_middle(row: Sequence[TextBox]) -> float:
    return sum(line.middle for line in row) / len(row)


def _rejoin_words(paragraph: Sequence[str]) -> Iterator[str]:
    """A word that was divided at the end of a line is found by nobody: its rest moves up."""
    begun = ""
    for text, following in zip(paragraph, [*paragraph[1:], ""], strict=True):
        whole = begun + text
        begun = ""
        if HYPHENATED.search(text) and following[:1].islower():
            whole, _, begun = whole.rpartition(" ") if " " in whole else ("", "", whole)
            begun = begun[:-1]
        if whole:
            yield whole
