"""A tracker as a connector: what was updated is listed, and fetched where it differs from what is here."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Protocol, cast

from gristmill.sources.bringing import Bringer
from gristmill.sources.cursor import CursorPage, cap_moment, walk_pages
from gristmill.sources.model import Batch, Checkpoint, ConnectorContext, Listed, RawItem
from gristmill.sources.moments import go_back

# A search may show an update minutes later than a newer one: so much is listed again with each poll, and not fetched.
OVERLAP = timedelta(minutes=5)


class PolledTracker(Protocol):
    """One tracker: the questions that it answers."""

    @property
    def streams(self) -> Sequence[str]:
        """The parts that are listed one by one: each repository, or everything at once."""
        ...

    @property
    def now(self) -> datetime | None:
        """The clock of the provider, as its last answer told it."""
        ...

    @property
    def portion(self) -> int:
        """How many issues are fetched together."""
        ...

    async def check(self) -> str:
        """One sentence about what is there."""
        ...

    async def list_updated(self, stream: str, since: str, skip: int) -> CursorPage[Listed]:
        """Issues that were updated since a time, the oldest update first."""
        ...

    async def fetch(self, ids: Sequence[str]) -> list[RawItem]:
        """The issues with these ids; an issue that does not come is gone there."""
        ...


@dataclass(frozen=True)
class TrackerConnector:
    """The checkpoint is the time up to which each stream was read."""

    tracker: PolledTracker
    context: ConnectorContext

    async def check(self) -> str:
        return await self.tracker.check()

    async def changes(self, checkpoint: Checkpoint) -> AsyncIterator[Batch]:
        places = dict(checkpoint)
        for stream in self.tracker.streams:
            begun = str(places.get(stream, ""))
            listing = partial(self.tracker.list_updated, stream)
            async for page, behind in walk_pages(listing, {"since": go_back(begun, OVERLAP)}):
                unlike = await self.context.known.find_unlike(page.items)
                async for items in self._bringer.bring([one.external for one in unlike]):
                    yield Batch(dict(places), items)
                places[stream] = cap_moment(max(begun, str(behind["since"])), self.tracker.now)
                yield Batch(dict(places))

    async def list_ids(self) -> AsyncIterator[Sequence[Listed]]:
        """In the order of updates, too: what is updated meanwhile moves to the end, where the walk finds it."""
        for stream in self.tracker.streams:
            async for page, _ in walk_pages(partial(self.tracker.list_updated, stream), {}):
                yield page.items

    def fetch(self, ids: Sequence[str]) -> AsyncIterator[RawItem]:
        return self._bringer.bring_each(ids)

    @property
    def _bringer(self) -> Bringer:
        return Bringer(self.tracker.fetch, self.tracker.check, self.tracker.portion, self.context.max_bytes)


def prune(value: Any, is_unread: Callable[[str], bool]) -> Any:
    """What a provider said of an issue, without the parts that nobody reads: pictures of people, addresses of lists."""
    if isinstance(value, dict):
        fields = cast(dict[str, Any], value)
        return {key: prune(one, is_unread) for key, one in fields.items() if not is_unread(key)}
    if isinstance(value, list):
        return [prune(one, is_unread) for one in cast(list[Any], value)]
    return value
