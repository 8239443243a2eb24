"""Lines on a page to Markdown: headings by size, paragraphs by distance, columns in reading order."""

import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

SENTENCE = 120  # characters: what is longer is no heading
BULLET = re.compile(r"^[•●▪◦‣∙·■□➢✓–—][ \t]+(?=\S)")
ITEM = re.compile(r"^(?:[-*] |\(?(?:\d{1,2}|[a-z]|[ivx]{1,4})[.)] )")
ENDS = (".", "!", "?", ":", ";", "。", "؟", "”", '."')


@dataclass(slots=True)
class PageLine:
    """One line of text and where it stands; the origin is the lower left corner of the page."""

    text: str
    left: float
    bottom: float
    size: float  # height of its letters' boxes
    bold: bool = False
    hyphen: bool = False  # its last word goes on in the next line


def markdown(lines: list[PageLine]) -> str:
    """Paragraphs by blank lines, headings by `#`, words that were divided at line ends whole again."""
    if not lines:
        return ""
    body, pitch = _body_size(lines), _pitch(lines)
    blocks: list[list[PageLine]] = [[lines[0]]]
    for before, line in pairwise(lines):
        if _begins_block(before, line, body, pitch):
            blocks.append([line])
        else:
            blocks[-1].append(line)
    return "\n\n".join(_write_block(block, body) for block in blocks)


def _body_size(lines: list[PageLine]) -> float:
    """The size in which most letters are set."""
    letters: Counter[float] = Counter()
    for line in lines:
        letters[round(line.size * 2) / 2] += len(line.text)
    return max(letters.most_common(1)[0][0], 0.5)


def _pitch(lines: list[PageLine]) -> float:
    """The usual distance of one line to the next; the smaller one where two are as common."""
    drops = Counter(round(before.bottom - line.bottom) for before, line in pairwise(lines))
    return max(((often, -drop) for drop, often in drops.items() if drop > 2), default=(0, -1))[1] * -1.0


def _begins_block(before: PageLine, line: PageLine, body: float, pitch: float) -> bool:
    if before.hyphen:
        return False
    if _differ(before.size, line.size) or (before.bold != line.bold and _rank(before, body) != _rank(line, body)):
        return True
    drop = before.bottom - line.bottom
    if drop < -0.5 * line.size:  # up again: the next column, where a sentence may go on
        return before.text.endswith(ENDS) or not line.text[:1].islower()
    if drop > max(1.3 * pitch, 1.05 * line.size):
        return True
    if BULLET.match(line.text) or ITEM.match(line.text):
        return False
    indent = line.left - before.left
    return body < indent < 6 * body and drop > 0.5 * body and before.text.endswith(ENDS)


def _differ(one: float, other: float) -> bool:
    return abs(one - other) > 0.12 * max(one, other)


def _rank(line: PageLine, body: float) -> int:
    """Of the heading that a line may be; 0: it is none."""
    if len(line.text) > SENTENCE or not any(map(str.isalpha, line.text)):
        return 0
    ratio = line.size / body
    if ratio >= 1.7:
        return 1
    if ratio >= 1.35:
        return 2
    if ratio >= 1.14:
        return 3
    return 3 if line.bold and ratio > 0.95 and not line.text.endswith((".", ",", ";", ":")) else 0


def _write_block(block: list[PageLine], body: float) -> str:
    rank = _rank(block[0], body)
    if rank and len(block) <= 3 and all(_rank(line, body) == rank for line in block):
        return "#" * rank + " " + " ".join(_join_lines(block).split())
    return _join_lines(block)


def _join_lines(block: list[PageLine]) -> str:
    pieces: list[str] = []
    for line, after in zip(block, [*block[1:], None], strict=True):
        pieces.append(BULLET.sub("- ", line.text))
        if after is None:
            pieces.append("-" if line.hyphen else "")
        elif line.hyphen:  # a capital or a digit after it says that the hyphen belongs to the word
            pieces.append("" if after.text[:1].islower() else "-")
        else:
            pieces.append("\n")
    return "".join(pieces)
