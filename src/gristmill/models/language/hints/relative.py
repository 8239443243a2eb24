"""Reads dates that are counted from the item's own date: tomorrow, Friday, within 14 days, Ende KW 23, za 2 tjedna."""

from calendar import monthrange
from collections.abc import Callable
from dataclasses import replace
from datetime import date, time, timedelta
from itertools import pairwise

from gristmill.models.language.hints.days import Calendar, Read, read_day, read_month_first
from gristmill.models.language.hints.vocabulary import (
    DAY,
    FORTNIGHT,
    HOUR,
    MONTH,
    NUMBERS,
    ORDINARY,
    PARTS_OF_DAY,
    SHORT_WEEKDAYS,
    SLAVIC,
    UNITS,
    WEEK,
    WORKDAY,
    WORKING,
    YEAR,
    find_month,
    find_weekday,
)
from gristmill.models.language.hints.words import Words, spell, spell_table

FRIDAY = 4
LONGEST = 3  # digits of a number of days

# --- days that have a name

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
    if words.low(after) in INTO and (later := read_duration(words, after + 1, calendar)) and later.first == after:
        return replace(later, first=place, day=later.day + (day - calendar.today))  # heute in einer Woche
    return Read(place, after, day)


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

# --- weekdays

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
    day = _find_next(weekday, calendar.today)
    if before in NEXT_WEEK:
        first, day = place - 1, _get_monday(calendar.today) + timedelta(days=7 + weekday)
    elif before in LAST:
        first, day = place - 1, _find_next(weekday, calendar.today - timedelta(days=8))
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
    if before in EVERY or words.low(place - 2) in EVERY or before in NO_FRIDAY:
        return True
    return behind in ("'", "’") and words.is_close(place) and words.low(place + 2) == "s"


def _find_next(weekday: int, today: date) -> date:
    """The next such weekday behind a day."""
    return today + timedelta(days=(weekday - today.weekday() - 1) % 7 + 1)


def _get_monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _read_week_beside(words: Words, first: int, day: date, weekday: int, calendar: Calendar) -> tuple[int, date]:
    """Příští týden v pátek, nächste Woche Freitag: the week before the weekday."""
    at = first - 1
    at -= words.low(at) in ("v", "ve", "u", "am", "on", "do", "bis", "den", ",")
    if UNITS.get(words.low(at)) != WEEK:
        return first, day
    modifier = words.low(at - 1)
    if modifier in NEXT_WEEK or modifier in NEXT_GERMAN:
        return at - 1, _get_monday(calendar.today) + timedelta(days=7 + weekday)
    if modifier in NEAREST:
        return at - 1, _get_monday(calendar.today) + timedelta(days=weekday)
    return first, day


NEXT_GERMAN = spell("nächste nächsten nächster kommende kommenden kommender folgende folgenden")


def _read_week_behind(words: Words, after: int, day: date, weekday: int, calendar: Calendar) -> tuple[int, date]:
    """Friday next week, Freitag nächster Woche, pátek příští týden, Friday in two weeks is left alone."""
    at = after + (words.low(after) in ("of", "in", "der", "u"))
    modifier = words.low(at)
    if UNITS.get(words.low(at + 1)) != WEEK:
        return after, day
    if modifier in NEXT_WEEK or modifier in NEXT_GERMAN:
        return at + 2, _get_monday(calendar.today) + timedelta(days=7 + weekday)
    if modifier in NEAREST:
        return at + 2, _get_monday(calendar.today) + timedelta(days=weekday)
    return after, day


# --- weeks, months, quarters, years: their beginning, middle and end

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


def _read_joined_end(words: Words, place: int, calendar: Calendar) -> Read | None:
    """Month-end, year end."""
    at = place + 1 + (words.low(place + 1) == "-")
    if words.low(at) != "end" or words.low(at + 1) in ("of", "closing", "close", "report", "bonus"):
        return None
    return _make_edge(place, at + 1, END, PERIODS[words.low(place)], 0, calendar)


def _is_edge_word(words: Words, place: int) -> bool:
    """EOD and COB are written in capitals, or behind a word that asks for them."""
    low = words.low(place)
    return len(low) > 3 or words.written(place).isupper() or words.low(place - 1) in ("by", "until", "before")


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
        monday = _get_monday(today) + timedelta(days=7 * ahead)
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
    written = words.written(place)
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

# --- so many days from now


def read_duration(words: Words, place: int, calendar: Calendar) -> Read | None:
    """Within 14 days, in drei Wochen, do 14 dnů, u roku od 8 dana, za 2 tjedna, net 30, 3 days ago."""
    counted = _read_count(words, place, calendar)
    if counted is None:
        return None
    count, at = counted
    unit, after = _read_unit(words, at)
    if unit is None:
        return _read_net(words, place, count, calendar)
    return _read_by_words_before(words, place, after, count, unit, calendar) or _read_by_words_behind(
        words, place, after, count, unit, calendar
    )


def _read_count(words: Words, place: int, calendar: Calendar) -> tuple[int, int] | None:
    """A number or number word, and the place of its unit."""
    low = words.low(place)
    if words[place].is_number:
        if len(low) > LONGEST or _is_decimal(words, place):
            return None
        at = place + 1
        if words.low(at) in ("-", "–", "to", "bis", "az", "do") and words.number(at + 1, LONGEST):  # 3–5 days
            at += 1
            low = words.low(at)
            at += 1
        at += words.low(at) == "-"  # 14-day
        at += words.low(at) == ")" and words.is_close(at - 1)
        return int(low), at
    if low in ("a", "an") and calendar.language in ("en", ""):
        return 1, place + 1
    if low in ("jeden",) and calendar.language not in ("cs", ""):
        return None
    return (NUMBERS[low], place + 1 + (words.low(place + 1) == "(") * 3) if low in NUMBERS else None


def _is_decimal(words: Words, place: int) -> bool:
    before = (
        words.is_close(place - 1) and place > 1 and words.low(place - 1) in (".", ",", "/", "-", ":", "$", "€", "#")
    )
    behind = words.is_close(place) and words.low(place + 1) in (".", ",", "/", ":") and words.is_close(place + 1)
    return before or behind


def _read_unit(words: Words, at: int) -> tuple[int | None, int]:
    """The unit of time at this place, and the place behind it."""
    working = False
    for _ in range(2):
        if words.low(at) in WORKING or words.low(at) in ORDINARY:
            working = working or words.low(at) in WORKING
            at += 1
    unit = UNITS.get(words.low(at))
    if unit is None:
        return None, at
    after = at + 1
    if unit in (WEEK, MONTH) and words.low(after) == "dana":  # tjedan dana
        after += 1
    return (WORKDAY if working and unit == DAY else unit), after


WITHIN = spell("within innerhalb binnen innert do během unutar kroz tijekom lhůtě lhůta lhůtu lhůty")
INTO = spell("in za")
AGO = spell("vor před prije")
FILLERS = spell(
    """von od of the next den der die nächsten kommenden max maximal maximálně maksimalno spätestens nejpozději
    najkasnije about ca cca approx sljedećih idućih následujících příštích nejbližších coming following einer eines
    další roka od nur about around roughly etwa circa ungefähr přibližně otprilike do"""
)
TERMS = spell(
    """zahlungsziel zahlungsfrist zahlungsbedingungen zahlungsbedingung splatnost splatností splatnosti splatná
    splatné splatný valuta dospijeće dospijeća terms due payable zahlbar fällig frist rok odgoda termín nachfrist
    odgodom"""
)
TERM_FILLERS = spell(
    """: je is of von od ist beträgt činí iznosi netto net within innerhalb do plaćanja placanja faktury računa = - (
    se za in payment are rein payable jsou sind ab die der den až max"""
) | frozenset({":", "=", "-", "–", "("})
NO_TERMS = spell("otkazni jamstveni probni garancijski výpovědní záruční zkušební notice kündigungsfrist")
PAST_VERBS = spell("was were had did built made took done got sold grew lost won came went finished")


def _read_by_words_before(
    words: Words, place: int, after: int, count: int, unit: int, calendar: Calendar
) -> Read | None:
    at = place - 1
    while at > place - 5 and words.low(at) in FILLERS and words.low(at) not in WITHIN:
        at -= 1
    low = words.low(at)
    if low == "do" and unit == HOUR and count < 24:  # by 17 o'clock, not within 17 hours
        return None
    if low in WITHIN and not (low == "do" and words.low(at - 2) == "od") and not _is_anchored_elsewhere(words, after):
        first = at - 1 if low.startswith("lhut") and words.low(at - 1) == "ve" else at
        return _count_from(first, after, count, unit, calendar, is_deadline=_is_demanded(words, first))
    if low == "roku" and words.low(at - 1) == "u" and not _is_anchored_elsewhere(words, after):
        return _count_from(at - 1, after, count, unit, calendar, is_deadline=True)
    if low in INTO and unit != YEAR and not (low == "in" and _is_past(words, at)):
        own = low == "in" or calendar.language in (*SLAVIC, "")
        counts = unit != HOUR or low == "in"
        return _count_from(at, after, count, unit, calendar) if own and counts else None
    if low in AGO and at == place - 1 and unit in (DAY, WEEK):
        return _count_from(at, after, -count, unit, calendar, is_deadline=False)
    return _read_term(words, place, after, count, unit, calendar)


def _read_term(words: Words, place: int, after: int, count: int, unit: int, calendar: Calendar) -> Read | None:
    """Zahlungsziel 14 Tage, splatnost 14 dní, rok plaćanja 15 dana, payment terms: 30 days."""
    at = place - 1
    while at > place - 6 and words.low(at) in TERM_FILLERS and words.low(at) not in TERMS:
        at -= 1
    if words.low(at) not in TERMS or words.low(at - 1) in NO_TERMS or words.low(at + 1) in ("isporuke", "dodani"):
        return None
    if _is_anchored_elsewhere(words, after) or unit in (YEAR, HOUR):
        return None
    first = at - 1 if words.low(at) == "terms" and words.low(at - 1) == "payment" else at
    return _count_from(first, after, count, unit, calendar, is_deadline=True)


BEHIND = spell("ago from after netto net nach ab od po ode of")
ANCHORS = spell(
    """invoice receipt date today now rechnungsdatum rechnungserhalt erhalt rechnungsstellung rechnung heute doručení
    vystavení obdržení dneška dnes primitka primanja izdavanja danas računa dana zaprimanja this the your der des
    dieser eingang zugang ihrer fakturace faktury issue tohoto ovog přijetí dostave delivery"""
)
BEFORE_THAT = spell("before prior vor před prije ahead")


def _read_by_words_behind(
    words: Words, place: int, after: int, count: int, unit: int, calendar: Calendar
) -> Read | None:
    """3 days ago, two weeks from now, 14 Tage netto, 30 days after receipt."""
    low = words.low(after)
    if low == "ago" and unit in (DAY, WEEK):
        return _count_from(place, after + 1, -count, unit, calendar, is_deadline=False)
    if unit not in (DAY, WORKDAY, WEEK, FORTNIGHT, MONTH):
        return None
    if low in ("net", "netto"):
        return _count_from(place, after + 1, count, unit, calendar, is_deadline=True)
    if low in ("from", "ode", "od") and words.low(after + 1) in ("now", "today", "dneska", "dnes", "danas"):
        return _count_from(place, after + 2, count, unit, calendar)
    if low in ("after", "nach", "from", "po", "od") and PAYMENT_ANCHORS.intersection(words.lows(after + 1, 3)):
        return _count_from(place, after + 2, count, unit, calendar, is_deadline=True)
    return None


PAYMENT_ANCHORS = spell(
    "invoice receipt rechnung rechnungsdatum rechnungserhalt rechnungsstellung vystavení fakturace fakture"
)


def _read_net(words: Words, place: int, count: int, calendar: Calendar) -> Read | None:
    """Net 30, netto 14: a number of days that is usual in trade, and no amount."""
    if words.low(place - 1) not in ("net", "netto") or count not in (7, 8, 10, 14, 15, 20, 21, 30, 45, 60, 90):
        return None
    behind = words.low(place + 1)
    if behind in ("€", "$", "%", ",", "/") or (behind.isalnum() and behind not in ("terms", "from", "after", "nach")):
        return None
    if words.is_close(place) and words.low(place + 1) == "." and words.is_close(place + 1):
        return None
    return _count_from(place - 1, place + 1, count, DAY, calendar, is_deadline=True)


def _is_anchored_elsewhere(words: Words, after: int) -> bool:
    """30 days before expiry, within 14 days after completion: these are not counted from the item's own date."""
    low = words.low(after)
    if low in BEFORE_THAT:
        return True
    return (
        low in BEHIND
        and low not in ("netto", "net", "ago", "ab")
        and not ANCHORS.intersection(words.lows(after + 1, 3))
    )


PROMISES = spell(
    "melden ozveme odpovíme javit odgovorit odgovorimo usually typically normally obvykle obično üblicherweise regel"
)


def _is_demanded(words: Words, first: int) -> bool:
    """Whether the reader must be in time; `we will answer within two days` is a promise of the writer."""
    before = words.lows(first - 8, 8)
    if PROMISES.intersection(before):
        return False
    return "we'll" not in before and not any(pair in WE_WILL for pair in pairwise(before))


WE_WILL = (("we", "will"), ("werden", "wir"), ("wir", "werden"))


def _is_past(words: Words, at: int) -> bool:
    before = words.lows(at - 5, 5)
    return any(low in PAST_VERBS or (low.endswith("ed") and len(low) > 4) for low in before)


def _count_from(
    first: int, after: int, count: int, unit: int, calendar: Calendar, is_deadline: bool | None = None
) -> Read | None:
    try:
        day, clock = add_time(calendar, count, unit)
    except (OverflowError, ValueError):
        return None
    return Read(first, after, day, clock, is_deadline)


def add_time(calendar: Calendar, count: int, unit: int) -> tuple[date, time | None]:
    """The day so many units from the item's own date; hours also say at what time."""
    today = calendar.today
    if unit == HOUR:
        moment = calendar.written + timedelta(hours=count)
        return moment.date(), moment.time().replace(second=0, microsecond=0)
    if unit == WORKDAY:
        return add_workdays(today, count), None
    if unit in (MONTH, YEAR):
        return add_months(today, count * (12 if unit == YEAR else 1)), None
    return today + timedelta(days=count * {DAY: 1, WEEK: 7, FORTNIGHT: 14}[unit]), None


def add_workdays(day: date, count: int) -> date:
    """The day so many days from Monday to Friday later."""
    weeks, rest = divmod(count, 5)
    day += timedelta(days=7 * weeks)
    while rest or day.weekday() > FRIDAY:
        day += timedelta(days=1)
        rest -= rest > 0 and day.weekday() <= FRIDAY
    return day


def add_months(day: date, count: int) -> date:
    """The same day so many months later, or the last day of a month that is too short."""
    years, month = divmod(day.month - 1 + count, 12)
    year = day.year + years
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def read_single_unit(words: Words, place: int, calendar: Calendar) -> Read | None:
    """Za týden, do měsíce, za mjesec dana, u roku od mjesec dana: one unit without a number."""
    low = words.low(place)
    if low == "roku" and words.low(place - 1) != "u":
        return None
    unit, after = _read_unit(words, place + 1 + (words.low(place + 1) == "od"))
    if unit not in (WEEK, MONTH) or calendar.language not in (*SLAVIC, ""):
        return None
    if words.low(after) in ("v", "ve") and low == "za":
        return None
    if low in AGO:
        return _count_from(place, after, -1, unit, calendar, is_deadline=False)
    if low in SINGLE_WITHIN:
        return _count_from(place, after, 1, unit, calendar, is_deadline=True)
    return _count_from(place, after, 1, unit, calendar)


SINGLE_WITHIN = spell("do během unutar roku")

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


Reader = Callable[[Words, int, Calendar], Read | None]
