"""Decides what is a name: cleans the names that a model found, and finds others by their capitals."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, takewhile

from gristmill.models.language.months import DATE
from gristmill.models.language.structure import Mention


def split_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words before a name that are no part of it.
BEFORE = split_words(
    """the a an dear hi hello hey agent agents dr doctor mr mrs ms miss sir madam prof professor herr herrn frau pan
    paní señor señora monsieur madame mme mr. mrs. ms. dr. prof. regards sincerely cheers thanks thank best kind from to
    cc bcc re fw fwd subject sent attn attention signed by and or of in at on der die das den dem firma společnost"""
)
# Companies may begin with these (Under Armour), people do not.
PREPOSITIONS = split_words(
    """between among with without for against under through during since until after before about near via zwischen mit
    ohne für gegen durch bei nach seit"""
)
# German roles have a capital and are compounds: Hausmeister, Abteilungsleiterin.
ROLE = re.compile(
    r"\w*(?:meister|leiter|führer|verwalter|vertreter|berater|direktor|präsident|sekretär|anwalt|anwält|vorsitzende[rn]?"
    r"|beauftragte[rn]?)(?:in)?",
    re.IGNORECASE,
)
# Words that a model often takes for a name; none of them is a whole name.
NEVER = split_words(
    """regards sincerely cheers thanks subject from to cc bcc date attachment attachments page chapter section figure
    table appendix email e-mail mail phone tel fax address invoice contract agreement receipt total amount note notes
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
    september october november december today tomorrow yesterday am pm tbd n/a i we you he she it they yes no ok
    the company the parties party supplier contractor customer client buyer seller employer employee"""
)
POSSESSIVE = re.compile(r"(?:['’]s|(?<=s)['’])(?=$|\s)")
LEGAL_FORM = re.compile(r"\b(Ltd|Inc|Corp|LLC|GmbH|PLC)\b\.?\s.*$")  # a name ends here, even within a sentence
# Words of short English texts. After a wrong guess a name may get the wrong type, and nothing worse happens.
ENGLISH = re.compile(
    r"\b(?:the|and|of|is|are|was|were|to|for|with|that|this|have|has|had|will|not|you|your|we|our|from|by|about|after|before"
    r"|between|who|which|his|her|their|he|she|they|it|its|please|thanks|dear|regards|call|ask|signed|met|paid|sent|joined"
    r"|hired|bought|sold|works|worked|wrote|said|asked|called|meeting|invoice|receipt|contract|yesterday|today|tomorrow)\b",
    re.IGNORECASE,
)


def clean_name(text: str, namespace: str) -> str:
    """The name without greeting, title, possessive and stray signs; empty if it is no name."""
    words = POSSESSIVE.sub("", text.replace("\u00ad", "")).split()
    while words and _is_no_part_of_name(words, namespace):
        words.pop(0)
    while words and not re.search(r"\w", words[-1]):
        words.pop()
    name = " ".join(words).strip(" \t\"'“”‘’«»()[]{}<>*_#|,;:!?/\\-–—…")
    name = name.partition(",")[0] if namespace == "person" else LEGAL_FORM.sub(r"\1", name)
    name = name.rstrip(". ")  # Acme Corp. at the end of a sentence is Acme Corp elsewhere
    return name if _is_name(name, namespace) else ""


def _is_no_part_of_name(words: Sequence[str], namespace: str) -> bool:
    """Whether the first of these words is no part of the name behind it."""
    first = words[0].lower().strip(".,:;*_")
    if first in BEFORE or (first in PREPOSITIONS and namespace in ("person", "name")):
        return True
    least = {"person": 1, "name": 2}.get(namespace)  # the fewest words of a name; any more may be a role
    return least is not None and len(words) > least and ROLE.fullmatch(first) is not None


def _is_name(name: str, namespace: str) -> bool:
    if not 2 <= len(name) <= 80 or name.count(" ") > 6 or name.lower() in NEVER:
        return False
    if re.search(r"[|@=<>{}\[\]\\]|https?:|\s[-–—]\s", name):
        return False
    if not any(one.isupper() for one in name):
        return False
    if namespace == "person":
        return not re.search(r"\d", name) and all(word[0].isupper() or word in PARTICLES for word in name.split())
    return True


PARTICLES = split_words("van von der den de la le di da del della du al bin ibn ter ten zu y e dos das und")


def complete_names(found: Sequence[Mention]) -> list[Mention]:
    """Take a single word for a person if exactly one full name nearby contains it: Mercer is Alex Mercer."""
    people = {one.name for one in found if one.namespace == "person" and " " in one.name}
    owners: dict[str, set[str]] = {}
    for person in people:
        for word in person.split():
            owners.setdefault(word.casefold(), set()).add(person)
    return [_complete_name(one, owners.get(one.name.casefold(), set())) for one in found]


def _complete_name(one: Mention, owners: set[str]) -> Mention:
    if one.namespace not in ("person", "place", "organisation") or len(owners) != 1:
        return one
    (person,) = owners
    return Mention(one.start, one.stop, "person", person, person)


TITLE = r"\b(?:mr|mrs|ms|miss|dr|prof|herrn?|frau)\b\.?"
STREET = re.compile(r"\b\d+[a-z]?(?:\s[A-Z][\w.'’-]*){2,4},\s$")  # 4 Chapel Row,
NEAR = 60  # characters before a name that are searched for a street


def correct_namespace(one: Mention, others: Iterable[Mention], text: str) -> Mention:
    """Correct a single word that a model took for a person: it may be a place, or a company named in full nearby."""
    if one.namespace != "person" or " " in one.name or re.search(rf"{TITLE}\s{re.escape(one.name)}\b", text, re.I):
        return one
    firms = {other.name for other in others if other.namespace == "organisation"}
    meant = [firm for firm in firms if f"{firm} ".startswith(f"{one.name} ")]
    if meant:
        name = meant[0] if len(meant) == 1 else one.name
        return Mention(one.start, one.stop, "organisation", name, name)
    near = text[max(0, one.start - NEAR) : one.start]
    if STREET.search(near) or _is_before_a_day(text, one.stop):
        return Mention(one.start, one.stop, "place", one.name, one.written)
    return one


def _is_before_a_day(text: str, stop: int) -> bool:
    """Aldermoor, 12 January 2026: letters and contracts name the place before the day."""
    day = DATE.match(text, stop + 2) if text[stop : stop + 2] == ", " else None
    return day is not None and not day["y4"]  # Smith, March 2020 is a citation


def is_english(text: str, language: str | None) -> bool:
    """Whether English was detected; a text too short for that is English if it contains an English word."""
    return language == "en" if language else ENGLISH.search(text) is not None


# --- other languages

WORD = r"[^\W\d_](?:[^\W\d_]|['’-](?=[^\W\d_]))+"
COMPANY = re.compile(
    r"(?:\b[^\W\d_][\w&.-]*\s(?:&\s)?){1,5}?(?:GmbH(?:\s&\sCo\.?\sKG)?|AG|KG|SE|e\.V\.|s\.r\.o\.|a\.s\.|spol\.\ss\sr\.o\.|"
    r"S\.A\.|SA|SARL|S\.p\.A\.|S\.r\.l\.|B\.V\.|N\.V\.|Sp\.\sz\so\.o\.|Ltd\.?|Inc\.?|Corp\.?|LLC|PLC|Oy|AB|A/S)(?!\w)"
)


# Titles need a pattern of their own, because an abbreviation ends a run of capitals: Herr Dr. Weber.
TITLED = re.compile(
    rf"\b(?:Herrn?|Frau)\s(?:(?:Dr|Prof|Ing|Dipl|med|habil)\.[\s-]?)*(?P<name>{WORD}(?:\s{WORD}){{0,3}})"
)


def find_foreign_names(text: str, starts: frozenset[int]) -> list[Mention]:
    """Find companies by their legal form, people by their title, and other names as two to four capitalised words."""
    certain = [*find_companies(text, starts), *_find_titled_people(text)]
    names = [
        one
        for one in _find_capitalised_names(text, starts)
        if all(one.stop <= other.start or other.stop <= one.start for other in certain)
    ]
    return [*certain, *names]


def _find_titled_people(text: str) -> Iterator[Mention]:
    for match in TITLED.finditer(text):
        capitals = takewhile(lambda word: word[0].isupper(), match["name"].split())
        if name := clean_name(" ".join(capitals), "person"):
            yield Mention(match.start(), match.end(), "person", name, name)


def find_companies(text: str, starts: Iterable[int]) -> list[Mention]:
    """Find companies by their legal form, in any language: no model is as reliable. No name crosses a paragraph."""
    matches = [
        match
        for start, stop in pairwise(sorted({0, len(text), *starts}))
        for match in COMPANY.finditer(text, start, stop)
    ]
    found = [(match.start() + _measure_lower_words(match[0]), match.end()) for match in matches]
    named = [(start, stop, clean_name(text[start:stop], "organisation")) for start, stop in found]
    return [Mention(start, stop, "organisation", name, name) for start, stop, name in named if " " in name]


def _measure_lower_words(text: str) -> int:
    """How many characters at the beginning are no part of the name: die Müller GmbH."""
    last = 0
    for match in re.finditer(r"\S+\s", text):
        if not match[0][0].isupper() and match[0] != "& ":
            last = match.end()
    return last


def _find_capitalised_names(text: str, starts: frozenset[int]) -> Iterator[Mention]:
    run: list[re.Match[str]] = []
    for match in re.finditer(r"\S+", text):
        word = match[0].strip("\"'“”„‘’«»()[]*_,;:.!?")
        begins = bool(run) and match[0][0] in "\"'“„«("
        if begins:
            yield from _make_name_of_run(run, text, starts)
            run = []
        if re.fullmatch(WORD, word) and word[0].isupper() and not word.isupper():
            run.append(match)
            if match[0][-1] in ',;:.!?)"”»“':
                yield from _make_name_of_run(run, text, starts)
                run = []
        else:
            yield from _make_name_of_run(run, text, starts)
            run = []
    yield from _make_name_of_run(run, text, starts)


def _make_name_of_run(run: Sequence[re.Match[str]], text: str, starts: frozenset[int]) -> Iterator[Mention]:
    """The name that a run of capitalised words is; the first word of a sentence is left out if two others remain."""
    words = list(run)
    if words and (words[0].start() in starts or text[: words[0].start()].rstrip()[-1:] in ".!?:") and len(words) > 2:
        words = words[1:]
    if not 2 <= len(words) <= 4:
        return
    name = clean_name(" ".join(one[0] for one in words), "name")
    if name.count(" "):
        yield Mention(words[0].start(), words[-1].end(), "name", name, name)
