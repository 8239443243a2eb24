"""Finds a word of a claim at whose place a passage has another one: landlord for tenant, Thursday for Tuesday."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from gristmill.agents.ask.meanings import DEED, ROLE, find_meanings
from gristmill.agents.ask.opposites import POLES, find_poles
from gristmill.agents.ask.polarity import SHARES, fold_text
from gristmill.agents.ask.pronouns import NONE, ONE, SEVERAL
from gristmill.agents.ask.relations import Said, read_names
from gristmill.agents.ask.synonyms import find_family
from gristmill.agents.ask.values import Value, are_equal, find_values
from gristmill.agents.ask.words import ASKING, PRONOUNS, WORD, Term, are_alike, fold_words, read_terms, split_words
from gristmill.knowledge import fold

HALF = 0.5  # the share of a claim that a clause must have to speak of the same thing
ALIKE = 0.6  # the share of the shorter word that both begin with: two forms of one word
FEW = 3  # letters that no two words have in common by chance
LONG = 3  # words of a part of a claim that stands by itself
BREAKS = r";|,?\s(?:but|while|whereas|although|aber|sondern|während|obwohl|ale|zatímco|ali|dok)\s"
AND = {"en": "and", "de": "und", "cs": "a|i", "hr": "i|a|te"}  # the Czech “a” is an English article
# “Keller leads the first team, Dorn the second”; in German any noun has a capital.
NEXT_PERSON = r",\s(?=(?:Herr|Frau|Dr\.)\s)"
NEXT_NAME = r",\s(?=(?:(?:Mr|Ms|Mrs|Dr)\.?\s)?[A-Z]\w+\s)"
FRAMES = re.compile(
    r"^(?:(?:according to|laut|gemäß|podle|prema)\s[^,]{2,60}(?:,|(?=\s(?:ist|wurde|sind|hat|je|byl)\b))"
    r"|(?:the|this|our|der|die|das)\s(?:\w+\s){1,3}(?:says?|states?|mentions?|notes?|shows?|sagt|besagt|nennt)(?:\sthat|,?\sdass)?)\s",
    re.IGNORECASE,
)
INTENT = re.compile(
    r"\b(?:hope|hopes|hoped|hoping|intend|intends|intended|wish|wishes|wished|want|wants|wanted|try|tries|tried"
    r"|attempt|attempts|attempted)\sto\b|\b(?:consider|considers|considered|discuss|discusses|discussed)\s\w+ing\b"
    r"|\b(?:hoffte|hofften|wollte|wollten|versuchte|versuchten|erwog|erwogen|beabsichtigt\w*)\b"
    r"|\b(?:chtel\w?|zamysle\w+|zvazova\w+|pokusil\w?|htio|htjel\w|razmatra\w+|pokusa\w+|namjerava\w+)\b"
)
ARTICLES = split_words(
    """the a an this that these those its their his her our your der die das den dem des ein eine einen einem einer
    eines dieser diese dieses ten ta tento tato toto ovaj ova ovo taj"""
)
# The words behind two different ones of these stand at different places: on Monday, by the tenant.
PLACED = split_words(
    """in at on near from to for with of by since until till during between among under over through across against
    about within after before without as than into onto behind per via
    im am an auf bei beim aus nach fur mit von vom zu zum zur seit bis gegen uber unter vor durch als ohne wegen
    v ve na u z ze s se k ke do od pro pri po pred za bez kvuli
    iz sa ka kod nakon prije zbog"""
)
SAME_PLACE = {
    "at": "in",
    "im": "in",
    "beim": "in",
    "bei": "in",
    "ve": "v",
    "kod": "u",
    "vom": "von",
    "zum": "zu",
    "zur": "zu",
}
# Words that say little by themselves, and that one may put for another.
LIGHT = split_words(
    """also only about approximately around currently now then still already always usually normally generally exactly
    total overall whole entire own same other another further additional new certain various several respective main
    take takes took taken taking place held hold holds happen happens occur occurs get gets got go goes make makes made
    use uses used using include includes included located situated called named known set given say says said state
    states stated mention mentions responsible able due main
    auch nur etwa ungefahr rund derzeit jetzt noch schon immer genau gesamt ganz weiter weitere neue neuer neues gilt
    findet statt befindet liegt heisst genannt verwendet nachste nachsten
    take pouze asi nyni jeste jiz vzdy cely nova novy kona konat nachazi pristi
    takoder samo oko sada jos vec uvijek cijeli novi odrzava nalazi sljedeci sljedeca"""
)
# These are compared elsewhere, or hold sentences together. A meeting is a thing here, and no way to ask.
SKIPPED = (PRONOUNS | ASKING | frozenset[str]().union(*SHARES.values())) - split_words("meeting document text question")
# Behind its name a thing is called by these: the company, the building.
GENERIC = split_words(
    """company firm business organisation organization contract agreement document letter report man woman person people
    building town city village place product device system project group team author party
    firma unternehmen gesellschaft vertrag vereinbarung dokument mann frau person gebaude stadt ort produkt gerat
    projekt
    spolecnost podnik smlouva dohoda muz zena osoba budova mesto vyrobek
    tvrtka poduzece ugovor sporazum covjek zena osoba zgrada grad proizvod"""
)


@dataclass(frozen=True)
class Slot:
    """A word or a value at its place, and the word that leads to it."""

    text: str
    term: str
    start: int
    stop: int
    leads: str  # by, in, to; empty where none stands before it
    language: str | None
    value: Value | None = None
    is_name: bool = False


def find_exchange(claim: Said, sentences: Sequence[Said], about: str) -> tuple[str, str] | None:
    """A word of the claim, and the one at its place in the clause that has most of the claim."""
    known = {one.term for one in read_terms(about, claim.language)}
    clauses = list(_list_clauses(sentences))
    for part in _list_parts(claim):
        found = [
            (share, _find_intent(claim.text, text) or _find_other_word(part, clause, known))
            for text, clause, lent in clauses
            if (share := _measure_share(part, clause, lent)) >= HALF
        ]
        # a clause that has less of the claim than another one, which has another word, does not clear it
        best = max(found, key=lambda one: (one[0], one[1] is None), default=None)
        if best and best[1]:
            return best[1]
    return None


def _list_clauses(sentences: Sequence[Said]) -> Iterator[tuple[str, Sequence[Slot], Sequence[Slot]]]:
    """Each clause, its words, and those of the clause before it that a pronoun may stand for."""
    before: Sequence[Slot] = ()
    for one in sentences:
        for text in _divide_sentence(one):
            slots = _read_slots(text, one.language)
            language = one.language or "en"
            has_pronoun = not fold_words(text).isdisjoint(ONE.get(language, NONE) | SEVERAL.get(language, NONE))
            yield text, slots, before if has_pronoun else ()
            before = slots


def _divide_sentence(said: Said) -> list[str]:
    clauses = _divide(said.text, rf"{BREAKS}|,\s(?:{_find_and(said)})\s")
    next_name = NEXT_PERSON if said.language == "de" else NEXT_NAME
    clauses = [part for one in clauses for part in _divide(one, next_name)]
    return [part for one in clauses for part in _divide_parallel(one, said.language)]


def _divide_parallel(text: str, language: str | None) -> list[str]:
    """The parts between commas that have a word in common: the train to Prague leaves at 9, the train to Brno at 10."""
    parts = [one for one in text.split(", ") if one.strip()]
    words = [{one.term for one in _read_slots(part, language) if not one.value} for part in parts]
    is_parallel = any(one & other for one, other in pairwise(words))
    return parts if is_parallel else [text]


def _find_intent(claim: str, clause: str) -> tuple[str, str] | None:
    """The word by which a clause only wants what the claim says is done: hoped to, considered moving."""
    found = INTENT.search(fold_text(clause))
    return (claim.strip(" ."), found[0]) if found and not INTENT.search(fold_text(claim)) else None


def _list_parts(claim: Said) -> Iterator[Sequence[Slot]]:
    """The parts of a claim that say something by themselves, or the whole claim."""
    text = FRAMES.sub("", claim.text)
    pieces = _divide(text, rf"{BREAKS}|,?\s(?:{_find_and(claim)})\s")
    parts = [_read_slots(one, claim.language) for one in pieces]
    yield from parts if all(len(one) >= LONG for one in parts) else [_read_slots(text, claim.language)]


def _find_and(said: Said) -> str:
    return AND.get(said.language or "en", "and")


def _divide(text: str, at: str) -> list[str]:
    return [one for one in re.split(at, text) if one.strip()]


@lru_cache(maxsize=4_096)
def _read_slots(text: str, language: str | None) -> tuple[Slot, ...]:
    values = [one for one in find_values(text) if one.written[:1].isdigit() or one.kind != "number"]
    names = read_names(text, language)
    found = [
        Slot(one.written, one.key, one.start, one.stop, read_lead(text, one.start), language, one) for one in values
    ]
    for term in read_terms(text, language):
        is_counted = any(one.start < term.stop and term.start < one.stop for one in values)
        if is_counted or fold(term.text) in SKIPPED or any(map(str.isdigit, term.text)):
            continue
        is_name = any(one.start <= term.start < one.stop for one in names)
        lead = read_lead(text, term.start)
        found.append(Slot(term.text, term.term, term.start, term.stop, lead, language, is_name=is_name))
    return tuple(sorted(found, key=lambda one: one.start))


def read_lead(text: str, at: int) -> str:
    """The preposition before this place."""
    words = [fold(match[0]) for match in WORD.finditer(text[max(0, at - 30) : at])]
    before = next((word for word in reversed(words) if word not in ARTICLES), "")
    return SAME_PLACE.get(before, before) if before in PLACED else ""


def _measure_share(part: Sequence[Slot], clause: Sequence[Slot], lent: Sequence[Slot]) -> float:
    """The share of a part that a clause has; nothing if it has no word of it by itself."""
    own = [any(_are_one(one, other) for other in clause) for one in part]
    borrowed = [any(_are_one(one, other) for other in lent) for one in part]
    return sum(map(max, own, borrowed)) / len(part) if any(own) else 0.0


@lru_cache(maxsize=50_000)
def _are_one(one: Slot, other: Slot) -> bool:
    """Whether two words are forms of one word, or may stand for each other."""
    if one.value and other.value:
        return are_equal(one.value, other.value)
    if one.value or other.value:
        return False
    mine, its = fold(one.text), fold(other.text)
    means, others = find_meanings(mine, one.language), find_meanings(its, other.language)
    if means & ROLE and others & ROLE and not means & others:
        return False  # insurer and insured have the same stem
    if mine == its or one.term == other.term or are_alike(one.term, other.term) or _begin_alike(mine, its):
        return True
    if one.language in ("en", None) and {mine, one.term} & find_family(other.text):
        return True
    if means & others:
        return True
    poles = [find_poles(POLES, _as_term(slot), slot.language) for slot in (one, other)]
    return bool(poles[0] & poles[1])


def _as_term(slot: Slot) -> Term:
    return Term(slot.term, slot.text, slot.start, slot.stop)


def _begin_alike(one: str, other: str) -> bool:
    common = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return common >= FEW and common >= ALIKE * min(len(one), len(other))


def _find_other_word(part: Sequence[Slot], clause: Sequence[Slot], known: set[str]) -> tuple[str, str] | None:
    """The first word of the claim with another one at its place: between the same two words."""
    pairs = _align(part, clause)
    taken = set(pairs.values())
    for first, last in _list_gaps(part, pairs):
        left = pairs[first - 1] if first else -1
        right = pairs[last] if last < len(part) else len(clause)
        between = range(left + 1, right)
        if left >= right or taken & set(between):
            continue
        for one in part[first:last]:
            for other in (clause[n] for n in between):
                if one.term not in known and _are_exchanged(one, other):
                    return one.text, other.text
    return _find_displaced(part, clause, pairs) or _find_other_deed(part, clause, pairs)


def _find_displaced(part: Sequence[Slot], clause: Sequence[Slot], pairs: dict[int, int]) -> tuple[str, str] | None:
    """A word that the clause has, but at another place, and at its own another one: opened in presence of the mayor."""
    taken = set(pairs.values())
    for n, m in pairs.items():
        one = part[n]
        is_late = n + 1 in pairs and m > pairs[n + 1] > pairs.get(n - 1, -1)
        if one.leads == clause[m].leads and not (is_late and _is_deed(one)):
            continue
        first = pairs.get(n - 1, -1) + 1
        last = pairs[1] if n == 0 and is_late else first + 1 if n - 1 in pairs and not part[n - 1].value else first
        if last != m and not taken & set(range(first, last)):
            for other in clause[first:last]:
                if _are_exchanged(one, other) and _is_deed(one) == _is_deed(other):
                    return one.text, other.text
    return None


def _find_other_deed(part: Sequence[Slot], clause: Sequence[Slot], pairs: dict[int, int]) -> tuple[str, str] | None:
    """What is done in the claim, where the clause only says that something else is done."""
    ours = [(n, one) for n, one in enumerate(part) if _is_deed(one)]
    if not ours or any(n in pairs for n, _ in ours):
        return None
    taken = set(pairs.values())
    other = next((one for m, one in enumerate(clause) if m not in taken and _is_deed(one)), None)
    return (ours[0][1].text, other.text) if other else None


def _is_deed(slot: Slot) -> bool:
    if slot.value or slot.is_name or fold(slot.text) in LIGHT:
        return False
    is_past = slot.language == "en" and slot.text.endswith("ed") and len(slot.text) > LONG
    return is_past or bool(find_meanings(slot.text, slot.language) & DEED)


def _align(part: Sequence[Slot], clause: Sequence[Slot]) -> dict[int, int]:
    """Where each word of the claim stands in the clause: in the same order, as far as that is so."""
    pairs: dict[int, int] = {}
    last = -1
    for n, one in enumerate(part):
        places = [m for m, other in enumerate(clause) if m not in pairs.values() and _are_one(one, other)]
        if places:
            last = pairs[n] = next((m for m in places if m > last), places[0])
    return pairs


def _list_gaps(part: Sequence[Slot], pairs: dict[int, int]) -> Iterator[tuple[int, int]]:
    """The runs of words that the clause has not: the first of each, and the end."""
    first = 0
    while first < len(part):
        if first in pairs:
            first += 1
            continue
        last = next((n for n in range(first, len(part)) if n in pairs), len(part))
        yield first, last
        first = last


def _are_exchanged(one: Slot, other: Slot) -> bool:
    if one.leads != other.leads:
        return False
    if one.value or other.value:
        return one.value is not None and other.value is not None and one.value.kind == other.value.kind
    words = fold(one.text), fold(other.text)
    if any(word in LIGHT for word in words):
        return False
    # the company may be Holm & Sons, and Anna Berg may be the author
    is_called = (words[0] in GENERIC and other.is_name) or (words[1] in GENERIC and one.is_name)
    return not is_called
