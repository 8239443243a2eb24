"""Finds the dates of a text in four languages, resolved against the item's own date, and says which are deadlines."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, time

from gristmill.models.language.hints.clock import NAMED, read_clock
from gristmill.models.language.hints.days import (
    Calendar,
    Read,
    read_day,
    read_month_first,
    read_spelt_ordinal,
    resolve_year,
)
from gristmill.models.language.hints.deadlines import judge_deadline, read_time_alone
from gristmill.models.language.hints.durations import read_duration, read_single_unit
from gristmill.models.language.hints.model import About, FoundDate, TextEvidence
from gristmill.models.language.hints.named_days import AT_ONCE, NAMED_DAYS, read_due_at_once, read_named_day
from gristmill.models.language.hints.periods import (
    EDGE_WORDS,
    EDGES,
    LAST_DAYS,
    NEXT,
    THIS_PERIOD,
    read_coming_period,
    read_edge,
    read_last_day,
    read_week_number,
)
from gristmill.models.language.hints.vocabulary import (
    ALL_SHORT_WEEKDAYS,
    ENGLISH_MONTHS,
    FIRST_ORDINALS,
    GERMAN_PARTS,
    NUMBERS,
    PARTS_OF_DAY,
    SHORT_WEEKDAYS,
    WEEKDAYS,
)
from gristmill.models.language.hints.weekdays import read_weekday
from gristmill.models.language.hints.words import Words, spell

Reader = Callable[[Words, int, Calendar], Read | None]
LONGEST = 90  # characters of an expression
DAY_FIRST = (
    "uk",
    "ie",
    "au",
    "nz",
    "eu",
    "de",
    "at",
    "ch",
    "cz",
    "hr",
    "sk",
    "si",
    "ba",
    "rs",
    "fr",
    "it",
    "es",
    "nl",
    "in",
    "za",
)
BEFORE_TIMES = spell("at um gegen ab v ve u o by bis do od @ kl klokken") | frozenset({",", "@", "(", "-", "–", "|"})
AFTER_TIMES = spell("on am v ve u dne this the") | frozenset({","})


def find_dates(words: Words, about: About, language: str) -> tuple[FoundDate, ...]:
    """All dates in the order of the text; no two of them overlap."""
    calendar = Calendar(about.written_at, language, _is_day_first(words, about, language))
    return tuple(_hear_by_then(words, list(_find_all(words, calendar))))


BY_THEN = (
    ("before", "that", "date"),
    ("by", "that", "date"),
    ("before", "then"),
    ("by", "then"),
    ("bis", "dahin"),
    ("do", "te", "doby"),
    ("do", "toho", "data"),
    ("do", "tada"),
    ("do", "tog", "datuma"),
)
FIRST_OF_THEN = frozenset(one[0] for one in BY_THEN)
FAR = 240  # characters between a date and the words that come back to it


def _hear_by_then(words: Words, dates: list[FoundDate]) -> list[FoundDate]:
    """The keys stop working on 28 September. Replace them before that date: the date is a deadline."""
    if not dates:
        return dates
    for place in range(words.find(dates[0].evidence.stop), len(words)):
        if words.low(place) in FIRST_OF_THEN and any(words.lows(place, len(one)) == one for one in BY_THEN):
            start = words[place].start
            near = [n for n, one in enumerate(dates) if one.evidence.stop <= start <= one.evidence.stop + FAR]
            if near:
                dates[near[-1]] = replace(dates[near[-1]], is_deadline=True)
    return dates


def find_deadline(dates: Sequence[FoundDate], written: datetime) -> FoundDate | None:
    """The earliest deadline that is not before the item's own date."""
    moment = (written.date(), written.time())
    ahead = [one for one in dates if one.is_deadline and (one.day, one.clock or time.max) >= moment]
    return min(ahead, key=lambda one: (one.day, one.clock or time.max), default=None)


def _find_all(words: Words, calendar: Calendar) -> Iterator[FoundDate]:
    place = free = 0  # words before `free` belong to the date before
    while place < len(words):
        read = _read_at(words, place, calendar)
        if read is None or read.first < free:
            place += 1
            continue
        found = _finish(words, read, free, calendar)
        if found is None:
            place += 1
            continue
        date_found, after = found
        yield date_found
        place = free = max(after, place + 1)


def _read_at(words: Words, place: int, calendar: Calendar) -> Read | None:
    word = words[place]
    if word.is_number:
        return (
            read_day(words, place, calendar)
            or read_duration(words, place, calendar)
            or _read_time(words, place, calendar)
        )
    for reader in READERS.get(word.low, ()):
        if read := reader(words, place, calendar):
            return read
    return None


def _read_time(words: Words, place: int, calendar: Calendar) -> Read | None:
    """A time of day or EOD by itself; if a date follows, it belongs to the date."""
    low = words.low(place)
    read = (read_edge if low in EDGE_WORDS else read_time_alone)(words, place, calendar)
    if read is None:
        return None
    at = read.after
    while at < read.after + 2 and words.low(at) in AFTER_TIMES:
        at += 1
    following = _read_at(words, at, calendar) if at < len(words) else None
    return None if following and following.first == at else read


def _finish(words: Words, read: Read, free: int, calendar: Calendar) -> tuple[FoundDate, int] | None:
    """Add the weekday and the time of day beside the date, find out whether it is a deadline, and where it stands."""
    read = _add_weekday(words, read, free)
    read = _add_clock(words, read, free)
    is_deadline, first = judge_deadline(words, read, calendar)
    read = resolve_year(read, calendar, is_deadline=is_deadline)
    start, stop = words[max(first, free)].start, words[read.after - 1].stop
    written = words.text[start:stop]
    if "\n\n" in written or stop - start > LONGEST:
        start = words[read.first].start
        written = words.text[start:stop]
        if "\n\n" in written or stop - start > LONGEST:
            return None
    return FoundDate(read.day, read.clock, TextEvidence(start, stop, written), is_deadline), read.after


def _add_weekday(words: Words, read: Read, free: int) -> Read:
    """Friday, 5 June and Fr., 5.6. are one date."""
    at = read.first - 1
    while at >= free and words.low(at) in (",", ".", "den", "the", "dne") and at > read.first - 4:
        at -= 1
    if at < free or not words[read.first].is_number:
        return read
    full = any(words.low(at) in names for names in WEEKDAYS.values())
    short = words.low(at) in ALL_SHORT_WEEKDAYS and words.is_capital(at)
    return replace(read, first=at) if full or short else read


def _add_clock(words: Words, read: Read, free: int) -> Read:
    """Tomorrow at 10, 5pm tomorrow, v pátek v 10 hodin, 3.5. 14:00."""
    if read.clock is not None:
        return read
    at = read.after
    if words.low(at) == "t" and words.is_close(at - 1) and words.is_close(at):
        at += 1
    asked = limited = False
    while at < read.after + 3 and words.low(at) in BEFORE_TIMES and "\n\n" not in words.gap(at - 1):
        asked = asked or words.low(at) in ASKING
        limited = words.low(at) in ("by", "bis", "do")
        at += 1
    if found := read_clock(words, at, bare=asked):
        clock, after = _turn_to_evening(words, read, *found)
        is_deadline = True if limited and read.is_deadline is None else read.is_deadline  # heute bis 18 Uhr
        return replace(read, clock=clock, after=_skip_end(words, after), is_deadline=is_deadline)
    return _add_clock_before(words, read, free)


def _turn_to_evening(words: Words, read: Read, clock: time, after: int) -> tuple[time, int]:
    """Heute Abend um halb acht, zítra v osm večer; a morning behind the hour belongs to it, too."""
    parts = {words.low(one) for one in range(read.first, read.after)}
    if words.low(after) in PARTS_OF_DAY:
        parts.add(words.low(after))
        after += 1
    late = 1 <= clock.hour < 12 and not parts.isdisjoint(EVENINGS)
    return (clock.replace(hour=clock.hour + 12) if late else clock), after


EVENINGS = spell(
    "tonight evening afternoon abend abends nachmittag nachmittags večer odpoledne večeras navečer poslijepodne popodne"
)
ASKING = spell("at um gegen v ve u @ o") | frozenset({"@"})


def _skip_end(words: Words, after: int) -> int:
    """The place behind the end of a span of time: 10:00–11:30."""
    if words.low(after) in ("-", "–", "—", "to", "bis", "do"):
        ending = read_clock(words, after + 1)
        if ending:
            return ending[1]
    return after


def _add_clock_before(words: Words, read: Read, free: int) -> Read:
    at = read.first - 1
    while at >= free and words.low(at) in AFTER_TIMES and at > read.first - 3:
        at -= 1
    for begin in range(max(free, at - 5), at + 1):
        bare = words.low(begin - 1) in ASKING and begin == at
        found = read_clock(words, begin, bare=bare)
        if found and found[1] == at + 1 and (words[begin].is_number or words.low(begin) in NAMED):
            return replace(read, first=begin, clock=found[0])
    return read


def _is_day_first(words: Words, about: About, language: str) -> bool:
    """Whether 5/3 is the fifth of March: by other dates of the text, the language, or the country of the addresses."""
    votes = 0
    for place in range(1, len(words) - 3):
        if words[place].low == "/" and words.low(place + 2) == "/" and words.is_close(place):
            one, other = words.number(place - 1, 2), words.number(place + 1, 2)
            votes += (one or 0) > 12
            votes -= (other or 0) > 12
    if votes:
        return votes > 0
    if language != "en" and language:
        return True
    addresses = (about.sender, *about.recipients, *about.me.addresses)
    ends = {one.strip("<> ").rpartition(".")[2].lower() for one in addresses if "@" in one}
    return bool(ends.intersection(DAY_FIRST))


def _make_readers() -> dict[str, tuple[Reader, ...]]:
    """Word → the functions that may read a date which begins there."""
    readers: dict[str, list[Reader]] = {}
    for reader, lows in (
        (read_named_day, {*NAMED_DAYS, "day"}),
        (read_edge, {*EDGES, "month", "year", "quarter"}),
        (read_last_day, LAST_DAYS),
        (_read_time, EDGE_WORDS),
        (read_coming_period, NEXT | THIS_PERIOD),
        (read_week_number, {"kw", "cw"}),
        (read_month_first, ENGLISH_MONTHS),
        (read_spelt_ordinal, set(FIRST_ORDINALS)),
        (read_duration, {*NUMBERS, "a", "an"}),
        (read_single_unit, spell("za do během unutar kroz roku před prije")),
        (read_due_at_once, {*AT_ONCE, "receipt"}),
        (read_weekday, {low for names in WEEKDAYS.values() for low in names}),
        (read_weekday, {name + part for name in WEEKDAYS["de"] for part in GERMAN_PARTS}),
        (read_weekday, set(SHORT_WEEKDAYS["en"])),
        (_read_time, set(NAMED) - set(EDGE_WORDS)),
    ):
        for low in lows:
            readers.setdefault(low, []).append(reader)
    return {low: tuple(found) for low, found in readers.items()}


READERS = _make_readers()
