"""HTML: to Markdown, without what only a browser needs."""

import re
from html import unescape
from pathlib import Path

from gristmill.documents.reading import refusals, tidy
from gristmill.documents.reading.limits import Limits
from gristmill.documents.reading.open_files import OpenFile
from gristmill.documents.reading.plain import decode, decode_as, paginate, title_of
from gristmill.documents.reading.results import BEGINNING, Bookmark, Inspection, PageText, Type

TITLE = re.compile(r"<title\b[^>]*>", re.IGNORECASE)
TITLE_END = re.compile(r"</title", re.IGNORECASE)
CHARSET = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
# The converter would make a preamble of them, which says nothing to a reader.
PREAMBLE = re.compile(r"<(head|title)\b", re.IGNORECASE)
META = re.compile(r"<meta\b[^>]*>", re.IGNORECASE)
# What it leaves out on purpose; the rest of the words should be there when it is done.
UNREAD = re.compile(r"<(script|style|template|noscript|nav|form|select|svg|iframe)\b|<!--", re.IGNORECASE)
BLOCK = re.compile(r"</?(?:p|div|h[1-6]|li|tr|td|th|br|section|article|blockquote|pre)\b[^>]*>", re.IGNORECASE)
TAG = re.compile(r"</?[a-z!][^>]*>", re.IGNORECASE)
INLINE_PICTURE = re.compile(r"!\[[^\[\]]*\]\(data:[^)]*\)")
WORD = re.compile(r"\w+")
ENOUGH = 0.5  # of the words of a page: with less, the converter gave up on what is nested too deep for it


def inspect(path: str, name: str, type: Type, limits: Limits, start: Bookmark = BEGINNING) -> Inspection:
    html, pages = html_files.get(path)
    if len(pages) > limits.pages:
        raise refusals.too_long(len(pages), limits.pages)
    return Inspection("html", len(pages), _title(html) or title_of(pages[0], name))


def _title(html: str) -> str:
    begin = TITLE.search(html[: html.rfind(">") + 1])
    end = TITLE_END.search(html, begin.end()) if begin else None
    return tidy.to_line(_unescape(html[begin.end() : end.start()]))[:300] if begin and end else ""


def read(path: str, type: Type, number: int, limits: Limits) -> PageText:
    _, pages = html_files.get(path)
    if not 1 <= number <= len(pages):
        raise refusals.no_such_page(number, len(pages))
    return PageText(pages[number - 1], "text")


def markdown(html: str) -> str:
    """The readable part of a page; without its structure, where the converter would lose words of it."""
    body = _each(META, ">", "", _cut_elements(PREAMBLE, html, ""))
    if not body.strip():
        return ""
    found = _convert(body)
    found, bare = _each(INLINE_PICTURE, ")", "", found), _strip_tags(body)
    return found if _words(found) >= ENOUGH * _words(bare) else bare


def _convert(body: str) -> str:
    # here: it is a fifth of what a process loads before it can look into mails, and most of them are plain text
    from kreuzberg import ExtractionConfig, KreuzbergError, extract_bytes_sync  # noqa: PLC0415

    config = ExtractionConfig(use_cache=False, enable_quality_processing=False, output_format="markdown")
    try:
        return extract_bytes_sync(body.encode("utf-8", "replace"), "text/html", config).content
    except KreuzbergError as error:
        raise refusals.corrupt("HTML page") from error


def _strip_tags(body: str) -> str:
    """Nothing but the words, a block a line."""
    shown = _each(TAG, ">", "", _each(BLOCK, ">", "\n", _cut_elements(UNREAD, body, " ")))
    return "\n\n".join(line for line in map(str.strip, _unescape(shown).splitlines()) if line)


def _unescape(text: str) -> str:
    try:
        return unescape(text)
    except ValueError:  # a character's number with thousands of digits
        return text


# Pages are hostile: a tag that is opened a hundred thousand times and never closed must not be searched for as often.


def _cut_elements(opening: re.Pattern[str], text: str, instead: str) -> str:
    """The text without what lies between a tag and its end; one that has no end stays."""
    kept: list[str] = []
    at = start = 0
    endless: set[str] = set()
    while found := opening.search(text, at):
        name = (found[1] or "").lower()
        end = None if name in endless else _end_of(name).search(text, found.end())
        if end is None:
            endless.add(name)
            at = found.end()
        else:
            kept += text[start : found.start()], instead
            at = start = end.end()
    return "".join(kept) + text[start:]


def _end_of(name: str) -> re.Pattern[str]:
    return re.compile(rf"</{name}\s*>", re.IGNORECASE) if name else re.compile("-->")


def _each(pattern: re.Pattern[str], last: str, instead: str, text: str) -> str:
    """The text with something else for each match; matches end with `last`, so that after its last place is none."""
    stop = text.rfind(last) + 1
    return pattern.sub(instead, text[:stop]) + text[stop:]


def _words(text: str) -> int:
    return sum(1 for _ in WORD.finditer(text))


def html_text(data: bytes) -> str:
    """The page says itself what its bytes mean, unless a mark or the bytes contradict."""
    said = CHARSET.search(data[:4096])
    if said and not data.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):
        try:
            return decode_as(data, said[1].decode())
        except (UnicodeDecodeError, LookupError):
            pass
    return decode(data)


def _open_page(path: str) -> tuple[str, list[str]]:
    html = html_text(Path(path).read_bytes())
    text = tidy.tidy(markdown(html))
    if not text.strip():
        raise refusals.no_text("page")
    return html, paginate(text)


html_files = OpenFile(_open_page)
