"""Which kind of thing a question asks for (a date, an age, so many of something), and whether the evidence has one."""

import re
from collections.abc import Callable, Iterable, Sequence

from gristmill.agents.ask.places import KINDS, LIFE_DATES, Line, Place, ReadSentence, WantedWord
from gristmill.agents.ask.question import AskedQuestion
from gristmill.agents.ask.synonyms import find_family
from gristmill.agents.ask.values import Value, find_values
from gristmill.agents.ask.words import ASKING, are_alike, is_plain, split_words, stem
from gristmill.knowledge import fold

DATED = re.compile(
    r"^\W*(?:when|wann|quand|cu[aá]ndo|kdy|kada|in (?:what|which) year|what year|on which (?:day|date))\b",
    re.IGNORECASE,
)
OLD = re.compile(r"\b(?:how old|(?:at )?what age)\b", re.IGNORECASE)
MANY = re.compile(r"\bhow many\s+([^\W\d_]+)(?:\s+([^\W\d_]+))?", re.IGNORECASE)
COUNTED = re.compile(
    r"\bhow (?:many|much|old|long|far|large|big|tall|often)\b|\bwie(?:\s?viele?| alt| lang| hoch| weit)\b"
    r"|\bcombien\b|\bcu[aá]nt[oa]s?\b|\bkolik\b|\bkoliko\b",
    re.IGNORECASE,
)
PRICED = re.compile(
    r"\bhow much\b.*\b(?:cost|pay|paid|earn|spend|spent|price|owe)|\bwhat (?:price|salary|fee|wage)\b"
    r"|\bwie ?viel\b.*\bkoste",
    re.IGNORECASE,
)
CALLED = re.compile(r"\b(?:tele)?phone number\b|\btelefonnummer\b|\btelefonní číslo\b", re.IGNORECASE)
NAMED = re.compile(r"^\W*(?:who|whom|whose|wer|wem|wen|qui|qui[eé]n(?:es)?|kdo|tko)\b", re.IGNORECASE)
# What is measured, and the units that answer it.
MEASURED = (
    (
        re.compile(
            r"\bhow (?:high|tall|deep|wide|far|thick)\b|\b(?:depth|height|length|width|altitude|diameter) of\b",
            re.IGNORECASE,
        ),
        re.compile(r"\b(?:kilo|centi|milli)?met(?:re|er)s?\b|\b(?:feet|foot|miles?|yards?|inch(?:es)?|k?m|[cm]m)\b"),
    ),
    (
        re.compile(r"\bhow heavy\b|\bhow much (?:do|does|did)\b.*\bweigh\b|\bweight of\b", re.IGNORECASE),
        re.compile(r"\b(?:kilo|milli)?gram(?:me)?s?\b|\b(?:kilos?|tons?|tonnes?|pounds?|ounces?|kg|lbs?)\b"),
    ),
    (
        re.compile(r"\bhow long (?:is|are|was|were)\b", re.IGNORECASE),
        re.compile(
            r"\b(?:kilo|centi|milli)?met(?:re|er)s?\b|\b(?:feet|foot|miles?|yards?|inch(?:es)?|k?m|[cm]m)\b"
            r"|\b(?:second|minute|hour|day|week|month|year|decade|page)s?\b"
        ),
    ),
)
MONEY = re.compile(r"\b(?:euros?|dollars?|pounds?|cents?|crowns?|francs?|kuna|korun\w*)\b", re.IGNORECASE)
TIMES = re.compile(
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\b(?:morning|evening|night|noon|midnight|dawn|today|yesterday|tomorrow|"
    r"week|month|year|day|hour|minute|second|after|before|once|while|during|half|dozen|hundred|thousand|several|couple|pair)s?\b",
    re.IGNORECASE,
)
NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty|thirty|forty|fifty|sixty"
    r"|seventy|eighty|ninety|hundred|thousand|million|dozen|several|none|no|both|single|only|pair|couple|once|twice)s?\b",
    re.IGNORECASE,
)
AGE = re.compile(r"\bage[ds]?\b|\byears?[- ]old\b|\bborn\b", re.IGNORECASE)
PEOPLE = split_words("people persons inhabitants inhabitant population residents employees")
SPANS = split_words("times years months weeks days hours minutes seconds")
LONG_NUMBER = 3  # digits: a year, and not the two of “two of them”


def asks_for_time(asked: AskedQuestion) -> bool:
    return DATED.search(asked.text) is not None or OLD.search(asked.text) is not None


def find_missing_kind(asked: AskedQuestion, words: Sequence[WantedWord], places: Sequence[Place]) -> str:
    """The kind of thing that the question asks for, if the places have none beside what is asked."""
    lines = list({id(line): line for place in places for line in place.lines}.values())
    for asks, kind, has in KINDS_OF_ANSWER:
        if asks.search(asked.text):
            return "" if has(asked, words, lines) else kind
    return _find_missing_number(words, places)


Check = Callable[[AskedQuestion, Sequence[WantedWord], Sequence[Line]], bool]


def _has_age(_asked: AskedQuestion, _words: Sequence[WantedWord], lines: Sequence[Line]) -> bool:
    return any(AGE.search(one.sentence.text) or LIFE_DATES in one.sentence.stems for one in lines)


def _has_date(asked: AskedQuestion, words: Sequence[WantedWord], lines: Sequence[Line]) -> bool:
    """Whether a sentence that has a word of the question has a date, too; the word of a year asks for a year."""
    # words of the conversation stand behind the question: they say what it is about, often one sentence before the date
    telling = {one.at for one in words if not one.is_vague and one.at < len(asked.text)}
    is_loose = "year" not in asked.text.casefold()
    return any(
        (not telling or one.found & telling)
        and (_dates(find_values(one.sentence.text)) or (is_loose and TIMES.search(one.sentence.text)))
        for one in lines
    )


def _dates(values: Iterable[Value]) -> bool:
    return any(one.kind == "date" or is_year(one.key) for one in values)


def is_year(key: str) -> bool:
    return re.fullmatch(r"1[0-9]\d\d|20\d\d", key) is not None


def _has_amount(_asked: AskedQuestion, _words: Sequence[WantedWord], lines: Sequence[Line]) -> bool:
    return any(
        MONEY.search(one.sentence.text) or any(value.kind == "amount" for value in find_values(one.sentence.text))
        for one in lines
    )


def _has_call_number(_asked: AskedQuestion, _words: Sequence[WantedWord], lines: Sequence[Line]) -> bool:
    values = (value for one in lines for value in find_values(one.sentence.text))
    return any(value.kind == "id" and value.written.startswith("+") for value in values)


def _has_count(asked: AskedQuestion, words: Sequence[WantedWord], lines: Sequence[Line]) -> bool:
    """Whether a sentence has a number and what is counted: how many arches, or how many stone arches."""
    match = MANY.search(asked.text)
    behind = [fold(word) for word in match.groups() if word] if match else []
    counted = [word for word in behind if not is_plain(word, asked.language) and word not in ASKING]
    if not counted or counted[0] in KINDS - PEOPLE or counted[0] in SPANS:
        return _has_number(asked, words, lines)  # how many times; how many years, which two dates tell as well
    return any(
        NUMBER.search(one.sentence.text) and any(_names_counted(word, one.sentence) for word in counted)
        for one in lines
    )


def _names_counted(counted: str, sentence: ReadSentence) -> bool:
    if counted in PEOPLE:
        return not PEOPLE.isdisjoint(sentence.plain) or "employ" in sentence.stems
    if not find_family(counted).isdisjoint(sentence.stems | sentence.plain):
        return True
    root = stem(counted, "en")
    return counted in sentence.plain or any(are_alike(root, other) for other in sentence.stems)


def _has_number(_asked: AskedQuestion, _words: Sequence[WantedWord], lines: Sequence[Line]) -> bool:
    return any(find_values(one.sentence.text) or TIMES.search(one.sentence.text) for one in lines)


def _has_unit(unit: re.Pattern[str]) -> Check:
    def check(_asked: AskedQuestion, _words: Sequence[WantedWord], lines: Sequence[Line]) -> bool:
        return any(unit.search(one.sentence.text) and NUMBER.search(one.sentence.text) for one in lines)

    return check


def _has_other_name(asked: AskedQuestion, _words: Sequence[WantedWord], lines: Sequence[Line]) -> bool:
    known = {name.key for name in asked.names}
    return any(" ".join(map(fold, name.split())) not in known for one in lines for name in one.sentence.names)


KINDS_OF_ANSWER: tuple[tuple[re.Pattern[str], str, Check], ...] = (
    (OLD, "an age", _has_age),
    (DATED, "a date", _has_date),
    (PRICED, "an amount", _has_amount),
    (CALLED, "a number to call", _has_call_number),
    (MANY, "so many of these", _has_count),
    *((asks, "a measure", _has_unit(unit)) for asks, unit in MEASURED),
    (COUNTED, "a number", _has_number),
    (NAMED, "a name", _has_other_name),
)


def _find_missing_number(words: Sequence[WantedWord], places: Sequence[Place]) -> str:
    """A year or a number of the question that stands nowhere beside the rest of it."""
    numbers = [one for one in words if one.text.isdigit() and len(one.text) >= LONG_NUMBER]
    missing = [one.text for one in numbers if not any(one.at in place.found for place in places)]
    return f"“{missing[0]}”" if missing else ""
