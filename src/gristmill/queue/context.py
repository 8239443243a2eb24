"""What a running handler can ask about its own task, or about the batch it answers."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

from gristmill.errors import Cancelled, Permanent, Refused
from gristmill.ids import TaskId
from gristmill.processes import call_context, tell
from gristmill.queue.limiter import Limit, Limiters
from gristmill.telemetry import WorkerMetrics


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """How far a task is."""

    current: int
    total: int | None = None
    message: str | None = None


class Member(Protocol):
    """The part of a claim that a handler may see."""

    id: TaskId
    attempt: int
    cancelled: bool


@dataclass(slots=True)
class ChildMember:
    """A member in a child process; a cancel kills the process, so it is never seen as cancelled."""

    id: TaskId
    attempt: int
    cancelled: bool = False


class Running:
    """The task that this handler is answering, or all tasks of its batch."""

    __slots__ = ("_batch", "_limiters", "_members", "_metrics", "_report")

    def __init__(
        self,
        members: Sequence[Member],
        report: Callable[[TaskId, TaskProgress], None],
        limiters: Limiters | None = None,
        metrics: WorkerMetrics | None = None,
        *,
        batch: bool = False,
    ) -> None:
        self._members = members
        self._report = report
        self._limiters = limiters
        self._metrics = metrics
        self._batch = batch

    @property
    def ids(self) -> tuple[TaskId, ...]:
        """The tasks of the batch, in the order of its letters."""
        return tuple(member.id for member in self._members)

    @property
    def id(self) -> TaskId:
        return self._only("id").id

    @property
    def attempt(self) -> int:
        return self._only("attempt").attempt

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of the task: give it to the outside, which may hear from us more than once."""
        return f"gristmill-{self._only('idempotency_key').id}"

    def progress(self, current: int, total: int | None = None, message: str | None = None) -> None:
        """Show how far it is (of a batch: how far all of it is); also where a cancelled task stops."""
        self.check()
        for member in self._members:
            self._report(member.id, TaskProgress(current, total, message))

    def check(self) -> None:
        """Raises Cancelled if somebody cancelled this task, or every task of this batch."""
        if all(member.cancelled for member in self._members):
            raise Cancelled("cancelled while it ran")

    @asynccontextmanager
    async def take(self, name: str, limit: Limit | None = None, **patience: Any) -> AsyncGenerator[None]:
        """Wait for one's turn before a call to the outside: `async with current().take("llm", Limit(concurrency=5))`.

        With `if_set=True`, a limiter that nobody has set keeps nobody waiting. Calls under the name
        `llm`, or `llm:…`, are counted as calls to language models.
        """
        if self._limiters is None or self._metrics is None:
            raise Permanent(
                "a child process cannot take from a limiter: take the turn in a coroutine, then send a letter"
            )
        async with self._limiters.take(name, limit, **patience):
            if name.partition(":")[0] != "llm":
                yield
                return
            try:
                yield
            except BaseException:
                self._metrics.count_llm_call("failed")
                raise
            self._metrics.count_llm_call("ok")

    def count_limit(self, domain: str) -> None:
        """Somebody outside asked us to come again later (429): the metrics tell who, and how often."""
        if self._metrics is not None:
            self._metrics.count_rate_limit_hit(domain)

    def _only(self, what: str) -> Member:
        if self._batch:
            raise Permanent(f"a batch has many tasks, and so no {what} of its own: current().ids names them")
        return self._members[0]


_current: ContextVar[Running] = ContextVar("gristmill_task")


def current() -> Running:
    """The task being answered here: `current().progress(3, 10, "page 3")`."""
    running = _current.get(None)
    if running is not None:
        return running
    told = call_context()
    if told is None:
        raise Refused("Nothing is being answered here: current() is known to a handler and to what it calls.")
    members, batch = told
    return Running([ChildMember(*member) for member in members], _tell_progress, batch=batch)


def set_current(running: Running) -> None:
    _current.set(running)


def describe_members(members: Sequence[Member], *, batch: bool) -> tuple[Any, ...]:
    """The context of a call in a child process, in plain values: the child need not import this room to read it."""
    return [(member.id, member.attempt) for member in members], batch


def _tell_progress(task: TaskId, progress: TaskProgress) -> None:
    tell((task, progress.current, progress.total, progress.message))
