"""Decides what a failure means: another try, and when, or the dead letters."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Self

from gristmill.errors import Cancelled, NoTurn, OutOfCredit, Overloaded, Permanent, Refused, Unreachable
from gristmill.queue.outcome import Bury, Retry, Snooze, Stop

LONGEST = timedelta(days=30)  # even if the other side asks for more
CREDIT = timedelta(minutes=5)  # until a provider whose account was empty is asked again
OUTAGE = timedelta(seconds=1)  # nothing can be settled before the database is back


@dataclass(frozen=True)
class RetryPolicy:
    """How a queue retries; `attempts` None never gives up on what may pass."""

    attempts: int | None = 3
    base: timedelta = timedelta(seconds=10)
    cap: timedelta = timedelta(minutes=5)

    def of(self, max_attempts: int | None) -> Self:
        """The same for a task that has a number of attempts of its own."""
        return self if max_attempts is None else replace(self, attempts=max_attempts)


def decide(
    error: BaseException, *, attempt: int, policy: RetryPolicy, chance: float = 0.5
) -> Retry | Bury | Stop | Snooze:
    """`chance`, between 0 and 1, spreads the waits by ±20 % so that what failed together does not return together."""
    text = describe_error(error)
    match error:
        case Cancelled():
            return Stop(text)
        case Unreachable():  # our own database is away: it uses no attempt and does not count for a breaker
            return Snooze(OUTAGE)
        case NoTurn(retry_after=wait):  # a limit of our own is no failure, like the limit of a queue
            return Snooze(min(wait, LONGEST), text)
        case OutOfCredit():  # somebody has to fill the account: the task can wait as long as that takes
            return Snooze(CREDIT, text)
        case Permanent() | Refused():
            return Bury(text, permanent=True)
        case _ if policy.attempts is not None and attempt >= policy.attempts:
            return Bury(text)
        case Overloaded(retry_after=wait):
            return Retry(min(max(wait, timedelta(0)), LONGEST), text)
        case _:
            return Retry(backoff(attempt, policy) * (0.8 + 0.4 * chance), text)


def backoff(attempt: int, policy: RetryPolicy) -> timedelta:
    """base · 2^(attempt-1), at most cap."""
    seconds = policy.base.total_seconds() * 2 ** min(attempt - 1, 60)  # a timedelta would overflow
    return policy.cap if seconds >= policy.cap.total_seconds() else timedelta(seconds=seconds)


def describe_error(error: BaseException) -> str:
    """One line for people: our own errors speak for themselves, others say what they are."""
    try:
        text = str(error).strip() or type(error).__name__
    except Exception:  # noqa: BLE001 str() of an error may raise, too
        text = "it cannot be printed"
    from_us = type(error).__module__.startswith("gristmill.")
    return make_storable(text if from_us else f"{type(error).__name__}: {text}")[:2000]


def make_storable(text: str) -> str:
    """Text that PostgreSQL takes, whatever a handler put into it."""
    return text.encode(errors="backslashreplace").decode().replace("\0", "\\0")
