"""Reads the numbers by which a model names its evidence, and takes them and its markup out of a sentence."""

import re
from collections.abc import Iterator
from typing import NamedTuple

LABEL = r"(?:sources?|evidence|passages?|refs?|references?|quellen?|belege?|zdroje?|citations?|documents?|no\.?|#|\^)"
NUMBERS = r"\d{1,3}(?:\s*(?:[,;/&–-]|and|und|et|a)\s*(?:\#|\^)?\d{1,3})*"
# [1], [1, 2], [^1], [Source 1], 【1†…】, (1), (sources 1 and 2), Source 1; a year in brackets is none of them
MARK = re.compile(
    rf"\[\s*(?:{LABEL}\s*)?(?P<square>{NUMBERS})\s*(?::[^\]\n]{{0,60}})?\](?:\([^)\n]*\))?"
    rf"|【\s*(?P<wide>{NUMBERS})[^】\n]*】"
    rf"|\(\s*(?:{LABEL}\s*)?(?P<round>{NUMBERS})\s*\)"
    rf"|\b(?:source|evidence|passage|quelle|beleg|zdroj)s?\s*(?:no\.?\s*|\#\s*)?(?P<word>{NUMBERS})(?![\d.,]*\d|\s*%)",
    re.IGNORECASE,
)
LEADING = re.compile(
    r"^\s*(?:according to|as (?:stated|mentioned|described|noted|shown) in|in|per|based on|laut|gemäß|nach|selon"
    r"|d'après|según|podle|prema)\s*(?:the\s+)?(?=\x00)[\x00\s,&]+(?:and\s*\x00)?\s*,?\s*",
    re.IGNORECASE,
)
SAYING = re.compile(
    r"^\s*\x00+\s*(?:says|states|mentions|notes|shows|indicates|explains)\s+(?:that\s+)?", re.IGNORECASE
)
TRAILING = re.compile(
    r"[\s,(]*(?:\(?\s*(?:see|cf\.?|as (?:stated|mentioned|described|shown) in|according to|from|in)\s*)?"
    r"\x00+[\s)]*(?=[.!?…]?$)",
    re.IGNORECASE,
)
MARKUP = (
    (re.compile(r"^\s*(?:#{1,6}\s+|>\s*|[-*+•]\s+|\d{1,2}[.)]\s+)+"), ""),  # headings, quotations, lists
    (re.compile(r"\[([^\]\n]+)\]\([^)\n]*\)"), r"\1"),  # links
    (re.compile(r"\*\*|__|`|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)"), ""),
    (re.compile(r"<[^>\n]{1,40}>"), ""),
)
PREFIX = re.compile(r"^\s*(?:answer|antwort|réponse|respuesta|odpověď|odgovor)\s*:\s*", re.IGNORECASE)


class Marked(NamedTuple):
    """A sentence without its marks, and the numbers that they name, in their order."""

    text: str
    numbers: tuple[int, ...]


def read_marks(sentence: str, count: int) -> Marked:
    """Take the marks out; of the numbers, only those of evidence that exists are kept."""
    numbers: list[int] = []

    def take(match: re.Match[str]) -> str:
        found = list(_expand(match.group("square", "wide", "round", "word")))
        if match["round"] and (not any(1 <= one <= count for one in found)):
            return match[0]  # (12 of them, a year): no mark
        numbers.extend(one for one in found if 1 <= one <= count)
        return "\x00"

    text = MARK.sub(take, sentence.replace("\x00", " "))
    for pattern in (LEADING, SAYING, TRAILING):
        text = pattern.sub("", text)
    text = text.replace("\x00", "")
    for pattern, instead in (*MARKUP, (PREFIX, "")):
        text = pattern.sub(instead, text)
    text = re.sub(r"\s+([.,;:!?…])", r"\1", " ".join(text.split()))
    text = re.sub(r"([.!?…])[.,]+$", r"\1", text).lstrip(",;:. ")
    return Marked(text[:1].upper() + text[1:], tuple(dict.fromkeys(numbers)))


def _expand(groups: tuple[str | None, ...]) -> Iterator[int]:
    """1, 3-5 as 1, 3, 4, 5."""
    for part in re.split(r"[,;/&]|and|und|et|a", next(filter(None, groups))):
        ends = [int(number) for number in re.findall(r"\d+", part)]
        if len(ends) == 2 and 0 < ends[1] - ends[0] < 20:
            yield from range(ends[0], ends[1] + 1)
        else:
            yield from ends
