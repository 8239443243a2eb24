"""Where the characters of a page's text stand on its picture: matched by letters, packed for keeping."""

import struct
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from gristmill.models import PicturePlace, TextBox

WORD = struct.Struct("<IHHHHH")  # offset in the text, length, and the four sides as parts of 65,535
WHOLE = 65_535
AHEAD = 60  # letters that are looked ahead where the two sequences differ …
AGREE = 3  # … for so many letters in a row that are the same again

Span = tuple[int, int]  # of a page's text, in characters


class PlacedSpan(NamedTuple):
    """A part of a page's text and the rectangle in which it stands, in shares of the picture's width and height."""

    start: int
    stop: int
    left: float
    top: float
    right: float
    bottom: float


def match_letters(text: str, drawn: Sequence[str]) -> list[int | None]:
    """For each drawn character its offset in the text; None for signs, and for what the text does not have.

    The text was made of these characters in this order, yet not of them alone: marks of Markdown were added, hyphens
    and blanks dropped, ligatures written out. So letters and digits are compared, and what does not fit is passed over.
    """
    ours = [(letter, at) for at, char in enumerate(text) for letter in _letters_of(char)]
    theirs = [(letter, at) for at, char in enumerate(drawn) for letter in _letters_of(char)]
    found: list[int | None] = [None] * len(drawn)
    one = other = 0
    while one < len(ours) and other < len(theirs):
        if ours[one][0] == theirs[other][0]:
            if found[theirs[other][1]] is None:
                found[theirs[other][1]] = ours[one][1]
            one, other = one + 1, other + 1
        else:
            one, other = _meet_again(ours, theirs, one, other)
    return found


@lru_cache(maxsize=4096)
def _letters_of(char: str) -> str:
    """The letters and digits that a character stands for, without case and accents."""
    plain = unicodedata.normalize("NFKD", char).casefold()
    return "".join(letter for letter in plain if letter.isalnum())


def _meet_again(
    ours: Sequence[tuple[str, int]], theirs: Sequence[tuple[str, int]], one: int, other: int
) -> tuple[int, int]:
    """The nearest places from which both go on alike; if there are none, one step on both sides."""
    for steps in range(1, AHEAD):
        for skipped in range(steps + 1):
            if _agree(ours, theirs, one + skipped, other + steps - skipped):
                return one + skipped, other + steps - skipped
    return one + 1, other + 1


def _agree(ours: Sequence[tuple[str, int]], theirs: Sequence[tuple[str, int]], one: int, other: int) -> bool:
    left, right = ours[one : one + AGREE], theirs[other : other + AGREE]
    return bool(left and right) and [a for a, _ in left[: len(right)]] == [b for b, _ in right[: len(left)]]


# --- words that were recognised in a picture


def pack_words(text: str, boxes: Sequence[TextBox]) -> bytes:
    """The places of recognised words or lines, with their offsets in the text of the page; 14 bytes each."""
    drawn = [(char, box) for box in boxes for char in box.text]
    offsets = match_letters(text, [char for char, _ in drawn])
    spans: dict[int, tuple[TextBox, int, int]] = {}
    for offset, (_, box) in zip(offsets, drawn, strict=True):
        if offset is not None:
            _, first, last = spans.get(id(box), (box, offset, offset))
            spans[id(box)] = box, min(first, offset), max(last, offset)
    return b"".join(_pack(first, last + 1, box.place) for box, first, last in spans.values() if box.place)


def _pack(start: int, stop: int, place: PicturePlace) -> bytes:
    return WORD.pack(start, min(stop - start, WHOLE), *(round(side * WHOLE) for side in place))


def unpack_words(words: bytes) -> Iterator[PlacedSpan]:
    for start, length, *sides in WORD.iter_unpack(words):
        left, top, right, bottom = (side / WHOLE for side in sides)
        yield PlacedSpan(start, start + length, left, top, right, bottom)


def find_in_words(words: bytes, spans: Iterable[Span]) -> list[PlacedSpan]:
    """The rectangles of these parts of the text; of a part of a line its share of the line's width."""
    known = list(unpack_words(words))
    return [
        _cut(one, max(start, one.start), min(stop, one.stop))
        for start, stop in spans
        for one in known
        if one.start < stop and one.stop > start
    ]


def _cut(one: PlacedSpan, start: int, stop: int) -> PlacedSpan:
    step = (one.right - one.left) / (one.stop - one.start)
    left, right = one.left + (start - one.start) * step, one.left + (stop - one.start) * step
    return PlacedSpan(start, stop, left, one.top, right, one.bottom)
