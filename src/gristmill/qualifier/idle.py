"""Knows when people ask for something: background work waits for silence, and gives way at once."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from time import monotonic
from typing import NamedTuple

from gristmill.db import Database, Notices, Tx, queries
from gristmill.errors import GristmillError, Unreachable
from gristmill.ids import WorkItemId
from gristmill.telemetry import log

SQL = queries("gristmill.qualifier", "idle.sql")
CHANNEL = "gristmill_request"
REQUEST, STOP = "request", "stop"  # what is said there: a person asks for something; an item is wanted no more
EVERY = 1.0  # seconds between two looks for what was not heard, and between two notes of one process
PATIENCE = 2.0  # seconds for the router to say whether it works for people


async def announce_request(tx: Tx, *, by: str) -> None:
    """A person asks for something, in this transaction: background work gives way when it commits."""
    await tx.one(SQL["announce_request"], by=by, channel=CHANNEL, said=REQUEST)


class RequestNotes:
    """Notes for one process that people ask for something; once a second is enough."""

    def __init__(self, db: Database, by: str) -> None:
        self._db = db
        self._by = by
        self._noted = float("-inf")

    async def note_request(self) -> None:
        """Never fails, and never keeps the person waiting for long: a lost note delays nobody but the background."""
        if monotonic() - self._noted < EVERY:
            return
        self._noted = monotonic()
        try:
            async with self._db.transaction() as tx:
                await announce_request(tx, by=self._by)
        except GristmillError as error:
            log.warning("request.not_noted", error=str(error)[:200])


class LastRequest(NamedTuple):
    """When a person last asked, and how long ago that is."""

    at: datetime | None
    ago: timedelta | None


async def load_last_request(tx: Tx) -> LastRequest:
    return await tx.one(SQL["last_request"], LastRequest) or LastRequest(None, None)


@dataclass(eq=False)
class BackgroundItem:
    """Background work that gives way: `called` is set when a person asks, or when nobody wants its item any more."""

    item: WorkItemId | None = None  # None: work that is done for no item
    called: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: bool = False  # nobody wants it any more

    def hear(self, said: str) -> None:
        if self.item is not None and said == f"{STOP} {self.item}":
            self.stopped = True
            self.called.set()
        elif said == REQUEST:
            self.called.set()


class RequestWatch:
    """Listens for requests as long as an item runs in this process; one connection for all of them."""

    def __init__(self, db: Database, is_router_busy: Callable[[], Awaitable[bool]] | None = None) -> None:
        self._db = db
        self._is_router_busy = is_router_busy
        self._followers: set[BackgroundItem] = set()
        self._listening: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._seen: datetime | None = None

    @asynccontextmanager
    async def follow(self, item: WorkItemId | None = None) -> AsyncGenerator[BackgroundItem]:
        """From here on nothing that is said is missed."""
        follower = BackgroundItem(item)
        self._followers.add(follower)
        if self._listening is None or self._listening.done():
            self._ready.clear()
            self._listening = asyncio.create_task(self._listen())
        try:
            await self._ready.wait()
            yield follower
        finally:
            self._followers.discard(follower)
            if not self._followers:
                listening, self._listening = self._listening, None
                await _end(listening)

    async def wait_for_silence(self, follower: BackgroundItem, quiet: timedelta) -> bool:
        """Whether nobody has asked for so long; False as soon as somebody asks, or the item is wanted no more."""
        while not follower.called.is_set():
            wait = await self._measure_wait(quiet)
            if wait <= 0:
                return True
            try:
                async with asyncio.timeout(wait):
                    await follower.called.wait()
            except TimeoutError:
                continue
        return False

    async def _measure_wait(self, quiet: timedelta) -> float:
        """Seconds until it may have been quiet for long enough."""
        async with self._db.reading() as tx:
            last = await load_last_request(tx)
        self._seen = last.at
        if await self._works_for_people():
            return EVERY
        return 0.0 if last.ago is None else (quiet - last.ago).total_seconds()

    async def _works_for_people(self) -> bool:
        if self._is_router_busy is None:
            return False
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._is_router_busy()
        except TimeoutError:
            return False

    async def _listen(self) -> None:
        while True:
            try:
                async with Notices(self._db, CHANNEL) as notices:
                    self._ready.set()
                    while True:
                        for said in await notices.wait(EVERY):
                            self._tell(said)
                        await self._look()
            except Unreachable as error:
                log.warning("requests.not_heard", error=str(error)[:200])
                self._ready.set()  # followers need not wait for us: they look into the database themselves
                await asyncio.sleep(EVERY)

    async def _look(self) -> None:
        """Look for requests whose notice was lost, and for those that only the router knows of."""
        if all(one.called.is_set() for one in self._followers):
            return
        async with self._db.reading() as tx:
            last = await load_last_request(tx)
        if last.at != self._seen or await self._works_for_people():
            self._seen = last.at
            self._tell(REQUEST)

    def _tell(self, said: str) -> None:
        for follower in self._followers:
            follower.hear(said)


async def _end(listening: "asyncio.Task[None] | None") -> None:
    if listening is not None:
        listening.cancel()
        await asyncio.wait({listening})
