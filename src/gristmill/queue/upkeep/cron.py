"""When a schedule runs next: cron expressions, `@daily` and `06:00`, in a time zone.

The times come from cronsim, which does what Debian's cron does. Where clocks change, that means:

- An expression with a fixed minute and hour (neither starts with `*`) follows the clock on the wall. On the
  day that leaves an hour out, what falls into the gap runs at the first instant after it, once in all. On the
  day that has an hour twice, it runs in the first of the two only.
- Any other expression follows real time: `*/15 * * * *` goes on every quarter of an hour through both. The
  price: `*/30 2 * * *` does not run on the day without a two o'clock, and four times on the day with two.

cronsim alone may, when asked within the second of the two hours, answer with a time in the first; we ask on
until the answer lies ahead. When both day fields are given (`0 0 13 * FRI`), a day that fits either will do,
unless one of them starts with `*`. Beyond plain cron there are `L` and `LW` (last day, last weekday of the
month), `5L` (last Friday) and `MON#2` (second Monday).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from gristmill.errors import Refused

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
EXAMPLES = "write for example 06:00, @daily or */15 * * * *"
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


@dataclass(frozen=True)
class CronPlan:
    """A schedule that can be asked when it runs next."""

    expression: str
    zone: str
    cron: str  # the same as five fields

    def next(self, after: datetime) -> datetime | None:
        """The first run later than `after`, in UTC; None if there is none within fifty years."""
        for run in CronSim(self.cron, after.astimezone(ZoneInfo(self.zone))):
            # in UTC, because two times of one zone are compared as the wall shows them
            if run.astimezone(UTC) > after:
                return run.astimezone(UTC)
        return None


def parse(expression: str, zone: str) -> CronPlan:
    """The plan that this expression describes; refused with a pointer at the mistake."""
    check_zone(zone)
    text = " ".join(re.split(r"\s", expression)).rstrip()  # one blank for each, so that the pointer stays right
    try:
        cron = _five_fields(text)
        CronSim(cron, datetime(2026, 1, 1, tzinfo=UTC))
    except _Mistake as mistake:
        raise Refused(_point_at(text, mistake.at, str(mistake))) from None
    except CronSimError as error:
        # we have read every field ourselves: what is left is a day that its months never have
        at = list(_words(text))[2][0] if "day-of-month" in str(error) else 0
        raise Refused(_point_at(text, at, "none of these months has that day")) from error
    return CronPlan(expression=text.strip(), zone=zone, cron=cron)


def check_zone(zone: str) -> None:
    """Refuse a time zone that does not exist, with those that were probably meant."""
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):  # unknown, not a plain name, or a folder of zones
        near = _near_zones(zone)
        hint = f" Did you mean {' or '.join(near)}?" if near else " Write for example Europe/Zagreb or UTC."
        raise Refused(f"There is no time zone “{zone}”.{hint}") from None


def _near_zones(zone: str) -> list[str]:
    known = sorted(available_timezones())
    names = {name.lower(): name for name in known}
    # people know the city better than the continent
    cities = {name.lower().rpartition("/")[2]: name for name in known}
    wanted = zone.lower().replace(" ", "_")
    found = [names[name] for name in get_close_matches(wanted, names, n=3, cutoff=0.7)]
    found += [cities[city] for city in get_close_matches(wanted.rpartition("/")[2], cities, n=2, cutoff=0.8)]
    return list(dict.fromkeys(found))[:3]


class _Mistake(Exception):
    """What is wrong, and at which character."""

    def __init__(self, at: int, reason: str) -> None:
        super().__init__(reason)
        self.at = at


def _point_at(text: str, at: int, reason: str) -> str:
    return f"This schedule cannot be read:\n  {text}\n  {' ' * at}^ {reason}"


def _words(text: str) -> Iterator[tuple[int, str]]:
    return ((match.start(), match[0]) for match in re.finditer(r"\S+", text))


def _five_fields(text: str) -> str:
    words = list(_words(text))
    if not words:
        raise _Mistake(0, f"it is empty; {EXAMPLES}")
    at, first = words[0]
    if first.startswith("@") or (len(words) == 1 and ":" in first):
        if len(words) > 1:
            raise _Mistake(words[1][0], f"nothing may follow {first}")
        return _macro(at, first) if first.startswith("@") else _time_of_day(at, first)
    if len(words) == 1:
        raise _Mistake(at, f"this is no time; {EXAMPLES}")
    for field, (at, word) in zip(FIELDS, words, strict=False):
        field.check(at, word.upper())
    fields = "five fields: minute, hour, day of month, month, day of week"
    if len(words) < 5:
        raise _Mistake(len(text), f"only {len(words)} of {fields}")
    if len(words) > 5:
        raise _Mistake(words[5][0], f"more than {fields}")
    return " ".join(word.upper() for _, word in words)


def _macro(at: int, word: str) -> str:
    if word.lower() not in MACROS:
        raise _Mistake(at, f"the known names are {', '.join(MACROS)}")
    return MACROS[word.lower()]


def _time_of_day(at: int, word: str) -> str:
    hour, _, minute = word.partition(":")
    if not re.fullmatch(r"[0-9]{1,2}:[0-9]{2}", word):
        raise _Mistake(at, "a time of day is written HH:MM, for example 06:00")
    HOUR.number(at, hour)
    MINUTE.number(at + len(hour) + 1, minute)
    return f"{int(minute)} {int(hour)} * * *"


@dataclass(frozen=True)
class _Field:
    """One field of an expression, and how to say what is wrong with it."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    extras: str = r"(?!)"  # what else it may be, beyond numbers, ranges and steps

    def check(self, at: int, text: str) -> None:
        for term in text.split(","):
            self._term(at, term)
            at += len(term) + 1

    def _term(self, at: int, term: str) -> None:
        if re.fullmatch(self.extras, term):
            if value := re.match(r"[0-9A-Z]+(?=#)|[0-9]+", term):
                self.number(at, value[0])
            return
        base, slash, step = term.partition("/")
        if slash:
            self._step(at + len(base) + 1, step)
        low, dash, high = base.partition("-")
        if dash:
            self._range(at, low, high)
        elif base != "*":
            self.number(at, base)

    def _step(self, at: int, step: str) -> None:
        if not re.fullmatch(r"[0-9]{1,4}", step) or not 1 <= int(step) <= self.high:
            raise _Mistake(at, f"a step of the {self.name} goes from 1 to {self.high}")

    def _range(self, at: int, low: str, high: str) -> None:
        first, last = self.number(at, low), self.number(at + len(low) + 1, high)
        if first > last:
            hint = " (Sunday is 0, and 7 at the end of a range)" if self.names == DAYS else ""
            raise _Mistake(at, f"the range {low}-{high} of the {self.name} runs backwards{hint}")

    def number(self, at: int, text: str) -> int:
        if text in self.names:
            return self.names.index(text) + (1 if self.names == MONTHS else 0)
        allowed = f"{self.name} goes from {self.low} to {self.high}"
        if self.names:
            allowed += f", or {self.names[0]} to {self.names[-1]}"
        if not text:
            raise _Mistake(at, f"a number is missing: {allowed}")
        if wrong := re.search(r"[^0-9]", text):
            # a word is wrong as a whole, a stray character where it stands
            raise _Mistake(at + (0 if text[0].isalpha() else wrong.start()), allowed)
        if len(text) > 4 or not self.low <= int(text) <= self.high:
            raise _Mistake(at, allowed)
        return int(text)


MINUTE = _Field("minute", 0, 59)
HOUR = _Field("hour", 0, 23)
DAY = _Field("day of month", 1, 31, extras=r"L|LW")
MONTH = _Field("month", 1, 12, MONTHS)
WEEKDAY = _Field("day of week", 0, 7, DAYS, extras=r"[0-9]+L|[0-9A-Z]+#[1-5]")
FIELDS = (MINUTE, HOUR, DAY, MONTH, WEEKDAY)
