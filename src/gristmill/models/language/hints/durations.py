"""Reads so many days from the item's own date: within 14 days, za 2 tjedna, net 30, splatnost 14 dní, 3 days ago."""

from datetime import date, time, timedelta
from itertools import pairwise

from gristmill.models.language.hints.counting import add_months, add_workdays
from gristmill.models.language.hints.days import Calendar, Read
from gristmill.models.language.hints.vocabulary import (
    DAY,
    FORTNIGHT,
    HOUR,
    MONTH,
    NUMBERS,
    ORDINARY,
    SLAVIC,
    UNITS,
    WEEK,
    WORKDAY,
    WORKING,
    YEAR,
)
from gristmill.models.language.hints.words import Words, spell

LONGEST = 3  # digits of a number of days


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
    """zahlungsziel zahlungsfrist zahlungsbedingungen zahlungsbedingung zahlungskonditionen konditionen dospijećem
    splatnost splatností splatnosti splatná splatné splatný valuta dospijeće dospijeća terms due payable zahlbar
    fällig frist rok odgoda termín nachfrist odgodom"""
)
TERM_FILLERS = spell(
    """: je is of von od ist beträgt činí iznosi netto net within innerhalb do plaćanja placanja faktury računa = - (
    se za in payment are rein payable jsou sind ab die der den až max the our usual standard üblichen wie üblich
    immer strictly strikt strogo striktně as always jako vždy obvykle obvyklých kao i uvijek uobičajenih"""
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
