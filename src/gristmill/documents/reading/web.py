"""HTML: to Markdown, without what only a browser needs."""

import re
from html import unescape
from pathlib import Path

from kreuzberg import ExtractionConfig, KreuzbergError, extract_bytes_sync

from gristmill.documents.reading import refusals, tidy
from gristmill.documents.reading.limits import Limits
from gristmill.documents.reading.plain import decoded, paginated, title_of
from gristmill.documents.reading.recent import Recent
from gristmill.documents.reading.results import Inspection, PageText, Type

CONFIG = ExtractionConfig(use_cache=False, enable_quality_processing=False, output_format="markdown")
TITLE = re.compile(r"<title[^>]*>(.*?)</title", re.IGNORECASE | re.DOTALL)
CHARSET = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
# The converter would make a preamble of them, which says nothing to a reader.
PREAMBLE = re.compile(r"<head\b.*?</head\s*>|<title\b.*?</title\s*>|<meta\b[^>]*>", re.IGNORECASE | re.DOTALL)


def inspect(path: str, name: str, type: Type, limits: Limits, offset: int = 0) -> Inspection:
    html, pages = opened.get(path)
    if len(pages) > limits.pages:
        raise refusals.too_many("pages", len(pages), limits.pages)
    found = TITLE.search(html)
    title = tidy.line(unescape(found[1]))[:300] if found else ""
    return Inspection("html", len(pages), title or title_of(pages[0], name))


def read(path: str, type: Type, number: int, limits: Limits) -> PageText:
    _, pages = opened.get(path)
    if not 1 <= number <= len(pages):
        raise refusals.no_such_page(number, len(pages))
    return PageText(pages[number - 1], "text")


def markdown(html: str) -> str:
    """The readable part of a page."""
    body = PREAMBLE.sub("", html)
    if not body.strip():
        return ""
    try:
        return extract_bytes_sync(body.encode("utf-8", "replace"), "text/html", CONFIG).content
    except KreuzbergError as error:
        raise refusals.corrupt("HTML page") from error


def html_text(data: bytes) -> str:
    """The page says itself what its bytes mean, unless a mark or the bytes contradict."""
    said = CHARSET.search(data[:4096])
    if said and not data.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):
        try:
            return data.decode(said[1].decode())
        except (UnicodeDecodeError, LookupError):
            pass
    return decoded(data)


def _opened(path: str) -> tuple[str, list[str]]:
    html = html_text(Path(path).read_bytes())
    return html, paginated(tidy.tidy(markdown(html)))


opened = Recent(_opened)
