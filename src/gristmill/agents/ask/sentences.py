"""Divides texts into sentences by their places: stored passages as a whole, answers while they are being written."""

import re
from collections.abc import Iterator
from functools import lru_cache

from gristmill.agents.ask.values import MONTH
from gristmill.agents.ask.words import split_words

# A full stop behind these ends no sentence.
SHORT = split_words(
    """mr mrs ms dr prof st jr sr vs etc no nr fig figs vol pp p ca approx inc ltd co corp e.g i.e cf al ed eds dept est
    jan feb mar apr jun jul aug sep sept oct nov dec hr fr str bzw z.b d.h u.a usw evtl ggf abs art bl tzv např tj resp
    ing dipl phil med"""
)
STOP = re.compile(r"[.!?…。！？]+[\"'”’»)\]*_]*(?=\s|$)|[。！？]")
LINE = re.compile(
    r"\n\s*\n|\n(?=\s*(?:[#|>*+•]|-\s|\d{1,3}[.)]\s|[^\n:]{1,40}:\s))"
)  # lists, tables, headings, speakers
LONGEST = 700  # characters of a span: a text without full stops is divided at its lines, or where words end
LONGEST_MONTH = 12  # characters
CITED = r"\[[^\[\]\n]{1,40}\]|【[^】\n]{1,40}】|\(\s*(?:\w+\s+)?\d{1,2}(?:\s*[,;&]\s*\d{1,2})*\s*\)"
TRAILING = re.compile(rf"(?:\s*(?:{CITED}))+[.,;]?")


@lru_cache(maxsize=2_048)
def find_spans(text: str) -> tuple[tuple[int, int], ...]:
    """The sentences of a text, by their first character and their end; blanks around them are left out."""
    spans: list[tuple[int, int]] = []
    at = 0
    for line in [*(match.start() for match in LINE.finditer(text)), len(text)]:
        for stop in [*_find_stops(text, at, line), line]:
            spans += _trim(text, at, stop)
            at = stop
    return tuple(piece for span in spans for piece in _cut_long(text, *span))


def _find_stops(text: str, start: int, stop: int) -> Iterator[int]:
    for match in STOP.finditer(text, start, stop):
        if ends_sentence(text, match):
            yield match.end()


def ends_sentence(text: str, match: re.Match[str]) -> bool:
    """Whether this stop ends a sentence: not behind an abbreviation, an initial, or the number of a list or a day."""
    if match[0][0] not in "." or match[0].startswith(".."):
        return True
    before = re.search(r"[\w.]+$", text[max(0, match.start() - 12) : match.start()])
    word = before[0].lower() if before else ""
    following = re.match(r"\s*(\S)", text[match.end() : match.end() + 12])
    if word in SHORT or (len(word) == 1 and word.isalpha()):
        return False
    if word.isdigit() and len(word) <= 2:  # "1. First", "12. ledna"
        if re.match(rf"\s*(?:{MONTH})\b", text[match.end() : match.end() + 16], re.IGNORECASE):
            return False
        begins_line = not text[: match.start() - len(word)].rpartition("\n")[2].strip()
        return not begins_line and (following is None or following[1].isupper())
    return following is None or not following[1].islower()


def _trim(text: str, start: int, stop: int) -> list[tuple[int, int]]:
    while start < stop and text[start].isspace():
        start += 1
    while stop > start and text[stop - 1].isspace():
        stop -= 1
    return [(start, stop)] if stop > start else []


def _cut_long(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    while stop - start > LONGEST:
        cut = max(text.rfind("\n", start, start + LONGEST), text.rfind("; ", start, start + LONGEST) + 1)
        if cut <= start + LONGEST // 4:
            cut = text.rfind(" ", start, start + LONGEST)
        cut = cut if cut > start else start + LONGEST
        yield from _trim(text, start, cut)
        start = cut
    yield from _trim(text, start, stop)


class SentenceStream:
    """Takes an answer piece by piece and gives each sentence as soon as it is certain that it has ended.

    Marks of citations behind a full stop belong to the sentence before it: a sentence is kept back until something
    else follows.
    """

    def __init__(self) -> None:
        self._text = ""

    @property
    def rest(self) -> str:
        """The sentence at hand, as far as it is written."""
        return self._text.strip()

    def add(self, piece: str) -> list[str]:
        self._text += piece
        return list(self._take_whole())

    def end(self) -> list[str]:
        """What is left when the answer has ended."""
        left = [self._text[start:stop] for start, stop in self._divide(self._text)]
        self._text = ""
        return [one for one in left if one.strip()]

    def _divide(self, text: str) -> Iterator[tuple[int, int]]:
        at = 0
        while (stop := self._find_end(text, at, is_ended=True)) is not None and stop < len(text):
            yield at, stop
            at = stop
        yield at, len(text)

    def _take_whole(self) -> Iterator[str]:
        while (stop := self._find_end(self._text, 0, is_ended=False)) is not None:
            sentence, self._text = self._text[:stop], self._text[stop:]
            if sentence.strip():
                yield sentence.strip()

    def _find_end(self, text: str, start: int, *, is_ended: bool) -> int | None:
        """Where the first sentence ends, marks included; None if that is not certain yet."""
        ends = [match for match in STOP.finditer(text, start) if ends_sentence(text, match)]
        line = re.compile(r"\n").search(text, start + (len(text[start:]) - len(text[start:].lstrip("\n"))))
        stop = ends[0].end() if ends else None
        if line and (stop is None or line.start() < stop):
            stop = line.start()
        if stop is None:
            return None
        trailing = TRAILING.match(text, stop)
        after = trailing.end() if trailing else stop
        follows = text[after:].lstrip(" \n")
        if not is_ended and (not follows or (follows[0] in "[(【" and len(follows) < 42 and not _is_closed(follows))):
            return None  # a mark may follow
        if not is_ended and text[stop - 2 : stop - 1].isdigit() and len(follows) < LONGEST_MONTH:
            return None  # a month may follow
        return after


def _is_closed(text: str) -> bool:
    return any(sign in text for sign in ")]】")
