"""Terms: words as search compares them, folded and stemmed; ids, addresses and code are kept whole."""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

STEMMERS = {
    "ar": "arabic",
    "hy": "armenian",
    "eu": "basque",
    "ca": "catalan",
    "cs": "czech",
    "da": "danish",
    "nl": "dutch",
    "en": "english",
    "eo": "esperanto",
    "et": "estonian",
    "fi": "finnish",
    "fr": "french",
    "de": "german",
    "el": "greek",
    "hi": "hindi",
    "hu": "hungarian",
    "id": "indonesian",
    "ga": "irish",
    "it": "italian",
    "lt": "lithuanian",
    "ne": "nepali",
    "no": "norwegian",
    "nb": "norwegian",
    "nn": "norwegian",
    "fa": "persian",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "es": "spanish",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
    "yi": "yiddish",
}
LONGEST = 96  # characters of a term; of a longer word, its beginning and a digest are kept

# Words, and words that signs hold together without a blank: an id, a path, an address, a version. Apart from letters
# and digits, they contain the vowel signs and accents that some scripts write as characters of their own.
_CHARACTER = r"[^\W_]"
_MARKED = (
    rf"(?:{_CHARACTER}|[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0dff\u0e31-\u0e4e\u1000-\u109f\u1780-\u17ff])"
)
_WHOLE = r"[A-Za-z](?:\+\+|#)(?!\w)|{0}+(?:(?:[._/@:#+&=?%~'’\\-]+|,(?=\d)){0}+)*"
ASCII, ANY = (re.compile(_WHOLE.format(one)) for one in (_CHARACTER, _MARKED))
ASCII_WORD, ANY_WORD = (re.compile(f"{one}++") for one in (_CHARACTER, _MARKED))  # some letters are marks as well
FOREIGN_WORD = re.compile(rf"(?<!{_MARKED})(?=.{{0,2}}[^\x00-\x7f]){_MARKED}++")  # not all its first letters are ASCII
SOLID = re.compile(r"[/@?&=:\\]+")  # the signs of an address, between its host, path and names
NUMBER = re.compile(r"\d+(?:[.,]\d+)+")
HUMPS = re.compile(r"[a-z]{2,}(?:[A-Z][a-z0-9]+)+|(?:[A-Z][a-z0-9]{2,}){2,}")
HUMP = re.compile(r"[A-Z]?[a-z0-9]+")
UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
ALONE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")  # one of these characters may be a word
PLAIN = str.maketrans({"ł": "l", "đ": "d", "ø": "o", "æ": "ae", "œ": "oe", "ı": "i", "ð": "d", "þ": "th", "ħ": "h"})
ACCENTS = re.compile(r"[\u0300-\u036f\u0591-\u05c7\u064b-\u065f]+")


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of one chunk: how many words it has, and how often each term stands in it."""

    length: int
    counts: dict[str, int]


class TermWord(NamedTuple):
    """A word of a text and its place. A `whole` consists of other words, so it does not count for the length."""

    text: str
    start: int
    stop: int
    whole: bool


def terms_of(text: str, language: str | None) -> Terms:
    """The terms by which a chunk is found."""
    counts: dict[str, int] = {}
    length = 0
    pattern, part = _patterns(text)
    for found, times in Counter(pattern.findall(text)).items():  # most words stand there more than once
        many, terms = _count_terms(found, part, language)
        length += many * times
        for term in terms:
            counts[term] = counts.get(term, 0) + times
    return Terms(length, counts)


@lru_cache(maxsize=200_000)
def _count_terms(found: str, part: re.Pattern[str], language: str | None) -> tuple[int, tuple[str, ...]]:
    """The number of words in this string, and all their terms."""
    made = tuple(_words_in(found, 0, part))
    return sum(not word.whole for word in made), tuple(term for word in made for term in _forms(word, language))


def words(text: str) -> Iterator[TermWord]:
    """Every word, and every whole that several words make together."""
    pattern, part = _patterns(text)
    for found in pattern.finditer(text):
        yield from _words_in(found[0], found.start(), part)


def _patterns(text: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    return (ASCII, ASCII_WORD) if text.isascii() else (ANY, ANY_WORD)


def _words_in(whole: str, start: int, part: re.Pattern[str]) -> Iterator[TermWord]:
    if part.fullmatch(whole):
        yield from _simple_words(whole, start)
    elif NUMBER.fullmatch(whole) or whole[-1] in "+#":
        yield TermWord(whole, start, start + len(whole), False)
    else:
        yield from _compound_words(whole, start, part)


def _compound_words(whole: str, start: int, part: re.Pattern[str]) -> Iterator[TermWord]:
    if not _is_elision(whole):
        yield TermWord(whole, start, start + len(whole), True)
        at = 0
        pieces = SOLID.split(whole)
        for piece in pieces if len(pieces) > 1 else ():
            at = whole.index(piece, at)
            if piece and not part.fullmatch(piece):  # a host, a name with a dot
                yield TermWord(piece, start + at, start + at + len(piece), True)
            at += len(piece)
    for found in part.finditer(whole):
        before = whole[found.start() - 1] if found.start() else ""
        if before in ("'", "’") and len(found[0]) < 3 and found[0].isalpha():
            continue  # patient's, don't
        yield from _simple_words(found[0], start + found.start())


def _is_elision(whole: str) -> bool:
    return all(sign in "'’" for sign in whole if not sign.isalnum())


def _simple_words(word: str, start: int) -> Iterator[TermWord]:
    if not word.isascii() and UNSPACED.search(word):
        yield from _split_unspaced(word, start)
        return
    if HUMPS.fullmatch(word):
        yield TermWord(word, start, start + len(word), True)
        for found in HUMP.finditer(word):
            yield TermWord(found[0], start + found.start(), start + found.end(), False)
        return
    yield TermWord(word, start, start + len(word), False)


def _split_unspaced(word: str, start: int) -> Iterator[TermWord]:
    """Words of scripts without blanks: every two neighbouring characters, and each one that may be a word."""
    at = 0
    for found in UNSPACED.finditer(word):
        if found.start() > at:
            yield TermWord(word[at : found.start()], start + at, start + found.start(), False)
        run, here = found[0], start + found.start()
        for n in range(max(1, len(run) - 1)):
            yield TermWord(run[n : n + 2], here + n, here + min(n + 2, len(run)), False)
        if len(run) > 1:
            yield from (TermWord(one, here + n, here + n + 1, True) for n, one in enumerate(run) if ALONE.match(one))
        at = found.end()
    if at < len(word):
        yield TermWord(word[at:], start + at, start + len(word), False)


def _forms(word: TermWord, language: str | None) -> tuple[str, ...]:
    return (fold(word.text),) if word.whole else forms(word.text, language)


@lru_cache(maxsize=100_000)
def forms(word: str, language: str | None) -> tuple[str, ...]:
    """The terms of a word: its stem, and the stem of the word without accents, for people who type none."""
    plain = fold(word)
    stemmer = _stemmer(STEMMERS.get(language or "", ""))
    if stemmer is None or len(plain) < 3 or not plain.isalpha():
        return (plain,)
    bare = fold(stemmer.stemWord(plain))
    if word.isascii():
        return (bare,)
    accented = fold(stemmer.stemWord(word.lower()))
    return (bare,) if accented == bare else (bare, accented)


@lru_cache(maxsize=100_000)
def fold(word: str) -> str:
    """A word without case and accents, and no longer than an index can hold."""
    folded = word.lower() if word.isascii() else _strip_accents(word)
    if len(folded) <= LONGEST:
        return folded
    return folded[: LONGEST - 17] + "…" + hashlib.sha256(folded.encode("utf-8", "replace")).hexdigest()[:16]


def _strip_accents(word: str) -> str:
    return ACCENTS.sub("", unicodedata.normalize("NFKD", word.casefold())).translate(PLAIN).casefold()


@cache
def _stemmer(name: str) -> Any:
    if not name:
        return None
    import Stemmer  # noqa: PLC0415 it loads thirty stemmers, and most processes need none

    known: Any = Stemmer  # it has no types
    return known.Stemmer(name)


@dataclass(frozen=True, slots=True)
class QueryWord:
    """A word of a query: any of its terms matches, and `times` says how often the query has it."""

    terms: frozenset[str]
    times: int = 1


def query_words(query: str, languages: Iterable[str | None]) -> list[QueryWord]:
    """The words of a query, each with the terms it has in any of these languages."""
    spoken = {language if language in STEMMERS else None for language in languages} | {None}
    found: Counter[frozenset[str]] = Counter()
    for word in words(query):
        if word.whole and len(word.text) == 1:  # a query of two characters does not mean each of them
            continue
        found[frozenset(form for one in spoken for form in _forms(word, one))] += 1
    return [QueryWord(terms, times) for terms, times in found.items()]
