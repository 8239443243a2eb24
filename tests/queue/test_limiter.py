"""Limiters: whoever calls the outside waits for a turn, wherever it runs."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.conninfo import make_conninfo

from gristmill.db import Database
from gristmill.errors import Overloaded, Refused
from gristmill.ids import WorkerId
from gristmill.queue.limiter import (
    Limit,
    Limiters,
    Turns,
    list_limiters,
    next_turn,
    release_holds,
    set_limit,
)
from gristmill.queue.rates import Rate

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
NEVER = timedelta(0)
LLM = Limit(concurrency=5, rate=Rate(5, MINUTE), gap=(SECOND, SECOND))
# the same in minutes for the database, so that a slow machine does not catch up with its turns
SLOW_LLM = Limit(concurrency=5, rate=Rate(5, HOUR), gap=(MINUTE, MINUTE))
ALONE = Limit(concurrency=1)


class Patience:
    """Sleeps for nobody: remembers how long each would have slept."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)


class Slumber:
    """Sleeps for ever, and tells how many do."""

    def __init__(self) -> None:
        self.sleepers = asyncio.Semaphore(0)

    async def __call__(self, seconds: float) -> None:
        self.sleepers.release()
        await asyncio.Event().wait()


async def state(db: Database, name: str):
    async with db.transaction() as tx:
        return next((one for one in await list_limiters(tx) if one.name == name), None)


async def lined_up(db: Database, name: str) -> list[datetime]:
    async with db.transaction() as tx:
        return await tx.value("SELECT recent_at FROM limiter WHERE name = %(name)s", name=name)


async def held(stack: AsyncExitStack, limiters: Limiters, name: str, limit: Limit, **how) -> None:
    await stack.enter_async_context(limiters.take(name, limit, **how))


async def gone(task: asyncio.Task) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# The arithmetic


def turns(limit: Limit, arrivals: list[float], gap: timedelta) -> Iterator[float]:
    taken = Turns()
    for seconds in arrivals:
        at, taken = next_turn(limit, taken, NOON + seconds * SECOND, gap)
        yield (at - NOON).total_seconds()


@pytest.mark.parametrize(
    ("limit", "gap", "arrivals", "expected"),
    [
        pytest.param(Limit(), NEVER, [0, 0, 5], [0, 0, 5], id="no limit: at once"),
        pytest.param(Limit(), 4 * SECOND, [0, 0, 1, 30], [0, 4, 8, 30], id="a gap: one after another"),
        pytest.param(Limit(rate=Rate(2, MINUTE)), NEVER, [0, 1, 2, 3, 4], [0, 1, 60, 61, 120], id="a rate"),
        pytest.param(LLM, SECOND, [0] * 7, [0, 1, 2, 3, 4, 60, 61], id="both: whichever is later"),
    ],
)
def test_turns_are_given_in_order(limit, gap, arrivals, expected):
    assert list(turns(limit, arrivals, gap)) == expected


@given(
    st.integers(1, 8),
    st.integers(0, 3),
    st.lists(st.floats(0, 20), max_size=60).map(sorted),
)
def test_no_window_holds_more_turns_than_the_rate_and_none_overtakes(number, gap, arrivals):
    given = list(turns(Limit(rate=Rate(number, 10 * SECOND)), arrivals, gap * SECOND))
    assert given == sorted(given)
    for one in given:
        assert sum(one <= other < one + 10 - 1e-5 for other in given) <= number
    for one, other in pairwise(given):
        assert other - one >= gap - 1e-5


# The database


async def test_the_first_to_come_goes_at_once(db):
    hits: list[str] = []
    sleep = Patience()
    async with Limiters(db, on_hit=hits.append, sleep=sleep).take("llm", SLOW_LLM, patience=HOUR):
        assert (await state(db, "llm")).held == 1
    assert ((await state(db, "llm")).held, sleep.slept, hits) == (0, [], [])


async def test_those_who_come_at_once_are_spread_by_rate_and_gap(db):
    hits: list[str] = []
    sleep = Patience()
    limiters = Limiters(db, on_hit=hits.append, sleep=sleep)
    for _ in range(7):
        async with limiters.take("llm", SLOW_LLM, patience=2 * HOUR):
            pass
    given = await lined_up(db, "llm")  # the last hour of them: minutes 2, 3, 4, 60 and 61
    assert [other - one for one, other in pairwise(given)] == [m * MINUTE for m in (1, 1, 56, 1)]
    assert [round(seconds / 60) for seconds in sleep.slept] == [1, 2, 3, 4, 60, 61]
    assert hits == ["llm"] * 6


async def test_calls_to_a_domain_are_a_random_time_apart(db):
    limiters = Limiters(db, sleep=Patience())
    polite = Limit(gap=(3 * SECOND, 5 * SECOND))
    following: list[datetime] = []
    for _ in range(8):
        async with limiters.take("narodne-novine.nn.hr", polite, patience=HOUR):
            following.append((await state(db, "narodne-novine.nn.hr")).next_at)
    gaps = [other - one for one, other in pairwise(following)]
    assert all(3 * SECOND <= gap <= 5 * SECOND for gap in gaps)
    assert len(set(gaps)) > 1


async def test_a_turn_too_far_away_is_not_taken_and_says_when_to_come_back(db):
    hits: list[str] = []
    limiters = Limiters(db, on_hit=hits.append, sleep=Patience())
    rare = Limit(concurrency=3, rate=Rate(1, HOUR))
    async with limiters.take("rare", rare):
        before = await state(db, "rare")
        with pytest.raises(Overloaded) as sent_away:
            await limiters.take("rare", rare, patience=MINUTE).__aenter__()
        assert 59 * MINUTE < sent_away.value.retry_after <= HOUR
        assert await state(db, "rare") == before
    assert hits == ["rare"]


async def connected(*databases: Database) -> None:
    """Open all connections at once: while a pool still grows, its users go one by one."""
    everybody = asyncio.Barrier(4 * len(databases))

    async def connect(db: Database) -> None:
        async with db.transaction():
            await everybody.wait()

    await asyncio.gather(*[connect(db) for db in databases for _ in range(4)])


async def test_two_workers_share_one_limiter(url):
    inside = most = done = found_full = 0
    all_others_wait = asyncio.Event()

    def hit(_: str) -> None:
        nonlocal found_full
        found_full += 1
        if found_full == 24 - 3:
            all_others_wait.set()

    async def call(limiters: Limiters) -> None:
        nonlocal inside, most, done
        async with limiters.take("llm"):
            inside += 1
            most = max(most, inside)
            await all_others_wait.wait()
            inside -= 1
            done += 1

    async with Database(url) as one, Database(url) as other:
        await connected(one, other)
        async with one.transaction() as tx:
            await set_limit(tx, "llm", Limit(concurrency=3))
        workers = [Limiters(db, worker=WorkerId(i), on_hit=hit) for i, db in enumerate((one, other))]
        async with asyncio.timeout(60):
            await asyncio.gather(*[call(workers[i % 2]) for i in range(24)])
        assert (await state(one, "llm")).held == 0
    assert (most, done) == (3, 24)


async def test_two_workers_never_get_the_same_turn(url):
    sleep = Patience()

    async def call(limiters: Limiters) -> None:
        async with limiters.take("llm", Limit(rate=Rate(50, HOUR), gap=(MINUTE, MINUTE)), patience=HOUR):
            pass

    async with Database(url) as one, Database(url) as other:
        workers = [Limiters(one, sleep=sleep), Limiters(other, sleep=sleep)]
        await asyncio.gather(*[call(workers[i % 2]) for i in range(20)])
        given = await lined_up(one, "llm")
    assert [other - one for one, other in pairwise(given)] == [MINUTE] * 19
    assert len(sleep.slept) == 19


async def test_whoever_finds_it_full_goes_when_a_hold_comes_free(db):
    waits = asyncio.Event()
    limiters = Limiters(db, on_hit=lambda _: waits.set())
    order: list[str] = []

    async def second() -> None:
        async with limiters.take("one", ALONE):
            order.append("second in")

    async with asyncio.timeout(60):
        async with limiters.take("one", ALONE):
            waiting = asyncio.create_task(second())
            await waits.wait()
            order.append("first out")
        await waiting
    assert order == ["first out", "second in"]


async def test_whoever_finds_it_full_for_too_long_is_sent_away(db):
    limiters = Limiters(db)
    async with limiters.take("one", ALONE):
        with pytest.raises(Overloaded, match="fully taken") as sent_away:
            await limiters.take("one", ALONE, patience=NEVER).__aenter__()
        assert SECOND <= sent_away.value.retry_after <= 10 * SECOND
        with pytest.raises(Overloaded):
            await limiters.take("one", ALONE, patience=SECOND / 20).__aenter__()
        assert (await state(db, "one")).held == 1


@pytest.mark.parametrize("trouble", [ValueError, asyncio.CancelledError])
async def test_a_call_that_fails_lets_go(db, trouble):
    with suppress(trouble):
        async with Limiters(db).take("one", ALONE):
            raise trouble
    assert (await state(db, "one")).held == 0


async def test_a_dead_worker_holds_nothing_once_it_is_known_to_be_dead(db):
    living, dead = WorkerId(1), WorkerId(2)
    async with AsyncExitStack() as stack:
        await held(stack, Limiters(db, worker=dead), "pair", Limit(concurrency=2))
        await held(stack, Limiters(db, worker=living), "pair", Limit(concurrency=2))
        with pytest.raises(Overloaded):
            await Limiters(db).take("pair", patience=NEVER).__aenter__()
        async with db.transaction() as tx:
            assert await release_holds(tx, dead) == 1
        async with Limiters(db).take("pair", patience=NEVER):
            assert (await state(db, "pair")).held == 2


async def test_a_hold_ends_at_its_time_even_if_nobody_lets_go(url):
    later = make_conninfo(url, options="-c gristmill.clock_offset=11min")
    async with Database(url) as now, Database(later) as then, AsyncExitStack() as stack:
        await held(stack, Limiters(now), "one", ALONE, hold=10 * MINUTE)
        with pytest.raises(Overloaded):
            await Limiters(now).take("one", patience=NEVER).__aenter__()
        async with Limiters(then).take("one", patience=NEVER):
            assert (await state(then, "one")).held == 1


async def test_a_limit_changed_at_run_time_wins_over_the_default(db):
    limiters = Limiters(db, sleep=Patience())
    async with db.transaction() as tx:
        await set_limit(tx, "llm", Limit(concurrency=2))
    async with AsyncExitStack() as stack:
        await held(stack, limiters, "llm", ALONE)
        await held(stack, limiters, "llm", ALONE, patience=NEVER)
        with pytest.raises(Overloaded):
            await held(stack, limiters, "llm", ALONE, patience=NEVER)
        async with db.transaction() as tx:
            await set_limit(tx, "llm", Limit(concurrency=3, gap=(SECOND, 2 * SECOND)))
        await held(stack, limiters, "llm", ALONE, patience=NEVER)
    assert (await state(db, "llm")).limit == Limit(concurrency=3, gap=(SECOND, 2 * SECOND))


async def test_a_shorter_gap_counts_at_once(db):
    limiters = Limiters(db, sleep=Patience())
    async with limiters.take("slow", Limit(gap=(HOUR, HOUR))):
        pass
    async with db.transaction() as tx:
        await set_limit(tx, "slow", Limit(gap=(SECOND, SECOND)))
    async with limiters.take("slow", patience=2 * SECOND):
        pass


async def test_whoever_is_cancelled_while_waiting_gives_the_place_back(db):
    slumber = Slumber()
    limiters = Limiters(db, sleep=slumber)
    async with limiters.take("llm", SLOW_LLM, patience=HOUR):
        before, line = await state(db, "llm"), await lined_up(db, "llm")
        waiting = asyncio.create_task(limiters.take("llm", SLOW_LLM, patience=HOUR).__aenter__())
        await slumber.sleepers.acquire()
        assert (await state(db, "llm")).held == 2
        await gone(waiting)
        assert (await state(db, "llm"), await lined_up(db, "llm")) == (before, line)


async def test_a_turn_stays_used_when_others_are_behind_it(db):
    slumber = Slumber()
    limiters = Limiters(db, sleep=slumber)
    async with limiters.take("llm", SLOW_LLM, patience=HOUR):
        waiting = []
        for _ in range(2):
            waiting.append(asyncio.create_task(limiters.take("llm", SLOW_LLM, patience=HOUR).__aenter__()))
            await slumber.sleepers.acquire()
        first, second, third = await lined_up(db, "llm")
        assert (second - first, third - first) == (MINUTE, 2 * MINUTE)
        await gone(waiting[0])
        assert await lined_up(db, "llm") == [first, second, third]
        assert (await state(db, "llm")).held == 2
        await gone(waiting[1])
        assert await lined_up(db, "llm") == [first, second]


async def test_word_goes_out_when_a_hold_comes_free(db):
    async with await db.connect("listener") as listener:
        await listener.execute("LISTEN gristmill")
        async with Limiters(db).take("one", ALONE):
            pass
        told = [notice.payload async for notice in listener.notifies(timeout=60, stop_after=1)]
    assert told == ["limiter one"]


async def test_a_limiter_nobody_described_is_refused(db):
    with pytest.raises(Refused, match="There is no limiter “llm”"):
        await Limiters(db).take("llm").__aenter__()


@pytest.mark.parametrize("name", ["", "two words", "x" * 201])
async def test_a_name_that_cannot_be_told_is_refused(db, name):
    with pytest.raises(Refused, match="cannot be the name of a limiter"):
        await Limiters(db).take(name, ALONE).__aenter__()


@pytest.mark.parametrize(
    "wrong",
    [
        {"concurrency": 0},
        {"rate": Rate(0, MINUTE)},
        {"rate": Rate(1, NEVER)},
        {"gap": (2 * SECOND, SECOND)},
        {"gap": (-SECOND, SECOND)},
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(Refused):
        Limit(**wrong)


async def test_a_limiter_that_is_not_set_is_looked_for_once_and_again_when_word_of_it_comes(db: Database, monkeypatch):
    looks: list[bool] = []
    transaction = db.transaction
    monkeypatch.setattr(db, "transaction", lambda **how: looks.append(True) or transaction(**how))
    limiters = Limiters(db)
    for _ in range(3):
        async with limiters.take("llm", if_set=True):
            pass
    assert len(looks) == 1
    async with transaction() as tx:
        await set_limit(tx, "llm", ALONE)
    limiters.wake("llm")
    async with limiters.take("llm", if_set=True):
        assert (await state(db, "llm")).held == 1
