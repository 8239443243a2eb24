"""A run as it stands in the database, and as somebody asks for it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from gristmill.ids import RunId, ScopeId, TaskId
from gristmill.scopes import GLOBAL, Scope

RunState = Literal["queued", "running", "waiting_for_user", "completed", "failed", "stopped"]
STATES: tuple[RunState, ...] = get_args(RunState)
ENDED: frozenset[RunState] = frozenset(("completed", "failed", "stopped"))


@dataclass(frozen=True)
class RunWish:
    """A run as somebody asks for it.

    `asked_by` is the person whose words the request is. A run for an item that came from outside has none: its request
    is a text that was read, and says what an agent shall look at, never what it may do.
    """

    request: str
    asked_by: str | None = None
    scope: Scope = GLOBAL
    item: int | None = None
    item_type: str | None = None
    repository: str | None = None
    foreground: bool = True
    heard: int | None = None  # the last message of its item that the request knows


@dataclass(frozen=True)
class Run:
    """A row of `agent_run`."""

    id: RunId
    scope: ScopeId
    client: str
    project: str
    request: str
    asked_by: str | None
    item: int | None
    item_type: str | None
    repository: str | None
    foreground: bool
    state: RunState
    fence: int
    task: TaskId | None
    host: str | None
    report: str | None
    error: str | None
    stopped_by: str | None
    calls: int
    tokens_in: int
    tokens_out: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    unreached: str | None = None  # of a completed run: which of its goals were not reached, in a few words

    @property
    def title(self) -> str:
        """The first line of its request."""
        line = next((line.strip() for line in self.request.splitlines() if line.strip()), "")
        return line if len(line) <= 100 else line[:99] + "…"

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED

    @property
    def place(self) -> Scope:
        return Scope(self.client, self.project)
