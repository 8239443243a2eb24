"""Named limiters, shared through the database, that a handler takes from before it calls the outside."""

import asyncio
import random
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from typing import Any, NamedTuple, Self

import psycopg

from gristmill.db import Database, Tx, queries
from gristmill.errors import NoTurn, Refused, Transient
from gristmill.ids import WorkerId
from gristmill.queue.rates import Rate, RecentStarts, free_starts, rate_of, remember_starts

SQL = queries("gristmill.queue", "limiter.sql")
ZERO = timedelta(0)
NOTHING = RecentStarts()
POLL = (0.05, 0.1, 0.2, 0.5, 1.0)  # seconds between looks for a free hold, in case a notification is lost
UNSET = 10.0  # seconds between looks for a limiter that nobody has set, in case a notification is lost
BUSY = (timedelta(seconds=1), timedelta(seconds=10))  # when to come back if nobody knows how long the holders take


@dataclass(frozen=True)
class LimiterRow:
    """What the table `limiter` says of one at `now`."""

    concurrency: int | None
    rate_count: int | None
    rate_period: timedelta | None
    gap_min: timedelta
    gap_max: timedelta
    next_at: datetime | None
    recent_at: list[datetime]
    recent_n: list[int]
    now: datetime


@dataclass(frozen=True)
class LockedLimiter(LimiterRow):
    """`forgotten` if nobody has used it for an hour."""

    forgotten: bool


@dataclass(frozen=True)
class ListedLimiter(LimiterRow):
    """With its name and how many hold it."""

    name: str
    held: int


class _Holds(NamedTuple):
    """How many hold a limiter, and in how long the first of them lets go."""

    held: int
    first: timedelta | None


class _Freed(NamedTuple):
    """A limiter that a worker held so many times."""

    limiter: str
    n: int


@dataclass(frozen=True)
class Limit:
    """How many at once, how many per period, and how far apart (a random time between the two)."""

    concurrency: int | None = None
    rate: Rate | None = None
    gap: tuple[timedelta, timedelta] = (ZERO, ZERO)

    def __post_init__(self) -> None:
        if self.concurrency is not None and self.concurrency < 1:
            raise Refused(f"A concurrency of {self.concurrency} would let nobody through.")
        if self.rate is not None and (self.rate.count < 1 or self.rate.period <= ZERO):
            raise Refused("A rate needs a count of at least one and a period longer than zero.")
        if not ZERO <= self.gap[0] <= self.gap[1]:
            raise Refused("A gap goes from a shorter to a longer time, neither of them negative.")

    @classmethod
    def of(cls, row: LimiterRow) -> Self:
        return cls(row.concurrency, rate_of(row.rate_count, row.rate_period), (row.gap_min, row.gap_max))

    @property
    def columns(self) -> dict[str, Any]:
        rate = {"rate_count": self.rate and self.rate.count, "rate_period": self.rate and self.rate.period}
        return {"concurrency": self.concurrency, **rate, "gap_min": self.gap[0], "gap_max": self.gap[1]}


@dataclass(frozen=True)
class Turns:
    """The turns that were given away: the next is not before `next_at`, and `recent` lie within the rate's period."""

    next_at: datetime | None = None
    recent: RecentStarts = NOTHING

    @classmethod
    def of(cls, row: LimiterRow) -> Self:
        return cls(row.next_at, RecentStarts(tuple(row.recent_at), tuple(row.recent_n)))

    @property
    def columns(self) -> dict[str, Any]:
        return {"next_at": self.next_at, "recent_at": list(self.recent.at), "recent_n": list(self.recent.n)}


@dataclass(frozen=True)
class LimiterStatus:
    """A limiter as people see it: `held` call right now, `recent` started within the period, or will."""

    name: str
    limit: Limit
    held: int
    recent: int
    next_at: datetime | None


def next_turn(limit: Limit, turns: Turns, now: datetime, gap: timedelta) -> tuple[datetime, Turns]:
    """The next turn, and the turns once it is given away; the turn after it comes `gap` later."""
    at = max(now, turns.next_at or now, *turns.recent.at[-1:])  # behind all turns that were given away
    recent = NOTHING
    if limit.rate is not None:
        _, later = free_starts(limit.rate, turns.recent, at)
        at = later or at
        recent = remember_starts(limit.rate, turns.recent, at, 1)
    return at, Turns(at + gap if gap else None, recent)


@dataclass(frozen=True)
class _Turn:
    """A turn that we took: `before` and `since` are the turns given away without it and with it."""

    wait: timedelta
    hold: int | None
    before: Turns
    since: Turns


@dataclass(frozen=True)
class _Far:
    """The next turn is farther away than we would wait."""

    wait: timedelta


@dataclass(frozen=True)
class _Full:
    """All holds are taken; the first of them ends at the latest after `first`."""

    first: timedelta


class Limiters:
    """Gives turns; one per process, shared by its handlers."""

    def __init__(
        self,
        db: Database,
        *,
        worker: WorkerId | None = None,
        on_hit: Callable[[str], None] = lambda _: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._db = db
        self._worker = worker
        self._on_hit = on_hit
        self._sleep = sleep
        self._freed: dict[str, asyncio.Event] = {}
        self._unset: dict[str, float] = {}  # limiters that were not there, and when to look again
        self._words = 0  # notifications of limiters so far

    @asynccontextmanager
    async def take(
        self,
        name: str,
        limit: Limit | None = None,
        *,
        patience: timedelta = timedelta(seconds=60),
        hold: timedelta = timedelta(minutes=10),
        if_set: bool = False,
    ) -> AsyncGenerator[None]:
        """Wait for a turn, and hold it until the block ends (for `hold` at most: then it counts as ended).

        `limit` is used when there is no such limiter yet; with `if_set`, nobody waits for one that is not there.
        A turn farther away than `patience` is not taken: NoTurn says when to come back. Turns are given in order
        and slept for; a call may come a little later than its turn, never earlier. Whoever is cancelled while
        waiting gives everything back, except that a turn of a rate or gap stays used if others have queued up
        behind it.
        """
        _check_name(name)
        if if_set and not await self._is_set(name):
            yield
            return
        mine = await self._turn(name, limit, patience, hold)
        try:
            await self._until(name, mine)
            yield
        finally:
            await self._let_go(name, mine.hold)

    def wake(self, name: str) -> None:
        """A hold of this limiter came free, or it was set (NOTIFY 'limiter NAME'): whoever waits looks at once."""
        self._words += 1
        self._unset.pop(name, None)
        if freed := self._freed.pop(name, None):
            freed.set()

    async def _is_set(self, name: str) -> bool:
        """Whether there is such a limiter; where there is none, calls cost nothing but a look now and then."""
        now, words = asyncio.get_running_loop().time(), self._words
        if now < self._unset.get(name, now):
            return False
        async with self._db.transaction() as tx:
            found = bool(await tx.value(SQL["is_set"], name=name))
        if not found and words == self._words:  # a notification that came while we looked may be about this limiter
            self._unset[name] = now + UNSET
        return found

    async def _turn(self, name: str, limit: Limit | None, patience: timedelta, hold: timedelta) -> _Turn:
        clock = asyncio.get_running_loop().time
        start = clock()
        for look in count():
            # listen before looking again, so that no notification is missed
            freed = self._freed.setdefault(name, asyncio.Event()) if look else None
            left = max(patience - timedelta(seconds=clock() - start), ZERO)
            found = await self._look(name, limit, left, hold)
            if look == 0 and not (isinstance(found, _Turn) and found.wait <= ZERO):
                self._on_hit(name)
            match found:
                case _Turn():
                    return found
                case _Far(wait):
                    raise NoTurn(f"rate-limited by {name}: no turn for {wait.total_seconds():.1f} s", wait)
                case _Full(first) if left <= ZERO:
                    raise NoTurn(f"rate-limited by {name}: fully taken", min(max(first, BUSY[0]), BUSY[1]))
                case _Full():
                    if freed:
                        await _await_word(freed, min(POLL[min(look, len(POLL)) - 1], left.total_seconds()))
        raise AssertionError("patience has an end")

    async def _look(self, name: str, limit: Limit | None, patience: timedelta, hold: timedelta) -> _Turn | _Far | _Full:
        """Take the next turn, unless it is too far away or there is no hold to go with it."""
        async with self._db.transaction() as tx:
            row = await _lock_limiter(tx, name, limit)
            rules, turns = Limit.of(row), Turns.of(row)
            if rules.concurrency is not None:
                holds = await tx.one(SQL["holds"], _Holds, name=name)
                assert holds is not None
                if holds.first is not None and holds.held >= rules.concurrency:
                    return _Full(holds.first)
            at, moved = next_turn(rules, turns, row.now, _gap(rules))
            if at - row.now > patience:
                return _Far(at - row.now)
            if moved != turns or row.forgotten:  # or the janitor would delete it as unused
                await tx.execute(SQL["move"], name=name, **moved.columns)
            held = None
            if rules.concurrency is not None:
                held = await tx.only_value(SQL["hold"], int, name=name, worker=self._worker, until=at + hold)
            return _Turn(at - row.now, held, turns, moved)

    async def _until(self, name: str, mine: _Turn) -> None:
        if mine.wait <= ZERO:
            return
        try:
            # the database read its clock before its answer reached us, so this ends late rather than early
            await self._sleep(mine.wait.total_seconds())
        except asyncio.CancelledError:
            await self._give_back(name, mine)
            raise

    async def _give_back(self, name: str, mine: _Turn) -> None:
        ours = {f"our_{column}": value for column, value in mine.since.columns.items()}
        with suppress(psycopg.Error, Transient):  # then the turn stays used
            async with self._db.transaction() as tx:
                await tx.execute(SQL["give_back"], name=name, **mine.before.columns, **ours)

    async def _let_go(self, name: str, hold: int | None) -> None:
        if hold is None:
            return
        # the call is over, even if the database is away now; the hold ends by itself
        with suppress(psycopg.Error, Transient):
            async with self._db.transaction() as tx:
                await tx.one(SQL["let_go"], id=hold)
        self.wake(name)


async def set_limit(tx: Tx, name: str, limit: Limit) -> None:
    """Change a limiter, or make it; turns that were given away stay as they are."""
    _check_name(name)
    await tx.one(SQL["set"], name=name, **limit.columns)


async def list_limiters(tx: Tx) -> list[LimiterStatus]:
    return [_status(row) for row in await tx.all(SQL["all"], ListedLimiter)]


async def release_holds(tx: Tx, worker: WorkerId) -> int:
    """End all holds of a worker that is gone; how many there were."""
    return sum(row.n for row in await tx.all(SQL["let_go_of_worker"], _Freed, worker=worker))


async def _await_word(freed: asyncio.Event, patience: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(patience):
            await freed.wait()


async def _lock_limiter(tx: Tx, name: str, limit: Limit | None) -> LockedLimiter:
    row = await tx.one(SQL["lock"], LockedLimiter, name=name)
    if row is None and limit is not None:
        await tx.execute(SQL["ensure"], name=name, **limit.columns)
        row = await tx.one(SQL["lock"], LockedLimiter, name=name)
    if row is None:
        raise Refused(f"There is no limiter “{name}”: give it a limit first.")
    return row


def _gap(limit: Limit) -> timedelta:
    low, high = limit.gap
    return timedelta(seconds=random.uniform(low.total_seconds(), high.total_seconds()))


def _status(row: ListedLimiter) -> LimiterStatus:
    limit, turns = Limit.of(row), Turns.of(row)
    recent = limit.rate.count - free_starts(limit.rate, turns.recent, row.now)[0] if limit.rate else 0
    return LimiterStatus(row.name, limit, row.held, recent, turns.next_at)


def _check_name(name: str) -> None:
    if not re.fullmatch(r"\S{1,200}", name):
        raise Refused(f"“{name[:200]}” cannot be the name of a limiter: use up to 200 characters, no blanks.")
