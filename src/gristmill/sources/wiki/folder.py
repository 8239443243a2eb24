"""A wiki in a folder of this machine: every Markdown file is a page."""

from contextlib import AbstractAsyncContextManager
from hashlib import sha256
from pathlib import PurePosixPath

from pydantic import Field

from gristmill.errors import Permanent
from gristmill.settings import Slice
from gristmill.sources.folder.connector import find_by_suffix, open_folder
from gristmill.sources.model import Connector, ConnectorContext, Description, Fetched, Kind

LONGEST_TEXT = 1_000_000  # characters that are looked through for links
LONGEST_URN = 1_000  # characters of a path in a URN


class WikiFolderOptions(Slice):
    """Where the pages are."""

    path: str = Field(min_length=1, description="The folder of .md files.")


def open_wiki_folder(options: WikiFolderOptions, context: ConnectorContext) -> AbstractAsyncContextManager[Connector]:
    return open_folder(options.path, find_by_suffix(".md", ".markdown"), context)


def describe_page(item: Fetched) -> Description:
    """A page is known by its place in the folder: its title may change."""
    text = item.content.decode("utf-8", "replace")
    if not text.strip() or "\0" in text[:1000]:
        raise Permanent("It is empty, or no text.")
    path = item.external if len(item.external) <= LONGEST_URN else sha256(item.external.encode()).hexdigest()
    return Description(
        urn=f"wiki::{item.source}/{path}",
        type="wiki",
        name=PurePosixPath(item.external).name[:200],
        text=text[:LONGEST_TEXT],
        reading="markdown",
    )


MARKDOWN = Kind("markdown", "A folder of Markdown pages.", WikiFolderOptions, open_wiki_folder, describe_page)
