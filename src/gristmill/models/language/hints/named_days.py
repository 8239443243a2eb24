"""Reads days that have a name, and bills that are due at once: tomorrow, übermorgen, ještě dnes, sofort fällig."""

from dataclasses import replace
from datetime import timedelta

from gristmill.models.language.hints.days import Calendar, Read
from gristmill.models.language.hints.durations import INTO, read_duration
from gristmill.models.language.hints.vocabulary import (
    PARTS_OF_DAY,
)
from gristmill.models.language.hints.words import Words, spell, spell_table

NAMED_DAYS = spell_table({
    0: "today tonight heute dnes dneska dneška danas večeras",
    1: "tomorrow tmrw morgen zítra zejtra zítřka zítřku sutra",
    2: "übermorgen pozítří prekosutra",
    -1: "yesterday gestern včera jučer",
    -2: "vorgestern předevčírem prekjučer",
})  # fmt: skip


def read_named_day(words: Words, place: int, calendar: Calendar) -> Read | None:
    """Today, tomorrow, übermorgen, and the day after tomorrow."""
    low = words.low(place)
    if low == "day":
        return _read_day_after(words, place, calendar)
    if not _is_named_day(words, place, calendar):
        return None
    after = place + 1
    while words.low(after) in PARTS_OF_DAY and after < place + 3:
        after += 1
    day = calendar.today + timedelta(days=NAMED_DAYS[low])
    still = words.low(place - 1) in STILL_TODAY and NAMED_DAYS[low] >= 0  # noch heute, ještě dnes
    if words.low(after) in INTO and (later := read_duration(words, after + 1, calendar)) and later.first == after:
        return replace(later, first=place, day=later.day + (day - calendar.today))  # heute in einer Woche
    return Read(place - still, after, day, is_deadline=True if still else None)


STILL_TODAY = spell("noch still ještě još")


def _read_day_after(words: Words, place: int, calendar: Calendar) -> Read | None:
    if words.lows(place + 1, 2) == ("after", "tomorrow"):
        return Read(place, place + 3, calendar.today + timedelta(days=2))
    if words.lows(place + 1, 2) == ("before", "yesterday"):
        return Read(place, place + 3, calendar.today - timedelta(days=2))
    return None


def _is_named_day(words: Words, place: int, calendar: Calendar) -> bool:
    """Morgen is also the morning, sutra a book, Today a newspaper."""
    low, before = words.low(place), words.low(place - 1)
    if low == "sutra":
        return calendar.language in ("hr", "") and before != "kama"
    if low == "today":
        return before != "usa"
    if low != "morgen":
        return True
    if calendar.language not in ("de", "") or before in NOT_TOMORROW or words.low(place + 1) in ("zusammen", "!"):
        return False
    begins = place == 0 or before in (".", "!", "?", ":", ",") or "\n" in words.gap(place - 1)
    return not words.is_capital(place) or (begins and words.low(place + 1) not in (",", ""))


NOT_TOMORROW = spell("guten jeden am heute gestern der den schönen")


AT_ONCE = spell("sofort immediately ihned okamžitě odmah")
PAYABLE = spell("due payable zahlbar fällig splatné splatná splatný splatnost dospijeva dospijeće plativo")


def read_due_at_once(words: Words, place: int, calendar: Calendar) -> Read | None:
    """Due on receipt, sofort fällig, splatné ihned: due on the item's own date."""
    low = words.low(place)
    if low == "receipt":
        if words.low(place - 1) in ("on", "upon") and words.low(place - 2) in PAYABLE:
            return Read(place - 2, place + 1, calendar.today, is_deadline=True)
        return None
    if words.low(place - 1) in PAYABLE:
        return Read(place - 1, place + 1, calendar.today, is_deadline=True)
    if words.low(place + 1) in PAYABLE:
        return Read(place, place + 2, calendar.today, is_deadline=True)
    if words.low(place - 1) == ":" and words.low(place - 2) in PAYABLE:
        return Read(place - 2, place + 1, calendar.today, is_deadline=True)
    return None
