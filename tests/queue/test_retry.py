"""What a failure means: another try, and when, or the dead letters."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.errors import (
    Cancelled,
    GristmillError,
    LeaseLost,
    NoTurn,
    OutOfCredit,
    Overloaded,
    Permanent,
    Refused,
    Transient,
    Unreachable,
)
from gristmill.queue.outcome import Bury, Retry, Snooze, Stop
from gristmill.queue.retry import LONGEST, RetryPolicy, backoff, decide, describe_error

SECOND = timedelta(seconds=1)
FOR_EVER = RetryPolicy(attempts=None)


@pytest.mark.parametrize(
    ("error", "attempt", "policy", "expected"),
    [
        (Transient("busy"), 1, RetryPolicy(), Retry(10 * SECOND, "busy")),
        (Transient("busy"), 2, RetryPolicy(), Retry(20 * SECOND, "busy")),
        (Transient("busy"), 3, RetryPolicy(), Bury("busy")),
        (Transient("busy"), 4, RetryPolicy(), Bury("busy")),
        (Transient("busy"), 1, RetryPolicy(attempts=1), Bury("busy")),
        (Transient("busy"), 99, FOR_EVER, Retry(300 * SECOND, "busy")),
        (Permanent("torn"), 1, RetryPolicy(), Bury("torn", permanent=True)),
        (Permanent("torn"), 1, FOR_EVER, Bury("torn", permanent=True)),
        (Overloaded("429", 7 * SECOND), 1, RetryPolicy(), Retry(7 * SECOND, "429")),
        (Overloaded("429", 7 * SECOND), 3, RetryPolicy(), Bury("429")),
        (Overloaded("429", -SECOND), 1, RetryPolicy(), Retry(0 * SECOND, "429")),
        (NoTurn("later", 7 * SECOND), 3, RetryPolicy(), Snooze(7 * SECOND, "later")),
        (Overloaded("429", timedelta.max), 1, RetryPolicy(), Retry(LONGEST, "429")),
        (Cancelled("stopped"), 1, RetryPolicy(), Stop("stopped")),
        (Cancelled("stopped"), 9, FOR_EVER, Stop("stopped")),
        (ValueError("odd"), 1, RetryPolicy(), Retry(10 * SECOND, "ValueError: odd")),
        (ValueError("odd"), 3, RetryPolicy(), Bury("ValueError: odd")),
        (Refused("sealed"), 1, RetryPolicy(), Bury("sealed", permanent=True)),
        (OutOfCredit("empty"), 3, RetryPolicy(), Snooze(300 * SECOND, "empty")),
        (Unreachable("away"), 1, RetryPolicy(), Snooze(SECOND)),
        (Unreachable("away"), 3, RetryPolicy(), Snooze(SECOND)),
    ],
)
def test_what_an_error_means(
    error: Exception, attempt: int, policy: RetryPolicy, expected: Retry | Bury | Stop | Snooze
) -> None:
    assert decide(error, attempt=attempt, policy=policy, chance=0.5) == expected


@pytest.mark.parametrize(
    ("attempt", "seconds"), [(1, 10), (2, 20), (3, 40), (4, 80), (5, 160), (6, 300), (7, 300), (10_000, 300)]
)
def test_waits_double_up_to_five_minutes(attempt: int, seconds: int) -> None:
    assert backoff(attempt, RetryPolicy()) == seconds * SECOND


@given(
    attempt=st.integers(1, 32_767),
    base=st.timedeltas(timedelta(0), timedelta(days=30)),
    cap=st.timedeltas(timedelta(0), timedelta(days=365)),
    chance=st.floats(0, 1),
)
def test_a_wait_is_spread_by_a_fifth_around_its_backoff_and_never_beyond(
    attempt: int, base: timedelta, cap: timedelta, chance: float
) -> None:
    policy = RetryPolicy(None, base, cap)
    outcome = decide(Transient("busy"), attempt=attempt, policy=policy, chance=chance)
    assert isinstance(outcome, Retry)
    middle = backoff(attempt, policy)
    assert middle <= cap
    tolerance = timedelta(microseconds=1)
    assert middle * 0.8 - tolerance <= outcome.wait <= middle * 1.2 + tolerance


@given(attempts=st.integers(1, 50))
def test_a_task_gets_as_many_attempts_as_its_queue_says(attempts: int) -> None:
    policy = RetryPolicy(attempts)
    outcomes = [decide(Transient("busy"), attempt=n, policy=policy) for n in range(1, attempts + 1)]
    assert [type(outcome) for outcome in outcomes] == [Retry] * (attempts - 1) + [Bury]


def test_a_number_of_attempts_of_its_own_overrules_the_queues() -> None:
    assert FOR_EVER.of(2) == RetryPolicy(2)
    assert RetryPolicy(5, SECOND).of(None) == RetryPolicy(5, SECOND)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (Transient("busy"), "busy"),
        (Transient(""), "Transient"),
        (ValueError("odd"), "ValueError: odd"),
        (ValueError(), "ValueError: ValueError"),
        (KeyError("k"), "KeyError: 'k'"),
        (ValueError("x" * 9_999), ("ValueError: " + "x" * 9_999)[:2000]),
        (ValueError("a\0b"), "ValueError: a\\0b"),
        (ValueError("\ud800"), "ValueError: \\ud800"),
        (LeaseLost("gone"), "gone"),
    ],
)
def test_an_error_is_described_in_words_that_can_be_kept(error: Exception, text: str) -> None:
    assert describe_error(error) == text


@given(st.text())
def test_whatever_a_handler_says_can_be_kept(text: str) -> None:
    kept = describe_error(GristmillError(text))
    assert "\0" not in kept
    assert len(kept.encode()) <= 8000
