"""Reads weeks, months, quarters and years: their beginning, middle and end, and weeks by their number."""

from datetime import date, timedelta

from gristmill.models.language.hints.counting import FRIDAY, add_months, get_monday
from gristmill.models.language.hints.days import Calendar, Read
from gristmill.models.language.hints.vocabulary import (
    DAY,
    MONTH,
    UNITS,
    WEEK,
    YEAR,
    find_month,
    find_weekday,
)
from gristmill.models.language.hints.weekdays import NEXT_GERMAN, NEXT_WEEK
from gristmill.models.language.hints.words import Words, spell, spell_table

BEGIN, MIDDLE, END = range(3)
EDGES = spell_table({
    BEGIN: "beginning start early anfang začátek začátkem začátku počátkem početka početkom početak početku",
    MIDDLE: "middle mid mitte polovina poloviny polovině polovinou polovinu sredinom sredine sredina sredini pola",
    END: "end ende konec konce koncem konci kraj kraja krajem kraju",
})  # fmt: skip
EDGE_WORDS = {
    **dict.fromkeys(spell("monatsende eom ultimo"), (END, MONTH)),
    **dict.fromkeys(spell("jahresende eoy"), (END, YEAR)),
    **dict.fromkeys(spell("eow"), (END, WEEK)),
    **dict.fromkeys(spell("eod cob eob feierabend"), (END, DAY)),
    "monatsanfang": (BEGIN, MONTH),
    "monatsmitte": (MIDDLE, MONTH),
}
QUARTER = 9
PERIODS = {low: unit for low, unit in UNITS.items() if unit in (DAY, WEEK, MONTH, YEAR)} | {
    **dict.fromkeys(spell("monats"), MONTH),
    **dict.fromkeys(spell("jahres"), YEAR),
    **dict.fromkeys(spell("quarter quartal quartals kvartálu čtvrtletí kvartala kvartal tromjesečja"), QUARTER),
    **dict.fromkeys(spell("business work play tages"), DAY),
}
SMALL = spell(
    "of the der des dem this dieser dieses tohoto tento ovog ovoga current laufenden aktuellen tekućeg v u im"
)
NEXT = NEXT_WEEK | NEXT_GERMAN | spell("nächstem následujícího")


def read_edge(words: Words, place: int, calendar: Calendar) -> Read | None:
    """End of next week, Ende KW 23, koncem měsíce, krajem lipnja, Mitte Juni, Monatsende, EOD."""
    low = words.low(place)
    if low in ("month", "year", "quarter"):
        return _read_joined_end(words, place, calendar)
    if low in EDGE_WORDS:
        edge, unit = EDGE_WORDS[low]
        return _make_edge(place, place + 1, edge, unit, 0, calendar) if _is_edge_word(words, place) else None
    edge = EDGES.get(low)
    if edge is None or words.low(place - 1) in ("dead", "front", "back", "high", "low", "book", "week"):
        return None
    at, ahead = place + 1, 0
    at += words.low(at) == "-" and words.is_close(place)  # mid-June
    while at < place + 4 and (words.low(at) in SMALL or words.low(at) in NEXT):
        ahead = 1 if words.low(at) in NEXT else ahead
        at += 1
    return _read_edge_of_month(words, place, at, edge, calendar) or _read_edge_of_period(
        words, place, at, edge, ahead, calendar
    )


LAST_DAYS = spell("last letzten letzter letztem posledního poslední zadnjeg zadnji zadnjega posljednjeg posljednji")
DAYS = spell("day tag tages tage dne den dni dan dana")


def read_last_day(words: Words, place: int, calendar: Calendar) -> Read | None:
    """The last day of this month, zum letzten Tag des Monats, do posledního dne měsíce."""
    at, ahead = place + 1, 0
    if words.low(at) not in DAYS:
        return None
    at += 1
    while at < place + 5 and (words.low(at) in SMALL or words.low(at) in NEXT):
        ahead = 1 if words.low(at) in NEXT else ahead
        at += 1
    month = _read_edge_of_month(words, place, at, END, calendar)
    unit = PERIODS.get(words.low(at))
    return month or (_make_edge(place, at + 1, END, unit, ahead, calendar) if unit in (MONTH, YEAR, QUARTER) else None)


def _read_joined_end(words: Words, place: int, calendar: Calendar) -> Read | None:
    """Month-end, year end."""
    at = place + 1 + (words.low(place + 1) == "-")
    if words.low(at) != "end" or words.low(at + 1) in ("of", "closing", "close", "report", "bonus"):
        return None
    return _make_edge(place, at + 1, END, PERIODS[words.low(place)], 0, calendar)


def _is_edge_word(words: Words, place: int) -> bool:
    """EOD and COB are written in capitals, or behind a word that asks for them."""
    low = words.low(place)
    return len(low) > 3 or words.read_word(place).isupper() or words.low(place - 1) in ("by", "until", "before")


def _read_edge_of_period(words: Words, place: int, at: int, edge: int, ahead: int, calendar: Calendar) -> Read | None:
    low = words.low(at)
    if low in ("kw", "cw") or (low in ("week", "tydne", "tjedna") and words.number(at + 1, 2)):
        return _read_week_number(words, place, at, edge, calendar)
    if low in ("q", "k") and words.is_close(at) and words.number(at + 1, 1) in (1, 2, 3, 4):
        return _read_quarter(words, place, at + 1, edge, calendar)
    unit = PERIODS.get(low)
    if unit is None or (at == place + 1 and edge != END and unit in (DAY, WEEK)):
        year = words.number(at)
        if edge == END and year is not None and 0 <= year - calendar.today.year <= 5:
            return Read(place, at + 1, date(year, 12, 31))
        return None
    if unit in (DAY, WEEK) and edge == BEGIN:
        return None
    after = at + 1
    if words.lows(at - 1, 2) == ("of", "business") or words.lows(at, 2) in (("business", "day"), ("work", "day")):
        after += words.low(after) == "day"
    return _make_edge(place, after, edge, unit, ahead, calendar)


def _make_edge(first: int, after: int, edge: int, unit: int, ahead: int, calendar: Calendar) -> Read | None:
    today = calendar.today
    if unit == DAY:
        return Read(first, after, today + timedelta(days=ahead), clock=None)
    if unit == WEEK:
        monday = get_monday(today) + timedelta(days=7 * ahead)
        return Read(first, after, monday + timedelta(days=(0, 2, FRIDAY)[edge]))
    year, month, length = today.year, today.month, 1
    if unit == QUARTER:
        month, length = (month - 1) // 3 * 3 + 1, 3
    if unit == YEAR:
        month, length = 1, 12
    begin = add_months(date(year, month, 1), length * ahead)
    return Read(first, after, _cut_period(begin, length, edge))


def _cut_period(begin: date, months: int, edge: int) -> date:
    end = add_months(begin, months) - timedelta(days=1)
    if edge == END:
        return end
    return begin if edge == BEGIN else begin + timedelta(days=((end - begin).days) // 2 if months > 1 else 14)


def _read_edge_of_month(words: Words, place: int, at: int, edge: int, calendar: Calendar) -> Read | None:
    """End of June, Mitte Juni 2026, krajem lipnja."""
    month = find_month(words.low(at), calendar.language)
    if month is None or (words.low(at) in ("may", "march", "mar") and not words.is_capital(at)):
        return None
    year, after = words.number(at + 1), at + 2
    if year is None or abs(year - calendar.today.year) > 5:
        year, after = calendar.today.year, at + 1
        if (year, month) < (calendar.today.year, calendar.today.month):
            year += 1
    return Read(place, after, _cut_period(date(year, month, 1), 1, edge))


def _read_quarter(words: Words, place: int, at: int, edge: int, calendar: Calendar) -> Read | None:
    quarter, year, after = words.number(at, 1), words.number(at + 1), at + 2
    if quarter is None or edge != END:
        return None
    if year is None or abs(year - calendar.today.year) > 5:
        year, after = calendar.today.year, at + 1
        if quarter * 3 < calendar.today.month:
            year += 1
    return Read(place, after, _cut_period(date(year, quarter * 3 - 2, 1), 3, END))


def read_week_number(words: Words, place: int, calendar: Calendar) -> Read | None:
    """KW 23, CW 23: its Monday. A power of 23 kW is no week."""
    written = words.read_word(place)
    if written not in ("KW", "CW", "Kw") or words.number(place - 1) is not None:
        return None
    return _read_week_number(words, place, place, BEGIN, calendar)


def _read_week_number(words: Words, place: int, at: int, edge: int, calendar: Calendar) -> Read | None:
    at += words.low(at + 1) == "."
    week = words.number(at + 1, 2)
    if week is None or not 1 <= week <= 53 or words.low(at + 2) in ("%",):
        return None
    after, year = at + 2, None
    if words.low(after) in ("/", ",") or words.gap(after - 1) == " ":
        at_year = after + (words.low(after) in ("/", ","))
        year = words.number(at_year)
        if year is not None and abs(year - calendar.today.year) <= 5:
            after = at_year + 1
        else:
            year = None
    today = calendar.today
    year, ask = (year, False) if year else (today.isocalendar().year, True)
    day = _find_day_of_week(year, week, (0, 2, FRIDAY)[edge])
    if ask and day and (today - day).days > 60:
        day = _find_day_of_week(year + 1, week, (0, 2, FRIDAY)[edge])
    return Read(place, after, day) if day else None


def _find_day_of_week(year: int, week: int, weekday: int) -> date | None:
    try:
        return date.fromisocalendar(year, week, weekday + 1)
    except ValueError:
        return None


def read_coming_period(words: Words, place: int, calendar: Calendar) -> Read | None:
    """Next week (its Monday), next month (its first day), noch diese Woche (its Friday)."""
    low, behind = words.low(place), UNITS.get(words.low(place + 1))
    if behind not in (WEEK, MONTH) or _is_before_weekday(words, place + 2, calendar):
        return None
    if low in NEXT:
        return _make_edge(place, place + 2, BEGIN, behind, 1, calendar)
    if low in THIS_PERIOD and words.low(place - 1) in STILL and behind == WEEK:
        edge = _make_edge(place - 1, place + 2, END, WEEK, 0, calendar)
        return Read(edge.first, edge.after, edge.day, is_deadline=True) if edge else None
    return None


def _is_before_weekday(words: Words, at: int, calendar: Calendar) -> bool:
    """Nächste Woche Mittwoch, příští týden v pátek: the weekday says more."""
    at += words.low(at) in ("v", "ve", "u", "am", "on", ",")
    return find_weekday(words, at, calendar.language) is not None


THIS_PERIOD = spell("this diese dieser tento tohoto ovaj ovog")
STILL = spell("noch still ještě još by until within innerhalb do")
