"""The tool that fetches a page of the web, by the one safe way there."""

import codecs

from pydantic import Field

from gristmill.agents.provenance import PAGE
from gristmill.agents.tools.model import Arguments, Tool, ToolContext, ToolResult
from gristmill.errors import Refused
from gristmill.sources import FetchedPage, convert_apart, read_location

LONGEST = 40_000  # characters
HTML = ("text/html", "application/xhtml+xml")
TYPES = (*HTML, "text/plain", "text/markdown")
NAMES_OF_HOSTS = ("idna", "punycode")  # codecs for short names: punycode copies the whole text for each letter


class FetchPage(Arguments):
    """Which page."""

    url: str = Field(min_length=8, max_length=2_000, pattern=r"^https?://\S+$", description="The whole address.")


async def fetch_page(arguments: FetchPage, context: ToolContext) -> ToolResult:
    """A page that sends us elsewhere is not followed to another host: nobody has named that one."""
    place = find_place(arguments.url)

    async def check_redirect(url: str) -> None:
        if find_place(url) != place:
            raise Refused(f"{arguments.url} leads to another host, {url}: fetch that address if it is meant.")

    page = await context.fetcher.get(arguments.url, types=TYPES, check_redirect=check_redirect)
    text = await read_text(page, context)
    return ToolResult(text[:LONGEST] or "The page has no text.", {"url": page.url}, f"{PAGE}{page.url}")


def decode(body: bytes, charset: str | None) -> str:
    """A plain text, as its server names its characters; it may name what is none."""
    try:
        codec = codecs.lookup(charset or "utf-8").name
        if codec not in NAMES_OF_HOSTS:
            return body.decode(codec, errors="replace")
    except (LookupError, UnicodeError):
        pass
    return body.decode("utf-8", errors="replace")


async def read_text(page: FetchedPage, context: ToolContext) -> str:
    if page.content_type not in HTML:
        return decode(page.body, page.charset)
    documents = context.settings.documents
    seconds, memory = documents.timeout.total_seconds(), documents.memory
    return (await convert_apart(context.processes, page, seconds=seconds, memory=memory)).text


def find_place(url: str) -> str:
    """Host and port, read as the fetcher reads them; http and https at their own ports are one place."""
    return read_location(url).origin.partition("://")[2]


TOOL = Tool(
    "fetch_page",
    "Fetch a page of the web and read its text.",
    FetchPage,
    fetch_page,
    targets={"url": "url"},
    summarise=lambda arguments: f"Fetch {arguments.url}",
)
