"""The part of sources that is about links: fetches those that are safe, and reviews them when rules change."""

from datetime import timedelta
from functools import partial

from gristmill.queue import Handler, on
from gristmill.rooms import Room, Tools
from gristmill.sources.fetch import Fetcher
from gristmill.sources.link.fetching import LinkFetcher
from gristmill.sources.link.letters import FetchLink, ReviewLinks
from gristmill.sources.link.reviewing import review_links

AT_ONCE = 8  # of one worker: a page is mostly waited for
LONGEST = timedelta(minutes=15)


def bind_handlers(tools: Tools) -> list[Handler]:
    settings = tools.settings
    fetcher = LinkFetcher(
        tools.db,
        Fetcher(settings.fetch),
        settings.fetch,
        tools.models.reading_processes,
        settings.documents.timeout.total_seconds(),
        settings.documents.memory,
    )
    return [
        on(FetchLink, fetcher.fetch, timeout=LONGEST, at_once=AT_ONCE),
        on(ReviewLinks, partial(review_links, settings=settings.fetch)),
    ]


ROOM = Room(name="links", letters=(FetchLink, ReviewLinks), handlers=bind_handlers)
