"""Shows of a long passage the sentences that fit a question."""

from collections.abc import Sequence
from itertools import accumulate

from gristmill.agents.ask.question import find_telling
from gristmill.agents.ask.sentences import find_spans
from gristmill.agents.ask.words import are_alike, read_terms


def choose_excerpt(question: str, text: str, *, most: int, language: str | None = None) -> str:
    """The neighbouring sentences with most of the question's words, within so many characters; whole if it is short."""
    text = text.strip()
    if len(text) <= most:
        return text
    places = find_spans(text)
    wanted = {one.term for one in find_telling(question, language)}
    found = [_find_words(wanted, text[start:stop], language) for start, stop in places]
    start, stop = max(_list_windows(places, most), key=lambda window: _rate(found[window[0] : window[1]]))
    first, last = places[start][0], places[stop - 1][1]
    excerpt = text[first:last] if last - first <= most else text[first : first + most].rsplit(" ", 1)[0]
    return f"{'… ' if first else ''}{excerpt}{' …' if first + len(excerpt) < len(text) else ''}"


def _find_words(wanted: set[str], sentence: str, language: str | None) -> frozenset[str]:
    stems = {one.term for one in read_terms(sentence, language)}
    return frozenset(one for one in wanted if one in stems or any(are_alike(one, other) for other in stems))


def _list_windows(places: Sequence[tuple[int, int]], most: int) -> list[tuple[int, int]]:
    """From each sentence on, as many as there is room for."""
    windows: list[tuple[int, int]] = []
    for first in range(len(places)):
        ends = accumulate((stop for _, stop in places[first:]), max)
        windows.append((first, first + max(1, sum(end - places[first][0] <= most for end in ends))))
    return windows


def _rate(found: Sequence[frozenset[str]]) -> tuple[int, int, int]:
    """Different words first, then how often they stand there, then that the first sentence has some."""
    every = frozenset[str]().union(*found)
    return len(every), sum(map(len, found)), len(found[0])
