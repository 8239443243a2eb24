"""The part of a chunk that shows best why it was found, with the words that matched."""

from bisect import bisect_right
from collections.abc import Set
from dataclasses import dataclass

from gristmill.knowledge.terms import fold, forms, words

LENGTH = 280  # characters


@dataclass(frozen=True, slots=True)
class Snippet:
    """Some of a chunk's text, on one line, and where in it words matched."""

    text: str
    highlights: tuple[tuple[int, int], ...] = ()


def snippet_of(text: str, language: str | None, terms: Set[str], length: int = LENGTH) -> Snippet:
    """The stretch with the most different words that were asked for."""
    spots = _matches(text, language, terms)
    start = _start(text, [(at, term) for at, _, term in spots], length)
    stop = min(len(text), start + length)
    if stop < len(text) and (blank := text.rfind(" ", start + length // 2, stop)) > 0:
        stop = blank
    return _on_one_line(
        text, start, stop, [(max(a, start), min(b, stop)) for a, b, _ in spots if a < stop and b > start]
    )


def _matches(text: str, language: str | None, terms: Set[str]) -> list[tuple[int, int, str]]:
    found: list[tuple[int, int, str]] = []
    for word in words(text):
        own = (fold(word.text),) if word.whole else (*forms(word.text, language), fold(word.text))
        if match := next((term for term in own if term in terms), None):
            found.append((word.start, word.stop, match))
    return sorted(found)


def _start(text: str, spots: list[tuple[int, str]], length: int) -> int:
    """Where the window begins that holds most; a little before its first word, at the beginning of a word."""
    if len(text) <= length or not spots:
        return 0
    places = [at for at, _ in spots]
    reach = length * 3 // 4
    best = max(range(len(spots)), key=lambda n: len({t for _, t in spots[n : bisect_right(places, places[n] + reach)]}))
    start = max(0, min(places[best] - length // 8, len(text) - length))
    blank = max(text.rfind(" ", 0, start), text.rfind("\n", 0, start))
    return blank + 1 if start and blank > start - 40 else start


def _on_one_line(text: str, start: int, stop: int, marks: list[tuple[int, int]]) -> Snippet:
    """Blanks become one, so that what is marked moves with them."""
    line: list[str] = ["…"] if start else []
    moved: dict[int, int] = {}
    for at in range(start, stop):
        moved[at] = len(line)
        if not text[at].isspace():
            line.append(text[at])
        elif line and line[-1] != " ":
            line.append(" ")
    moved[stop] = len(line)
    shown = "".join(line).rstrip() + ("…" if stop < len(text) else "")
    highlights: list[tuple[int, int]] = []
    for first, last in ((moved[a], moved[b]) for a, b in marks):
        if highlights and first < highlights[-1][1]:
            highlights[-1] = highlights[-1][0], max(last, highlights[-1][1])
        else:
            highlights.append((first, last))
    return Snippet(shown, tuple(highlights))
