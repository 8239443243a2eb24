"""Reads times of day: 10:30, 5pm, 10 Uhr, v 10 hodin, u 10 sati, noon."""

from datetime import time

from gristmill.models.language.hints.vocabulary import NUMBERS, PARTS_OF_DAY
from gristmill.models.language.hints.words import Words, spell

NAMED = {
    **dict.fromkeys(spell("noon midday poledne podne"), time(12)),
    **dict.fromkeys(spell("midnight mitternacht půlnoc půlnoci ponoć ponoći"), time(23, 59)),
    **dict.fromkeys(spell("eod cob eob"), time(17)),
}
HOURS = spell("uhr h hod hodin hodiny hodinu sati sata sat hrs o'clock")
MORNING, AFTERNOON = ("am", "a"), ("pm", "p")
ZONES = spell("cet cest gmt utc est pst bst mez mesz")


def read_clock(words: Words, place: int, *, bare: bool = False) -> tuple[time, int] | None:
    """The time of day at this place, and the place behind it. A bare hour counts where a date asks for one: at 10."""
    if named := NAMED.get(words.low(place)):
        return named, place + 1
    if words.low(place) in SPELT_HOURS or words.low(place) == "halb":
        return _read_spelt_hour(words, place, bare=bare)
    hour = words.number(place, 2)
    if hour is None or hour > 24 or _is_part_of_number(words, place):
        return None
    minute, after = _read_minute(words, place + 1)
    half = _read_half(words, after)
    if half:
        if not 1 <= hour <= 12:
            return None
        hour, after = hour % 12 + (12 if half[0] == "p" else 0), half[1]
    said = half is not None or minute is not None
    if words.low(after) in HOURS:
        said, after = True, after + 1
        if words.low(after) == "." and words.low(after - 1) in ("h", "hod") and words.is_close(after - 1):
            after += 1 if words.low(after + 1) else 0
        minute, after = (words.number(after, 2), after + 1) if _is_minute(words, after) else (minute, after)
    said = said or _begins_span(words, after)
    if words.low(after) in ZONES and words.read_word(after).isupper():
        after += 1
    if not (said or bare) or (minute or 0) > 59:
        return None
    if not said and _goes_on(words, after):
        return None
    return (time(23, 59) if hour == 24 else time(hour, minute or 0)), after


def _read_spelt_hour(words: Words, place: int, *, bare: bool) -> tuple[time, int] | None:
    """Um halb acht, v osm, u osam sati: where a time is asked for, or the word for hours follows."""
    half = words.low(place) == "halb"
    hour = SPELT_HOURS.get(words.low(place + half))
    if hour is None:
        return None
    after = place + half + 1
    told = words.low(after) in CLOCK_WORDS
    goes_on = _goes_on(words, after) and words.low(after) not in PARTS_OF_DAY
    if not (told or half or (bare and not goes_on)):
        return None
    return (time((hour - 1) % 12, 30) if half else time(hour)), after + told


SPELT_HOURS = {low: hour for low, hour in NUMBERS.items() if hour <= 12 and low not in ("ein", "eine", "one", "einen")}
CLOCK_WORDS = spell("uhr o'clock hodin hodiny sati sata")


def _begins_span(words: Words, after: int) -> bool:
    """9–11 Uhr, 9 to 11 am: the hour is told behind the second number."""
    if words.low(after) not in ("-", "–", "—", "bis", "to", "do") or words.number(after + 1, 2) is None:
        return False
    return words.low(after + 2) in HOURS or _read_half(words, after + 2) is not None


def _is_part_of_number(words: Words, place: int) -> bool:
    return words.is_close(place - 1) and words.low(place - 1) in (".", ",", "/", "-", ":") and place > 1


def _read_minute(words: Words, place: int) -> tuple[int | None, int]:
    """The minutes behind 10:30 or 10.30 Uhr, and perhaps seconds."""
    if words.low(place) not in (":", ".") or not words.is_close(place - 1) or not words.is_close(place):
        return None, place
    minute = words.number(place + 1, 2)
    if minute is None or len(words.low(place + 1)) != 2 or minute > 59:
        return None, place
    after = place + 2
    if words.low(place) == ".":
        told = words.low(after) in HOURS or words.low(after) in (*MORNING, *AFTERNOON)
        return (minute, after) if told else (None, place)
    if words.low(after) == ":" and words.is_close(after) and words.number(after + 1, 2) is not None:
        after += 2
    return minute, after


def _is_minute(words: Words, place: int) -> bool:
    """10 Uhr 30."""
    number = words.number(place, 2)
    return words.low(place - 1) == "uhr" and number is not None and len(words.low(place)) == 2 and number < 60


def _read_half(words: Words, place: int) -> tuple[str, int] | None:
    """am, pm, a.m., p.m. behind an hour, and the place behind it."""
    low = words.low(place)
    if low in ("am", "pm"):
        follows = words.low(place + 1)
        # `10 am 5. Juni` is German
        return None if low == "am" and follows.isdecimal() else (low[0], place + 1)
    if low in ("a", "p") and words.low(place + 1) == "." and words.low(place + 2) == "m" and words.is_close(place):
        after = place + 3
        return low, after + (words.low(after) == "." and words.is_close(after - 1))
    return None


def _goes_on(words: Words, after: int) -> bool:
    """Whether a bare number is no hour: 10%, 10 days, 10.5, 10/12."""
    if words.is_close(after - 1) and words.low(after) in ("%", "/", "-", "€", "$"):
        return True
    if words.is_close(after - 1) and words.low(after) in (".", ",") and words.is_close(after):
        return True
    return words.low(after).isalpha() and words.low(after) not in BEHIND_HOURS


BEHIND_HOURS = spell("on in at and or am im und oder v ve na a nebo u i ili for with if so per via in")
