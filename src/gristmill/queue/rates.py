"""How many may start now under a rate: a strict sliding window, as pure functions."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ENTRIES = 60  # starts that a row remembers one by one
CELLS = 50  # fewer than ENTRIES, so that not every further start must merge again
INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True)
class Rate:
    """At most `count` starts in any window [t, t + period)."""

    count: int
    period: timedelta

    @property
    def grain(self) -> timedelta:
        """How much later than it was a start may be remembered, when there are too many to remember each."""
        return max(self.period / CELLS, INSTANT)


def rate_of(count: int | None, period: timedelta | None) -> Rate | None:
    """The rate that two columns say, if they say one."""
    return Rate(count, period) if count and period else None


@dataclass(frozen=True)
class RecentStarts:
    """What was started within the period: `n[i]` starts at `at[i]`, oldest first."""

    at: tuple[datetime, ...] = ()
    n: tuple[int, ...] = ()


def free_starts(rate: Rate, recent: RecentStarts, now: datetime) -> tuple[int, datetime | None]:
    """How many may start now; if none, when the next may.

    A start counts until a whole period has passed: the next may come exactly then. Turns that were given away
    and lie ahead of `now` count as well, so nobody overtakes them.
    """
    live = [(at, n) for at, n in zip(recent.at, recent.n, strict=True) if at + rate.period > now]
    used = sum(n for _, n in live)
    if used < rate.count:
        return rate.count - used, None
    for at, n in live:
        used -= n
        if used < rate.count:
            return 0, at + rate.period
    raise AssertionError("an empty window is free")  # count > 0


def remember_starts(rate: Rate, recent: RecentStarts, now: datetime, n: int) -> RecentStarts:
    """What is remembered once `n` more have started.

    At most 60 entries: beyond that, neighbours within a fiftieth of the period become one, at the later time.
    The cells lie on a fixed grid, so a start never moves by more than one, however often it is merged.
    """
    live = [(at, k) for at, k in zip(recent.at, recent.n, strict=True) if at + rate.period > now]
    if n > 0:
        # a clock that went back must not break the order
        live.append((max(now, live[-1][0]) if live else now, n))
    entries = _merge(live, INSTANT)
    if len(entries) > ENTRIES:
        entries = _merge(entries, rate.grain)
    return RecentStarts(tuple(at for at, _ in entries), tuple(k for _, k in entries))


def _merge(entries: list[tuple[datetime, int]], cell: timedelta) -> list[tuple[datetime, int]]:
    cells = [list(run) for _, run in groupby(entries, key=lambda entry: (entry[0] - EPOCH) // cell)]
    return [(run[-1][0], sum(n for _, n in run)) for run in cells]
