"""Finds conventions that say different things about the same item, before such an item comes."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from itertools import combinations, product
from math import inf
from typing import NamedTuple

from gristmill.qualifier.conventions.language import format_consequence
from gristmill.qualifier.conventions.model import (
    AllOf,
    AmountTest,
    AnyOf,
    ChoiceTest,
    Comparison,
    Condition,
    Consequence,
    ConventionRule,
    DaysTest,
    Negation,
    Test,
    TextTest,
)
from gristmill.scopes import Scope

MOST_CASES = 256  # alternatives of one condition that are looked at; with more of them, it is taken to hold with others
SINGLE = ("sender", "subject", "header", "field")  # texts of which an item has one
SINGLE_CHOICES = ("type", "language")


class Demand(NamedTuple):
    """A test that must hold, or must not."""

    test: Test
    negated: bool


Range = tuple[Comparison, float]
Case = tuple[Demand, ...]  # tests that are to be fulfilled together


@dataclass(frozen=True)
class Stated:
    """A convention with its number and its scope; one that is only tried has the number 0."""

    id: int
    scope: Scope
    rule: ConventionRule


@dataclass(frozen=True)
class Contradiction:
    """Two conventions that one item may fulfil, and that say different things about it."""

    first: int
    second: int
    sentence: str


def find_contradictions(conventions: Sequence[Stated]) -> list[Contradiction]:
    """All pairs that contradict each other."""
    pairs = (find_contradiction(*pair) for pair in combinations(conventions, 2))
    return [one for one in pairs if one is not None]


def find_contradiction(first: Stated, second: Stated) -> Contradiction | None:
    """Whether one item may fulfil both, and what they would disagree about."""
    if not _can_meet(first.scope, second.scope):
        return None
    differing = _list_differences(first.rule.consequence, second.rule.consequence)
    if not differing or not can_hold_together(first.rule.condition, second.rule.condition):
        return None
    said = ", ".join(f"{_name(one)} says {format_consequence(one.rule.consequence)}" for one in (first, second))
    both = f"The conventions {first.id} and {second.id}" if second.id else f"This convention and convention {first.id}"
    sentence = f"{both} may fit the same item and differ in {_join(differing)}: {said}."
    return Contradiction(first.id, second.id, sentence)


def _name(one: Stated) -> str:
    return str(one.id) if one.id else "this one"


def _can_meet(one: Scope, other: Scope) -> bool:
    """Whether there is an item that sees both scopes."""
    same_client = not one.client or not other.client or one.client == other.client
    return same_client and (not one.project or not other.project or one.project == other.project)


def _list_differences(one: Consequence, other: Consequence) -> list[str]:
    """What both say, and each in another way."""
    names = {"fate": "the outcome", "urgency": "the urgency", "assign": "who gets it", "lead": "the lead"}
    fates = {one.fate, other.fate} - {None}
    found = [name for name in ("urgency", "assign", "lead") if _differ(getattr(one, name), getattr(other, name))]
    same_later = fates == {"later"} and _differ(one.wait, other.wait)
    both = one.fate is not None and other.fate is not None
    return [names[name] for name in ([*(["fate"] if both and (len(fates) > 1 or same_later) else []), *found])]


def _differ(one: object, other: object) -> bool:
    return one not in (None, "") and other not in (None, "") and one != other


def _join(words: Sequence[str]) -> str:
    return " and ".join(words)


def can_hold_together(one: Condition, other: Condition) -> bool:
    """Whether an item may fulfil both; where that cannot be known, it is taken to be possible."""
    cases = [list(_list_cases(_spread(condition))) for condition in (one, other)]
    if any(len(some) > MOST_CASES for some in cases):
        return True
    return any(_is_possible((*left, *right)) for left, right in product(*cases))


def _spread(condition: Condition, *, negated: bool = False) -> Condition:
    """The same condition with all negations at its tests."""
    match condition:
        case Negation(of):
            return _spread(of, negated=not negated)
        case AllOf(of) | AnyOf(of):
            parts = tuple(_spread(one, negated=negated) for one in of)
            return AllOf(parts) if isinstance(condition, AllOf) != negated else AnyOf(parts)
        case _:
            return Negation(condition) if negated else condition


def _list_cases(condition: Condition) -> Iterator[Case]:
    """The alternatives in which a condition holds; a few more than are looked at, at most."""
    match condition:
        case AnyOf(of):
            found = (case for one in of for case in _list_cases(one))
        case AllOf(of):
            found = (tuple(part for case in parts for part in case) for parts in product(*map(_first_cases, of)))
        case Negation(of):
            assert not isinstance(of, Negation | AllOf | AnyOf)
            found = iter([(Demand(of, True),)])
        case _:
            found = iter([(Demand(condition, False),)])
    yield from (case for case, _ in zip(found, range(MOST_CASES + 1), strict=False))


def _first_cases(condition: Condition) -> list[Case]:
    return list(_list_cases(condition))


# --- tests that exclude each other


def _is_possible(case: Case) -> bool:
    return not any(_exclude(one, other) for one, other in combinations(case, 2)) and _has_choices(case)


def _exclude(one: Demand, other: Demand) -> bool:
    """Whether no item fulfils both."""
    match one.test, other.test:
        case TextTest() as left, TextTest() as right if (left.field, left.name) == (right.field, right.name):
            return _exclude_texts(left, one.negated, right, other.negated)
        case AmountTest() as left, AmountTest() as right if left.currency == right.currency:
            return _exclude_ranges(
                (left.how, float(left.value)), one.negated, (right.how, float(right.value)), other.negated
            )
        case DaysTest() as left, DaysTest() as right if left.field == right.field:
            spans = left.days.total_seconds(), right.days.total_seconds()
            return _exclude_ranges((left.how, spans[0]), one.negated, (right.how, spans[1]), other.negated)
        case ChoiceTest("deadline"), DaysTest("deadline"):
            return one.negated and not other.negated
        case DaysTest("deadline"), ChoiceTest("deadline"):
            return other.negated and not one.negated
        case _:
            return False


def _exclude_texts(left: TextTest, left_negated: bool, right: TextTest, right_negated: bool) -> bool:
    if left_negated and right_negated:
        return False
    if left_negated or right_negated:
        wanted, refused = (right, left) if left_negated else (left, right)
        return all(
            any(_implies(wanted.how, value, refused.how, no) for no in refused.values) for value in wanted.values
        )
    if left.how != "is" or right.how != "is" or left.field not in SINGLE:
        return False
    return not any(_overlap(left.field, one, other) for one, other in product(left.values, right.values))


def _implies(how: str, value: str, other_how: str, other: str) -> bool:
    """Whether a text that fulfils the first test always fulfils the second."""
    value, other = value.casefold(), other.casefold()
    if other_how == "is":
        return how == "is" and (value == other or (not _is_open(value) and fnmatchcase(value, _without_sets(other))))
    bare = value if how == "has" else value.replace("*", " ").replace("?", " ")
    return re.search(rf"(?<!\w){re.escape(other.strip('*'))}(?!\w)", bare) is not None


def _overlap(field: str, one: str, other: str) -> bool:
    """Whether a text may be like both patterns; a sender is known by name and by address."""
    if field == "sender" and ("@" in one) != ("@" in other):
        return True
    return _patterns_meet(one.casefold(), other.casefold())


@cache
def _patterns_meet(one: str, other: str) -> bool:
    if not one or not other:
        return not (one + other).strip("*")
    if one[0] == "*" or other[0] == "*":
        star, rest = (one, other) if one[0] == "*" else (other, one)
        return _patterns_meet(star[1:], rest) or _patterns_meet(star, rest[1:])
    return (one[0] == other[0] or "?" in (one[0], other[0])) and _patterns_meet(one[1:], other[1:])


def _is_open(pattern: str) -> bool:
    return "*" in pattern or "?" in pattern


def _without_sets(pattern: str) -> str:
    """fnmatch knows sets in square brackets, conventions do not."""
    return pattern.replace("[", "[[]")


def _exclude_ranges(left: Range, left_negated: bool, right: Range, right_negated: bool) -> bool:
    """Whether no number lies in both ranges; an item without the number fulfils negations, so these exclude nothing."""
    if left_negated or right_negated:
        return False
    lows, highs = zip(_find_bounds(left), _find_bounds(right), strict=True)
    low, high = max(lows), min(highs)
    return low > high


def _find_bounds(range_: Range) -> tuple[tuple[float, int], tuple[float, int]]:
    """The least and the greatest number in it; the second part tells a bound itself from what lies next to it."""
    how, value = range_
    match how:
        case "<" | "<=":
            return (-inf, 0), (value, -1 if how == "<" else 0)
        case ">" | ">=":
            return (value, 1 if how == ">" else 0), (inf, 0)
        case "=":
            return (value, 0), (value, 0)


def _has_choices(case: Case) -> bool:
    """Whether a value is left for each field that has one of a few values."""
    chosen = [(test, negated) for test, negated in case if isinstance(test, ChoiceTest)]
    return all(
        _has_choice(field, [(set(test.values), negated) for test, negated in chosen if test.field == field])
        for field in {test.field for test, _ in chosen}
    )


def _has_choice(field: str, tests: Sequence[tuple[set[str], bool]]) -> bool:
    wanted = [values for values, negated in tests if not negated]
    refused = {value for values, negated in tests if negated for value in values}
    if field in SINGLE_CHOICES and wanted:
        return bool(wanted[0].intersection(*wanted) - refused)
    return all(values - refused for values in wanted)  # of the others, an item may have several at once
