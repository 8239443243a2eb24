"""Marks the words of a query in a text, the same words by which a search finds its chunk."""

from collections.abc import Iterable

from gristmill.db import Database
from gristmill.knowledge import lexicon
from gristmill.knowledge.candidates import load_search_space
from gristmill.knowledge.lexicon import WordLookup
from gristmill.knowledge.search import LONGEST_QUERY, UNWRITABLE
from gristmill.knowledge.snippets import Highlighter
from gristmill.scopes import Scope


def split_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words that hold sentences together. Where little is stored they take part in a search, and a page on which every
# “the” is marked helps nobody.
FUNCTION_WORDS = split_words(
    """a about after all also an and any are as at be been before but by can did do does for from had has have he her
    his how i if in into is it its me my no not of on or our she so such than that the their them then there these they
    this those to us was we were what when where which who whom whose why will with you your
    als am auch auf aus bei bin bis da das dass dem den der des die ein eine einem einen einer er es fur hat ich im ist
    kann mit nach nicht noch nur oder sein sich sie sind um und von vor war wenn wer wie wir wird wo zu zum zur
    au aux avec ce ces dans de du elle en est et il ils je la le les leur mais ne nous ou par pas pour qu que qui sa se
    ses son sont sur un une vous con como del el las lo los para pero por sin su una y
    aby ale az by byl byla co ja jak jako je jsou k kde kdo kdy ktera ktere ktery ma na nebo o od po pro s si u v ve z
    za ze"""
)


async def mark_words(db: Database, scope: Scope, query: str, text: str, language: str | None) -> list[tuple[int, int]]:
    """The places of the query's words in a text of this language; words such as “the” do not count."""
    asked = UNWRITABLE.sub(" ", query[:LONGEST_QUERY])
    if not asked.strip():
        return []
    space = await load_search_space(db, scope)
    async with db.reading(seen_from=scope) as tx:
        found = await lexicon.look_up(tx, space.scopes, asked, space.languages)
    highlighter = Highlighter(_telling_terms(found))
    return [(start, stop) for start, stop, _ in highlighter.find(text, language)]


def _telling_terms(found: WordLookup) -> Iterable[str]:
    """The terms of the words that say what is looked for; of all words if the query has no others."""
    telling = [word for word in found.words if FUNCTION_WORDS.isdisjoint(word.terms)]
    return {term for word in telling or found.words for term in word.terms}
