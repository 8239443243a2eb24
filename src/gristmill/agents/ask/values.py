"""Amounts, dates and numbers of a text, written so that the same value is the same in every spelling."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Literal

from gristmill.agents.ask.units import MeasureUnit, read_multiple, read_unit
from gristmill.models import MONTHS, find_shapes

ValueKind = Literal["amount", "date", "percent", "number", "id"]
MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
NUMBER = re.compile(
    r"(?<![\w.,/-])[-+−]?\d{1,3}(?:[ \u00a0\u202f,.'’]\d{3})+(?:[.,]\d+)?(?![\d])"
    r"|(?:(?<![\w/.,)])[-+−]|(?<![\w/]))\d+(?:[.,]\d+)?(?![\d])"
)
MINUS = re.compile(r"\b(?:minus|moins|menos)\s$", re.IGNORECASE)
# A share is no share of another size: 5 % is 50 ‰, and a rise by 5 percentage points is another one than by 5 percent.
SHARES = (
    (MeasureUnit("points", Decimal("0.01")), r"basis points?\b|basispunkte?n?\b|bazick\w+ bod\w*|baznih bodova|bps\b"),
    (
        MeasureUnit("points", Decimal(1)),
        r"percentage points?\b|prozentpunkte?n?\b|procentn\w+ bod\w*|postotn\w+ bod\w*",
    ),
    (MeasureUnit("percent", Decimal("0.1")), r"‰|per mill?e\b|per mil\b|promille\b|promile\b|promil\w*"),
    (MeasureUnit("percent", Decimal(1)), r"%|percent\b|per cent\b|prozent\b|procent\w*|posto\b"),
)
SHARE = [(unit, re.compile(rf"[\s-]?(?:{spelt})", re.IGNORECASE)) for unit, spelt in SHARES]
# What these name is an id: version 2.10 is not version 2.1.
NUMBERED = re.compile(
    r"\b(?:v|version|release|section|sec|clause|paragraph|para|article|chapter|rule|figure|table|verze|verzi|verzij[aeiu]"
    r"|ausgabe|abschnitt|absatz|ziffer|kapitel|artikel|vydání|oddíl|odstavec|článek|kapitola|odjeljak|članak|stavak|poglavlje)"
    r"\.?\s?(?P<id>\d+(?:\.\d+)+)(?!\d)|§+\s?(?P<paragraph>\d+(?:\.\d+)+)(?!\d)|(?<![\w.,/-])(?P<dotted>\d+(?:\.\d+){2,})(?![\w,])",
    re.IGNORECASE,
)
GROUPED = re.compile(r"\d{1,3}(?:\.\d{3})+")
SHARED = re.compile(r"\s(?:and|or|to|und|oder|bis|až|ili|do)\s(?=\d)")  # 5 and 3 million: both are millions
DAY = re.compile(
    rf"\b(?P<d1>\d{{1,2}})(?:st|nd|rd|th|\.)?\s(?:of\s)?(?P<m1>{MONTH})\b|\b(?P<m2>{MONTH})\.?\s(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?\b(?![:.]\d)",
    re.IGNORECASE,
)
CLOCK = re.compile(r"\b(\d{1,2})[:.](\d\d)(?:\s?([ap])\.?m\b\.?)?(?!\d)|\b(\d{1,2})\s?([ap])\.?m\b\.?", re.IGNORECASE)
# Numbers as words; without those that are articles or other words, too: one, ein, six, elf.
SPELT = {
    "two": "2", "zwei": "2", "deux": "2", "dva": "2", "three": "3", "drei": "3", "trois": "3", "four": "4", "vier": "4",
    "quatre": "4", "five": "5", "fünf": "5", "cinq": "5", "sechs": "6", "seven": "7", "sieben": "7", "eight": "8",
    "acht": "8", "huit": "8", "nine": "9", "neun": "9", "neuf": "9", "ten": "10", "zehn": "10", "dix": "10",
    "eleven": "11", "twelve": "12", "zwölf": "12", "thirteen": "13", "fourteen": "14", "fifteen": "15",
    "sixteen": "16", "seventeen": "17", "eighteen": "18", "nineteen": "19", "twenty": "20", "zwanzig": "20",
}  # fmt: skip
SPELT_WORD = re.compile(rf"\b(?:{'|'.join(SPELT)})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Value:
    """A value in a text: its kind, its normalised form, and its place, with the unit of a number behind it."""

    kind: ValueKind
    key: str
    start: int
    stop: int
    written: str
    unit: MeasureUnit | None = None


@lru_cache(maxsize=4_096)
def find_values(text: str) -> tuple[Value, ...]:
    """All values of a text in their order; none is read twice."""
    found: list[Value] = []
    for shape in find_shapes(text):
        if shape.namespace in ("amount", "date", "id", "iban", "phone"):
            kind: ValueKind = shape.namespace if shape.namespace in ("amount", "date") else "id"
            found.append(Value(kind, shape.name, shape.start, shape.stop, shape.written))
    found += _find_ids(text, found)
    found += _find_days(text, found)
    found += _find_clocks(text, found)
    found += _find_numbers(text, found)
    return tuple(sorted(found, key=lambda one: one.start))


def _is_free(start: int, stop: int, taken: Iterable[Value]) -> bool:
    return all(stop <= one.start or one.stop <= start for one in taken)


def _find_ids(text: str, taken: Sequence[Value]) -> list[Value]:
    """Numbers with dots that name something; they are compared as they are written."""
    ids: list[Value] = []
    for match in NUMBERED.finditer(text):
        group = match.lastgroup or "id"
        start, stop = match.span(group)
        if _is_free(start, stop, taken) and not (group == "dotted" and GROUPED.fullmatch(match[group])):
            ids.append(Value("id", match[group], start, stop, match[group]))
    return ids


def _find_days(text: str, taken: Sequence[Value]) -> list[Value]:
    """12 January, without a year: `--01-12`."""
    days: list[Value] = []
    for match in DAY.finditer(text):
        month, day = MONTHS[(match["m1"] or match["m2"]).lower()], int(match["d1"] or match["d2"])
        if 1 <= day <= 31 and _is_free(match.start(), match.end(), taken):
            days.append(Value("date", f"--{month:02}-{day:02}", match.start(), match.end(), match[0]))
    return days


def _find_clocks(text: str, taken: Sequence[Value]) -> list[Value]:
    """Times of the day: 9:30, 2 pm; `T14:00`."""
    clocks: list[Value] = []
    for match in CLOCK.finditer(text):
        hour, minute = int(match[1] or match[4]), int(match[2] or 0)
        half = (match[3] or match[5] or "").lower()
        if ":" not in match[0] and not half:
            continue  # 3.14 is no time
        hour = hour % 12 + (12 if half == "p" else 0) if half else hour
        if hour < 24 and minute < 60 and _is_free(match.start(), match.end(), taken):
            clocks.append(Value("date", f"T{hour:02}:{minute:02}", match.start(), match.end(), match[0]))
    return clocks


def _find_numbers(text: str, taken: Sequence[Value]) -> list[Value]:
    numbers: list[Value] = []
    for match in NUMBER.finditer(text):
        if not _is_free(match.start(), match.end(), taken) or (key := _read_number(match[0])) is None:
            continue
        is_minus = MINUS.search(text, max(0, match.start() - 8), match.start()) is not None
        numbers.append(_measure_number(text, match.start(), match.end(), f"-{key}" if is_minus else key))
    for match in SPELT_WORD.finditer(text):
        if _is_free(match.start(), match.end(), taken):
            numbers.append(_measure_number(text, match.start(), match.end(), SPELT[match[0].lower()]))
    return numbers


def _measure_number(text: str, start: int, stop: int, key: str) -> Value:
    """A number with what stands behind it: a sign of percent, a multiple, a unit."""
    behind = _find_what_is_shared(text, stop, key)
    if share := _read_share(text, behind):
        unit, end = share
        return _close_value("percent", key, text, start, (stop, behind, end), unit)
    multiple = read_multiple(text, behind)
    factor, end = multiple or (Decimal(1), behind)
    if multiple:
        key = format((Decimal(key) * factor).normalize(), "f")
    measured = read_unit(text, end)
    unit, end = measured or (None, end)
    return _close_value("number", key, text, start, (stop, behind, end), unit)


def _close_value(
    kind: ValueKind, key: str, text: str, start: int, ends: tuple[int, int, int], unit: MeasureUnit | None
) -> Value:
    """A number whose unit stands behind another number ends where its digits end."""
    digits, behind, end = ends
    stop = end if behind == digits else digits
    return Value(kind, key, start, stop, text[start:stop], unit)


def _find_what_is_shared(text: str, stop: int, key: str) -> int:
    """Where the unit of a number is looked for: behind itself, or behind the second one of two."""
    other = SHARED.match(text, stop)
    number = NUMBER.match(text, other.end()) if other else None
    is_small = len(key) < 4
    return number.end() if number and is_small else stop


def _read_share(text: str, at: int) -> tuple[MeasureUnit, int] | None:
    return next(((unit, match.end()) for unit, spelt in SHARE if (match := spelt.match(text, at))), None)


def _read_number(text: str) -> str | None:
    """1,234.50 and 1.234,5 as 1234.5; a number that could be either of two stays as it is written."""
    plain = re.sub(r"[ \u00a0\u202f'’]", "", text.replace("−", "-").lstrip("+"))
    if "," in plain and "." in plain:
        last = max(plain.rfind(","), plain.rfind("."))
        plain = re.sub("[,.]", "", plain[:last]) + "." + plain[last + 1 :]
    elif re.fullmatch(r"-?\d{1,3}(?:[,.]\d{3})+", plain):
        plain = re.sub("[,.]", "", plain)
    else:
        plain = plain.replace(",", ".")
    try:
        number = Decimal(plain)
    except InvalidOperation:
        return None
    return format(number.normalize(), "f")


# --- comparing


def are_equal(one: Value, other: Value) -> bool:
    """Whether two values say the same, as far as both say it: 12 January is any 12 January."""
    if one.kind == other.kind == "date":
        return _are_compatible_dates(one.key, other.key)
    if one.unit and other.unit:
        same = Decimal(one.key) * one.unit.factor == Decimal(other.key) * other.unit.factor
        return same and one.unit.dimension == other.unit.dimension
    if one.kind == other.kind:
        return one.key == other.key
    kinds = {one.kind, other.kind}
    if "number" not in kinds or (one if one.kind == "number" else other).unit is not None:
        return False  # 9 mm are neither 9 o'clock nor 9 euros
    if "date" in kinds:
        date, number = (one, other) if one.kind == "date" else (other, one)
        return len(number.key) == len("2026") and number.key in _numbers_in_date(date.key)
    if "amount" in kinds:
        amount, number = (one, other) if one.kind == "amount" else (other, one)
        return _read_number(amount.key.partition(" ")[0]) == number.key
    if "id" in kinds:
        named, number = (one, other) if one.kind == "id" else (other, one)
        return named.key == number.written
    return one.key == other.key


def _are_compatible_dates(one: str, other: str) -> bool:
    if one.startswith("T") or other.startswith("T"):
        return one == other
    if one.startswith("--") or other.startswith("--"):
        return one[-5:] == other[-5:] if len(one) >= 7 and len(other) >= 7 and "-" in one[-5:] else False
    return one.startswith(other) or other.startswith(one)


def _numbers_in_date(key: str) -> set[str]:
    return {str(int(part)) for part in re.findall(r"\d+", key)}


def is_rival(one: Value, other: Value) -> bool:
    """Whether two values are of one kind and exclude each other, at the same place of two sentences."""
    if one.kind != other.kind or are_equal(one, other):
        return False
    if one.kind == "percent" and one.unit and other.unit and one.unit.dimension != other.unit.dimension:
        return False
    return one.kind != "date" or one.key.startswith("T") == other.key.startswith("T")
