"""Tells the new text of a mail from the text that it quotes: a question of somebody else is not asked anew."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import quotequail

LONGEST_LINE = 400  # characters of a line that may introduce a quote
MOST_LINES = 20_000  # lines that are looked at; whatever comes behind is quoted
MARK = re.compile(r"\s{0,3}>")
DATED = r"[^\n]{0,200}\d[^\n]{0,200}"
# What programs write above a quote, in the languages that quotequail does not know well.
INTRODUCTIONS = re.compile(
    rf"(?:Dne|Dňa)\b{DATED}\bnaps(?:al|ala|al\(a\)|ali)\b.{{0,100}}:"
    rf"|(?:Dana|U|Na dan)\b{DATED}\b(?:je )?(?:napisao|napisala|napisao/la|piše)\b.{{0,100}}:"
    rf"|.{{1,200}}\b(?:je )?(?:napisao|napisala|napisao/la)\b{DATED}:"
    rf"|Am\b{DATED}\bschrieb\b.{{0,200}}:"
    rf"|On\b{DATED}\bwrote:"
    rf"|.{{1,200}}\bnapsal(?:\(a\)|a)?\b(?: dne)?{DATED}:",
    re.IGNORECASE,
)
SEPARATORS = re.compile(
    r"-{2,}\s*(?:Original Message|Forwarded message|Ursprüngliche Nachricht|Weitergeleitete Nachricht|Původní zpráva|"
    r"Přeposlaná zpráva|Izvorna poruka|Originalna poruka|Proslijeđena poruka|Pôvodná správa)\s*-{2,}"
    r"|_{20,}",
    re.IGNORECASE,
)
FIELD = re.compile(
    r"\W{0,3}(From|Sent|To|Cc|Subject|Date|Von|Gesendet|An|Betreff|Datum|Od|Odesláno|Komu|Předmět|Kopie|Poslano|Za|Prima|"
    r"Predmet|Datum i vrijeme|Poslané)\W{0,3}:\W{0,3}\S",
    re.IGNORECASE,
)
FIRST_FIELDS = frozenset({"from", "von", "od"})


class MailText(NamedTuple):
    """A mail's text in two parts; together they have all of its lines."""

    new: str
    quoted: str


def split_quoted(text: str) -> MailText:
    """Answers between the lines of a quote are new; behind an introduction without marks, everything is quoted."""
    lines = text.splitlines()
    is_new = _find_new_lines(lines)
    new = [line for line, own in zip(lines, is_new, strict=True) if own]
    quoted = [line for line, own in zip(lines, is_new, strict=True) if not own]
    return MailText("\n".join(new).strip(), "\n".join(quoted).strip())


def find_new_spans(text: str) -> list[tuple[int, int]]:
    """Where the new text of a mail stands: first and last character of each run of new lines."""
    lines = text.splitlines(keepends=True)
    spans = list[tuple[int, int]]()
    start = 0
    for line, own in zip(lines, _find_new_lines([line.rstrip("\r\n") for line in lines]), strict=True):
        stop = start + len(line)
        if own and spans and spans[-1][1] == start:
            spans[-1] = (spans[-1][0], stop)
        elif own:
            spans.append((start, stop))
        start = stop
    return spans


def _find_new_lines(lines: Sequence[str]) -> list[bool]:
    """Of each line, whether the mail says it itself."""
    stop = min(_find_end(lines), MOST_LINES)
    is_new = [False] * len(lines)
    skip = 0
    for place, line in enumerate(lines[:stop]):
        if skip:
            skip -= 1
        elif MARK.match(line):
            pass
        elif (span := _measure_introduction(lines, place)) and _is_marked(lines, place + span):
            skip = span - 1
        else:
            is_new[place] = True
    return is_new


def _find_end(lines: Sequence[str]) -> int:
    """The line from which everything is quoted."""
    for place, line in enumerate(lines[:MOST_LINES]):
        if len(line) > LONGEST_LINE:
            continue
        if SEPARATORS.match(line.strip()) or _begins_header(lines, place):
            return place
        span = _measure_introduction(lines, place)
        if span and not _is_marked(lines, place + span) and place + span < len(lines):
            return place
    return _ask_library(lines)


def _measure_introduction(lines: Sequence[str], place: int) -> int:
    """How many lines introduce a quote here: mail programs break a long one in two."""
    first = lines[place].strip()
    if not first or len(first) > LONGEST_LINE:
        return 0
    if first.endswith(":") and INTRODUCTIONS.fullmatch(first):
        return 1
    if place + 1 < len(lines) and len(lines[place + 1]) <= LONGEST_LINE and lines[place + 1].strip().endswith(":"):
        both = f"{first} {lines[place + 1].strip()}"
        return 2 if INTRODUCTIONS.fullmatch(both) else 0
    return 0


def _is_marked(lines: Sequence[str], place: int) -> bool:
    """Whether the quote behind an introduction is marked line by line."""
    following = next((line for line in lines[place : place + 5] if line.strip()), "")
    return MARK.match(following) is not None


def _begins_header(lines: Sequence[str], place: int) -> bool:
    """Three fields of a mail's head below each other, the sender first: what Outlook writes above an older mail."""
    first = FIELD.match(lines[place])
    if first is None or first[1].casefold() not in FIRST_FIELDS:
        return False
    return sum(FIELD.match(line) is not None for line in lines[place : place + 6] if len(line) <= LONGEST_LINE) >= 3


def _ask_library(lines: Sequence[str]) -> int:
    """Where quotequail, which knows more languages and programs, finds the beginning of a quote without marks."""
    some = [line[:LONGEST_LINE] for line in lines[:MOST_LINES]]
    parts = quotequail.quote("\n".join(some), limit=MOST_LINES, quote_intro_line=True)
    if len(parts) < 2:
        return len(lines)
    place = parts[0][1].count("\n") + 1 if parts[0][1] else 0
    return len(lines) if any(MARK.match(line) for line in some[place : place + 5]) else place
