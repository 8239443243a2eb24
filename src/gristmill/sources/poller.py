"""The poller: talks to the outside, and keeps what it is given with the checkpoint, batch by batch."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from gristmill.db import Query, Tx
from gristmill.errors import GristmillError, NoTurn, Overloaded, Unreachable
from gristmill.ids import SourceId, TaskId
from gristmill.queue import Answer, Done, Envelope, Letter, Skip, Snooze, Unique, current, send
from gristmill.settings import NoSecret
from gristmill.sources import store
from gristmill.sources.letters import ListSource, PollSource, SourceDue
from gristmill.sources.model import Batch, Source
from gristmill.sources.opening import Opener
from gristmill.sources.store import BatchTally, Overtaken, PollPlace

GONE = Skip("its source was removed")
PAUSED = Skip("its source is paused")
LONGEST_WAIT = timedelta(days=1)  # whatever the other side asks for
SOON = timedelta(seconds=1)
LISTING_PAUSES = tuple(timedelta(minutes=n) for n in (1, 5, 15, 30, 60))
LONGEST_ERROR = 500  # characters that are kept of an error


def poll_key(source: SourceId) -> str:
    return f"source.{source}.poll"


def list_key(source: SourceId) -> str:
    return f"source.{source}.list"


async def answer_due(letter: SourceDue) -> Answer:
    """A poll that runs, waits or was put off is not doubled, and its pause is not cut short."""
    return Done(then=(_enclose(letter.source, listing=letter.listing),))


def _enclose(source: SourceId, *, listing: bool) -> Envelope:
    asked: Letter = ListSource(source) if listing else PollSource(source)
    return Envelope(asked, unique=Unique(list_key(source) if listing else poll_key(source)))


@dataclass(frozen=True)
class Poller:
    """Polls sources: each for one turn, then others may."""

    opener: Opener
    turn: timedelta

    async def poll(self, letter: PollSource) -> Answer:
        async with self.opener.db.transaction() as tx:
            source = await store.load_source(tx, letter.source)
            if source is None:
                return GONE
            if source.paused:
                return PAUSED
            await store.begin_poll(tx, source)
        return await self.attempt(source, partial(self._poll, source))

    async def attempt(
        self, source: Source, work: Callable[[], Awaitable[Answer]], troubles: store.TroubleLog = store.POLLS
    ) -> Answer:
        """Work with a source; what goes wrong there is written down, and puts off this work alone."""
        try:
            return await work()
        except Unreachable:  # our own database, and no fault of the source
            raise
        except Overtaken as error:
            return Snooze(SOON, str(error))
        except Overloaded as error:
            if not isinstance(error, NoTurn):  # a limiter of our own counts for itself
                current().count_limit(name_host(source))
            return await self._put_off(source, troubles, min(error.retry_after, LONGEST_WAIT), describe(error))
        except (GristmillError, OSError, TimeoutError) as error:
            return await self._back_off(source, troubles, describe(error))
        except Exception as error:  # a mistake of ours: the queue counts it, too
            await self._back_off(source, troubles, describe(error))
            raise

    async def _poll(self, source: Source) -> Answer:
        """Keep batch after batch; a long poll gives its place to others, and goes on from its checkpoint."""
        clock = asyncio.get_running_loop().time
        until = clock() + self.turn.total_seconds()
        place, seen, moved = PollPlace(source.step, source.checkpoint), 0, False
        async with self.opener.open(source) as connector:
            async for batch in connector.changes(source.checkpoint or {}):
                place, tally = await self._keep(source, batch, place)
                seen += len(batch.items)
                moved = moved or place.step > source.step or tally.new + tally.changed > 0
                current().progress(seen, message=f"{seen:,} items")
                if moved and clock() > until:  # or a turn that is too short would never get anywhere
                    return Snooze(timedelta(0), "others have their turn before it goes on")
        return Done(partial(_end_poll, source=source), result={"items": seen})

    async def _keep(self, source: Source, batch: Batch, place: PollPlace) -> tuple[PollPlace, BatchTally]:
        if not batch.items and not batch.moved and batch.checkpoint == place.checkpoint:
            return place, BatchTally()
        async with self.opener.db.transaction() as tx:
            return await store.keep_batch(tx, source, batch, place)

    async def _put_off(self, source: Source, troubles: store.TroubleLog, wait: timedelta, reason: str) -> Answer:
        async with self.opener.db.transaction() as tx:
            await troubles.note_wait(tx, source, wait, reason)
        return Snooze(wait, reason)

    async def _back_off(self, source: Source, troubles: store.TroubleLog, error: str) -> Answer:
        async with self.opener.db.transaction() as tx:
            failures = await troubles.note_failure(tx, source, error)
        if troubles is store.LISTINGS:
            return Snooze(choose_listing_pause(failures), error)
        kind = self.opener.kinds.get(source.kind)
        return Snooze(choose_pause(failures, kind.backoff if kind else (source.every,)), error)


def name_host(source: Source) -> str:
    """The machine that a source is on, for metrics; the name of the source if it has none."""
    said = source.options.get("host") or urlsplit(str(source.options.get("url", ""))).hostname
    return str(said or source.name)


def choose_pause(failures: int, steps: Sequence[timedelta]) -> timedelta:
    """The pause after so many failures in a row; behind the longest comes the shortest again."""
    return steps[(max(failures, 1) - 1) % len(steps)]


def choose_listing_pause(failures: int) -> timedelta:
    """The pause after so many listings that failed in a row; the longest stays, since a listing asks for everything."""
    return LISTING_PAUSES[min(max(failures, 1), len(LISTING_PAUSES)) - 1]


def describe(error: BaseException) -> str:
    if isinstance(error, NoSecret) and error.reference.startswith("env:"):  # the reader's own terminal may well have it
        where = "in the environment of the workers (gristmill up)"
        return f"There is no secret at {error.reference} {where}: set it there and start them again."
    text = store.make_keepable(" ".join(str(error).split()))[:LONGEST_ERROR] or type(error).__name__
    return text if isinstance(error, GristmillError) else f"{type(error).__name__}: {text}"


async def _end_poll(tx: Tx, source: Source) -> None:
    if await store.note_success(tx, source.id):
        await send_poll(tx, source)


async def send_poll(tx: Tx, source: Source) -> TaskId:
    key = Unique(poll_key(source.id), "replace")
    return await send(tx, PollSource(source.id), unique=key, foreground=True, scope=source.scope)


async def send_listing(tx: Tx, source: Source) -> TaskId:
    key = Unique(list_key(source.id), "replace")
    return await send(tx, ListSource(source.id), unique=key, foreground=True, scope=source.scope)


async def note_wish(tx: Tx, key: str, wish: Query, ask: Callable[[], Awaitable[TaskId]], **values: Any) -> TaskId:
    """Ask, and write down that somebody has: what runs already may have looked before, and is then followed by another.

    A task is locked before its source, here and where it is settled: otherwise the two could wait for each other.
    """
    task = await ask()
    await tx.execute(wish, **values)
    if await tx.all(store.SQL["poll_tasks"], keys=[key]):
        return task
    return await ask()  # the one that ran has ended just before the wish was written


async def ask_for_poll(tx: Tx, source: Source, *, listing: bool = False, agreed: bool = False) -> TaskId:
    """A person wants it now: the pauses begin anew, and a poll that was put off starts at once."""
    if listing:
        task = await ask_for_listing(tx, source, agreed=agreed)
    else:
        key, wish = poll_key(source.id), store.SQL["want_poll"]
        task = await note_wish(tx, key, wish, partial(send_poll, tx, source), id=source.id)
    await tx.execute(store.SQL["forgive"], id=source.id)
    return task


async def ask_for_listing(tx: Tx, source: Source, *, agreed: bool = False) -> TaskId:
    """A person wants all ids compared; that they agree is kept with the source until a listing has used it."""
    key, wish = list_key(source.id), store.SQL["forgive_listing"]
    return await note_wish(tx, key, wish, partial(send_listing, tx, source), id=source.id, agreed=agreed)
