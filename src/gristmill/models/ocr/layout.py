"""Puts the words and lines of a page into the order in which a person reads them."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import NamedTuple

HYPHENATED = re.compile(r"[^\W\d_]-$")
WIDER = 1.6  # times the usual step from row to row: here a paragraph begins
PROSE = 15  # characters: the lines of a column of prose are longer, the cells of a table are shorter


class PicturePlace(NamedTuple):
    """Where something stands in a picture, whichever way up the picture is: shares of its width and height."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, slots=True)
class TextBox:
    """A word or a line, and its place on the upright page, in pixels."""

    left: float
    top: float
    right: float
    bottom: float
    text: str
    place: PicturePlace | None = None  # in the picture as it was given

    @property
    def height(self) -> float:
        return self.bottom - self.top

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2


def arrange_text(boxes: Sequence[TextBox]) -> str:
    """The text of a page: a line for each row, a blank line between paragraphs."""
    return "\n\n".join(paragraph for block in split_blocks(boxes) for paragraph in _split_paragraphs(block))


def order_boxes(boxes: Sequence[TextBox]) -> tuple[TextBox, ...]:
    """The boxes in the order in which `arrange_text` writes them."""
    return tuple(box for block in split_blocks(boxes) for row in group_rows(block) for box in row)


def place_points(points: Iterable[tuple[float, float]], width: float, height: float) -> PicturePlace:
    """The smallest upright rectangle around these points of a picture of this size."""
    across, down = zip(*points, strict=True)
    return PicturePlace(
        _share(min(across), width), _share(min(down), height), _share(max(across), width), _share(max(down), height)
    )


def _share(at: float, whole: float) -> float:
    return min(1.0, max(0.0, float(at) / whole))


def split_blocks(boxes: Sequence[TextBox]) -> Iterator[list[TextBox]]:
    """The parts of a page in reading order: columns, and the boxes that reach across several columns."""
    gutter = _find_gutter(boxes)
    if gutter is None:
        if boxes:
            yield list(boxes)
        return
    across = sorted((box for box in boxes if box.left < gutter < box.right), key=lambda box: box.middle)
    rest = [box for box in boxes if not box.left < gutter < box.right]
    together: list[TextBox] = []
    for box in across:
        above = [one for one in rest if one.middle < box.middle]
        if above:
            yield from _flush_boxes(together)
            yield from _split_columns(above, gutter)
            rest = [one for one in rest if one.middle >= box.middle]
        together.append(box)
    yield from _flush_boxes(together)
    yield from _split_columns(rest, gutter)


def _flush_boxes(together: list[TextBox]) -> Iterator[list[TextBox]]:
    if together:
        yield together[:]
        together.clear()


def _split_columns(boxes: Sequence[TextBox], gutter: float) -> Iterator[list[TextBox]]:
    yield from split_blocks([box for box in boxes if box.right <= gutter])
    yield from split_blocks([box for box in boxes if box.left >= gutter])


def _find_gutter(boxes: Sequence[TextBox]) -> float | None:
    """The place of a gap that runs down the page between two columns of prose; the gaps of a table do not count."""
    if len(boxes) < 8:
        return None
    best: tuple[int, float] | None = None
    for place in _find_gaps(boxes):
        left = [box for box in boxes if box.right <= place]
        right = [box for box in boxes if box.left >= place]
        across = len(boxes) - len(left) - len(right)
        if across * 3 < len(boxes) and _is_prose(left) and _is_prose(right) and (best is None or across < best[0]):
            best = across, place
    return best[1] if best else None


def _find_gaps(boxes: Sequence[TextBox]) -> Iterator[float]:
    """The places just left of the edge at which several boxes begin."""
    starts = sorted(box.left for box in boxes)
    tall = median(box.height for box in boxes)
    first = starts[0]
    begun: list[float] = []
    for start in starts:
        if begun and start - begun[-1] > tall:
            begun = []
        begun.append(start)
        if len(begun) == 3 and begun[0] > first + 4 * tall:
            yield begun[0] - tall / 4


def _is_prose(boxes: Sequence[TextBox]) -> bool:
    """Whether these boxes fill the width of their column, as prose does and the cells of a table do not."""
    if len(boxes) < 4:
        return False
    wide = max(box.right for box in boxes) - min(box.left for box in boxes)
    filled = median(box.right - box.left for box in boxes) >= wide / 2
    return filled and median(len(box.text) for box in boxes) >= PROSE


def group_rows(boxes: Sequence[TextBox]) -> list[list[TextBox]]:
    """The rows of boxes that stand side by side: rows from top to bottom, boxes from left to right."""
    found: list[list[TextBox]] = []
    for box in sorted(boxes, key=lambda box: box.middle):
        row = found[-1] if found else []
        if row and _is_beside(row, box):
            row.append(box)
        else:
            found.append([box])
    return [sorted(row, key=lambda box: box.left) for row in found]


def _is_beside(row: Sequence[TextBox], box: TextBox) -> bool:
    """Whether the box stands beside the nearest box of the row; so a row may be a little bent."""
    near = min(row, key=lambda one: max(one.left - box.right, box.left - one.right))
    shared = min(near.bottom, box.bottom) - max(near.top, box.top)
    return shared > min(near.height, box.height) / 2


def _split_paragraphs(boxes: Sequence[TextBox]) -> Iterator[str]:
    """A new paragraph begins where the step from row to row is much wider than usual."""
    found = group_rows(boxes)
    steps = [_find_row_middle(below) - _find_row_middle(above) for above, below in pairwise(found)]
    usual = median(steps) if steps else 0.0
    paragraph: list[str] = []
    for step, row in zip([0.0, *steps], found, strict=True):
        if paragraph and step > WIDER * usual:
            yield "\n".join(_rejoin_words(paragraph))
            paragraph = []
        paragraph.append(" ".join(box.text for box in row))
    yield "\n".join(_rejoin_words(paragraph))


def _find_row_middle(row: Sequence[TextBox]) -> float:
    return sum(box.middle for box in row) / len(row)


def _rejoin_words(paragraph: Sequence[str]) -> Iterator[str]:
    """Join a word that was divided at the end of a line: no search would find its halves."""
    begun = ""
    for text, following in zip(paragraph, [*paragraph[1:], ""], strict=True):
        whole = begun + text
        begun = ""
        if HYPHENATED.search(text) and following[:1].islower():
            whole, _, begun = whole.rpartition(" ") if " " in whole else ("", "", whole)
            begun = begun[:-1]
        if whole:
            yield whole
