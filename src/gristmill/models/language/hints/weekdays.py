"""Reads weekdays: Friday, next Tuesday, do pátku, letzten Montag, Friday next week, úterý 9. června."""

from dataclasses import replace
from datetime import date, timedelta

from gristmill.models.language.hints.counting import find_next_weekday, get_monday
from gristmill.models.language.hints.days import Calendar, Read, read_day, read_month_first
from gristmill.models.language.hints.vocabulary import (
    PARTS_OF_DAY,
    SHORT_WEEKDAYS,
    UNITS,
    WEEK,
    WEEKDAYS,
    find_weekday,
)
from gristmill.models.language.hints.words import Words, spell

NEXT_WEEK = spell("next příští příštího příštím sljedeći sljedećeg sljedeću sljedeće idući idućeg iduću iduće")
NEAREST = spell(
    """this coming upcoming diesen diesem dieser kommenden kommender nächsten nächster nächstem tento tuto toto tohoto
    nadcházející nejbližší ovaj ovog ovoga ovu ove nadolazeći nadolazećeg predstojeći"""
)
LAST = spell(
    """last past letzten letzter vergangenen vorigen minulý minulou minulého minulé uplynulý prošli prošlog prošlu
    prošle"""
)
EVERY = spell("every each jeden jedem jeder každý každou každé každého svaki svakog svaku svake alternate")
NO_FRIDAY = spell(
    "velký veliki good black cyber casual super ash ruby manic bloody easter holy palm white karfreitag girl"
)
BEFORE_SHORT = spell("by on until till before next this due latest")


def read_weekday(words: Words, place: int, calendar: Calendar) -> Read | None:
    """Friday, by Fri, next Tuesday, do pátku, letzten Montag: the next such day if nothing else is said."""
    weekday = _find_any_weekday(words, place, calendar)
    if weekday is None or _is_no_day(words, place):
        return None
    if whole := _read_date_behind(words, place, calendar):
        return whole
    first, before = place, words.low(place - 1)
    day = find_next_weekday(weekday, calendar.today)
    if before in NEXT_WEEK:
        first, day = place - 1, get_monday(calendar.today) + timedelta(days=7 + weekday)
    elif before in LAST:
        first, day = place - 1, find_next_weekday(weekday, calendar.today - timedelta(days=8))
    elif before in NEAREST:
        first = place - 1
        if before in THIS and weekday == calendar.today.weekday():
            day = calendar.today
    first, day = _read_week_beside(words, first, day, weekday, calendar)
    after = place + 1
    after, day = _read_week_behind(words, after, day, weekday, calendar)
    while words.low(after) in PARTS_OF_DAY and after < place + 6:
        after += 1
    return Read(first, after, day)


THIS = spell("this diesen tento tuto toto ovaj ovu ovog")


def _read_date_behind(words: Words, place: int, calendar: Calendar) -> Read | None:
    """Friday, 5 June and úterý 9. června are one date."""
    at = place + 1
    while at < place + 4 and words.low(at) in (",", ".", "(", "den", "dem", "dne", "dana", "the"):
        at += 1
    if at >= len(words) or "\n\n" in words.gap(at - 1):
        return None
    number = words[at].is_number
    found = read_day(words, at, calendar) if number else read_month_first(words, at, calendar)
    return replace(found, first=place) if found else None


def _find_any_weekday(words: Words, place: int, calendar: Calendar) -> int | None:
    full = find_weekday(words, place, calendar.language)
    if full is not None:
        return full
    low = words.low(place)
    short = SHORT_WEEKDAYS["en"].get(low)
    if short is None or low in ("sat", "sun") or not words.is_capital(place):
        return None
    return short if words.low(place - 1) in BEFORE_SHORT else None


def _is_no_day(words: Words, place: int) -> bool:
    """Every Monday, Mondays, Black Friday: no single day."""
    before, behind = words.low(place - 1), words.low(place + 1)
    if _is_in_title(words, place) or _is_of_working_week(words, place):
        return True
    if before in EVERY or words.low(place - 2) in EVERY or before in NO_FRIDAY:
        return True
    return behind in ("'", "’") and words.is_close(place) and words.low(place + 2) == "s"


TO = spell("to till until through bis až do") | frozenset({"-", "–", "—"})
ANY_WEEKDAY = {low: day for names in (*WEEKDAYS.values(), *SHORT_WEEKDAYS.values()) for low, day in names.items()}


def _is_of_working_week(words: Words, place: int) -> bool:
    """Monday to Friday, od pondělí do pátku: as ever, unless a date or a week says which."""
    first, last = place, place + 2
    if words.low(place - 1) in TO and ANY_WEEKDAY.get(words.low(place - 2)) is not None:
        first, last = place - 2, place
    if words.low(last - 1) not in TO or ANY_WEEKDAY.get(words.low(first)) != 0:
        return False
    if ANY_WEEKDAY.get(words.low(last), 0) < 4 or words.low(first - 1) in NEXT_WEEK | NEAREST | NEXT_GERMAN:
        return False
    behind = words.lows(last + 1, 2)
    return not (behind[0].isdecimal() or (behind[0] in (",", "den", "the") and behind[1].isdecimal()))


OPENING, CLOSING = frozenset('"“„«‘'), frozenset('"”“»’')
LONGEST_TITLE = 8  # words


def _is_in_title(words: Words, place: int) -> bool:
    """“Friday Night Lights”: between quotes, and every word begins with a capital."""
    if words.low(place - 1) not in OPENING:
        return False
    for at in range(place, place + LONGEST_TITLE):
        if words.low(at) in CLOSING:
            return at > place + 1
        if not words.is_capital(at):
            return False
    return False


def _read_week_beside(words: Words, first: int, day: date, weekday: int, calendar: Calendar) -> tuple[int, date]:
    """Příští týden v pátek, nächste Woche Freitag: the week before the weekday."""
    at = first - 1
    at -= words.low(at) in ("v", "ve", "u", "am", "on", "do", "bis", "den", ",")
    if UNITS.get(words.low(at)) != WEEK:
        return first, day
    modifier = words.low(at - 1)
    if modifier in NEXT_WEEK or modifier in NEXT_GERMAN:
        return at - 1, get_monday(calendar.today) + timedelta(days=7 + weekday)
    if modifier in NEAREST:
        return at - 1, get_monday(calendar.today) + timedelta(days=weekday)
    return first, day


NEXT_GERMAN = spell("nächste nächsten nächster kommende kommenden kommender folgende folgenden")


def _read_week_behind(words: Words, after: int, day: date, weekday: int, calendar: Calendar) -> tuple[int, date]:
    """Friday next week, Freitag nächster Woche, pátek příští týden, Friday in two weeks is left alone."""
    at = after + (words.low(after) in ("of", "in", "der", "u"))
    modifier = words.low(at)
    if UNITS.get(words.low(at + 1)) != WEEK:
        return after, day
    if modifier in NEXT_WEEK or modifier in NEXT_GERMAN:
        return at + 2, get_monday(calendar.today) + timedelta(days=7 + weekday)
    if modifier in NEAREST:
        return at + 2, get_monday(calendar.today) + timedelta(days=weekday)
    return after, day
