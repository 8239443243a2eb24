"""Decides by rule whether the evidence may answer a question at all, before any model is asked."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from gristmill.agents.ask.model import Passage
from gristmill.agents.ask.question import AskedQuestion
from gristmill.agents.ask.values import find_values
from gristmill.agents.ask.words import (
    ASKING,
    Name,
    are_alike,
    find_names,
    fold_words,
    holds_name,
    is_plain,
    read_terms,
    split_words,
)
from gristmill.knowledge import WordWeight, fold

LOOKED_AT = 6  # passages
CLEAR = 0.8  # a passage with this cosine is about the question, whatever its words are
ENOUGH = 0.4  # the weight of the question's words that the passages must have …
FAR = 0.4  # … and more where the meaning is farther than this
MORE = 0.6
VAGUE = 0.3  # how much a word counts that says what kind of thing is asked for: a text names the thing, not its kind
# Kinds of things, and words that ask to compare or to sort: in English, the language of most such questions.
KINDS = split_words(
    """kind type sort way thing part person people man woman name place time year date day month number amount
    nationality profession occupation job birthplace origin size colour color age height length depth weight species
    genre category animal animals sport instrument city country town state subject topic title role field
    first last same different other one ones two compare compared comparison relation relationship difference
    want wanted use used mean meant happen happened appear appeared come came go went take took get got make made need
    needed see saw lie lies interpret decide decided solve solved recognise recognize argument arguments author writer
    maker founder creator older younger longer shorter deeper taller larger smaller bigger earlier later more less most
    least both either although instead give gave set work works include react reaction respond view views reason"""
)
TYPED = re.compile(
    r"\b(?:what|which|whose|how many|welche[rsn]?|wie viele|quels?|quelles?|cu[aá]les?|jak[áéý])\s+([^\W\d_]+)", re.I
)
COUNTED = re.compile(
    r"\bhow (?:many|much|old|long|far|large|big|tall|often)\b|\bwie(?:\s?viele?| alt| lang| hoch| weit)\b"
    r"|\bcombien\b|\bcu[aá]nt[oa]s?\b|\bkolik\b|\bkoliko\b",
    re.IGNORECASE,
)
DATED = re.compile(
    r"^\W*(?:when|wann|quand|cu[aá]ndo|kdy|kada|in (?:what|which) year|what year|on which (?:day|date))\b",
    re.IGNORECASE,
)
NAMED = re.compile(r"^\W*(?:who|whom|whose|wer|wem|wen|qui|qui[eé]n(?:es)?|kdo|tko)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Grounds:
    """What speaks for asking a model at all."""

    coverage: float  # the weight of the question's telling words that stand in the passages
    similarity: float  # the best cosine
    strange: tuple[str, ...]  # names, ids and values of the question that the passages do not have
    lacks_kind: str = ""  # the kind of thing that is asked for and stands in no passage: a date, a number, a name

    @property
    def reason(self) -> str:
        if self.strange:
            return f"No passage names {', '.join(f'“{one}”' for one in self.strange[:3])}."
        if self.lacks_kind:
            return f"No passage about it has {self.lacks_kind}."
        return (
            f"The passages have {self.coverage:.0%} of what is asked, and their meaning is {self.similarity:.2f} near."
        )


def weigh_evidence(
    asked: AskedQuestion, weights: Sequence[WordWeight], passages: Sequence[Passage], similarity: float
) -> Grounds:
    """Compare a question with its best passages."""
    near = passages[:LOOKED_AT]
    whole = " \n ".join(f"{one.about} \n {one.text}" for one in near)
    plain = fold_words(whole)
    strange = [name.text for name in asked.names if not holds_name(name.text, plain)]
    strange += find_strange_ids(asked, whole, plain)
    connected = find_connected(asked, near)
    return Grounds(
        coverage=measure_coverage(asked, weights, connected),
        similarity=similarity,
        strange=tuple(dict.fromkeys(strange)),
        lacks_kind=find_missing_kind(asked, connected),
    )


def find_strange_ids(asked: AskedQuestion, whole: str, plain: frozenset[str]) -> list[str]:
    """Ids of the question that the passages do not have; the passages are read for values only if it has any."""
    ids = [one for one in find_values(asked.complete) if one.kind == "id" and fold(one.written) not in plain]
    there = {one.key for one in find_values(whole)} if ids else set[str]()
    return [one.written for one in ids if one.key not in there]


def measure_coverage(asked: AskedQuestion, weights: Sequence[WordWeight], passages: Sequence[Passage]) -> float:
    """The share of what is asked that stands in the passages; names are not counted: search has found them."""
    stems = {one.term for passage in passages for one in read_terms(passage.text, passage.language)}
    stems |= {one.term for passage in passages for one in read_terms(passage.about, passage.language)}
    plain = frozenset[str]().union(*(fold_words(f"{one.about} {one.text}") for one in passages))
    typed = {fold(match[1]) for match in TYPED.finditer(asked.complete)}
    words = [one for one in weights if tells(one, asked)]
    if all(is_vague(one, typed) for one in words):
        return 1.0  # which of the two is older: the names are all that is asked about
    telling = [(one, weigh_word(one, typed)) for one in words]
    total = sum(weight for _, weight in telling)
    found = sum(weight for one, weight in telling if is_covered(one, stems, plain))
    return found / total if total else 1.0


def tells(word: WordWeight, asked: AskedQuestion) -> bool:
    """Whether a word says what is asked about the things that the question names."""
    if is_plain(word.text, asked.language) or fold(word.text) in ASKING:
        return False
    return not any(name.start <= word.start < name.stop for name in asked.names)


def weigh_word(word: WordWeight, typed: set[str]) -> float:
    # the root: one rare word that is missing does not outweigh three that are there
    return sqrt(word.weight) * (VAGUE if is_vague(word, typed) else 1.0)


def is_vague(word: WordWeight, typed: set[str]) -> bool:
    return fold(word.text) in typed or fold(word.text) in KINDS


def find_connected(asked: AskedQuestion, passages: Sequence[Passage]) -> list[Passage]:
    """The passages that have a name of the question, and those about something that these name; all without a name."""
    if not asked.names:
        return list(passages)
    near = [one for one in passages if _names_one(one, [name.text for name in asked.names])]
    led = [name.text for one in near for name in find_names(one.text, one.language)]
    return [one for one in passages if one in near or one.via or _is_about(one, led)]


def _names_one(passage: Passage, names: Sequence[str]) -> bool:
    there = fold_words(f"{passage.about} {passage.text}")
    return any(holds_name(name, there) for name in names)


def _is_about(passage: Passage, names: Sequence[str]) -> bool:
    there = fold_words(passage.about)
    return any(holds_name(name, there) for name in names) or any(" " in name and name in passage.text for name in names)


def is_covered(word: WordWeight, stems: set[str], plain: frozenset[str]) -> bool:
    if fold(word.text) in plain or word.terms & stems:
        return True
    return any(are_alike(term, other) for term in word.terms for other in stems)


def find_missing_kind(asked: AskedQuestion, passages: Sequence[Passage]) -> str:
    """The kind of thing that the question asks for, if no passage has any."""
    if any(kind.search(asked.text) for kind in (DATED, PRICED, CALLED, COUNTED)):
        return find_missing_value(asked, " \n ".join(one.text for one in passages))
    if NAMED.search(asked.text):
        known = {name.key for name in asked.names}
        return "" if any(is_other(name, known) for one in passages for name in find_names(one.text)) else "a name"
    return ""


def find_missing_value(asked: AskedQuestion, texts: str) -> str:
    values = find_values(texts)
    if DATED.search(asked.text):
        is_there = any(one.kind == "date" or is_year(one.key) for one in values)
        is_loose = "year" not in asked.text.casefold() and TIMES.search(texts) is not None
        return "" if is_there or is_loose else "a date"
    if PRICED.search(asked.text):
        return "" if any(one.kind == "amount" for one in values) or MONEY.search(texts) else "an amount"
    if CALLED.search(asked.text):
        return "" if any(one.kind == "id" and one.written.startswith("+") for one in values) else "a number to call"
    return "" if values or TIMES.search(texts) else "a number"


PRICED = re.compile(
    r"\bhow much\b.*\b(?:cost|pay|paid|earn|spend|spent|price|owe)|\bwhat (?:price|salary|fee|wage)\b"
    r"|\bwie ?viel\b.*\bkoste",
    re.IGNORECASE,
)
MONEY = re.compile(r"\b(?:euros?|dollars?|pounds?|cents?|crowns?|francs?|kuna|korun\w*)\b", re.IGNORECASE)
CALLED = re.compile(r"\b(?:tele)?phone number\b|\btelefonnummer\b|\btelefonní číslo\b", re.IGNORECASE)
TIMES = re.compile(
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\b(?:morning|evening|night|noon|midnight|dawn|today|yesterday|tomorrow|"
    r"week|month|year|day|hour|minute|second|after|before|once|while|during|half|dozen|hundred|thousand|several|couple|pair)s?\b",
    re.IGNORECASE,
)


def is_year(key: str) -> bool:
    return re.fullmatch(r"1[0-9]\d\d|20\d\d", key) is not None


def is_other(name: Name, known: set[str]) -> bool:
    return name.key not in known


def may_answer(grounds: Grounds) -> bool:
    """Whether a model is asked: names must be known, and the words or the meaning must be near enough."""
    if grounds.strange or grounds.lacks_kind:
        return False
    if grounds.similarity >= CLEAR:
        return True
    return grounds.coverage >= (MORE if grounds.similarity < FAR else ENOUGH)
