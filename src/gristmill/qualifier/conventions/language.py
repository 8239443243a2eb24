"""Reads conventions as people write them, says what is wrong with them, and writes them in one way."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from difflib import get_close_matches
from functools import lru_cache
from typing import Literal, cast

from gristmill.errors import Refused
from gristmill.qualifier.conventions.model import (
    CHOICES,
    DAYS_FIELDS,
    FATES,
    FIELDS,
    NAMED_FIELDS,
    AllOf,
    AmountTest,
    AnyOf,
    ChoiceTest,
    Comparison,
    Condition,
    Consequence,
    ConventionRule,
    DaysTest,
    Fate,
    Negation,
    Test,
    TextTest,
)
from gristmill.qualifier.model import URGENCIES, Urgency

LONGEST = 2_000  # characters of a convention
MOST_TESTS = 24
DEEPEST = 8  # brackets and negations within each other
LONGEST_WAIT = timedelta(days=3650)
EXAMPLE = 'when sender is "*@news.example" then ignore'
TOKEN = re.compile(
    r"""\s*(?:
      (?P<string>"(?:[^"\\]|\\.)*"|“[^”]*”|„[^“”]*[“”])
    | (?P<number>\d+(?:\.\d+)?)
    | (?P<word>\w[\w-]*)
    | (?P<sign><=|>=|[<>=(),])
    )""",
    re.VERBOSE,
)
UNITS = {
    "hour": timedelta(hours=1),
    "hours": timedelta(hours=1),
    "day": timedelta(days=1),
    "days": timedelta(days=1),
    "week": timedelta(weeks=1),
    "weeks": timedelta(weeks=1),
}
COMPARISONS = ("<", "<=", "=", ">=", ">")
ACTIONS = (*FATES, "urgency", "assign", "lead")


@dataclass(frozen=True, slots=True)
class Token:
    """A word, number, sign or quoted text, and where it begins."""

    kind: Literal["string", "number", "word", "sign", "end"]
    text: str
    at: int

    @property
    def shown(self) -> str:
        return "the end" if self.kind == "end" else f"“{self.text}” (character {self.at + 1})"


@lru_cache(maxsize=4_096)  # every decision asks for the same few
def parse_convention(text: str) -> ConventionRule:
    """The rule that a text states; Refused with a sentence that says where it went wrong and what could stand there."""
    if len(text) > LONGEST:
        raise Refused(f"A convention has at most {LONGEST:,} characters: make two of it.")
    reader = _Reader(_find_tokens(text))
    reader.expect("when", f"a convention begins with “when”, for example: {EXAMPLE}")
    condition = reader.read_condition()
    reader.expect("then", "“and”, “or” or “then” may stand here")
    consequence = reader.read_consequence()
    return ConventionRule(condition, consequence)


def _find_tokens(text: str) -> list[Token]:
    tokens: list[Token] = []
    at = 0
    while text[at:].strip():
        found = TOKEN.match(text, at)
        if found is None:
            rest = text[at:].lstrip()
            begins = len(text) - len(rest)
            closing = rest[0] in '"“„'
            advice = "this quotation has no end" if closing else "texts stand in quotation marks"
            raise Refused(f"“{rest[:20]}” (character {begins + 1}) is not understood: {advice}.")
        kind = cast(Literal["string", "number", "word", "sign"], found.lastgroup)
        tokens.append(Token(kind, found[kind], found.start(kind)))
        at = found.end()
    return [*tokens, Token("end", "", len(text))]


class _Reader:
    """Goes through the tokens of one convention."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._place = 0
        self._tests = 0

    @property
    def _next(self) -> Token:
        return self._tokens[self._place]

    def _take(self) -> Token:
        token = self._next
        self._place = min(self._place + 1, len(self._tokens) - 1)
        return token

    def _take_word(self, *words: str) -> str | None:
        """One of these words, if it stands here."""
        if self._next.kind in ("word", "sign") and self._next.text.casefold() in words:
            return self._take().text.casefold()
        return None

    def expect(self, word: str, advice: str) -> None:
        if self._take_word(word) is None:
            raise Refused(f"{_begin(self._next.shown)} is not expected: {advice}.")

    # --- conditions

    def read_condition(self, depth: int = 0) -> Condition:
        """Alternatives of parts that hold together: `and` binds closer than `or`."""
        parts = [self._read_together(depth)]
        while self._take_word("or"):
            parts.append(self._read_together(depth))
        return parts[0] if len(parts) == 1 else AnyOf(tuple(_flatten(AnyOf, parts)))

    def _read_together(self, depth: int) -> Condition:
        parts = [self._read_part(depth)]
        while self._take_word("and"):
            parts.append(self._read_part(depth))
        return parts[0] if len(parts) == 1 else AllOf(tuple(_flatten(AllOf, parts)))

    def _read_part(self, depth: int) -> Condition:
        if depth > DEEPEST:
            raise Refused(
                f"A convention has at most {DEEPEST} brackets and negations within each other: make two of it."
            )
        if self._take_word("not"):
            return _negate(self._read_part(depth + 1))
        if self._take_word("("):
            inner = self.read_condition(depth + 1)
            self.expect(")", "a bracket was opened before and must be closed")
            return inner
        return self._read_test()

    def _read_test(self) -> Condition:
        self._tests += 1
        if self._tests > MOST_TESTS:
            raise Refused(f"A convention has at most {MOST_TESTS} tests: make two of it.")
        token = self._take()
        field = token.text.casefold()
        if token.kind != "word" or field not in FIELDS:
            raise Refused(f"{_begin(token.shown)} is nothing that a convention can test: {_suggest(field, FIELDS)}.")
        if field == "amount":
            return self._read_amount()
        if field in DAYS_FIELDS and self._next.text in COMPARISONS:
            return self._read_days(field)
        if field in CHOICES:
            return self._read_choice(field)
        if field == "age":
            raise Refused(f"{_begin(self._next.shown)} does not fit behind “age”: write for example age > 90 days.")
        return self._read_text(field)

    def _read_text(self, field: str) -> Condition:
        name = ""
        if field in NAMED_FIELDS:
            name = self._read_string(f'“{field}” needs a name, for example {field} "list-id" has "news"').casefold()
        how, negated = self._read_how(field, ("is", "has"))
        values = [self._read_string(f'a text in quotation marks stands here, for example {field} {how} "…"')]
        while self._next.text.casefold() == "or" and self._tokens[self._place + 1].kind == "string":
            self._take()
            values.append(self._read_string(""))
        test = TextTest(field, cast(Literal["is", "has"], how), tuple(values), name)
        return _negate(test) if negated else test

    def _read_choice(self, field: str) -> Condition:
        _, negated = self._read_how(field, ("is",))
        values = [self._read_one_of(field, CHOICES[field])]
        while self._next.text.casefold() == "or" and self._tokens[self._place + 1].text.casefold() in CHOICES[field]:
            self._take()
            values.append(self._read_one_of(field, CHOICES[field]))
        test = ChoiceTest(field, tuple(values))
        return _negate(test) if negated else test

    def _read_how(self, field: str, ways: Sequence[str]) -> tuple[str, bool]:
        """`is`, `is not`, `has` or `has not`: the way to compare, and whether it is negated."""
        how = self._take_word(*ways)
        if how is None:
            raise Refused(
                f"{_begin(self._next.shown)} does not fit behind “{field}”: {_list_words(ways)} may stand here."
            )
        return how, self._take_word("not") is not None

    def _read_one_of(self, field: str, values: Sequence[str]) -> str:
        token = self._take()
        if token.kind != "word" or token.text.casefold() not in values:
            raise Refused(f"{_begin(token.shown)} is no {field}: {_suggest(token.text, values)}.")
        return token.text.casefold()

    def _read_amount(self) -> Test:
        how = self._read_comparison("amount", "amount > 500 EUR")
        value = Decimal(self._read_number("amount > 500 EUR"))
        token = self._next
        if token.kind == "word" and re.fullmatch(r"[a-z]{3}", token.text, re.IGNORECASE) and not _is_keyword(token):
            return AmountTest(how, value, self._take().text.upper())
        return AmountTest(how, value)

    def _read_days(self, field: str) -> Test:
        how = self._read_comparison(field, f"{field} < 5 days")
        return DaysTest(field, how, self._read_span(f"{field} < 5 days"))

    def _read_comparison(self, field: str, example: str) -> Comparison:
        token = self._take()
        if token.text not in COMPARISONS:
            raise Refused(f"{_begin(token.shown)} does not fit behind “{field}”: write for example {example}.")
        return token.text

    # --- consequences

    def read_consequence(self) -> Consequence:
        found = Consequence()
        while True:
            found = self._read_action(found)
            if self._next.kind == "end":
                return found
            self.expect(",", "what is to be done is separated by commas")

    def _read_action(self, so_far: Consequence) -> Consequence:
        token = self._take()
        action = token.text.casefold()
        if token.kind != "word" or action not in ACTIONS:
            raise Refused(f"{_begin(token.shown)} is nothing that can be done: {_suggest(action, ACTIONS)}.")
        before = so_far.fate if action in FATES else getattr(so_far, action)
        if before not in (None, ""):
            raise Refused(f"{_begin(token.shown)} says a second time what is to be done: once is enough.")
        match action:
            case "urgency":
                return replace(so_far, urgency=cast(Urgency, self._read_one_of("urgency", URGENCIES)))
            case "assign":
                return replace(
                    so_far, assign=self._read_string('“assign” needs a name, for example assign "accounting"')
                )
            case "lead":
                return replace(so_far, lead=self._read_span("lead 5 days"))
            case "later":
                return replace(so_far, fate="later", wait=self._read_wait())
            case _:
                return replace(so_far, fate=cast(Fate, action))

    def _read_wait(self) -> timedelta | None:
        return self._read_span("later by 3 days") if self._take_word("by") else None

    def _read_span(self, example: str) -> timedelta:
        n = Decimal(self._read_number(example))
        token = self._take()
        unit = UNITS.get(token.text.casefold())
        if unit is None:
            raise Refused(
                f"{_begin(token.shown)} is no unit of time: write hours, days or weeks, for example {example}."
            )
        if n * Decimal(unit.total_seconds()) > Decimal(LONGEST_WAIT.total_seconds()):
            raise Refused(f"{n} {token.text} are too long: {LONGEST_WAIT.days:,} days at most.")
        return float(n) * unit

    def _read_number(self, example: str) -> str:
        token = self._take()
        if token.kind != "number":
            raise Refused(f"{_begin(token.shown)} is no number: write for example {example}.")
        return token.text

    def _read_string(self, advice: str) -> str:
        token = self._take()
        if token.kind != "string":
            raise Refused(f"{_begin(token.shown)} is not expected: {advice}.")
        text = re.sub(r"\\(.)", r"\1", token.text[1:-1]) if token.text.startswith('"') else token.text[1:-1]
        if not text.strip():
            raise Refused(f"The quotation at character {token.at + 1} is empty: it would say nothing.")
        return " ".join(text.split())


def _flatten(kind: type[AllOf] | type[AnyOf], parts: Iterable[Condition]) -> list[Condition]:
    return [inner for one in parts for inner in (one.of if isinstance(one, kind) else (one,))]


def _negate(condition: Condition) -> Condition:
    return condition.of if isinstance(condition, Negation) else Negation(condition)


def _is_keyword(token: Token) -> bool:
    return token.text.casefold() in ("and", "or", "not", "then")


def _begin(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]


def _suggest(word: str, known: Sequence[str]) -> str:
    """What may stand here, and what was perhaps meant."""
    near = get_close_matches(word.casefold(), known, 1)
    meant = f"did you mean {near[0]}? " if near else ""
    return f"{meant}{_list_words(known)} may stand here"


def _list_words(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


# --- writing


def format_convention(rule: ConventionRule) -> str:
    """The one way to write a rule down; `parse_convention` reads it back."""
    return f"when {_format_condition(rule.condition)} then {format_consequence(rule.consequence)}"


def _format_condition(condition: Condition, within: type[AllOf] | type[Negation] | None = None) -> str:
    match condition:
        case AllOf(of):
            text = " and ".join(_format_condition(one, AllOf) for one in of)
            return f"({text})" if within is Negation else text
        case AnyOf(of):
            text = " or ".join(_format_condition(one) for one in of)
            return f"({text})" if within else text
        case Negation(TextTest() | ChoiceTest() as test):
            return _format_test(test, negated=True)
        case Negation(of):
            return f"not {_format_condition(of, Negation)}"
        case _:
            return _format_test(condition)


def _format_test(test: Test, *, negated: bool = False) -> str:
    maybe = " not" if negated else ""
    match test:
        case TextTest(field, how, values, name):
            named = f"{field} {_quote(name)}" if name else field
            return f"{named} {how}{maybe} {' or '.join(map(_quote, values))}"
        case ChoiceTest(field, values):
            return f"{field} is{maybe} {' or '.join(values)}"
        case AmountTest(how, value, currency):
            return f"amount {how} {value}{currency and f' {currency}'}"
        case DaysTest(field, how, days):
            return f"{field} {how} {format_days(days)}"


def format_consequence(consequence: Consequence) -> str:
    """What becomes of an item, as a convention says it."""
    fate = consequence.fate or ""
    if consequence.wait is not None:
        fate = f"{fate} by {format_days(consequence.wait)}"
    said = (
        fate,
        f"urgency {consequence.urgency}" if consequence.urgency else "",
        f"assign {_quote(consequence.assign)}" if consequence.assign else "",
        f"lead {format_days(consequence.lead)}" if consequence.lead is not None else "",
    )
    return ", ".join(filter(None, said))


def format_days(span: timedelta) -> str:
    """`3 days`, `1 day`, `12 hours`: as a convention says it."""
    hours = span / timedelta(hours=1)
    n, unit = (hours / 24, "day") if hours % 24 == 0 and hours else (hours, "hour")
    return f"{n:g} {unit}{'' if n == 1 else 's'}"


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
