"""Turns a page of the web into Markdown, in a child process: pages are made by strangers."""

import re
from dataclasses import dataclass
from html import unescape

from gristmill.sources.html import convert_html

LONGEST_TITLE = 300  # characters
TITLE = re.compile(r"<title\b[^>]{0,500}>([^<]{0,2000})", re.IGNORECASE)
META_CHARSET = re.compile(rb"<meta[^>]{0,500}charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)


@dataclass(frozen=True)
class PageMarkdown:
    """The readable part of a page; its links stay as links, and nobody follows them."""

    title: str | None
    text: str


def convert_page(body: bytes, charset: str | None, url: str) -> PageMarkdown:
    """The article of a page, or all of it where none is found."""
    import trafilatura  # noqa: PLC0415 a quarter of a second, in child processes that convert pages alone

    html = decode_page(body, charset)
    article = trafilatura.extract(
        html, url=url, output_format="markdown", include_links=True, include_tables=True, include_comments=False
    )
    return PageMarkdown(find_title(html), (article or convert_html(html)).strip())


def find_title(html: str) -> str | None:
    found = TITLE.search(html)
    return (" ".join(unescape(found[1]).split())[:LONGEST_TITLE] or None) if found else None


def decode_page(body: bytes, charset: str | None) -> str:
    """The text of a page, decoded as its header says, as the page says itself, or as UTF-8. It never fails."""
    said = META_CHARSET.search(body[:4096])
    for name in (charset, said[1].decode("ascii", "ignore") if said else None, "utf-8"):
        if name:
            try:
                return body.decode(name)
            except (LookupError, UnicodeError):
                continue
    return body.decode("utf-8", "replace")
