"""When a backend is trusted with requests: a breaker that counts each kind of failure apart."""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

LONGEST_COOLDOWN = 300.0


class BackendFailure(StrEnum):
    """How an attempt failed, as far as the backend is to blame."""

    CONNECT = "connect"
    STATUS = "status"
    THROTTLED = "throttled"
    HEADER_TIMEOUT = "header_timeout"
    IDLE_TIMEOUT = "idle_timeout"
    BROKEN = "broken"
    LOAD = "load"
    PROBE = "probe"
    ABSENT = "absent"  # it does not have the model: no reason to distrust it


class BreakerState(StrEnum):
    CLOSED = "closed"
    HALF_OPEN = "half-open"
    OPEN = "open"


@dataclass(slots=True, eq=False)
class Breaker:
    """Closed until one kind of failure repeats; then open; then one trial decides."""

    threshold: int
    cooldown: float
    in_a_row: Counter[BackendFailure] = field(default_factory=Counter[BackendFailure])
    total: Counter[BackendFailure] = field(default_factory=Counter[BackendFailure])
    state: BreakerState = BreakerState.CLOSED
    until: float = 0.0
    wait: float = 0.0
    trial: bool = False
    unsure_until: float = 0.0

    def admits(self, now: float) -> bool:
        """Whether one more request may go there."""
        if self.state is BreakerState.CLOSED:
            return now >= self.until
        if self.state is BreakerState.OPEN and now >= self.until:
            self.state = BreakerState.HALF_OPEN
        return self.state is BreakerState.HALF_OPEN and not self.trial

    def alive(self) -> bool:
        """Whether it is worth waiting for."""
        return self.state is BreakerState.CLOSED

    def unsure(self, now: float) -> bool:
        """Whether it failed a moment ago: a backend that fails fast looks idle and must not attract work."""
        return now < self.unsure_until

    def begin(self) -> bool:
        """A request goes there; true when it is the trial."""
        self.trial = self.state is BreakerState.HALF_OPEN
        return self.trial

    def abandon(self) -> None:
        """The trial ended without telling anything: the next request is the trial."""
        self.trial = False

    def succeed(self) -> None:
        if self.in_a_row:
            self.in_a_row.clear()
        if (
            self.state is not BreakerState.CLOSED
        ):  # a closed one may be holding off after a 429, which one success does not end
            self.state, self.trial, self.wait, self.until = BreakerState.CLOSED, False, 0.0, 0.0
        self.unsure_until = 0.0

    def fail(self, kind: BackendFailure, now: float, retry_after: float | None = None) -> bool:
        """Count a failure; true when the breaker opens by it."""
        self.total[kind] += 1
        if kind is BackendFailure.ABSENT:
            self.trial = False
            return False
        if kind is BackendFailure.THROTTLED:
            return self._hold_off(now, retry_after)
        self.in_a_row[kind] += 1
        self.unsure_until = now + min(self.cooldown, 0.5 * 2 ** self.in_a_row[kind])
        opens = self.state is BreakerState.HALF_OPEN or (
            self.state is BreakerState.CLOSED and self.in_a_row[kind] >= self.threshold
        )
        if opens:
            self.wait = min(LONGEST_COOLDOWN, self.wait * 2 or self.cooldown)
            self.state, self.until, self.trial = BreakerState.OPEN, now + self.wait, False
        return opens

    def _hold_off(self, now: float, retry_after: float | None) -> bool:
        # 429 says "later", not "broken": the breaker stays as it is and the time named is waited for
        self.trial = False
        self.until = max(self.until, now + (retry_after if retry_after is not None else 1.0))
        return False

    def note_probe(self, alive: bool, now: float) -> bool:
        """Count the result of an active probe; true when the breaker opens by it."""
        if not alive:
            return self.fail(BackendFailure.PROBE, now)
        del self.in_a_row[BackendFailure.PROBE]
        if self.state is BreakerState.OPEN and not self._refuses_work():
            self.state, self.trial = (
                BreakerState.HALF_OPEN,
                False,
            )  # it can be reached again: the next request may try
        return False

    def _refuses_work(self) -> bool:
        """Whether it opened because requests failed: then answering a probe proves nothing."""
        reachable = (BackendFailure.PROBE, BackendFailure.CONNECT)
        return any(count >= self.threshold for kind, count in self.in_a_row.items() if kind not in reachable)
