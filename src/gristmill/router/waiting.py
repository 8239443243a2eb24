"""The requests that wait: a lane for each kind of them, and the order in which lanes are looked at."""

import math
from collections import Counter, deque
from collections.abc import Callable, Iterator

from gristmill.router.placing import PlacingRules
from gristmill.router.pool import Ticket
from gristmill.router.priority import Priority

Lane = deque[Ticket]
LaneKey = tuple[Priority, str, frozenset[str]]
TRICKLE = 0.5  # behind P0, before everything else


class WaitingTickets:
    """Tickets without a place; when the first ticket of a lane must wait, the others behind it must, too."""

    def __init__(self, rules: PlacingRules, in_memory: Callable[[str], bool]) -> None:
        self.rules, self._in_memory = rules, in_memory
        self.lanes: dict[LaneKey, Lane] = {}
        self.counts: Counter[Priority] = Counter()
        self._trickled = -math.inf

    def __iter__(self) -> Iterator[Ticket]:
        return (ticket for lane in self.lanes.values() for ticket in lane)

    def __contains__(self, ticket: Ticket) -> bool:
        return ticket in self.lanes.get(lane_of(ticket), ())

    def add(self, ticket: Ticket, now: float, *, front: bool = False) -> None:
        if ticket.background and not self.counts[Priority.BACKGROUND]:
            self._trickled = now  # the trickle counts from when somebody began to wait
        lane = self.lanes.setdefault(lane_of(ticket), deque())
        (lane.appendleft if front else lane.append)(ticket)
        self.counts[ticket.priority] += 1

    def remove(self, ticket: Ticket) -> None:
        """Take a ticket out, if it is there."""
        key = lane_of(ticket)
        if ticket in self:
            self.lanes[key].remove(ticket)
            self.counts[ticket.priority] -= 1
            if not self.lanes[key]:
                del self.lanes[key]

    def note_trickle(self, now: float) -> None:
        """Background work got a place."""
        self._trickled = now

    def order_lanes(self, now: float) -> list[tuple[float, Lane]]:
        """Every lane with its urgency, the most urgent first."""
        due = now - self._trickled >= self.rules.trickle
        background = (lane for key, lane in self.lanes.items() if key[0] is Priority.BACKGROUND)
        oldest = min(background, key=_oldest, default=None) if due else None
        ranked = [(TRICKLE if lane is oldest else self._urgency(lane[0], now), lane) for lane in self.lanes.values()]
        return sorted(ranked, key=lambda item: (item[0], _oldest(item[1]) - self._head_start(item[1][0])))

    def _head_start(self, ticket: Ticket) -> float:
        """Requests for a model in memory go first for a while: collated, they cost one load, not many."""
        if ticket.priority is Priority.CRITICAL:
            return 0.0
        return self.rules.aging if self._in_memory(ticket.model) else 0.0

    def _urgency(self, ticket: Ticket, now: float) -> float:
        """The priority with age counted in: waiting moves a ticket up to P1, never to P0."""
        if ticket.priority <= Priority.CODING:
            return ticket.priority
        return max(Priority.CODING, ticket.priority - int((now - ticket.arrived) / self.rules.aging))


def lane_of(ticket: Ticket) -> LaneKey:
    """Tickets that can be placed the same way wait in the same lane."""
    return ticket.priority, ticket.model, ticket.avoided


def _oldest(lane: Lane) -> float:
    return lane[0].arrived
