"""A claim: one task in this worker's hand."""

import asyncio
from dataclasses import dataclass
from typing import Literal

from gristmill.ids import ScopeId, TaskId
from gristmill.scopes import GLOBAL_ID

End = Literal["timeout", "cancel", "stop", "lost"]


@dataclass(slots=True, eq=False)
class Claim:
    """What the claim statement said of a task, and what this worker does with it."""

    id: TaskId
    seq: int
    lane: int
    queue: str
    attempt: int
    kind: str
    payload: str
    max_attempts: int | None
    prunable: bool
    scope: ScopeId = GLOBAL_ID
    lease: int = 0
    since: float = 0.0  # the loop's clock when its handler began
    slot: asyncio.Task[None] | None = None  # what runs its handler
    journal_place: int | None = None  # where in the worker's notes it stands, from its start until it is settled
    together: int = 1  # how many tasks one call answers
    end: End | None = None  # why its handler is being ended from outside
    cancelled: bool = False  # somebody asked for it; handlers that look will see it

    def finish_early(self, why: End) -> None:
        """End the handler at its next await; nobody's company is ended because one of it was cancelled."""
        if why == "cancel" and self.together > 1:
            return
        if self.end is None and self.slot is not None:
            self.end = why
            self.slot.cancel()
