"""What both editions of Confluence answer to: listings of pages, files and comments, and each of them whole."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import orjson

from gristmill.sources.bringing import refuse_large
from gristmill.sources.http import Provider
from gristmill.sources.model import Listed, RawItem
from gristmill.sources.values import read_name, read_things
from gristmill.sources.wiki.page import ATTACHMENT, PAGE


@dataclass(frozen=True)
class WikiEntry:
    """A page, a file or a comment, as a listing tells it."""

    listed: Listed
    modified: str


class Wiki(Protocol):
    """One edition of Confluence."""

    @property
    def comments(self) -> Sequence[str]:
        """The sorts of comments that it lists by themselves."""
        ...

    @property
    def now(self) -> datetime | None:
        """The clock of the provider, as its last answer told it."""
        ...

    async def check(self) -> str:
        """One sentence about what is there."""
        ...

    def list_newest(self, sort: str, since: str) -> AsyncIterator[Sequence[WikiEntry]]:
        """Pages, files or comments that were changed since a time, the newest first."""
        ...

    async def fetch(self, ids: Sequence[str]) -> list[RawItem]:
        """The entries with these ids; one that does not come is gone there."""
        ...


@dataclass(frozen=True)
class WikiPage:
    """A page, the same from both editions; a field that is odd is kept as it came, for the indexer to judge."""

    id: str
    space: str
    title: Any
    body: Any
    labels: Sequence[Any]
    parent: str
    parent_title: str
    author: str
    editor: str
    modified: str
    version: str
    url: str

    def make_item(self, mark: str) -> RawItem:
        return RawItem(PAGE + self.id, orjson.dumps(vars(self), option=orjson.OPT_SORT_KEYS), mark)


@dataclass(frozen=True)
class WikiFile:
    """An attachment of a page."""

    id: str
    name: str
    page: str
    page_title: str
    space: str
    modified: str
    author: str
    size: int
    place: str  # where its bytes are

    async def make_item(self, provider: Provider, mark: str, max_bytes: int) -> RawItem | None:
        """The file with its bytes; None if they are gone."""
        note = {name: value for name, value in vars(self).items() if name not in ("size", "place")}
        if self.size > max_bytes:
            return refuse_large(ATTACHMENT + self.id, self.size, max_bytes, note, mark)
        content = await provider.download(self.place)
        return None if content is None else RawItem(ATTACHMENT + self.id, content, mark, note)


@dataclass(frozen=True)
class WikiComment:
    """What somebody said below a page, or beside some words of it."""

    id: str
    page: str
    page_title: str
    space: str
    body: Any
    author: str
    modified: str
    state: str  # of a remark: open, resolved …
    about: str  # the words that it stands beside
    url: str

    def make_item(self, sort: str, mark: str) -> RawItem:
        return RawItem(sort + self.id, orjson.dumps(vars(self), option=orjson.OPT_SORT_KEYS), mark)


def name_labels(labels: Any) -> list[str]:
    return [read_name(one, "name") for one in read_things(labels)]
