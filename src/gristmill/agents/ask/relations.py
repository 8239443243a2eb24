"""Who does what, which side of a comparison is which, which value is whose: what order says, and words alone do not."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from gristmill.agents.ask.opposites import POLES, are_opposite, find_poles
from gristmill.agents.ask.values import Value, are_equal, find_values
from gristmill.agents.ask.words import (
    ASKING,
    PRONOUNS,
    Name,
    Term,
    find_names,
    fold_words,
    holds_name,
    is_plain,
    read_terms,
    split_words,
    stem,
)
from gristmill.knowledge import fold

YEAR = re.compile(r"1[0-9]\d\d|20\d\d")


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence, and the language that it is read in."""

    text: str
    language: str | None

    @property
    def terms(self) -> list[Term]:
        """Its telling words; numbers are compared as values."""
        return [one for one in read_terms(self.text, self.language) if not any(map(str.isdigit, one.text))]

    @property
    def names(self) -> tuple[Name, ...]:
        return read_names(self.text, self.language)


@lru_cache(maxsize=2_048)
def read_names(text: str, language: str | None) -> tuple[Name, ...]:
    """The names of a sentence. In English, its first word counts if it may be one: a capital says nothing there."""
    names = list(find_names(text, language))
    match = re.match(r"[A-Z][\w-]+", text)
    if (
        language == "en"
        and match
        and not (names and names[0].start == 0)
        and not is_plain(match[0], "en")
        and fold(match[0]) not in ASKING
    ):
        names.insert(0, Name(match[0], 0, match.end()))
    return tuple(names)


# --- who does it to whom

PASSIVE = re.compile(r"\bby\b")
JOINS = re.compile(r"\b(?:and|or|with|by|of|in|as)\b|[.,;:/-]")
MUTUAL = split_words("meet met marry married join joined border agree differ talk speak spoke compare equal play fight")
MUTUAL_STEMS = frozenset(stem(word, "en") for word in MUTUAL)


@dataclass(frozen=True)
class Deed:
    """Who does what to whom, as one sentence says it."""

    doer: str
    verbs: frozenset[str]
    other: str


def find_turned_roles(claim: Said, said: Said) -> str:
    """English says by its order who does it: Acme acquired Globex, Globex acquired Acme."""
    if claim.language != "en" or said.language != "en":
        return ""
    ours, theirs = _read_deed(claim), _read_deed(said)
    if ours is None or theirs is None or not ours.verbs & theirs.verbs:
        return _find_turned_words(claim, said)
    doer, other = fold_words(theirs.doer), fold_words(theirs.other)
    is_turned = holds_name(ours.doer, other) and holds_name(ours.other, doer)
    is_told_so = holds_name(ours.doer, doer) or holds_name(ours.other, other)
    return f"The passage says it of “{theirs.doer}”, not of “{ours.doer}”." if is_turned and not is_told_so else ""


def _read_deed(said: Said) -> Deed | None:
    """The deed of a sentence with two names and a verb between them; none where both do it to each other."""
    if len(said.names) != 2:
        return None
    first, second = said.names
    between = said.text[first.stop : second.start]
    verbs = frozenset(one.term for one in read_terms(between, "en"))
    if not verbs or verbs & MUTUAL_STEMS or re.search(r"\b(?:and|or|with)\b|[.;:]", between):
        return None
    return Deed(second.text, verbs, first.text) if PASSIVE.search(between) else Deed(first.text, verbs, second.text)


def _find_turned_words(claim: Said, said: Said) -> str:
    """The same without names: the tenant pays the landlord, the landlord pays the tenant."""
    theirs = set(_list_triples(said))
    for doer, verb, other in _list_triples(claim):
        is_told_so = (doer, verb, other) in theirs or verb in MUTUAL_STEMS
        if doer != other and (other, verb, doer) in theirs and not is_told_so:
            return "The passage says it the other way round."
    return ""


def _list_triples(said: Said) -> Iterator[tuple[str, str, str]]:
    """Three telling words in a row, in active voice, with nothing that joins them."""
    terms = said.terms
    for first, verb, last in zip(terms, terms[1:], terms[2:], strict=False):
        if not JOINS.search(said.text, first.stop, last.start):
            yield first.term, verb.term, last.term


# --- by whom: drafted by Anna and signed by Bob

AGENT = re.compile(r"\b(?:by|von|durch|od strane|par|por)\s", re.IGNORECASE)
AND_BY = re.compile(r"(?:,|\b(?:and|und|a|i|et|y))\s$", re.IGNORECASE)
CHAIN = re.compile(r"\s?,?\s?(?:and|und|a|i|et|y|&|,)\s", re.IGNORECASE)


def find_other_agent(claim: Said, said: Said) -> str:
    """Who did it instead, if the claim names somebody who did something else."""
    theirs = list(_find_agents(said))
    for verb, names in [*_find_agents(claim), *_find_doers(claim)]:
        others = [agents for done, agents in theirs if done == verb]
        words = fold_words(" ".join(name for agents in others for name in agents))
        for name in names:
            does_other = any(holds_name(name, fold_words(" ".join(agents))) for done, agents in theirs if done != verb)
            if others and does_other and not holds_name(name, words):
                return f"The passage says it of “{others[0][0]}”, not of “{name}”."
    return ""


def _find_agents(said: Said) -> Iterator[tuple[str, list[str]]]:
    """Each verb that names follow with “by”, and these names."""
    verb = ""
    for match in AGENT.finditer(said.text):
        names = _take_chain(said, match.end())
        before = [one.term for one in said.terms if one.stop <= match.start()]
        if not (verb and AND_BY.search(said.text, 0, match.start())):  # signed by Anna for Acme and by Bob
            verb = before[-1] if before else ""
        if names and verb:
            yield verb, names


def _take_chain(said: Said, start: int) -> list[str]:
    """The names that stand here, one behind the other: Anna, Bob and Eva."""
    taken: list[str] = []
    for name in said.names:
        gap = said.text[start : name.start] if name.start >= start else None
        if gap is not None and ((not taken and gap == "") or (taken and CHAIN.fullmatch(gap))):
            taken.append(name.text)
            start = name.stop
    return taken


def _find_doers(said: Said) -> Iterator[tuple[str, list[str]]]:
    """Each name that a verb follows directly."""
    for name in said.names:
        following = next((one for one in said.terms if one.start >= name.stop), None)
        if following and all(is_plain(word, said.language) for word in said.text[name.stop : following.start].split()):
            yield following.term, [name.text]


# --- two sides: longer than, before

THAN = re.compile(r"\b(?:than|než|nego)\b|(?:er|mehr|weniger)\s(?P<als>als)\b", re.IGNORECASE)
WAY = re.compile(r"\b(?:from|von)\s([^,;.]{2,40}?)\s(?:to|nach|auf)\s((?:\w+\s?){1,3})", re.IGNORECASE)
ORDER = {
    **dict.fromkeys(("before", "vor", "pred", "prije"), "before"),
    **dict.fromkeys(("after", "nach", "po", "poslije", "nakon"), "after"),
}
# What stands with its opposite before the same word denies it: before the flood, after the flood.
PLACES = (
    ORDER,
    {
        **dict.fromkeys(("above", "over", "uber", "nad", "iznad"), "above"),
        **dict.fromkeys(("below", "under", "beneath", "unter", "pod", "ispod"), "below"),
    },
    {
        **dict.fromkeys(("inside", "within", "innerhalb"), "inside"),
        **dict.fromkeys(("outside", "ausserhalb"), "outside"),
    },
    {
        **dict.fromkeys(("for", "fur", "pro", "za"), "for"),
        **dict.fromkeys(("against", "gegen", "proti", "protiv"), "against"),
    },
    {**dict.fromkeys(("until", "till", "bis"), "until"), **dict.fromkeys(("since", "from", "ab", "seit"), "since")},
)
WORD = re.compile(r"[^\W\d_]+")
BREAK = re.compile(r"[;:!?]|\b(?:but|while|whereas|although|aber|während|obwohl|ale|ali)\b", re.IGNORECASE)
CLAUSE = re.compile(r"[,;:.!?()–—]")


@dataclass(frozen=True)
class Sides:
    """What stands on both sides of a word that compares, and the words that say how."""

    how: str  # than, before, after, from
    left: frozenset[str]
    right: frozenset[str]
    words: tuple[Term, ...]  # of the left side, which may say longer or shorter

    @property
    def only_left(self) -> frozenset[str]:
        return self.left - self.right

    @property
    def only_right(self) -> frozenset[str]:
        return self.right - self.left


def compare_sides(claim: Said, said: Said) -> Literal["other", "turned", ""]:
    """`other`: the passage says it the other way round; `turned`: with the opposite word as well, which is the same."""
    found: set[str] = set()
    for ours in _find_sides(claim):
        for theirs in _find_sides(said):
            if (ours.how in ORDER) != (theirs.how in ORDER) or (ours.how not in ORDER and ours.how != theirs.how):
                continue
            is_same = bool(ours.only_left & theirs.only_left and ours.only_right & theirs.only_right)
            is_turned = bool(ours.only_left & theirs.only_right and ours.only_right & theirs.only_left)
            if is_same == is_turned:
                continue
            is_flipped = ours.how != theirs.how or _are_flipped(ours, theirs, said.language)
            if is_turned:
                found.add("turned" if is_flipped else "other")
            elif not is_flipped:
                found.add("same")
    return "turned" if "turned" in found else "other" if found == {"other"} else ""


def _are_flipped(ours: Sides, theirs: Sides, language: str | None) -> bool:
    return any(are_opposite(one, other, language) for one in ours.words for other in theirs.words)


def _find_sides(said: Said) -> Iterator[Sides]:
    for match in THAN.finditer(said.text):
        start = match.start("als") if match["als"] else match.start()
        yield _make_sides(said, "than", start, match.end())
    for match in WORD.finditer(said.text):
        if how := ORDER.get(fold(match[0])):
            yield _make_sides(said, how, match.start(), match.end())
    for match in WAY.finditer(said.text):
        left, right = ([one for one in said.terms if start <= one.start < stop] for start, stop in match.regs[1:])
        yield Sides("from", _name_things(left), _name_things(right), ())


def _make_sides(said: Said, how: str, start: int, stop: int) -> Sides:
    text = said.text
    end = CLAUSE.search(text, stop)
    until = end.start() if end else len(text)
    if not text[:start].strip():  # After the fire, the flood came
        left = [one for one in said.terms if one.start >= until]
    else:
        since = max((match.end() for match in BREAK.finditer(text, 0, start)), default=0)
        left = [one for one in said.terms if since <= one.start < start]
    right = [one for one in said.terms if stop <= one.start < until]
    return Sides(how, _name_things(left), _name_things(right), tuple(left))


def _name_things(terms: Sequence[Term]) -> frozenset[str]:
    return frozenset(one.term for one in terms if fold(one.text) not in PRONOUNS)


def find_other_place(claim: Said, said: Said) -> str:
    """“after”, where the claim says “before” of the same thing."""
    ours, there = list(_find_places(claim)), list(_find_places(said))
    for written, axis, _, thing in ours:
        same = [one for one in there if one[1] == axis and _are_one(one[3], thing)]
        own = {one[2] for one in ours if one[1] == axis and _are_one(one[3], thing)}
        if same and all(one[2] not in own for one in same):
            return f"The passage says “{same[0][0]}”, not “{written}”."
    return ""


def _find_places(said: Said) -> Iterator[tuple[str, int, str, Term | Value]]:
    """Each word of time or place: as it is written, its axis, its side, and the word or value behind it."""
    values = find_values(said.text)
    for match in WORD.finditer(said.text):
        for axis, words in enumerate(PLACES):
            if place := words.get(fold(match[0])):
                behind: list[Term | Value] = [*values, *said.terms]
                thing = min(
                    (one for one in behind if one.start >= match.end()), key=lambda one: one.start, default=None
                )
                if thing and not CLAUSE.search(said.text, match.end(), thing.start):
                    yield match[0], axis, place, thing


def _are_one(one: Term | Value, other: Term | Value) -> bool:
    if isinstance(one, Value) and isinstance(other, Value):
        return are_equal(one, other)
    return isinstance(one, Term) and isinstance(other, Term) and one.term == other.term


# --- by how much, or to how much

ABOUT = r"(?:(?:about|around|roughly|nearly|almost|some|only|etwa|rund|fast|circa|ca\.|asi|oko|gotovo)\s)?"
TOWARDS = re.compile(
    rf"\b(?:(?P<by>by|um|o|za)|(?<!up )(?P<to>to|auf|na)|(?P<start>from|z|ze|sa))\s{ABOUT}$", re.IGNORECASE
)
CHANGES = split_words("change cut adjust revise set extend shorten move ändern geändert kürzen gekürzt")
CHANGE_STEMS = frozenset(stem(word, language) for word in CHANGES for language in ("en", "de"))


def find_other_step(claim: Said, said: Said) -> str:
    """A value by which something changes in one sentence, and to which (or from which) in the other."""
    if not (_speaks_of_change(claim) and _speaks_of_change(said)):
        return ""
    for value in find_values(claim.text):
        way = _read_way(claim.text, value)
        others = [_read_way(said.text, one) for one in find_values(said.text) if are_equal(value, one)]
        if way and others and all(others) and way not in others:
            return f"The passage says another step of “{value.written}”."
    return ""


def _read_way(text: str, value: Value) -> str:
    if value.kind == "date" or YEAR.fullmatch(value.key):
        return ""
    match = TOWARDS.search(text[: value.start])
    return (match.lastgroup or "") if match else ""


def _speaks_of_change(said: Said) -> bool:
    return any(one.term in CHANGE_STEMS or _is_up_or_down(one, said.language) for one in said.terms)


def _is_up_or_down(term: Term, language: str | None) -> bool:
    return any(axis == 0 for _, axis, _ in find_poles(POLES, term, language))


# --- which value is whose


@dataclass(frozen=True)
class Mark:
    """A name, a word or a value in the order of a sentence."""

    is_value: bool
    key: str
    start: int
    value: Value | None = None


def find_other_pairing(claim: Said, said: Said) -> str:
    """A value of the claim that the passage has of another name, while it has another one of this name."""
    ours, theirs = dict(_pair(_mark_names(claim))), dict(_pair(_mark_names(said)))
    for name, value in ours.items():
        other = next((one for key, one in theirs.items() if _are_one_name(key, name)), None)
        owner = next((key for key, one in theirs.items() if are_equal(one, value)), None)
        if other and owner and not are_equal(other, value) and _are_parallel(said, other, theirs[owner]):
            return f"The passage says “{value.written}” of “{owner}”, not of “{name}”."
    return _find_exchange(claim, said)


AND = re.compile(r"\s(?:and|und|a|i|et|y|&)\s")


def _are_one_name(one: str, other: str) -> bool:
    return holds_name(one, fold_words(other)) or holds_name(other, fold_words(one))


def _mark_names(said: Said) -> list[Mark]:
    """The names of a sentence and its values; without two names, years stand for them."""
    values = find_values(said.text)
    years = [one for one in values if one.kind == "number" and YEAR.fullmatch(one.key) and not one.unit]
    figures = [one for one in values if one.kind in ("number", "amount", "percent") and one not in years]
    names = [
        Mark(False, part, one.start)
        for one in said.names
        if not _is_in_value(one, values)
        for part in AND.split(one.text)
    ]
    own = names if len(names) > 1 or not years else [Mark(False, one.key, one.start) for one in years]
    return sorted([*own, *(Mark(True, one.key, one.start, one) for one in figures)], key=lambda one: one.start)


def _is_in_value(name: Name, values: Sequence[Value]) -> bool:
    return any(one.start < name.stop and name.start < one.stop for one in values)


def _pair(marks: Sequence[Mark]) -> Iterator[tuple[str, Value]]:
    """Names with their values where the order leaves no doubt: a 1 b 2, 1 a 2 b, a b 1 2; nothing else."""
    order = "".join("v" if one.is_value else "n" for one in marks)
    names = [one for one in marks if not one.is_value]
    values = [one.value for one in marks if one.value]
    if len(names) == len(values) and re.fullmatch(r"(nv)+|(vn)+|n+v+", order):
        yield from zip((one.key for one in names), values, strict=True)


def _are_parallel(said: Said, one: Value, other: Value) -> bool:
    """Whether two values of a sentence measure the same: 5 million and 3 million, not 5 mills and 3 lakes."""
    if one.kind != other.kind or (one.unit and other.unit and one.unit.dimension != other.unit.dimension):
        return False
    counted = [_read_counted(said, value) for value in (one, other)]
    return not all(counted) or counted[0] == counted[1]


def _read_counted(said: Said, value: Value) -> str:
    """The word that stands directly behind a number."""
    following = next((one for one in said.terms if one.start >= value.stop), None)
    return following.term if following and not said.text[value.stop : following.start].strip() else ""


def _find_exchange(claim: Said, said: Said) -> str:
    """The same words in the same order, with two values exchanged."""
    ours, theirs = _mark_common(claim, said), _mark_common(said, claim)
    if [one.key for one in ours if not one.is_value] != [one.key for one in theirs if not one.is_value]:
        return ""
    if [one.is_value for one in ours] != [one.is_value for one in theirs]:
        return ""
    pairs = [(one.value, other.value) for one, other in zip(ours, theirs, strict=True) if one.value and other.value]
    changed = [(one, other) for one, other in pairs if not are_equal(one, other)]
    is_exchange = all(any(are_equal(one, there) for _, there in changed) for one, _ in changed)
    if not changed or not is_exchange:
        return ""
    one, other = changed[0]
    return f"The passage says “{other.written}” where the sentence says “{one.written}”."


def _mark_common(said: Said, other: Said) -> list[Mark]:
    """The words and values that both sentences have, in the order of this one."""
    there = {one.term for one in other.terms}
    theirs = find_values(other.text)
    figures = [one for one in find_values(said.text) if any(are_equal(one, value) for value in theirs)]
    terms = [
        Mark(False, one.term, one.start)
        for one in said.terms
        if one.term in there and not any(value.start <= one.start < value.stop for value in figures)
    ]
    return sorted([*terms, *(Mark(True, one.key, one.start, one) for one in figures)], key=lambda one: one.start)


# --- whose name stands in this place

ASIDE = split_words(
    """in at on near from to for with of since until during between among under over through across against
    about in an auf bei aus nach für mit von seit bis gegen über v ve na u z ze s k do od pro pri iz za kod"""
)
NAMED_BEFORE = re.compile(r"([^\W\d_]+)\s+(?:(?:the|a|an|der|die|das|dem|den)\s+)?$", re.IGNORECASE)


def list_main_names(said: Said) -> list[Name]:
    """The names that a sentence is about: not those of places and times, which stand behind a preposition."""
    found: list[Name] = []
    for name in said.names:
        before = NAMED_BEFORE.search(said.text[: name.start])
        if before is None or fold(before[1]) not in ASIDE:
            found.append(name)
    return found
