"""Reads whole and partial dates: 2026-05-03, 3.5., 3rd of May, May 3, 3. května, 5/3/2026, do 15."""

from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta

from gristmill.models.language.hints.vocabulary import (
    ALL_SHORT_WEEKDAYS,
    ENGLISH_MONTHS,
    FIRST_ORDINALS,
    MONTH,
    UNITS,
    find_month,
    find_weekday,
)
from gristmill.models.language.hints.words import Words, spell

YEARS = 60  # how far from the item's own date a year may be
SHORT_YEARS = 8  # how far a year of two digits may be
RECENT = 150  # days back: a date without a year that is not longer ago is of the past
OVERDUE = 45  # days back: the same for a deadline, which is seldom mentioned long after its day


@dataclass(frozen=True, slots=True)
class Calendar:
    """What a date of a text is read against: the item's own date, its language, and which number is the day in 5/3."""

    written: datetime
    language: str = ""
    day_first: bool = False

    @property
    def today(self) -> date:
        return self.written.date()


@dataclass(frozen=True, slots=True)
class Read:
    """A date that was read from the words `first` up to `after` (not with it)."""

    first: int
    after: int
    day: date
    clock: time | None = None
    is_deadline: bool | None = None  # None: the words around it decide
    has_year: bool = True
    other: date | None = None  # the day if the numbers stand in the other order: 5/3


def resolve_year(read: Read, calendar: Calendar, *, is_deadline: bool) -> Read:
    """Give a date without a year the year in which it lies nearest ahead, or not long ago.

    A deadline with two possible orders of its numbers is the one that is still ahead.
    """
    if read.has_year:
        ahead = is_deadline and read.other and read.day < calendar.today <= read.other
        return replace(read, day=read.other) if ahead and read.other else read
    earliest = calendar.today - timedelta(days=OVERDUE if is_deadline else RECENT)
    for year in range(earliest.year, earliest.year + 9):  # the 29th of February comes within eight years
        day = make_day(year, read.day.month, read.day.day)
        if day and day >= earliest:
            return replace(read, day=day)
    return read


def make_day(year: int, month: int, day: int) -> date | None:
    """The day, if the calendar has it."""
    try:
        return date(year, month, day)
    except ValueError:
        return None


def read_day(words: Words, place: int, calendar: Calendar) -> Read | None:
    """The date that begins with the number at this place."""
    if _is_inside_number(words, place):
        return None
    return (
        _read_iso(words, place, calendar)
        or _read_dotted(words, place, calendar)
        or _read_slashed(words, place, calendar)
        or _read_named(words, place, calendar)
        or _read_first_of_range(words, place, calendar)
        or _read_day_in_month(words, place, calendar)
        or _read_day_of_month(words, place, calendar)
    )


SEPARATORS = frozenset(".,/-:–+#")


def _is_inside_number(words: Words, place: int) -> bool:
    """Whether the number is a piece of a longer one: 10.0.0.1, v1.2, +49 30/12."""
    if not words.is_close(place - 1) or place == 0:
        return False
    before = words[place - 1]
    if before.low in SEPARATORS:
        return (words.is_close(place - 2) and (words[place - 2].low.isalnum())) or before.low in "+#"
    return before.low.isalpha() or before.low in "_@=&$€£"


def _is_followed(words: Words, after: int, signs: str) -> bool:
    """Whether the number goes on behind these words, with one of the signs and a digit, or with a letter."""
    if not words.is_close(after - 1):
        return False
    following = words[after]
    if following.low in signs and words.is_close(after) and words[after + 1].low.isalnum():
        return True
    return following.is_number or following.low.isalpha() or following.low in "_%"


# --- numbers only


def _is_year(year: int | None, calendar: Calendar) -> bool:
    return year is not None and abs(year - calendar.today.year) <= YEARS


def _read_iso(words: Words, place: int, calendar: Calendar) -> Read | None:
    sign = words.low(place + 1)
    if sign not in ("-", "/", ".") or words.low(place + 3) != sign or len(words.low(place)) != 4:
        return None
    if not all(words.is_close(one) for one in range(place, place + 4)):
        return None
    year, month, number = words.number(place), words.number(place + 2, 2), words.number(place + 4, 2)
    if year is None or month is None or number is None or not _is_year(year, calendar):
        return None
    day = make_day(year, month, number)
    if day is None or (_is_followed(words, place + 5, "-/.") and words.low(place + 5) != "t"):
        return None
    return Read(place, place + 5, day)


def _read_dotted(words: Words, place: int, calendar: Calendar) -> Read | None:
    """3.5.2026, 3. 5. 2026, 03.05.26, and 3.5. where its surroundings say that it is a date."""
    number, month = words.number(place, 2), words.number(place + 2, 2)
    if number is None or month is None or words.low(place + 1) != "." or not words.is_close(place):
        return None
    if words.gap(place + 1) not in BLANKS:
        return None
    if words.low(place + 3) != "." or not words.is_close(place + 2):
        return _read_undotted(words, place, calendar)
    year, length = _read_dotted_year(words, place, calendar)
    if year is not None:
        day = make_day(year, month, number)
        if day is None or _is_followed(words, place + 5, ".-/:") or _is_version(words, place):
            return None
        closes = words.low(place + 5) == "." and words.is_close(place + 4) and calendar.language == "hr"
        short = length == 2 and not _is_dated(words, place, calendar) and len(words.low(place)) < 2
        return None if short else Read(place, place + (6 if closes else 5), day)
    day = make_day(calendar.today.year, month, number) or make_day(2024, month, number)
    if day is None or _is_followed(words, place + 4, ".-/:") or _is_version(words, place):
        return None
    if words.is_close(place + 3) and words[place + 4].is_number:
        return None
    return Read(place, place + 4, day, has_year=False) if _is_dated(words, place, calendar) else None


BLANKS = ("", " ", "\u00a0", "\u202f")


def _read_dotted_year(words: Words, place: int, calendar: Calendar) -> tuple[int | None, int]:
    """The year behind `3.5.` and how many digits it has."""
    if words.gap(place + 3) not in BLANKS:
        return None, 0
    year = words.number(place + 4)
    written = words.low(place + 4)
    if year is not None and len(written) == 4 and _is_year(year, calendar):
        return year, 4
    if year is not None and len(written) == 2 and words.is_close(place + 3):
        year += 2000
        if abs(year - calendar.today.year) <= SHORT_YEARS:
            return year, 2
    return None, 0


def _read_undotted(words: Words, place: int, calendar: Calendar) -> Read | None:
    """`zahlbar bis 3.5`: a date without its last dot needs a word that asks for a date, and no unit behind it."""
    number, month = words.number(place, 2), words.number(place + 2, 2)
    if number is None or month is None or not words.is_close(place + 1) or calendar.language == "en":
        return None
    day = make_day(2024, month, number)
    demanded = words.low(place - 1) in DEMANDS and bool(DEMANDERS.intersection(words.lows(place - 4, 3)))
    ends = words.gap(place + 2).startswith("\n") or words.low(place + 3) in ".,;!?)"
    if day is None or not (demanded and ends) or _is_followed(words, place + 3, ".-/:"):
        return None
    return Read(place, place + 3, day, has_year=False)


DEMANDS = spell("bis do am zum dne dana")
DEMANDERS = spell("zahlbar fällig spätestens nejpozději splatná splatné splatnost najkasnije rok frist")
VERSIONS = spell(
    """version versions verze verzi verzija verzije release ver kapitel chapter section sections abschnitt punkt
    ziffer § art article artikel čl článek odst odstavec bod bodu bodě odstavci článku članak članka točka točke str
    page seite strana stranica fig figure tabelle table tabulka slika abs absatz para paragraph rev revision build
    python java node nr no č br ios android ubuntu debian php note noten grade známka ocjena level"""
)


def _is_version(words: Words, place: int) -> bool:
    """Whether the words before name a version, a chapter or a page."""
    return bool(VERSIONS.intersection(words.lows(place - 2, 2)))


BEFORE_DATES = spell(
    """am vom zum bis ab den dem der seit und oder von bzw spätestens datum termin frist dne do od ode k ke na ve až
    či nejpozději termín datem splatnosti dana dan s sa u i najkasnije dospijeća datuma rok"""
)
ONLY_IN = {"en": spell("am den dem der bis"), "de": BEFORE_DATES - spell("do na k u i s sa od")}


def _is_dated(words: Words, place: int, calendar: Calendar) -> bool:
    """Whether a word before `3.5.` asks for a date, or a time of day follows it."""
    if _is_heading_number(words, place):
        return False
    at = place - 1
    while at > place - 4 and words.low(at) in (",", ":", "(", "."):
        at -= 1
    before = words.low(at)
    if before in ALL_SHORT_WEEKDAYS and words.is_capital(at):
        return True
    if find_weekday(words, place - 1, calendar.language) is not None:
        return True
    if find_weekday(words, place - 2, calendar.language) is not None and words.low(place - 1) in (",", "den", "dne"):
        return True
    if before in ("-", "–", "—") and words.low(place - 2) == ".":  # 3.5.–7.5.
        return True
    behind = words.lows(place + 4, 2)
    if behind[0] in ("-", "–", "—") and behind[1].isdecimal() and words.low(place + 6) == ".":
        return True
    if behind[0] in ("um", "v", "ve", "u", "ab", "gegen") and behind[1].isdecimal():
        return True
    return before in ONLY_IN.get(calendar.language, BEFORE_DATES)


def _is_heading_number(words: Words, place: int) -> bool:
    """`2.3. Scope` at the beginning of a line."""
    return place == 0 or "\n" in words.gap(place - 1)


FRACTIONS = frozenset({(1, 2), (1, 3), (2, 3), (1, 4), (3, 4), (1, 5), (24, 7), (50, 50), (9, 11)})


def _read_slashed(words: Words, place: int, calendar: Calendar) -> Read | None:
    """5/3/2026, 05-03-2026, and 5/3 behind a word that asks for a date."""
    sign = words.low(place + 1)
    if sign not in ("/", "-") or not (words.is_close(place) and words.is_close(place + 1)):
        return None
    one, other = words.number(place, 2), words.number(place + 2, 2)
    if one is None or other is None:
        return _read_month_between(words, place, calendar)
    if words.low(place + 3) == sign and words.is_close(place + 2) and words.is_close(place + 3):
        year = words.number(place + 4)
        if year is not None and len(words.low(place + 4)) == 2:
            year = year + 2000 if sign == "/" and abs(year + 2000 - calendar.today.year) <= SHORT_YEARS else None
        elif len(words.low(place + 4)) != 4:
            return None
        if year is None or not _is_year(year, calendar) or _is_followed(words, place + 5, "/-."):
            return None
        day, turned = _order_day(one, other, year, calendar)
        return Read(place, place + 5, day, other=turned) if day else None
    if sign != "/" or _is_followed(words, place + 3, "/-.:"):
        return None
    asked = words.low(place - 1) in BEFORE_SLASHES or find_weekday(words, place - 1, calendar.language) is not None
    if words.low(place - 1) == "," and find_weekday(words, place - 2, calendar.language) is not None:
        asked = True
    if not asked or (one, other) in FRACTIONS or words.low(place + 3) in COUNTED:
        return None
    day, _ = _order_day(one, other, calendar.today.year, calendar)
    return Read(place, place + 3, day, has_year=False) if day else None


BEFORE_SLASHES = spell("on by until till before due dated since am bis vom do dne")
COUNTED = spell("of majority cup cups inch teaspoon stars points % hours support people")


def _order_day(one: int, other: int, year: int, calendar: Calendar) -> tuple[date | None, date | None]:
    """Which of two numbers is the day: a number above 12; else what the language and the rest of the text do.

    If nothing but the language says so, the other day is given as well.
    """
    first = make_day(year, other, one)  # the day comes first
    second = make_day(year, one, other)
    if calendar.day_first:
        return first or second, None
    return second or first, first if second else None


def _read_month_between(words: Words, place: int, calendar: Calendar) -> Read | None:
    """03-May-2026, 3/May/2026."""
    number, month = words.number(place, 2), find_month(words.low(place + 2), calendar.language)
    sign, year = words.low(place + 1), words.number(place + 4)
    if number is None or month is None or words.low(place + 3) != sign or year is None:
        return None
    if len(words.low(place + 4)) == 2:
        year += 2000
    day = make_day(year, month, number) if _is_year(year, calendar) else None
    return Read(place, place + 5, day) if day else None


# --- with the name of a month

ORDINAL_ENDS = spell("st nd rd th")
ARTICLES = spell("of the")


def _read_named(words: Words, place: int, calendar: Calendar) -> Read | None:
    """3 May, 3rd of May 2026, 3. Mai, 3. května 2026, 3. svibnja 2026."""
    number = words.number(place, 2)
    if number is None or not 1 <= number <= 31:
        return None
    after = _skip_ordinal(words, place + 1)
    while words.low(after) in ARTICLES and after < place + 5:
        after += 1
    return _finish_named(words, place, after, number, calendar)


def _finish_named(words: Words, place: int, after: int, number: int, calendar: Calendar) -> Read | None:
    low = words.low(after)
    month = find_month(low, calendar.language)
    if month is None or words.gap(after - 1) not in (*BLANKS, "\n", "\r\n"):
        return None
    if low in ("may", "mar", "march", "mars") and not words.is_capital(after):
        return None
    if low in SHORT_MONTHS and words.low(after + 1) == ".":
        after += 1
    if words.low(after + 1) in STREETS and words.is_capital(after + 1):
        return None
    year, behind = _read_year(words, after + 1, calendar)
    day = make_day(year or 2024, month, number)
    if day is None:
        return None
    if year is None:
        return Read(place, after + 1, day, has_year=False)
    closes = calendar.language == "hr" and words.low(behind) == "." and words.is_close(behind - 1)
    return Read(place, behind + closes, day)


STREETS = spell("street st road rd avenue ave lane square way drive place court terrace")  # 14 May Street
SHORT_MONTHS = spell("jan feb mar apr jun jul aug sep sept oct okt nov dec dez")


def _skip_ordinal(words: Words, place: int) -> int:
    """The place behind `rd`, a dot, or nothing."""
    if words.is_close(place - 1) and (words.low(place) in ORDINAL_ENDS or words.low(place) == "."):
        return place + 1
    return place


def _read_year(words: Words, place: int, calendar: Calendar) -> tuple[int | None, int]:
    """The year at this place, perhaps behind a comma, and the place behind it."""
    at = place + 1 if words.low(place) == "," else place
    year = words.number(at)
    if year is not None and len(words.low(at)) == 4 and _is_year(year, calendar) and "\n\n" not in words.gap(at - 1):
        return year, at + 1
    if words.low(at) in ("'", "’") and words.is_close(at):
        short = words.number(at + 1, 2)
        if short is not None and len(words.low(at + 1)) == 2:
            return 2000 + short, at + 2
    return None, place


def read_month_first(words: Words, place: int, calendar: Calendar) -> Read | None:
    """May 3, May 3rd, 2026, Sept. 5: English alone puts the month first."""
    if words.low(place) not in ENGLISH_MONTHS or not words.is_capital(place):
        return None
    at = place + 1
    if words.low(at) == "." and words.is_close(place):
        at += 1
    at += words.low(at) == "the"
    month, number = find_month(words.low(place), ""), words.number(at, 2)
    if number is None:
        return _read_spelt_day(words, place, at, calendar)
    if month is None or words.gap(at - 1) not in (*BLANKS, "\n") or words.is_close(at - 1):
        return None
    after = _skip_english_ordinal(words, at + 1)
    if _is_followed(words, after, ".,:/-") and words.low(after) not in ("-", "–"):
        return None
    if words.low(after) in NO_DAYS:
        return None
    after = _skip_second_day(words, after, number)
    year, behind = _read_year(words, after, calendar)
    day = make_day(year or 2024, month, number)
    if day is None:
        return None
    return Read(place, behind, day) if year else Read(place, after, day, has_year=False)


NO_DAYS = spell("% people percent hours minutes times am pm miles km items")


def _skip_english_ordinal(words: Words, place: int) -> int:
    return place + 1 if words.is_close(place - 1) and words.low(place) in ORDINAL_ENDS else place


def _skip_second_day(words: Words, after: int, number: int) -> int:
    """The place behind the second day of June 3–5."""
    second = words.number(after + 1, 2)
    if words.low(after) in ("-", "–", "—") and second is not None and number < second <= 31:
        return _skip_english_ordinal(words, after + 2)
    return after


def _read_spelt_day(words: Words, place: int, at: int, calendar: Calendar) -> Read | None:
    """May the first, June fifteenth."""
    number, month = FIRST_ORDINALS.get(words.low(at)), find_month(words.low(place), "")
    if number is None or month is None or calendar.language not in ("en", ""):
        return None
    day = make_day(2024, month, number)
    return Read(place, at + 1, day, has_year=False) if day else None


def read_spelt_ordinal(words: Words, place: int, calendar: Calendar) -> Read | None:
    """First of May, ersten Juni, patnáctého června: only before the name of a month."""
    number = FIRST_ORDINALS.get(words.low(place))
    if number is None:
        return None
    if found := _find_in_month(words, place, place + 1, number, calendar):
        return found
    if words.low(place - 1) in TO_THE_DAY and words.low(place + 1) in ORDINAL_ENDINGS:  # do patnáctého
        return _find_next_day(words, place, place + 1, number, calendar, own_month=False)
    after = place + 1
    while words.low(after) in ARTICLES and after < place + 3:
        after += 1
    if words.low(after) in ("may", "march", "mar") and after == place + 1:  # second may
        return None
    return _finish_named(words, place, after, number, calendar)


# --- parts of a date

CONNECTORS = frozenset(
    {"-", "–", "—", "to", "bis", "az", "do", "and", "und", "a", "i", "&", "oder", "or", "nebo", "ili"}
)


def _read_first_of_range(words: Words, place: int, calendar: Calendar) -> Read | None:
    """The first day of 3.–5. Mai and of 3 to 5 June: it has the month of the second."""
    number = words.number(place, 2)
    at = _skip_ordinal(words, place + 1)
    if number is None or not 1 <= number <= 31 or words.low(at) not in CONNECTORS:
        return None
    dotted = at > place + 1
    second = words.number(at + 1, 2)
    if second is None or second <= number:
        return None
    other = _read_dotted(words, at + 1, calendar) if dotted else None
    other = other or _read_named(words, at + 1, calendar)
    if other is None:
        return None
    day = make_day(other.day.year, other.day.month, number)
    return Read(place, at, day, has_year=other.has_year) if day else None


ORDINAL_ENDINGS = frozenset({"", ".", ",", ";", "!", "?", ")"})
OF_A_MONTH = spell("of the des den dni dana day tag tages v u im")
NEXT_MONTHS = spell(
    "next nächsten kommenden folgenden příštího následujícího sljedećeg sljedećega idućeg idućega narednog"
)
THIS_MONTHS = spell("this dieses diesen laufenden tohoto ovog ovoga tekućeg")


def _read_day_in_month(words: Words, place: int, calendar: Calendar) -> Read | None:
    """The 15th of next month, k 15. dni příštího měsíce, am 3. d. M."""
    number = words.number(place, 2)
    if number is None or not 1 <= number <= 31:
        return None
    return _find_in_month(words, place, _skip_ordinal(words, place + 1), number, calendar)


def _find_in_month(words: Words, place: int, at: int, number: int, calendar: Calendar) -> Read | None:
    if words.lows(at, 3) in (("d", ".", "m"), ("t", ".", "m")) and words.low(at + 3) == ".":
        day = make_day(calendar.today.year, calendar.today.month, number)
        return Read(place, at + 4, day) if day else None
    begin = at
    while at < begin + 3 and words.low(at) in OF_A_MONTH:
        at += 1
    low = words.low(at)
    if UNITS.get(words.low(at + 1)) != MONTH or (low not in NEXT_MONTHS and low not in THIS_MONTHS):
        return None
    months = calendar.today.month - 1 + (low in NEXT_MONTHS)
    day = make_day(calendar.today.year + months // 12, months % 12 + 1, number)
    return Read(place, at + 2, day) if day else None


ENDS = frozenset({"", "um", "v", "u", "-", "–", ",", ")", "!", "?"})
THE_DAY = spell("by until till before on due")
TO_THE_DAY = spell("bis zum am spätestens do nejpozději k najkasnije dne")
MONTH_OF_ITS_OWN = (("tohoto", "mesice"), ("ovog", "mjeseca"), ("ovoga", "mjeseca"), ("this", "month"), ("of", "this"))


def _read_day_of_month(words: Words, place: int, calendar: Calendar) -> Read | None:
    """By the 15th, bis zum 15., do 15.: the next such day. A noun behind it makes it a floor or a chapter."""
    number = words.number(place, 2)
    if number is None or not 1 <= number <= 31 or not words.is_close(place):
        return None
    mark, behind = words.low(place + 1), words.low(place + 2)
    own_month = words.lows(place + 2, 2) in MONTH_OF_ITS_OWN
    if mark in ORDINAL_ENDS:
        asked = words.low(place - 1) == "the" and words.low(place - 2) in THE_DAY
        ends = behind in ("", ".", ",", ";", "!", "?", ")", "at", "or", "and", "if", "so", "-", "–") or own_month
    elif mark == "." and calendar.language != "en":
        asked = words.low(place - 1) in TO_THE_DAY and "od" not in words.lows(place - 4, 3)
        german = calendar.language == "de" and behind.isalpha() and not words.is_capital(place + 2)  # no noun
        ends = (
            german
            or "\n" in words.gap(place + 1)
            or behind in ("", "um", "v", "u", "-", "–", ",", ")", "!", "?")
            or own_month
        )
    else:
        return None
    if not (asked and ends):
        return None
    after = place + 2 + (2 if own_month else 0)
    if own_month and words.lows(place + 2, 2) == ("of", "this"):
        after += words.low(after) == "month"
    return _find_next_day(words, place, after, number, calendar, own_month)


def _find_next_day(
    words: Words, place: int, after: int, number: int, calendar: Calendar, own_month: bool
) -> Read | None:
    today = calendar.today
    this = make_day(today.year, today.month, number)
    if this and (this >= today or own_month):
        return Read(place, after, this)
    months = ((today.year + (today.month + n - 1) // 12, (today.month + n - 1) % 12 + 1) for n in range(1, 4))
    day = next((day for year, month in months if (day := make_day(year, month, number))), None)
    return Read(place, after, day) if day else None
