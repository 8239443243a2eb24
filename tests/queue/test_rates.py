"""The arithmetic of rates: never more than agreed, and never much less."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.queue.rates import ENTRIES, Rate, RecentStarts, free_starts, remember_starts

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TEN_A_MINUTE = Rate(10, timedelta(seconds=60))


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def started(*entries: tuple[float, int]) -> RecentStarts:
    return RecentStarts(tuple(at(s) for s, _ in entries), tuple(n for _, n in entries))


@pytest.mark.parametrize(
    ("recent", "now", "expected"),
    [
        pytest.param((), 0, (10, None), id="nothing yet: all may start"),
        pytest.param([(0, 4)], 30, (6, None), id="four used: six left"),
        pytest.param([(0, 10)], 59.999, (0, 60), id="all used: the next a period after the oldest"),
        pytest.param([(0, 10)], 60, (10, None), id="a whole period later all may start again"),
        pytest.param([(0, 4), (20, 6)], 30, (0, 60), id="the oldest four come free first"),
        pytest.param([(0, 4), (20, 6)], 60, (4, None), id="then four may start"),
        pytest.param([(0, 4), (20, 10)], 30, (0, 80), id="after the count was lowered, several must age"),
        pytest.param([(40, 10)], 30, (0, 100), id="turns that lie ahead are not overtaken"),
    ],
)
def test_how_many_may_start(recent, now, expected):
    n, when = expected
    assert free_starts(TEN_A_MINUTE, started(*recent), at(now)) == (n, None if when is None else at(when))


def test_what_is_older_than_the_period_is_forgotten():
    assert remember_starts(TEN_A_MINUTE, started((0, 4), (20, 3)), at(60), 2) == started((20, 3), (60, 2))


def test_starts_at_the_same_instant_are_one_entry():
    assert remember_starts(TEN_A_MINUTE, started((20, 3)), at(20), 2) == started((20, 5))


def test_a_clock_that_went_back_does_not_break_the_order():
    assert remember_starts(TEN_A_MINUTE, started((20, 3)), at(10), 2) == started((20, 5))


def test_starting_nothing_only_forgets():
    assert remember_starts(TEN_A_MINUTE, started((0, 4), (20, 3)), at(70), 0) == started((20, 3))


def test_few_starts_are_remembered_exactly_and_many_within_a_fiftieth_of_the_period():
    rate = Rate(1000, timedelta(seconds=60))
    recent = RecentStarts()
    for i in range(60):
        recent = remember_starts(rate, recent, at(i / 10), 1)
    assert recent == started(*[(i / 10, 1) for i in range(60)])
    recent = remember_starts(rate, recent, at(6), 1)
    assert len(recent.at) == 6  # cells of 1.2 s, the last of which has just begun
    assert (sum(recent.n), recent.at[-1]) == (61, at(6))


RATES = st.builds(
    Rate, st.integers(1, 200), st.sampled_from([1, 60, 3600]).map(lambda seconds: timedelta(seconds=seconds))
)
# how much of the period passes before a request, in thousandths (none: until it was told), and what it wants
ANY = st.tuples(st.integers(0, 1200) | st.integers(0, 30) | st.none(), st.integers(1, 250))
# enough of these, and neighbours are merged
DENSE = st.tuples(st.integers(0, 8), st.integers(1, 3))
REQUESTS = st.builds(
    lambda dense, others: [*dense, *others],
    st.just([]) | st.lists(DENSE, min_size=70, max_size=100),
    st.lists(ANY, max_size=40),
)
unhurried = settings(deadline=None, max_examples=60)  # the machine may be busy


def history(rate, requests):
    """Yield before each request what is remembered, what is true, and the time; then start what may start."""
    recent, truth, now = RecentStarts(), [], NOON
    for wait, wanted in requests:
        now = now + rate.period * wait / 1000 if wait is not None else free_starts(rate, recent, now)[1] or now
        n, when = free_starts(rate, recent, now)
        yield recent, truth, now, n, when
        if n := min(n, wanted):
            recent = remember_starts(rate, recent, now, n)
            truth.append((now, n))


def within(truth, period, now):
    return sum(n for when, n in truth if when > now - period)


@unhurried
@given(RATES, REQUESTS)
def test_no_window_ever_holds_more_than_the_count(rate, requests):
    *_, (_, truth, *_) = history(rate, [(0, 1), *requests, (0, 1)])
    for when, _ in truth:
        assert sum(n for other, n in truth if when <= other < when + rate.period) <= rate.count


@unhurried
@given(RATES, REQUESTS)
def test_it_is_never_stricter_than_the_merging_explains(rate, requests):
    for _, truth, now, n, when in history(rate, requests):
        exact = rate.count - within(truth, rate.period, now)
        assert rate.count - within(truth, rate.period + rate.grain, now) <= n <= exact
        if n == 0:
            assert when is not None
            assert within(truth, rate.period, when) < rate.count
            assert when > now


@unhurried
@given(RATES, REQUESTS)
def test_what_is_remembered_stays_small_and_in_order(rate, requests):
    for recent, *_ in history(rate, requests):
        assert len(recent.at) == len(recent.n) <= ENTRIES
        assert list(recent.at) == sorted(set(recent.at))


@unhurried
@given(RATES, REQUESTS)
def test_whoever_waits_until_told_finds_room(rate, requests):
    for recent, _, _, n, when in history(rate, requests):
        if n == 0:
            assert when is not None
            assert free_starts(rate, recent, when)[0] > 0
            assert free_starts(rate, recent, when - timedelta(microseconds=1))[0] == 0
