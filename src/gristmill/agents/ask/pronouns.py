"""Whom a pronoun means: the one name in the sentences before it. With two of them, nobody knows."""

import re
from collections.abc import Iterator, Sequence

from gristmill.agents.ask.relations import NAMED_BEFORE, Said
from gristmill.agents.ask.values import find_values
from gristmill.agents.ask.words import (
    ASKING,
    PRONOUNS,
    WORD,
    Name,
    find_names,
    fold_words,
    holds_name,
    is_plain,
    split_words,
)
from gristmill.knowledge import fold

Place = tuple[int, int]
# Folded, by language: elsewhere the same words may be articles or prepositions.
ONE = {
    "en": split_words("he him his himself she her hers herself it its itself"),
    "de": split_words("er es ihn ihm sein seine seinen seinem seiner seines"),
    "cs": split_words("on ona ono jeho nej nemu nim ni jemu jej"),
    "hr": split_words(
        "on ona ono njega njemu njime nju njoj njom njegov njegova njegovo njegovu njezin njezina njezinu"
    ),
}
SEVERAL = {  # these may mean several, and some of them one
    "en": split_words("they them their theirs themselves"),
    "de": split_words("sie ihnen ihr ihre ihren ihrem ihrer ihres"),
    "cs": split_words("oni ony jejich nich nimi jim jimi jeji"),
    "hr": split_words("oni one njih njima njihov njihova njihovo njihovu njihovi"),
}
NONE = frozenset[str]()
OWNING = split_words("his her its their sein seine seinen seinem ihr ihre ihren ihrem jeho jeji jejich njegov njegova")
PERSONAL = split_words("he him his himself she her hers herself er ihn ihm")
THINGS = split_words("it its itself")
FIRM = re.compile(r"\b(?:GmbH|AG|KG|SE|Ltd|Inc|Corp|LLC|PLC|a\.s|s\.r\.o|d\.o\.o|d\.d)\b")
TITLED = re.compile(r"^(?:mr|mrs|ms|miss|dr|prof|herrn?|frau|pan|pani|gospodin|gospoda)\b", re.IGNORECASE)
ARTICLE = re.compile(r"\b(?:an?|the|his|her|its|their|this|that|every|first|last|of)\s$", re.IGNORECASE)
PEOPLES = re.compile(
    r"\w+(?:ish|ese)|German|French|Dutch|Swiss|Czech|Greek|Italian|Austrian|Hungarian|Croatian|Russian|American"
)
AND = re.compile(r"\s(?:and|und|a|i)\s")
# Behind these stand places and times; behind the others only what is written like the full name of a person counts.
AT = split_words("in at on near since until during between among under over through across an auf bei v ve na u kod")
FROM = split_words("from to for of about against into aus nach fur von seit bis gegen uber z ze s do od pro pri iz za")
# With these a sentence may begin, and they name nobody.
BEGINNING = split_words(
    """however later yesterday today tomorrow meanwhile next first second third finally nobody everybody somebody
    everyone someone nothing critics experts people afterwards two three four soon now instead both most many few"""
)


def find_unclear_pronoun(name: str, own: Sequence[str], text: str, place: Place, language: str | None) -> str:
    """The first pronoun of a sentence, if nobody can say whether it means this name; else empty.

    `own` are all names of the claim: a pronoun of several may mean all of them that the sentence does not name.
    """
    sentence = Said(text[slice(*place)], language)
    pronoun = next(_find_pronouns(sentence), None)
    if pronoun is None:
        return ""
    until = place[0] + pronoun.start
    named = [one for one in _list_people(text, until, language) if one.start < place[0] or not _is_one_of(one, own)]
    meant = _join_names([one.text for one in named if _may_be(one.text, fold(pronoun.text))])
    lent = [one for one in own if not holds_name(one, fold_words(sentence.text))]
    is_all = fold(pronoun.text) in SEVERAL.get(language or "en", NONE) and all(
        any(_are_one(one, other) for other in lent) for one in meant
    )
    is_clear = any(_are_one(name, one) for one in meant) and (len(meant) == 1 or is_all)
    return "" if is_clear else pronoun.text


def names_nobody(text: str, until: int, language: str | None) -> bool:
    """Whether nobody is named before this place whom a pronoun may mean."""
    return not _list_people(text, until, language)


def split_names(names: Sequence[Name]) -> list[str]:
    """Each of several that are written as one: Anna Berg and Karl Voss; of the CEO of Acme, Acme."""
    return [one.rpartition(" of ")[2] for name in names for one in AND.split(name.text)]


def _find_pronouns(said: Said) -> Iterator[Name]:
    """The pronouns of a sentence that may mean somebody before it: not “its” behind the word that it belongs to."""
    language = said.language or "en"
    known = ONE.get(language, NONE) | SEVERAL.get(language, NONE)
    terms = said.terms
    for match in WORD.finditer(said.text):
        if fold(match[0]) not in known:
            continue
        owns = fold(match[0]) in OWNING and any(not said.text[match.end() : one.start].strip() for one in terms)
        if not (owns and any(one.stop <= match.start() for one in terms)):
            yield Name(match[0], match.start(), match.end())


def _list_people(text: str, until: int, language: str | None) -> list[Name]:
    """The names before this place that a pronoun may mean: of people and firms, as far as their places tell."""
    found = [*find_names(text, language), *_find_beginnings(text, language)]
    dates = [one for one in find_values(text) if one.kind == "date"]
    return [
        Name(part, name.start, name.stop)
        for name in sorted(found, key=lambda one: one.start)
        if name.stop <= until and not _stands_aside(text, name) and not _is_adjective(text, name)
        if not any(one.start < name.stop and name.start < one.stop for one in dates)
        for part in split_names([name])
    ]


def _find_beginnings(text: str, language: str | None) -> Iterator[Name]:
    """Single words with which English sentences begin, and which may be names: no plain words, adverbs and gerunds."""
    if language not in ("en", None):
        return
    known = {one.start for one in find_names(text, language)}
    for match in re.finditer(r"(?:^|(?<=[.!?:]\s)|(?<=\n))([A-Z][a-z]+)(?=\s[a-z])", text):
        word = fold(match[1])
        is_common = word in BEGINNING | ASKING | PRONOUNS or is_plain(match[1], "en") or word.endswith(("ly", "ing"))
        if match.start() not in known and not is_common and not re.search(rf"\b{word}\b", text):
            yield Name(match[1], match.start(1), match.end(1))


def _stands_aside(text: str, name: Name) -> bool:
    before = NAMED_BEFORE.search(text[max(0, name.start - 40) : name.start])
    word = fold(before[1]) if before else ""
    is_full = " " in name.text and FIRM.search(name.text) is None
    return word in AT or (word in FROM and not is_full)


def _is_adjective(text: str, name: Name) -> bool:
    """A Danish engineer, the English, she is Czech: a capital, and nobody's name."""
    is_told_of = ARTICLE.search(text[max(0, name.start - 12) : name.start]) and re.match(r" [a-z]", text[name.stop :])
    return " " not in name.text and (is_told_of is not None or PEOPLES.fullmatch(name.text) is not None)


def _may_be(name: str, pronoun: str) -> bool:
    """Whether a pronoun may mean it: no firm and no number is a he, and no Mr Dorn is an it."""
    is_thing = FIRM.search(name) is not None or any(map(str.isdigit, name))
    return not (is_thing and pronoun in PERSONAL) and not (TITLED.match(fold(name)) and pronoun in THINGS)


def _join_names(names: Sequence[str]) -> list[str]:
    """Each person once: Anna Berg, Berg."""
    joined: list[str] = []
    for name in sorted(names, key=len, reverse=True):
        if not any(_are_one(name, other) for other in joined):
            joined.append(name)
    return joined


def _are_one(one: str, other: str) -> bool:
    """Whether the words of one are among those of the other: no family name alone, which several may have."""
    short, long = sorted((set(fold(one).split()), set(fold(other).split())), key=len)
    return short <= long


def _is_one_of(name: Name, own: Sequence[str]) -> bool:
    return any(_are_one(name.text, one) for one in own)
