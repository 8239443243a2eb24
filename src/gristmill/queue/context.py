"""What a running handler can ask about its own task."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from gristmill.errors import Cancelled
from gristmill.ids import TaskId
from gristmill.queue.claim import Claim
from gristmill.queue.limiter import Limit, Limiters
from gristmill.telemetry import WorkerMetrics


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a task is."""

    current: int
    total: int | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Running:
    """The task that this handler is answering."""

    claim: Claim
    report: Callable[[TaskId, Progress], None]
    limiters: Limiters
    metrics: WorkerMetrics

    @property
    def id(self) -> TaskId:
        return self.claim.id

    @property
    def attempt(self) -> int:
        return self.claim.attempt

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of the task: give it to the outside, which may hear from us more than once."""
        return f"gristmill-{self.claim.id}"

    def progress(self, current: int, total: int | None = None, message: str | None = None) -> None:
        """Show how far it is; also where a cancelled task stops."""
        self.check()
        self.report(self.claim.id, Progress(current, total, message))

    def check(self) -> None:
        """Raises Cancelled if somebody cancelled this task."""
        if self.claim.cancelled:
            raise Cancelled("cancelled while it ran")

    @asynccontextmanager
    async def take(self, name: str, limit: Limit | None = None, **patience: Any) -> AsyncGenerator[None]:
        """Wait for one's turn before a call to the outside: `async with current().take("llm", Limit(concurrency=5))`.

        Calls under the name `llm`, or `llm:…`, are counted as calls to language models.
        """
        async with self.limiters.take(name, limit, **patience):
            if name.partition(":")[0] != "llm":
                yield
                return
            try:
                yield
            except BaseException:
                self.metrics.llm_call("failed")
                raise
            self.metrics.llm_call("ok")


_current: ContextVar[Running] = ContextVar("gristmill_task")


def current() -> Running:
    """The task being answered here: `current().progress(3, 10, "page 3")`."""
    return _current.get()


def enter(running: Running) -> None:
    _current.set(running)
