"""Confluence as a connector: pages, their files and comments, at Atlassian or on a server of your own."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from pydantic import Field

from gristmill.sources.bringing import Bringer
from gristmill.sources.cursor import cap_moment
from gristmill.sources.http import LONGEST, open_provider
from gristmill.sources.model import Batch, Checkpoint, Connector, ConnectorContext, Kind, Listed, RawItem
from gristmill.sources.moments import go_back
from gristmill.sources.site import AccountSite, Keys, sign_in, split_names
from gristmill.sources.wiki.cloud import Cloud
from gristmill.sources.wiki.content import Wiki
from gristmill.sources.wiki.page import ATTACHMENT, PAGE, describe_confluence
from gristmill.sources.wiki.server import WikiServer

# So much is listed again with each poll, and not fetched: a search may show a change minutes later than a newer one.
OVERLAP = timedelta(minutes=5)
PORTION = 5  # things that are fetched and kept together


class ConfluenceOptions(AccountSite):
    """A Confluence, or some spaces of it."""

    url: str = Field(
        pattern="^https?://", description="The address of Confluence: https://….atlassian.net/wiki, or your server."
    )
    spaces: Keys = Field(default="", description="Keys of spaces, with commas between; none: all.")
    attachments: bool = Field(default=True, description="Whether files of pages come, too.")
    comments: bool = Field(default=True, description="Whether comments on pages come, too.")


@dataclass(frozen=True)
class ConfluenceConnector:
    """The checkpoint is the time of the newest page, file and comment that was seen.

    The newest come first. What changes during a walk moves to its beginning, and is found by the next one; what is
    known already is only listed, so that an interrupted walk costs little.
    """

    wiki: Wiki
    context: ConnectorContext
    sorts: Sequence[str]

    async def check(self) -> str:
        return await self.wiki.check()

    async def changes(self, checkpoint: Checkpoint) -> AsyncIterator[Batch]:
        places = dict(checkpoint)
        for sort in self.sorts:
            newest = begun = str(places.get(sort, ""))
            async for entries in self.wiki.list_newest(sort, go_back(begun, OVERLAP)):
                newest = max([newest, *(one.modified for one in entries)])
                unlike = await self.context.known.find_unlike([one.listed for one in entries])
                async for items in self._bringer.bring([one.external for one in unlike]):
                    yield Batch(dict(places), items)
            places[sort] = cap_moment(newest, self.wiki.now)
            yield Batch(dict(places))

    async def list_ids(self) -> AsyncIterator[Sequence[Listed]]:
        for sort in self.sorts:
            async for entries in self.wiki.list_newest(sort, ""):
                yield [one.listed for one in entries]

    def fetch(self, ids: Sequence[str]) -> AsyncIterator[RawItem]:
        return self._bringer.bring_each(ids)

    @property
    def _bringer(self) -> Bringer:
        return Bringer(self.wiki.fetch, self.wiki.check, PORTION, self.context.max_bytes)


@asynccontextmanager
async def open_confluence(options: ConfluenceOptions, context: ConnectorContext) -> AsyncGenerator[Connector]:
    largest = max(LONGEST, context.max_bytes)
    async with open_provider(options.url, await sign_in(options), max_bytes=largest) as provider:
        spaces = split_names(options.spaces)
        # only Atlassian's own servers have the newer version of the API
        is_cloud = await provider.find("/api/v2/spaces", {"limit": 1}) is not None
        wiki: Wiki = (
            Cloud(provider, options.url, spaces, context.max_bytes)
            if is_cloud
            else WikiServer(provider, options.url, spaces, context.max_bytes)
        )
        # pages come first: the others belong to them
        files = (ATTACHMENT,) if options.attachments else ()
        comments = tuple(wiki.comments) if options.comments else ()
        sorts: Sequence[str] = (PAGE, *files, *comments)
        yield ConfluenceConnector(wiki, context, sorts)


CONFLUENCE = Kind(
    "confluence",
    "Pages of Confluence with their files and comments, at Atlassian or on a server of your own.",
    ConfluenceOptions,
    open_confluence,
    describe_confluence,
)
