"""Listens to the sources that tell of changes themselves, and has those polled that do."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from gristmill.errors import GristmillError
from gristmill.queue import Answer, Done, Envelope, Skip, Unique, send
from gristmill.sources.letters import ListenToSources, PollSource, WatchSources
from gristmill.sources.model import Source
from gristmill.sources.opening import Opener, read_options
from gristmill.sources.poller import note_wish, poll_key
from gristmill.sources.store import SQL

ROUND = timedelta(minutes=9, seconds=55)  # the next begins when the schedule says so: every ten minutes


async def answer_watch(letter: WatchSources) -> Answer:
    """However many workers there are, one of them listens."""
    return Done(then=(Envelope(ListenToSources(), unique=Unique("sources.listen")),))


@dataclass(frozen=True)
class Listener:
    """Holds one connection for each source that tells of changes; all of them take one slot of a worker."""

    opener: Opener
    round: timedelta = ROUND

    async def listen(self, letter: ListenToSources) -> Answer:
        sources = await self._find_sources()
        if not sources:
            return Skip("no source tells of its changes")
        tasks = [asyncio.create_task(self._listen(one)) for one in sources]
        try:
            await asyncio.wait(tasks, timeout=self.round.total_seconds())
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return Done(result={"sources": len(sources)})

    async def _find_sources(self) -> list[Source]:
        async with self.opener.db.reading() as tx:
            found = await tx.all(SQL["list_sources"], Source, client=None, project=None)
        return [one for one in found if not one.paused and not one.failures and self._is_talkative(one)]

    def _is_talkative(self, source: Source) -> bool:
        kind = self.opener.kinds.get(source.kind)
        return kind is not None and kind.watch is not None and source.options.get("idle", True)

    async def _listen(self, source: Source) -> None:
        """Until the round ends, or the connection breaks: then the polls go on, and say what is wrong."""
        kind = self.opener.find_kind(source)
        assert kind.watch is not None
        with suppress(GristmillError, OSError):
            async with kind.watch(read_options(kind, source)) as wait:
                while True:
                    if await wait():
                        await self._ask(source)

    async def _ask(self, source: Source) -> None:
        async with self.opener.db.transaction() as tx:
            key = poll_key(source.id)
            ask = partial(send, tx, PollSource(source.id), scope=source.scope, unique=Unique(key))
            await note_wish(tx, key, SQL["want_poll"], ask, id=source.id)
