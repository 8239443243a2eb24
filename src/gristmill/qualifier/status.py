"""How the line stands: both queues, what runs, and whether the executor takes work."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from gristmill.db import Tx
from gristmill.qualifier.builtin import NAME
from gristmill.qualifier.health import ExecutorHealth, load_health
from gristmill.qualifier.idle import load_last_request
from gristmill.qualifier.model import ItemState, WorkItem
from gristmill.qualifier.store import StateCount, count_states, list_in_line, list_items

SHOWN = 20  # items of each queue that the status names
INFORMATION: tuple[ItemState, ...] = ("done",)
NOW: tuple[ItemState, ...] = ("ready_for_execution", "dispatched", "running")
DECIDING: tuple[ItemState, ...] = ("new", "ready_for_qualification", "qualifying")
LATER: tuple[ItemState, ...] = ("scheduled",)
LANES: Mapping[str, Sequence[ItemState]] = {
    "now": (*NOW, "waiting_for_children"),
    "later": LATER,
    "information": INFORMATION,
    "questions": ("waiting_for_user",),
    "errors": ("error",),
    "deciding": DECIDING,
    "completed": ("completed",),
}


@dataclass(frozen=True)
class LineStatus:
    """Both queues at one moment."""

    foreground: Sequence[WorkItem]
    background: Sequence[WorkItem]
    running: Sequence[WorkItem]
    counts: Sequence[StateCount]
    health: ExecutorHealth
    last_request: datetime | None

    def count(self, *states: ItemState, foreground: bool | None = None) -> int:
        return count_in(self.counts, *states, foreground=foreground)


def count_in(counts: Sequence[StateCount], *states: ItemState, foreground: bool | None = None) -> int:
    """How many items are in one of these states."""
    return sum(one.n for one in counts if one.state in states and foreground in (None, one.foreground))


def count_lanes(counts: Sequence[StateCount]) -> dict[str, int]:
    """How many items each lane of the inbox has. One whose copy waits for its time stands in no lane: its copy does."""
    shown = [one for one in counts if one.outcome != "scheduled"]
    return {lane: count_in(shown, *states) for lane, states in LANES.items()}


async def load_status(tx: Tx) -> LineStatus:
    """It costs the same however many items there are."""
    return LineStatus(
        await list_in_line(tx, foreground=True, limit=SHOWN),
        await list_in_line(tx, foreground=False, limit=SHOWN),
        await list_items(tx, ("dispatched", "running"), limit=SHOWN),
        await count_states(tx),
        await load_health(tx, NAME),
        (await load_last_request(tx)).at,
    )
