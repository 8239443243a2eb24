"""Weighs the words of a text by how rare they are in what is stored, and says which of them stand nowhere."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import log

from gristmill.db import Database
from gristmill.knowledge.candidates import load_search_space
from gristmill.knowledge.lexicon import count_chunks
from gristmill.knowledge.search import LONGEST_QUERY, UNWRITABLE
from gristmill.knowledge.terms import QueryWord, fold, forms, words
from gristmill.scopes import Scope


@dataclass(frozen=True, slots=True)
class WordWeight:
    """A word of a text, its terms, the number of chunks that have it, and its weight: near 0 is everywhere."""

    text: str
    start: int
    stop: int
    terms: frozenset[str]
    chunks: int
    weight: float


async def weigh_words(db: Database, scope: Scope | None, text: str) -> list[WordWeight]:
    """Every word of a text in its order; ids and addresses whole, and not their parts. No scope means all of them."""
    asked = UNWRITABLE.sub(" ", text[:LONGEST_QUERY])
    space = await load_search_space(db, scope)
    found = list(_find_words(asked, space.languages))
    async with db.reading(seen_from=scope) as tx:
        counts, size = await count_chunks(tx, space.scopes, [QueryWord(terms) for *_, terms in found])
    return [
        WordWeight(word, start, stop, terms, counts[terms], log(1 + (size + 1) / (counts[terms] + 0.5)))
        for word, start, stop, terms in found
    ]


def _find_words(text: str, languages: Iterable[str | None]) -> Iterable[tuple[str, int, int, frozenset[str]]]:
    spoken = {*languages, None}
    until = 0  # the end of the last whole: its parts are left out
    for word in words(text):
        if word.whole:
            yield word.text, word.start, word.stop, frozenset([fold(word.text)])
            until = word.stop
        elif word.start >= until:
            yield word.text, word.start, word.stop, frozenset(f for one in spoken for f in forms(word.text, one))
