"""Reads a text as words that can be compared: stems, names and values, without the words that every text has."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from gristmill.knowledge import FUNCTION_WORDS, fold, forms, words


def split_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words by which people ask, or ask for more; they are in no answer. Folded: without case and accents.
ASKING = split_words(
    """what which who whom whose when where why how many much long often tell say list name describe explain summarize
    summarise give show find according please there any does did do is are was were been being have has had can could
    would should will shall may might must be about mention mentioned mentions answer question document documents text
    discuss discussed discussion meeting think thought opinion know known
    was wer wen wem wessen wann wo woher wohin warum wieso weshalb wie viel viele welche welcher welches welchen nenne
    beschreibe erklare hat haben hatte wurde wurden werden wird kann gibt es laut
    qui quoi quand ou pourquoi comment combien quel quelle quels quelles est sont etait ont eu decris explique selon
    que quien quienes cuando donde porque como cuanto cuantos cual cuales es son fue fueron tiene segun
    kdo co kdy kde proc jak kolik jaky jaka jake ktery ktera ktere byl byla bylo jsou ma podle
    tko sto kada gdje zasto kako koliko koji koja koje je su bio bila ima prema"""
)
PRONOUNS = split_words(
    """he she it they him her them his hers its their theirs this that these those one ones there then former latter
    er sie es ihn ihm ihr ihre ihren ihrem seine seinen seinem dieser diese dieses damit dazu davon dort
    il elle ils elles lui leur ce cet cette cela y en el ella ellos ellas esto eso ese esa on ona ono oni ten ta to
    jeho jeji jejich tam"""
)
TELLING_IN_ENGLISH = split_words("die war son sin con pour den sur bin sans")  # articles and the like elsewhere
PARTICLES = split_words("of the de la le van von der den di da del du al bin and & for und y e")
# A capital may only say that a sentence begins, or that a heading does.
WORD = re.compile(r"[^\W_](?:[\w&]|['’.-](?=[^\W_]))*")
ENDS = re.compile(r"[.!?…:;]['\"”’»)\]]*\s*$|\n\s*$|^\s*$|[\"“„«(\[*_>|#-]\s*$")
QUOTED = re.compile(r'"([^"\n]{2,80})"|“([^”\n]{2,80})”|„([^“”\n]{2,80})[“”]|«([^»\n]{2,80})»')
LONGEST_NAME = 6  # words


@dataclass(frozen=True, slots=True)
class Term:
    """A word that tells something, as it is compared, and its place in the text."""

    term: str
    text: str
    start: int
    stop: int


@lru_cache(maxsize=4_096)
def read_terms(text: str, language: str | None) -> tuple[Term, ...]:
    """The telling words of a text in their order; ids and numbers are kept whole."""
    return tuple(_find_terms(text, language))


def _find_terms(text: str, language: str | None) -> Iterator[Term]:
    until = 0
    for word in words(text):
        if word.start < until:
            continue
        if word.whole:
            if not any(char.isdigit() for char in word.text):
                continue  # its words follow by themselves
            until = word.stop
            yield Term(fold(word.text), word.text, word.start, word.stop)
        elif not is_plain(word.text, language):
            yield Term(stem(word.text, language), word.text, word.start, word.stop)


def is_plain(word: str, language: str | None = None) -> bool:
    """Whether a word holds sentences together and says nothing by itself."""
    plain = fold(word)
    if language == "en" and plain in TELLING_IN_ENGLISH:
        return False
    return plain in FUNCTION_WORDS or (len(plain) < 2 and not plain.isdigit())


@lru_cache(maxsize=50_000)
def stem(word: str, language: str | None) -> str:
    return forms(word, language)[0]


def are_alike(one: str, other: str) -> bool:
    """Whether two stems are those of one word family: sign and signature, director and direct."""
    if one == other:
        return True
    short, long = sorted((one, other), key=len)
    return len(short) >= 5 and short.isalpha() and long.startswith(short[: max(5, len(short) - 2)])


# --- names


@dataclass(frozen=True, slots=True)
class Name:
    """Words that are written as a name, and their place."""

    text: str
    start: int
    stop: int

    @property
    def key(self) -> str:
        return " ".join(fold(word) for word in self.text.split())


@lru_cache(maxsize=2_048)
def find_names(text: str, language: str | None = None) -> tuple[Name, ...]:
    """Names by their capitals, ids, and what stands in quotation marks.

    In German every noun has a capital: there, only two capitals in a row make a name.
    """
    found = [*_find_quoted(text), *_find_capitals(text, language)]
    taken: list[Name] = []
    for name in sorted(found, key=lambda one: (one.start, -one.stop)):
        if not taken or name.start >= taken[-1].stop:
            taken.append(name)
    return tuple(taken)


def _find_quoted(text: str) -> Iterator[Name]:
    """Titles in quotation marks; a whole sentence in them is speech."""
    for match in QUOTED.finditer(text):
        inner = next(filter(None, match.groups()))
        if inner[:1].isupper() and len(inner.split()) <= LONGEST_NAME and inner[-1] not in ".,!?…":
            start = match.start() + match[0].index(inner)
            yield Name(inner, start, start + len(inner))


def _find_capitals(text: str, language: str | None) -> Iterator[Name]:
    run: list[re.Match[str]] = []
    for match in WORD.finditer(text):
        if run and not _continues(text, run[-1], match):
            yield from _make_name(text, run, language)
            run = []
        if _is_capital(match[0]) or (run and fold(match[0]) in PARTICLES) or (run and match[0].isdigit()):
            run.append(match)
        elif run:
            yield from _make_name(text, run, language)
            run = []
    if run:
        yield from _make_name(text, run, language)


def _continues(text: str, last: re.Match[str], match: re.Match[str]) -> bool:
    gap = text[last.end() : match.start()]
    return gap in (" ", "\u00a0", " & ") or (gap == ". " and len(last[0]) <= 2)


def _is_capital(word: str) -> bool:
    return word[0].isupper() or (any(map(str.isdigit, word)) and any(map(str.isupper, word)))


def _make_name(text: str, run: Sequence[re.Match[str]], language: str | None) -> Iterator[Name]:
    words_ = list(run)
    while words_ and (fold(words_[-1][0]) in PARTICLES or words_[-1][0].isdigit()):
        words_.pop()
    while words_ and _is_no_name(words_[0][0]):
        words_.pop(0)
    if not words_ or len(words_) > LONGEST_NAME + 2:
        return
    begins = ENDS.search(text[max(0, words_[0].start() - 12) : words_[0].start()]) is not None
    alone = len(words_) == 1
    if alone and (begins or language == "de") and not _is_certain(words_[0][0]) and not _stands_within(text, words_[0]):
        return
    start, stop = words_[0].start(), words_[-1].end()
    name = re.sub(r"['’]s$|['’]$", "", text[start:stop])
    if len(name) > 1:
        yield Name(name, start, start + len(name))


def _is_no_name(word: str) -> bool:
    plain = fold(word)
    return plain in FUNCTION_WORDS or plain in ASKING or plain in PRONOUNS


def _is_certain(word: str) -> bool:
    """NASA, HT-2026-014, McDonald: no ordinary word looks like this."""
    return len(word) > 1 and (any(map(str.isupper, word[1:])) or any(map(str.isdigit, word)))


def _stands_within(text: str, match: re.Match[str]) -> bool:
    """Whether the same word has its capital in the middle of a sentence as well."""
    for other in re.finditer(rf"(?<!\w){re.escape(match[0])}(?!\w)", text):
        if other.start() != match.start() and not ENDS.search(text[max(0, other.start() - 12) : other.start()]):
            return True
    return False


def holds_name(name: str, terms: Iterable[str]) -> bool:
    """Whether a text with these folded words names this: by all its words, or by its last one (a family name)."""
    own = [fold(word) for word in WORD.findall(name) if fold(word) not in PARTICLES]
    there = set(terms)
    if not own:
        return False
    return all(word in there for word in own) or (len(own) > 1 and own[-1] in there and own[-1].isalpha())


@lru_cache(maxsize=2_048)
def fold_words(text: str) -> frozenset[str]:
    """All words of a text without case and accents, possessives included as they are without."""
    found = {fold(re.sub(r"['’]s?$", "", match[0])) for match in WORD.finditer(text)}
    return frozenset(found | {part for one in found for part in re.split(r"[-.'’&/]", one) if len(part) > 1})
