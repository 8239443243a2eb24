"""Remembers where in each lane the last claim found its tasks, so that the next one starts there.

Without it, every claim would walk over the dead entries of all tasks claimed before it, for as long as some long
transaction keeps vacuum from removing them. A mark is only a hint: a notification lowers it, a full look now and then
corrects it.
"""

from collections.abc import Iterable
from typing import NamedTuple

from gristmill.queue.claim import Claim
from gristmill.queue.letters import POSITIONED

LOWEST = -(2**62)


class Lane(NamedTuple):
    queue: str
    lane: int


class Line:
    """The lanes this worker knows of, with a mark each."""

    def __init__(self) -> None:
        self._marks: dict[Lane, int] = {}
        self._news: dict[Lane, int] = {}  # noted since the last claim was sent off
        self._turn = 0

    def note(self, queue: str, lane: int, seq: int) -> None:
        """There is a ready ticket at `seq`."""
        key = Lane(queue, lane)
        self._marks[key] = min(self._marks.get(key, seq), seq)
        self._news[key] = min(self._news.get(key, seq), seq)

    def handed(self, claims: Iterable[Claim]) -> None:
        """These were claimed: everything before the lowest of them has been handed out."""
        queue, lane = "", -1
        for claim in claims:
            # within a lane they come in order: only the first of a run matters
            if claim.lane != lane or claim.queue != queue:
                queue, lane = claim.queue, claim.lane
                self._marks[Lane(queue, lane)] = claim.seq
        # what was noted while the claim was under way may lie before what it found
        for key, seq in self._news.items():
            self._marks[key] = min(self._marks[key], seq)

    def lanes(self, queues: Iterable[str]) -> list[tuple[Lane, int]]:
        """The lanes of these queues with their marks, in the order of claim; queues take turns within a lane."""
        order = list(queues)
        if not order:
            return []
        self._turn = (self._turn + 1) % len(order)
        rank = {queue: place for place, queue in enumerate(order[self._turn :] + order[: self._turn])}
        self._news.clear()
        known = [(key, mark) for key, mark in self._marks.items() if key.queue in rank]
        known.sort(key=lambda one: (one[0].lane, rank[one[0].queue]))
        # positions are given, not counted up: that lane is always read from its start
        return [(key, LOWEST if key.lane == POSITIONED else mark) for key, mark in known]
