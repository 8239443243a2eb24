"""What a running handler can ask about its own task."""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass

from gristmill.errors import Cancelled
from gristmill.ids import TaskId
from gristmill.queue.claim import Claim


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


_current: ContextVar[Running] = ContextVar("gristmill_task")


def current() -> Running:
    """The task being answered here: `current().progress(3, 10, "page 3")`."""
    return _current.get()


def enter(running: Running) -> None:
    _current.set(running)
