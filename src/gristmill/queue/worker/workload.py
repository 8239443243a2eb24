"""The workload of one worker: tasks that wait to start, tasks that run, answers that wait to be settled."""

import time
from collections import deque
from collections.abc import Iterable, Iterator

from gristmill.ids import TaskId
from gristmill.queue.claim import Claim
from gristmill.queue.settle import Settled
from gristmill.queue.worker.leases import Leases

AHEAD = 0.05  # seconds of work to keep claimed ahead


class SettlePace:
    """How many tasks a second this worker settles just now."""

    SPAN = 0.5

    def __init__(self) -> None:
        self._recent: deque[tuple[float, int]] = deque()
        self._sum = 0

    def note(self, n: int) -> None:
        self._recent.append((time.monotonic(), n))
        self._sum += n

    def per_second(self) -> float:
        oldest = time.monotonic() - self.SPAN
        while self._recent and self._recent[0][0] < oldest:
            self._sum -= self._recent.popleft()[1]
        return self._sum / self.SPAN


class Workload:
    """Bounded by the pace: slow work is claimed when it can start, fast work a few milliseconds ahead."""

    def __init__(self, concurrency: int, batch: int, *, alone: bool = False) -> None:
        self.concurrency = concurrency
        self.alone = alone  # a suspect runs: it is settled before anything else is claimed
        self.batch = batch
        self.pace = SettlePace()
        self.leases = Leases()
        self.waiting: deque[Claim] = deque()
        self.running: dict[TaskId, Claim] = {}
        self.answers: list[Settled] = []
        self.busy = 0  # slots in use

    @property
    def free(self) -> int:
        return self.concurrency - self.busy

    def ahead(self) -> int:
        return min(self.batch, int(self.pace.per_second() * AHEAD))

    def to_claim(self) -> int:
        """How many more tasks to claim now; 0 while there is enough to do."""
        if self.alone:
            return 1 if self.empty else 0
        ahead = self.ahead()
        if len(self.waiting) > ahead // 2 and len(self.waiting) >= self.free:
            return 0
        backlog = max(0, len(self.answers) - self.batch)  # too many answers wait: settle them first
        return max(0, min(self.free + ahead - len(self.waiting) - backlog, self.batch))

    def accept(self, claims: Iterable[Claim]) -> None:
        """Take what was claimed; a task of a better lane overtakes what waits here."""
        before = self.waiting[-1].lane if self.waiting else 0
        overtaken = False
        for claim in claims:
            overtaken = overtaken or claim.lane < before
            before = claim.lane
            self.waiting.append(claim)
        if overtaken:
            self.waiting = deque(sorted(self.waiting, key=lambda claim: claim.lane))

    def take_unstarted(self) -> list[Claim]:
        """Take out all tasks that have not begun."""
        claims = list(self.waiting)
        self.waiting.clear()
        return claims

    def holds(self, task: TaskId) -> bool:
        """Whether this task runs here, or waits here to be started."""
        return task in self.running or any(claim.id == task for claim in self.waiting)

    def take(self, ids: Iterable[TaskId]) -> Iterator[Claim]:
        """Take these tasks out, as far as they have not begun."""
        wanted = set(ids)
        for claim in [claim for claim in self.waiting if claim.id in wanted]:
            self.waiting.remove(claim)
            yield claim

    @property
    def empty(self) -> bool:
        return not (self.waiting or self.running or self.answers or self.busy)
