"""Snippets: the part of a chunk that shows best why it was found, with the matching words marked."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gristmill.knowledge.terms import ANY_WORD, ASCII_WORD, FOREIGN_WORD, TermWord, fold, forms, words

BLANKS = re.compile(r"\s+")
LENGTH = 280  # characters
FAITHFUL = (None, "en", "de", "fr", "es", "it", "pt", "sv", "da", "no")  # languages whose stems begin as their words do
HUMPED = re.compile("[A-Z](?<=[a-z0-9].)")  # camelCase: a matching word may stand in the middle
UMLAUTS = ("a", "o", "u")  # with dots, some people write them as ae, oe, ue
BLANKED = {
    code: chr(code) if chr(code).isalnum() else " " for code in range(128)
}  # all 128: str.translate is slower for characters that are missing here


@dataclass(frozen=True, slots=True)
class Snippet:
    """A part of a chunk's text, on one line, and the places of the words that matched."""

    text: str
    highlights: tuple[tuple[int, int], ...] = ()


class Highlighter:
    """Finds the words of a text that have one of these terms."""

    def __init__(self, terms: Iterable[str]) -> None:
        self._terms = frozenset(terms)
        self._wholes = any(not term.isalnum() for term in self._terms)
        self._ways = {way for term in self._terms for way in beginnings_of(term)}
        self._known: dict[
            str | None, dict[str, tuple[TermWord, ...]]
        ] = {}  # found before, because most words stand in many chunks

    def find(self, text: str, language: str | None) -> list[tuple[int, int, str]]:
        """The places of the matching words, and the term of each."""
        if self._wholes:
            found = ((word.start, word.stop, self._term(word.text, language)) for word in words(text))
            return sorted((start, stop, term) for start, stop, term in found if term)
        known = self._known.setdefault(language, {})
        spots: list[tuple[int, int, str]] = []
        for start, word in self._likely_words(text, language):
            marked = known.get(word)
            if marked is None:
                marked = known[word] = tuple(self._matching_parts(word, language))
            if marked:
                spots += [(start + first, start + last, term) for term, first, last, _ in marked]
        return sorted(spots)

    def _likely_words(self, text: str, language: str | None) -> Iterable[tuple[int, str]]:
        """The words that may match, by their first letters: stemming a word costs most here, and few words match."""
        low = text.lower()
        pattern = ASCII_WORD if text.isascii() else ANY_WORD
        if language not in FAITHFUL or (low != text and HUMPED.search(text)) or len(low) != len(text):
            return ((one.start(), one[0]) for one in pattern.finditer(text))
        starts = self._starts(low) if pattern is ASCII_WORD else self._foreign_starts(low)
        return ((at, word[0]) for at in starts if (word := pattern.match(text, at)))

    def _starts(self, low: str) -> set[int]:
        spaced = " " + low.translate(BLANKED)  # after that, every word begins behind a blank
        return {at for way in self._ways for at in _find_places(spaced, f" {way}")}

    def _foreign_starts(self, low: str) -> set[int]:
        known = {at for way in self._ways for at in _find_places(low, way) if not low[at - 1 : at].isalnum()}
        return known | {one.start() for one in FOREIGN_WORD.finditer(low)}

    def _matching_parts(self, word: str, language: str | None) -> Iterator[TermWord]:
        """The parts of a word that match: all of it, or one of the words that it is made of."""
        for part in words(word):
            if term := self._term(part.text, language):
                yield part._replace(text=term)

    def _term(self, word: str, language: str | None) -> str | None:
        own = (*forms(word, language), fold(word))
        return next((term for term in own if term in self._terms), None)


def beginnings_of(term: str) -> set[str]:
    """The first letters of words with this term: those of the term, and others for skies (sky), dying, ueber (uber)."""
    known = {""}
    for n, letter in enumerate(term[: 3 if len(term) > 3 else 2]):
        known = {way + one for way in known for one in ("iy" if n and letter in "iy" else letter)}
    written_out = {f"{way[:n]}e{way[n:]}"[: len(way)] for way in known for n in (1, 2) if way[n - 1 : n] in UMLAUTS}
    return known | written_out


def _find_places(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def snippet_of(text: str, language: str | None, highlighter: Highlighter, length: int = LENGTH) -> Snippet:
    """The part of a text that has the most different words of the query."""
    spots = highlighter.find(text, language)
    start = _window_start(text, [(at, term) for at, _, term in spots], length)
    stop = min(len(text), start + length)
    if stop < len(text) and (blank := text.rfind(" ", start + length // 2, stop)) > 0:
        stop = blank
    return _on_one_line(
        text, start, stop, [(max(a, start), min(b, stop)) for a, b, _ in spots if a < stop and b > start]
    )


def _window_start(text: str, spots: list[tuple[int, str]], length: int) -> int:
    """The start of the window with most words of the query: a little before the first of them, where a word begins."""
    if len(text) <= length or not spots:
        return 0
    places = [at for at, _ in spots]
    reach = length * 3 // 4
    best = max(range(len(spots)), key=lambda n: len({t for _, t in spots[n : bisect_right(places, places[n] + reach)]}))
    start = max(0, min(places[best] - length // 8, len(text) - length))
    blank = max(text.rfind(" ", 0, start), text.rfind("\n", 0, start))
    return blank + 1 if start and blank > start - 40 else start


def _on_one_line(text: str, start: int, stop: int, spots: list[tuple[int, int]]) -> Snippet:
    """Replaces each run of blanks by one, and moves the marks accordingly."""
    before, line = ("…" if start else ""), " ".join(text[start:stop].split())
    moves = len(line) < stop - start

    def place(at: int) -> int:
        return len(before) + (len(BLANKS.sub(" ", text[start:at].lstrip())) if moves else at - start)

    marked = tuple((place(first), place(last)) for first, last in _join_overlaps(spots))
    return Snippet(before + line + ("…" if stop < len(text) else ""), marked)


def _join_overlaps(spots: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Joins marks that overlap: a compound word and its parts are one mark."""
    joined: list[tuple[int, int]] = []
    for first, last in spots:
        if joined and first < joined[-1][1]:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        else:
            joined.append((first, last))
    return joined
