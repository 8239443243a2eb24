"""Finds the links of a text, plain, Markdown or HTML, with the text around them; its time grows with the text alone."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from html import unescape
from itertools import islice
from typing import NamedTuple

from gristmill.errors import Unsafe
from gristmill.sources.link.model import FoundLink

LONGEST_TEXT = 2_000_000  # characters that are looked through
MOST = 200  # links of one text: a text with more of them is spam, or a list
MOST_TRIED = 1_000  # different spellings that are looked at
AROUND = 160  # characters before and behind a link that are kept
LEADING = 60  # characters right before it that say what it does
LONGEST_LABEL = 200
LONGEST = 2_000  # characters of an address

# each repetition ends at the next character that it excludes, or after some thousand: no text is looked through twice
HTML = re.compile(
    r"<a\s[^<>]{0,4000}?\bhref\s*=\s*(?:\"([^\"<>]{1,4000})\"|'([^'<>]{1,4000})'|([^\s\"'<>]{1,4000}))[^<>]{0,4000}>",
    re.IGNORECASE,
)
HTML_END = re.compile(r"</a\s*>", re.IGNORECASE)
MARKDOWN = re.compile(r"(?<!!)\[([^\[\]\n]{0,500})\]\(\s*<?((?:https?://|www\.)[^\s<>\"]{1,4000})", re.IGNORECASE)
PICTURE = re.compile(r"!\[[^\[\]\n]{0,500}\]\([^\s()]{0,4000}|<img\s[^<>]{0,8000}>", re.IGNORECASE)
BARE = re.compile(r"(?<![\w@./-])(?:https?://|www\.)[^\s<>\"“”„«»`|\\^{}\x00-\x1f\x7f]{3,4000}", re.IGNORECASE)
TAG = re.compile(r"<[^<>]{0,4000}>")
INLINE = re.compile(r"</?(?:a|b|code|em|font|i|mark|small|span|strong|u)\b[^<>]{0,4000}>", re.IGNORECASE)
CUT_TAG = re.compile(r"^[^<>]{0,400}=[^<>]{0,400}>|<[^<>]{0,400}$")
SIGNS = ("://", "www.", "href")  # every link has one of these
ADDRESS = re.compile(r"://|www\.|</?a\b", re.IGNORECASE)
TRAILING = ".,;:!?'’*_~…"
BRACKETS = {")": "(", "]": "[", "}": "{"}


class _Spot(NamedTuple):
    """A piece of a text that may be a link."""

    start: int
    end: int
    raw: str
    label: str


def extract_links(text: str) -> list[FoundLink]:
    """The links of a text, each once, in their order; addresses that could never be called are left out."""
    text = text[:LONGEST_TEXT]
    plain = text.lower()
    if not any(sign in plain for sign in SIGNS):  # most texts have none: a short look instead of four long ones
        return []
    spots: dict[str, _Spot] = {}
    labelled = sorted((*_find_html(text), *_find_markdown(text)))
    hidden = sorted((*labelled, *_find_pictures(text)))
    for spot in sorted((*labelled, *_leave_out(_find_bare(text), hidden))):
        known = spots.get(spot.raw)
        if known is None or (spot.label and not known.label):
            spots[spot.raw] = spot
    found: dict[str, FoundLink] = {}
    for spot in islice(spots.values(), MOST_TRIED):
        link = _describe(text, spot)
        if link is not None and len(found) < MOST:
            found.setdefault(link.url, link)
    return list(found.values())


def _find_html(text: str) -> Iterator[_Spot]:
    for match in HTML.finditer(text):
        raw = unescape(match[1] or match[2] or match[3])
        close = HTML_END.search(text, match.end(), match.end() + 2_000)
        label = _clean(text[match.end() : close.start()]) if close else ""
        yield _Spot(match.start(), close.end() if close else match.end(), raw, unescape(label))


def _find_markdown(text: str) -> Iterator[_Spot]:
    for match in MARKDOWN.finditer(text):
        raw = _trim(match[2])
        yield _Spot(
            match.start(), match.end(), raw.removesuffix(")") if raw.count(")") > raw.count("(") else raw, match[1]
        )


def _find_bare(text: str) -> Iterator[_Spot]:
    for match in BARE.finditer(text):
        raw = _trim(match[0])
        yield _Spot(match.start(), match.start() + len(raw), raw, "")


def _find_pictures(text: str) -> Iterator[_Spot]:
    """Pictures are shown, not opened: some of them only count who looks."""
    for match in PICTURE.finditer(text):
        yield _Spot(match.start(), match.end(), "", "")


def _leave_out(bare: Iterable[_Spot], hidden: Sequence[_Spot]) -> Iterator[_Spot]:
    """The spots in their order. An address within another spot, as in the label of a link, is left out."""
    last, end = 0, -1
    for spot in bare:
        while last < len(hidden) and hidden[last].start <= spot.start:
            end = max(end, hidden[last].end)
            last += 1
        if spot.start >= end:
            yield spot


def _trim(raw: str) -> str:
    """The address without the punctuation of its sentence. A bracket stays if it was opened in the address."""
    counts, end = Counter(raw), len(raw)
    while end:
        last = raw[end - 1]
        if last not in TRAILING and (last not in BRACKETS or counts[last] <= counts[BRACKETS[last]]):
            break
        counts[last] -= 1
        end -= 1
    return raw[:end]


def _describe(text: str, spot: _Spot) -> FoundLink | None:
    raw = spot.raw.strip()
    if len(raw) > LONGEST or not raw.lower().startswith(("http://", "https://", "www.")):
        return None
    from gristmill.sources.link.canonical import canonicalise  # noqa: PLC0415 slow to load, and most mails have no links

    try:
        location = canonicalise(raw)
    except Unsafe:
        return None
    before = text[max(0, spot.start - LEADING) : spot.start].rpartition("\n")[2]
    context = text[max(0, spot.start - AROUND) : spot.end + AROUND]
    return FoundLink(location.url, _clean(spot.label)[:LONGEST_LABEL], _clean(context), _keep_words(_clean(before)))


def _keep_words(before: str) -> str:
    """The words that belong to an address: those behind the address before it."""
    words = before.split()
    last = max((place for place, word in enumerate(words) if ADDRESS.search(word)), default=-1)
    return " ".join(words[last + 1 :])


def _clean(text: str) -> str:
    """In one line, without tags and without characters that change the direction of writing."""
    plain = TAG.sub(" ", INLINE.sub("", text.replace("\0", "")))
    if "</" in text:  # the ends of the piece may lie within a tag
        plain = CUT_TAG.sub("", plain)
    plain = re.sub("[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]", "", plain)
    return " ".join(plain.encode("utf-8", "ignore").decode().split())
