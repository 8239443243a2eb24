"""A claim: one task that this worker holds."""

import asyncio
from dataclasses import dataclass
from typing import Literal

from gristmill.ids import ScopeId, TaskId
from gristmill.scopes import GLOBAL_ID

End = Literal["timeout", "cancel", "stop", "lost"]


@dataclass(slots=True, eq=False)
class Claim:
    """A task as the claim statement returned it, and how far this worker is with it."""

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
    slot: asyncio.Task[None] | None = None  # the asyncio task that runs its handler
    journal_place: int | None = None  # its place in the worker's journal, from its start until it is settled
    together: int = 1  # how many tasks one call answers
    end: End | None = None  # why its handler is being ended from outside
    cancelled: bool = False  # somebody asked for it; the handler sees it with current().check()

    def finish_early(self, why: End) -> None:
        """End the handler at its next await; a batch goes on if only one of its tasks was cancelled."""
        if why == "cancel" and self.together > 1:
            return
        if self.end is None and self.slot is not None:
            self.end = why
            self.slot.cancel()
