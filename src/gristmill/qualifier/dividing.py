"""Finds the independent pieces of work that a text lists: action items of a meeting, tasks with dates of their own."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from gristmill.models import TextFacts
from gristmill.qualifier.model import END_OF_DAY, FEWEST_PARTS, MOST_PARTS, ChildItem

BULLET = re.compile(r"^[ \t]*(?:[-*•–◦]|\d{1,2}[.)]|[a-z]\))[ \t]+(?:\[[ xX]?\][ \t]*)?(?P<words>\S.*)$")
DONE = re.compile(r"^[ \t]*(?:[-*•–◦]|\d{1,2}[.)])[ \t]+\[[xX]\]")
# Headings under which people write down who does what, in the languages of the house.
HEADING = re.compile(
    r"^[\s#*_]*(?:action items?|actions|next steps|to[- ]?dos?|tasks|aufgaben|nächste schritte|maßnahmen|"
    r"úkoly|další kroky|akční body|zadaci|sljedeći koraci|zadatci|akcijske točke)[\s*_]*:?[\s*_]*$",
    re.IGNORECASE,
)
LONGEST_TITLE = 120  # characters
SHORTEST = 8  # characters of a piece of work: “ok” is none


@dataclass(frozen=True)
class _Line:
    """An entry of a list."""

    words: str
    start: int
    stop: int


def find_children(
    text: str, facts: TextFacts, new: Sequence[tuple[int, int]] | None = None, zone: tzinfo = UTC
) -> tuple[ChildItem, ...]:
    """Two to six pieces of work; none where the text is better answered as a whole.

    Entries under a heading such as “Action items” are pieces of work. Other lists are divided only where entries ask
    for something and have dates or people of their own: two questions of one mail want one reply. A part that names a
    day has that day as its deadline, and not the earliest one of the whole.
    """
    spans = [(0, len(text))] if new is None else new
    listed = list(_list_action_items(text, spans)) or _list_own_requests(text, facts, spans)
    if not FEWEST_PARTS <= len(listed) <= MOST_PARTS:
        return ()
    return tuple(ChildItem(one.words[:LONGEST_TITLE], one.words, _find_deadline(one, facts, zone)) for one in listed)


def _find_deadline(line: _Line, facts: TextFacts, zone: tzinfo) -> datetime | None:
    """The deadline that an entry names; in a list of actions, any day that it names alone is one."""
    named = [one for one in facts.dates if line.start <= one.evidence.start < line.stop]
    due = [one for one in named if one.is_deadline] or (named if len(named) == 1 else [])
    moments = [datetime.combine(one.day, one.clock or END_OF_DAY, zone) for one in due]
    return min(moments, default=None)


def _list_action_items(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[_Line]:
    """The entries of the first list behind such a heading; entries that are ticked off are done."""
    inside = False
    for start, line in _list_lines(text, spans):
        entry = BULLET.match(line)
        if HEADING.match(line):
            inside = True
        elif inside and entry and len(entry["words"].strip()) >= SHORTEST:
            if not DONE.match(line):
                yield _Line(entry["words"].strip(), start, start + len(line))
        elif inside and line.strip() and not line.startswith((" ", "\t")):
            return


def _list_own_requests(text: str, facts: TextFacts, spans: Sequence[tuple[int, int]]) -> list[_Line]:
    """Entries that are requests, if at least two of them have a deadline, an amount or a person of their own."""
    found: list[_Line] = []
    for start, line in _list_lines(text, spans):
        entry = BULLET.match(line)
        stop = start + len(line)
        if entry and any(one.kind == "request" and start <= one.evidence.start < stop for one in facts.requests):
            found.append(_Line(entry["words"].strip(), start, stop))
    marks = [one.evidence.start for one in (*facts.dates, *facts.amounts, *facts.mentions)]
    own = [one for one in found if any(one.start <= place < one.stop for place in marks)]
    return found if len(own) >= FEWEST_PARTS else []


def _list_lines(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, str]]:
    """The lines of the new text, each with where it begins."""
    for start, stop in spans:
        at = start
        for line in text[start:stop].splitlines(keepends=True):
            yield at, line.rstrip("\r\n")
            at += len(line)
