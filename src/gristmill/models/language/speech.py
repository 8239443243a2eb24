"""Finds the speakers in transcripts and chats: lines that begin with a name and a colon, or a name and a time."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from gristmill.models.language.names import PARTICLES, clean_name, split_words
from gristmill.models.language.structure import Mention

LOG_LEVELS = "TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL|SEVERE|PANIC"
CAPITALISED = r"[^\W\d_a-z][\w.'’-]*"
WITHIN = "|".join(sorted(PARTICLES - split_words("und y e")))  # `Anna und Tom` are two people
SPEAKER = re.compile(  # but no log level, which stands in the same place
    rf"(?!(?i:{LOG_LEVELS})\b)(?P<name>{CAPITALISED}(?:\s(?:{CAPITALISED}|{WITHIN})){{0,3}})"
    r"(?: \([^()]*\))?:(?:\s|$)"
)
CLOCK = r"\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d{1,3})?(?:\s?[AaPp][Mm])?"
DATED = r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}(?:,\s?|\s|T)"
TIME = re.compile(rf"(?P<sure>[\[(<]|{DATED})?(?:{DATED})?{CLOCK}[\])>]?[ \t|–-]*")
STAMPED = re.compile(rf"(?P<name>{CAPITALISED}(?:\s{CAPITALISED}){{0,3}})\s+[\[(]?(?:{DATED})?{CLOCK}[\])]?:?\s*")
MARKUP = re.compile(r"^\s*(?:>\s?)*(?:[-*+•]\s+)?|[*_]{1,3}")
SENTENCE = re.compile(r"[.!?…][\"'”’»)*_]*$")
# A label before a colon that contains one of these words is no person.
NOBODY = split_words(
    """note notes summary todo action actions item items point points step steps date time place location agenda topic
    decision decisions result results question questions answer answers background example warning hint remark remarks
    break present attendees participants absent apologies moderator interviewer interviewee speaker host chair user
    assistant system bot agent customer notiz zusammenfassung datum uhrzeit ort thema punkte frage antwort beschluss
    hinweis ergebnis anwesend teilnehmer protokoll"""
)


@dataclass(frozen=True, slots=True)
class SpokenLine:
    """A line that seems to be spoken by a person."""

    line: int
    name: str
    timed: bool  # a line with a time is no form, list or agenda
    said: str


def find_turns(text: str) -> list[SpokenLine]:
    """The turns of people. Forms and headings have colons, too: without a time, a speaker must come back and speak."""
    found = list(_read_turns(text.splitlines()))
    times = Counter(one.name for one in found)
    sure = {one.name for one in found if one.timed}
    if sure or _is_conversation(found, times):
        sure |= {one.name for one in found if " " in one.name or (times[one.name] > 1 and sure)}
    return [one for one in found if one.name in sure]


def _is_conversation(found: Sequence[SpokenLine], times: Counter[str]) -> bool:
    """Whether two people speak, one of them twice, and mostly in sentences: the rows of a form hold values."""
    full = {name: n for name, n in times.items() if " " in name}
    sentences = sum(SENTENCE.search(one.said) is not None for one in found)
    return len(full) > 1 and max(full.values()) > 1 and sentences > len(found) / 2


def _read_turns(lines: Sequence[str]) -> Iterator[SpokenLine]:
    for number, (line, following) in enumerate(zip_longest(lines, lines[1:], fillvalue="")):
        bare = MARKUP.sub("", line).strip()
        time = TIME.match(bare)
        if match := SPEAKER.match(bare, time.end() if time else 0):
            timed, said = bool(time and time["sure"]), bare[match.end() :]
        elif match := STAMPED.fullmatch(bare):
            timed, said = " " in match["name"] and following.strip() != "", following.strip()
        else:
            continue
        if name := _clean_speaker(match["name"]):
            yield SpokenLine(number, name, timed, said)


def _clean_speaker(label: str) -> str:
    """The name of the person; empty if the label names nobody."""
    return "" if NOBODY.intersection(label.lower().split()) else clean_name(label, "person")


def separate_turns(text: str, turns: Iterable[SpokenLine]) -> str:
    """Put each turn into a paragraph of its own: no sentence may go from one speaker to the next."""
    firsts = {one.line for one in turns}
    lines = text.splitlines(keepends=True)
    return "".join(f"\n{line}" if n in firsts else line for n, line in enumerate(lines))


def find_speakers(text: str, starts: Iterable[int], turns: Iterable[SpokenLine]) -> dict[int, Mention]:
    """The place at which the words of a turn begin → the speaker; for a text without markup and its paragraphs."""
    names = {one.name for one in turns}
    found = [one for start in starts if names and (one := _read_speaker(text, start))]
    return {begin: speaker for begin, speaker in found if speaker.name in names}


def _read_speaker(text: str, start: int) -> tuple[int, Mention] | None:
    time = TIME.match(text, start)
    begin = time.end() if time else start
    match = SPEAKER.match(text, begin) or STAMPED.match(text, begin)
    if match is None:
        return None
    name = _clean_speaker(match["name"])
    return match.end(), Mention(match.start("name"), match.end("name"), "person", name, name)
