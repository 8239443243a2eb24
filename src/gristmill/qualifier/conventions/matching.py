"""Whether a convention holds for an item, and by which words."""

import operator
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from email.utils import parseaddr
from functools import lru_cache
from typing import assert_never

from gristmill.models import About, FoundAmount, TextFacts
from gristmill.qualifier.conventions.model import (
    REFERENCE_FIELDS,
    AllOf,
    AmountTest,
    AnyOf,
    ChoiceTest,
    Comparison,
    Condition,
    DaysTest,
    Negation,
    Test,
    TextTest,
)
from gristmill.qualifier.reasons import ReasonWords, words_of

COMPARE = {"<": operator.lt, "<=": operator.le, "=": operator.eq, ">=": operator.ge, ">": operator.gt}
Holds = tuple[ReasonWords, ...] | None  # the words that it holds by; None: it does not hold


@dataclass(frozen=True)
class Material:
    """What conventions look at."""

    text: str
    new: Sequence[tuple[int, int]] | None  # the parts of the text that are not quoted; None: all of it
    about: About
    facts: TextFacts
    deadline: datetime | None
    now: datetime
    attachments: Sequence[str] = ()


def match_condition(condition: Condition, material: Material) -> Holds:
    """The words by which a condition holds; none are named for what is not there. None if it does not hold."""
    match condition:
        case AllOf(of):
            return _join(match_condition(one, material) for one in of)
        case AnyOf(of):
            holding = (found for one in of if (found := match_condition(one, material)) is not None)
            return next(holding, None)
        case Negation(of):
            return () if match_condition(of, material) is None else None
        case _:
            return _match_test(condition, material)


def _join(parts: Iterable[Holds]) -> Holds:
    words: list[ReasonWords] = []
    for part in parts:
        if part is None:
            return None
        words += part
    return tuple(dict.fromkeys(words))


def _match_test(test: Test, material: Material) -> Holds:
    match test:
        case TextTest():
            return _match_text(test, material)
        case ChoiceTest():
            return _match_choice(test, material)
        case AmountTest(how, value, currency):
            return _match_amount(how, value, currency, material.facts)
        case DaysTest(field, how, days):
            return _match_days(field, how, days, material)
        case _:
            assert_never(test)


# --- texts


def _match_text(test: TextTest, material: Material) -> Holds:
    pattern = _compile_pattern(test.values, test.how)
    if test.field == "text":
        return _match_whole_text(pattern, material)
    if test.field in REFERENCE_FIELDS:
        named = [one for one in material.facts.references if one.kind == test.field and pattern.search(one.value)]
        return words_of(one.evidence for one in named) or None
    for value in _list_values(test, material):
        if pattern.search(value):
            where = f"{test.field} {test.name}" if test.name else test.field
            return (ReasonWords(value, where=where),)
    return None


def _match_whole_text(pattern: re.Pattern[str], material: Material) -> Holds:
    """Only words that are new in this item count: what it quotes was decided before."""
    for start, stop in [(0, len(material.text))] if material.new is None else material.new:
        if found := pattern.search(material.text, start, stop):
            return (ReasonWords(found[0], found.start(), found.end()),)
    return None


def _list_values(test: TextTest, material: Material) -> Iterator[str]:
    """All that a field holds; of a person, also the address and the name by themselves."""
    about = material.about
    match test.field:
        case "sender":
            yield from _list_names(about.sender)
        case "recipient":
            for one in about.recipients:
                yield from _list_names(one)
        case "subject":
            yield about.subject
        case "attachment":
            yield from material.attachments
        case "header":
            yield from filter(None, [about.headers.get(test.name)])
        case _:
            yield from (value for name, value in about.fields.items() if name.casefold() == test.name)


def _list_names(person: str) -> Iterator[str]:
    if person:
        yield person
    name, address = parseaddr(person)
    if address and address != person:
        yield address
        yield name


@lru_cache(maxsize=4_096)
def _compile_pattern(values: tuple[str, ...], how: str) -> re.Pattern[str]:
    """`is`: the whole value is like a pattern with * and ?. `has`: the words stand in it, with any blanks between."""
    if how == "is":
        return re.compile("|".join(rf"\A(?:{_read_wildcards(one)})\Z" for one in values), re.IGNORECASE | re.DOTALL)
    return re.compile("|".join(map(_find_phrase, values)), re.IGNORECASE)


def _read_wildcards(text: str) -> str:
    return "".join({"*": ".*", "?": "."}.get(one, re.escape(one)) for one in text)


def _find_phrase(phrase: str) -> str:
    """Whole words: “in” does not stand in “invoice”. A * at an end lets a word go on."""
    words = r"\s+".join(re.escape(word) for word in phrase.strip("*").split())
    before = "" if phrase.startswith("*") else r"(?<!\w)"
    after = r"\w*" if phrase.endswith("*") else r"(?!\w)"
    return rf"(?:{before}{words}{after})"


# --- facts


def _match_choice(test: ChoiceTest, material: Material) -> Holds:
    facts = material.facts
    match test.field:
        case "type":
            return (ReasonWords(material.about.type, where="type"),) if material.about.type in test.values else None
        case "language":
            return (ReasonWords(facts.language, where="language"),) if facts.language in test.values else None
        case "noise":
            found = [one for one in facts.noise if one.kind in test.values]
            return words_of(one.evidence for one in found) if found else None
        case "payment":
            return words_of(facts.payment.evidence) if facts.payment else None
        case "request":
            return words_of(one.evidence for one in facts.requests) or None
        case "mention":
            return words_of(one.evidence for one in facts.mentions) or None
        case _:
            if material.deadline is None:
                return None
            return words_of([facts.deadline.evidence]) if facts.deadline else ()


def _match_amount(how: Comparison, value: Decimal, currency: str, facts: TextFacts) -> Holds:
    amount = find_main_amount(facts, currency)
    return words_of([amount.evidence]) if amount and COMPARE[how](amount.value, value) else None


def find_main_amount(facts: TextFacts, currency: str = "") -> FoundAmount | None:
    """The amount that is to be paid, or else the largest one; of one currency, if it is named."""
    owed = facts.payment.amount if facts.payment else None
    if owed and currency in ("", owed.currency):
        return owed
    named = [one for one in facts.amounts if currency in ("", one.currency)]
    return max(named, key=lambda one: one.value, default=None)


def _match_days(field: str, how: Comparison, days: timedelta, material: Material) -> Holds:
    if field == "age":
        return () if COMPARE[how](material.now - material.about.written_at, days) else None
    if material.deadline is None or not COMPARE[how](material.deadline - material.now, days):
        return None
    found = material.facts.deadline
    return words_of([found.evidence]) if found else ()
