"""Cuts text into sentences, each with its place and its folded words."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gristmill.models.language.hints.model import TextEvidence
from gristmill.models.language.hints.words import Words, spell

LONGEST = 600  # characters of one sentence; a longer one is a table or a log
# A sentence ends at its sign, at an empty line, before the item of a list, and at the end of a short line.
BREAK = re.compile(
    r"(?<![.!?…])[.!?…]++[\"'”’»)\]*_]*(?=\s)|\n[ \t]*(?=\n)|\n(?=[ \t]*(?:[-*+•–→☐]|\[[ xX]?\]|\d{1,2}[.)])[ \t])|"
    r"\n(?=[ \t]*#)|\r?\n|;(?=\s)"
)
ABBREVIATED = spell(
    """nr no dr mr mrs ms prof ing mgr bc bzw ca cca z.b z b u.a d.h usw etc tel str abs art č čl sp zn tzv např atd
    apod tj br čl st dd mm g gđa gosp npr itd tzv vs inc ltd co jan feb mar apr jun jul aug sep sept oct nov dec okt
    dez inkl exkl max min evtl ggf vgl s.o i.d.r a.m p.m e.g i.e approx dept ext fig vol ii iii
    iv vi vii viii ix xi xii"""
)
WRAPPED = 55  # characters of a line that may go on in the next


class Sentence(NamedTuple):
    """A sentence: where it stands, and its words without capitals and accents, with one blank between."""

    start: int
    stop: int
    first: int  # the place of its first word
    after: int  # the place behind its last word
    low: str

    def get_evidence(self, text: str) -> TextEvidence:
        return TextEvidence(self.start, self.stop, text[self.start : self.stop])


def split_sentences(words: Words, spans: Iterable[tuple[int, int]]) -> Iterator[Sentence]:
    """The sentences of parts of the text, in order."""
    for start, stop in spans:
        begin = start
        for match in BREAK.finditer(words.text, start, stop):
            if match.start() < begin or not _is_end(words.text, match, begin, stop):
                continue
            yield from _make_sentence(words, begin, match.end())
            begin = match.end()
        yield from _make_sentence(words, begin, stop)


def _is_end(text: str, match: re.Match[str], begin: int, stop: int) -> bool:
    sign = match[0][0]
    if sign == "\n" or sign == "\r":
        return _is_line_end(text, match, begin, stop)
    if sign != ".":
        return True
    before = text[max(begin, match.start() - 12) : match.start()]
    word = re.search(r"[\w.]*$", before)
    last = (word[0] if word else "").lower()
    following = text[match.end() : match.end() + 40].lstrip()
    timed = before[: len(before) - len(last)].endswith(":")  # at 9:30. Then
    if last.isdecimal() and len(last) <= 2 and not timed:
        # `3. Mai` and `3. 5.` go on; `on the 3. Then` does not, but dates are far more common
        return not re.match(r"\w", following)
    if last in ABBREVIATED or (len(last) == 1 and last.isalpha()):
        return False
    return not following[:1].islower()


def _is_line_end(text: str, match: re.Match[str], begin: int, stop: int) -> bool:
    """Whether a line ends its sentence: the next is empty or a new item, or the line is too short to be wrapped."""
    following = text[match.end() : min(stop, match.end() + 40)]
    if not following.strip(" \t") or following.lstrip(" \t")[:1] in (
        "\n",
        "\r",
        "#",
        "|",
        "-",
        "*",
        "•",
        "→",
        "☐",
        "[",
    ):
        return True
    if re.match(r"[ \t]*\d{1,2}[.)][ \t]", following):
        return True
    line_start = max(text.rfind("\n", begin, match.start()) + 1, begin)
    if match.start() - line_start < WRAPPED:
        return not following.lstrip()[:1].islower()
    return False


def _make_sentence(words: Words, start: int, stop: int) -> Iterator[Sentence]:
    """The sentence between two places, without the blanks and signs of lists around it; nothing if it has no word."""
    first, after = words.find(start), words.find(stop)
    while first < after and words.low(first) in LIST_SIGNS:
        first += 1
    if first >= after:
        return
    begin, end = words[first].start, words[after - 1].stop
    if end - begin > LONGEST:
        while after > first and words[after - 1].stop > begin + LONGEST:
            after -= 1
        if after == first:
            return
        end = words[after - 1].stop
    low = " ".join(words.low(one) for one in range(first, after))
    yield Sentence(begin, end, first, after, low)


LIST_SIGNS = frozenset("-*+•–→☐>#|")
