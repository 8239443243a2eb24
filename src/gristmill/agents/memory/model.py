"""What agents remember: entries of a session, and procedures with their steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from gristmill.agents.memory.matching import measure_strength
from gristmill.ids import RunId

SessionSource = Literal["chat", "background", "orchestrator_decision"]
ProcedureSource = Literal["learned", "user_defined"]

KEEP_ENTRIES = timedelta(days=7)
MOST_ENTRIES = 50  # of one client or project
LONGEST_SUMMARY = 200  # characters
MOST_STEPS = 30
LONGEST_ACTION = 300
LONGEST_PATTERN = 500
MOST_LEARNED = 100  # procedures of one client or project
FORGOTTEN = 0.05  # a learned procedure that is weaker is removed


@dataclass(frozen=True)
class SessionEntry:
    """Something that happened lately in a project. `task_id` is its run; `asked_by` the person who asked for it."""

    id: int
    client: str
    project: str
    task_id: RunId | None
    asked_by: str | None
    source: SessionSource
    summary: str
    details: Mapping[str, Any] | None
    timestamp: datetime

    @property
    def is_unasked(self) -> bool:
        """Whether it was done for an item from outside, and no person asked for it."""
        return self.task_id is not None and self.asked_by is None


@dataclass(frozen=True)
class ProcedureStep:
    """One step: which agent does what."""

    agent: str
    action: str
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class ProcedureNode:
    """How something is done, for requests that fit its pattern."""

    id: int
    client_id: str
    project: str
    trigger_pattern: str
    procedure_steps: Sequence[ProcedureStep]
    source: ProcedureSource
    stated_by: str | None
    successes: int
    failures: int
    last_used: datetime | None
    created_at: datetime
    idle: float  # seconds since its last use

    @property
    def usage_count(self) -> int:
        return self.successes + self.failures

    @property
    def success_rate(self) -> float:
        return self.successes / self.usage_count if self.usage_count else 0.0

    @property
    def strength(self) -> float:
        """How much a procedure counts; what a person stated does not fade."""
        if self.source == "user_defined":
            return 1.0
        return measure_strength(self.successes, self.failures, timedelta(seconds=self.idle))


@dataclass(frozen=True)
class Meaning:
    """The vector of a text, and the model that made it: vectors of two models are not compared."""

    model: str
    vector: bytes
