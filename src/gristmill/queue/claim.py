"""A claim: one task in this worker's hand."""

from dataclasses import dataclass, field

from gristmill.ids import TaskId


@dataclass(slots=True, eq=False)
class Claim:
    """What the claim statement said of a task, and what this worker does with it."""

    id: TaskId
    seq: int
    lane: int
    queue: str
    attempt: int
    started: bool
    kind: str
    payload: str
    max_attempts: int | None
    prunable: bool
    lease: int = 0
    since: float = 0.0  # the loop's clock when its handler began
    settled: bool = field(default=False)  # an answer was taken; a later one is too late
    cancelled: bool = False
