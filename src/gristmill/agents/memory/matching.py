"""Decides which procedures fit a request, and how much each counts: pure functions of words, vectors and use."""

import math
import re
from collections.abc import Collection
from datetime import timedelta

from gristmill.knowledge import FUNCTION_WORDS, forms, language_of, words

ENOUGH_WORDS = 0.6  # of the words of a pattern that a request must have …
CLOSE = 0.6  # … or the cosine from which it means the same
HALF_LIFE = timedelta(days=30)  # in which a learned procedure that nobody uses loses half of its strength
ALTERNATIVES = re.compile(r"\s*\|\s*")


def measure_fit(pattern: str, request: str, similarity: float | None = None) -> float:
    """How well a request fits a pattern, from 0 to 1; 0 if it does not. `|` stands between several patterns."""
    languages = {None, language_of(pattern), language_of(request)}  # of short texts, often only one is known
    said = frozenset(term for word in find_words(request, languages) for term in word)
    patterns = [find_words(one, languages) for one in ALTERNATIVES.split(pattern)]
    by_words = max((_share(one, said) for one in patterns), default=0.0)
    by_words = by_words if by_words >= ENOUGH_WORDS else 0.0
    by_meaning = similarity if similarity is not None and similarity >= CLOSE else 0.0
    return min(1.0, max(by_words, by_meaning))


def _share(wanted: Collection[frozenset[str]], said: frozenset[str]) -> float:
    return sum(not word.isdisjoint(said) for word in wanted) / len(wanted) if wanted else 0.0


def find_words(text: str, languages: Collection[str | None]) -> set[frozenset[str]]:
    """The words that say what is meant, each in the spellings by which search compares them."""
    found = {_spell(word.text, languages) for word in words(text) if not word.whole}
    telling = {one for one in found if one.isdisjoint(FUNCTION_WORDS)}
    return telling or found


def _spell(word: str, languages: Collection[str | None]) -> frozenset[str]:
    return frozenset(form for language in languages for form in forms(word, language))


def measure_strength(successes: int, failures: int, idle: timedelta) -> float:
    """How much a learned procedure counts: by how often it succeeded, halved for every month without use.

    It is computed from the time of the last use whenever it is needed. Nothing writes it back: a fading that is
    written down would begin anew each time.
    """
    used = successes + failures
    if not used:
        return 0.0
    rate = (successes + 1) / (used + 2)  # one success alone proves little
    return rate * (1 + math.log(used)) * 0.5 ** (idle / HALF_LIFE)
