"""Divides Markdown into the units of chunks: sentences, rows and lines, each with the headings above it."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from gristmill.models import LOG_LEVELS, SPEAKER

Kind = Literal["prose", "table", "code", "log"]

# A hostile line may be very long. So no pattern here may try a run of blanks, dots or hashes from each of its places,
# or in more than one way.
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*)")
UNDERLINE = re.compile(r" {0,3}(=+|-{3,})[ \t\r]*")  # two hyphens are no underline: they stand above a mail's signature
RULE = re.compile(r":?-{2,}:?")  # one cell of the line below a table's header
ITEM = re.compile(r"\s*([-*+•]|\d{1,3}[.)])\s+\S")
CLAUSE = re.compile(r"\(?([a-z]|[ivx]{2,5}|\d{1,3})[.)]\s")

TIMESTAMP = re.compile(
    r"[\[(<]?((?P<stamp>\d{4}-\d\d-\d\dT\d\d:\d\d|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.,]\d"
    r"|[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d)|\d{4}-\d\d-\d\d \d\d:\d\d|\d\d:\d\d:\d\d)"
    r"[\d:.,]*(Z| ?[+-]\d\d:?\d\d| UTC)?[\])>]?[ \t|–-]*"
)  # `stamp` is a time in a form that only machines write
LEVEL = re.compile(rf"[\[(<]?({LOG_LEVELS})\b")
LOG_SIGN = re.compile(
    rf"\b({LOG_LEVELS})\b|^({LOG_LEVELS.lower()})\b|^\[[a-z][\w.-]*\]|\[\d+\]|\w=\S|[a-z]::?[a-z]|/\w+/\w|\w\(\)|\d\.\d+\.\d"
)
LOGGED_WITHIN = 120  # characters after the time, in which a sign of a log must stand

BRACKETS = re.compile(r"[(){}\[\];]+,?")
CODE_SIGN = re.compile(r"[={}]|->|::|\w\((?!e?s\))")  # “the director(s)” is no code
KEYWORD = re.compile(
    r"(def|class|if|elif|else|for|while|try|except|with|switch|case|fn|func|let|const|var|public|private|static|void|struct)\b"
)
STATEMENT = re.compile(
    r"(import|from|package|use|return|yield|raise|throw)(\s+[^\s,;]+)?(\s+(import|as)\s.*)?;?|@[\w.]+(\(.*)?"
    r"|#(include|define|ifn?def|endif)\b.*|(SELECT|INSERT INTO|UPDATE|DELETE FROM|CREATE|ALTER|DROP)\s.*"
)

STOPS = "。！？｡।॥۔؟։።፧။។៕"  # these end a sentence, whether or not a blank follows
CLOSING_QUOTES = "」』）”’"
SENTENCE_END = re.compile(rf"(?<![.!?…])[.!?…]++[\"'”’»)\]*_]*+\s++|[{STOPS}]++[{CLOSING_QUOTES}]*+\s*+")
ABBREVIATION = re.compile(
    r"dr|mr|mrs|ms|prof|st|no|nr|figs?|eq|vs|etc|cf|bzw|ca|tel|str|inc|ltd|co|corp|bros|al|resp|sec|vol|pp"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|abs|art|ing|mgr|bc|tzn|tzv|např|čl?|odst|ust|approx|dept|est|min|max"
    r"|sig|ggf|evtl|inkl|exkl|usw|hr|fr|sra?|jr|ex|ref|sgt|cpl|lt|capt|maj|col|cmdr|adm|gen|gov|sen|rep|pres|rev|hon|mt|ft"
    r"|messrs|mme|mlle|ave|blvd|ph\.d|\d{1,2}|([^\W\d_]\.)*[^\W\d_]"
)


@dataclass(frozen=True, slots=True)
class Unit:
    """The smallest part of a chunk: it is divided only if it alone is too long."""

    start: int
    stop: int
    kind: Kind
    path: tuple[str, ...]  # the headings above it
    level: int = 0  # of a heading; 0 for all else
    opens: bool = False  # it is the first of its paragraph, item or table
    header: tuple[int, int] | None = None  # the place of its table's header; None for the header itself


class TextLine(NamedTuple):
    """A line of a text, without its line break."""

    start: int
    stop: int
    text: str
    blank: bool


def units(text: str) -> Iterator[Unit]:
    """The units of a text: all of it that is not blank, once and in order."""
    lines = _lines(text)
    path: list[tuple[int, str]] = []
    i = 0
    while i < len(lines):
        line = lines[i]
        if line.blank:
            i += 1
            continue
        if found := _read_heading(lines, i):
            level, title, after = found
            above = tuple(name for depth, name in path if depth < level)
            start, stop = trim(text, line.start, lines[after - 1].stop)
            yield Unit(start, stop, "prose", above, level=level, opens=True)
            path = [one for one in path if one[0] < level] + [(level, title)]
            i = after
            continue
        after, kind = _read_block(lines, i)
        yield from _block_units(text, lines[i:after], kind, tuple(name for _, name in path))
        i = after


def _lines(text: str) -> list[TextLine]:
    lines: list[TextLine] = []
    at = 0
    for part in text.split("\n"):
        lines.append(TextLine(at, at + len(part), part, not part.strip()))
        at += len(part) + 1
    return lines


def _read_heading(lines: list[TextLine], i: int) -> tuple[int, str, int] | None:
    """The level of a heading, its words, and the number of the line after it; None if there is no heading here."""
    if found := HEADING.match(lines[i].text):
        return len(found[1]), _strip_closing_hashes(found[2]), i + 1
    alone = i == 0 or lines[i - 1].blank
    if alone and i + 1 < len(lines) and "|" not in lines[i].text and not ITEM.match(lines[i].text):
        line = UNDERLINE.fullmatch(lines[i + 1].text)
        if line and not UNDERLINE.fullmatch(lines[i].text):
            return (1 if line[1][0] == "=" else 2), lines[i].text.strip(), i + 2
    return None


def _strip_closing_hashes(title: str) -> str:
    """Removes the hashes that may close a heading; the hash of “C#” stays, because no blank stands before it."""
    title = title.rstrip()
    bare = title.rstrip("#")
    return bare.rstrip() if bare and bare[-1] in " \t" else title


def _read_block(lines: list[TextLine], i: int) -> tuple[int, Kind]:
    """The number of the line after the block that begins here, and the kind of the block."""
    if fence := FENCE.match(lines[i].text):
        closing = re.compile(rf" {{0,3}}{re.escape(fence[1][0])}{{{len(fence[1])},}}[ \t\r]*")
        after = next((j + 1 for j in range(i + 1, len(lines)) if closing.fullmatch(lines[j].text)), len(lines))
        inside = [line for line in lines[i + 1 : after - 1] if not line.blank]
        return after, "log" if _most_lines_are(_is_log_line, inside, 0.6) else "code"
    if _is_table(lines, i):
        after = i
        while after < len(lines) and "|" in lines[after].text:
            after += 1
        return after, "table"
    after = i + 1
    while after < len(lines) and not lines[after].blank and not _begins_block(lines, after):
        after += 1
    block = lines[i:after]
    if len(block) >= 3 and _most_lines_are(_is_log_line, block, 0.6):
        return after, "log"
    if len(block) >= 3 and _most_lines_are(_is_code_line, block, 0.7):
        return after, "code"
    return after, "prose"


def _begins_block(lines: list[TextLine], i: int) -> bool:
    text = lines[i].text
    return bool(FENCE.match(text) or HEADING.match(text) or _is_table(lines, i))


def _is_table(lines: list[TextLine], i: int) -> bool:
    text = lines[i].text
    if "|" not in text:
        return False
    if i + 1 < len(lines) and _is_rule(lines[i + 1].text):
        return True
    return text.lstrip().startswith("|") and text.rstrip().endswith("|") and text.count("|") > 2


def _is_rule(text: str) -> bool:
    """Whether this is the line below the header of a table."""
    cells = text.strip().removeprefix("|").removesuffix("|").split("|")
    return "|" in text and all(RULE.fullmatch(cell.strip()) for cell in cells)


def _most_lines_are(of_kind: Callable[[str], bool], lines: list[TextLine], share: float) -> bool:
    return bool(lines) and sum(of_kind(one.text.strip()) for one in lines) >= share * len(lines)


def _is_log_line(line: str) -> bool:
    """Whether a program wrote this line. A time alone proves nothing: transcripts, chats and agendas have it, too."""
    if LEVEL.match(line):
        return True
    time = TIMESTAMP.match(line)
    if time is None or SPEAKER.match(line, time.end()):
        return False
    return bool(time["stamp"] or LOG_SIGN.search(line[time.end() : time.end() + LOGGED_WITHIN]))


def _is_code_line(line: str) -> bool:
    """Whether this is code. Clauses and items end in a semicolon too, and sentences begin with “for” or “if”."""
    if not line or ITEM.match(line) or CLAUSE.match(line):
        return False
    if line[-1] in "{}" or BRACKETS.fullmatch(line) or STATEMENT.fullmatch(line):
        return True
    if KEYWORD.match(line):
        return line[-1] in ":(" or bool(CODE_SIGN.search(line))
    return line[-1] == ";" and bool(CODE_SIGN.search(line))


def _block_units(text: str, block: list[TextLine], kind: Kind, path: tuple[str, ...]) -> Iterator[Unit]:
    if kind == "prose":
        for first, last in _list_items(block):
            opens = True
            for start, stop in _sentences(text, block[first].start, block[last].stop):
                yield Unit(start, stop, kind, path, opens=opens)
                opens = False
        return
    header = None
    if kind == "table" and len(block) > 1 and _is_rule(block[1].text):
        header = trim(text, block[0].start, block[1].stop)
        yield Unit(*header, kind, path, opens=True)
        block = block[2:]
    for n, line in enumerate(line for line in block if not line.blank):
        yield Unit(*trim(text, line.start, line.stop), kind, path, opens=n == 0 and not header, header=header)


def _list_items(block: list[TextLine]) -> Iterator[tuple[int, int]]:
    """The first and last line of each item of a list, or of the whole paragraph."""
    firsts = [0] + [n for n in range(1, len(block)) if ITEM.match(block[n].text)]
    for n, first in enumerate(firsts):
        yield first, (firsts[n + 1] if n + 1 < len(firsts) else len(block)) - 1


def _sentences(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """The places of sentences. A full stop after an abbreviation ends none: better too long than cut in the middle."""
    begin = start
    for found in SENTENCE_END.finditer(text, start, stop):
        if found.end() < stop and _ends_sentence(text, begin, found):
            if text[begin : found.end()].strip():
                yield trim(text, begin, found.end())
            begin = found.end()
    if text[begin:stop].strip():
        yield trim(text, begin, stop)


def _ends_sentence(text: str, begin: int, found: re.Match[str]) -> bool:
    if found[0][0] in STOPS:  # a quotation may go on: “… 。」he said”
        return found[0][-1] not in CLOSING_QUOTES or text[found.end()] in "「『（“‘"
    after = text[found.end() : found.end() + 4].lstrip("\"'“„«‚‘(*_[")[:1]
    if not after or after.islower():
        return False
    if found[0][0] != ".":
        return True
    before = text[max(begin, found.start() - 12) : found.start()]
    word = re.split(r"[\s(\[„“\"]", before)[-1].lower()
    return bool(word) and not ABBREVIATION.fullmatch(word)


def trim(text: str, start: int, stop: int) -> tuple[int, int]:
    """The same place, without the blanks at both ends."""
    part = text[start:stop]
    return start + len(part) - len(part.lstrip()), stop - (len(part) - len(part.rstrip()))
