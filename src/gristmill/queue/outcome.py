"""The answers that a handler may give, and the outcomes that the queue makes of an error."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from gristmill.db import Tx
from gristmill.ids import TaskId
from gristmill.queue.letters import Envelope, Letter

Write = Callable[[Tx], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class JointWrite:
    """A write that answers make together: `run` gets the parts of all that are settled in one transaction, in one call.

    Answers that cannot be settled together are settled one by one: then `run` gets the part of each alone.
    """

    run: Callable[[Tx, Sequence[Any]], Awaitable[None]]
    part: Any

    async def __call__(self, tx: Tx) -> None:
        await self.run(tx, [self.part])


@dataclass(frozen=True, slots=True)
class Done:
    """It is done: `write` and the letters in `then` commit together with the completion, or not at all.

    `seals` names groups that get no more children. A write may seal a group, too; but groups named here are locked
    together with all groups of the same transaction, so they cannot deadlock with another worker.
    """

    write: Write | None = None
    then: Sequence[Letter | Envelope] = ()
    result: Any = None
    seals: Sequence[TaskId] = ()


@dataclass(frozen=True, slots=True)
class Skip:
    """There was nothing to do, for this reason; counts as done."""

    reason: str
    write: Write | None = None
    then: Sequence[Letter | Envelope] = ()


@dataclass(frozen=True, slots=True)
class Snooze:
    """Not now: come back after `wait`; uses no attempt. Whoever asks why is told the reason."""

    wait: timedelta
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """It failed and is tried again after `wait`."""

    wait: timedelta
    error: str


@dataclass(frozen=True, slots=True)
class Bury:
    """It failed for good; `permanent` if no number of attempts would have helped."""

    error: str
    permanent: bool = False


@dataclass(frozen=True, slots=True)
class Stop:
    """It was cancelled while it ran."""

    reason: str = "cancelled while it ran"


BARE = Done()  # the answer of most tasks: recognised by identity

Answer = Done | Skip | Snooze
Outcome = Answer | Retry | Bury | Stop
