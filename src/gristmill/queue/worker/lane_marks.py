"""Remembers where in each lane the last claim found its tasks, so that the next one starts there.

Without it, every claim would walk over the dead entries of all tasks claimed before it, for as long as some long
transaction keeps vacuum from removing them. A mark is only a hint: a notification lowers it, and a look at all
lanes now and then corrects it.
"""

from collections.abc import Iterable
from typing import NamedTuple

from gristmill.queue.claim import Claim

LAST = 2**31


class Lane(NamedTuple):
    queue: str
    lane: int


class LaneMarks:
    """The lanes this worker knows of, with a mark each."""

    def __init__(self) -> None:
        self._marks: dict[Lane, int] = {}
        self._news: dict[Lane, int] = {}  # noted since the last claim was sent
        self._turn = 0

    def note_ready(self, queue: str, lane: int, seq: int) -> None:
        """There is a ready ticket at `seq`."""
        key = Lane(queue, lane)
        self._marks[key] = min(self._marks.get(key, seq), seq)
        self._news[key] = min(self._news.get(key, seq), seq)

    def foremost_lane(self, queues: Iterable[str]) -> int:
        """The foremost lane in which these queues are known to hold something."""
        wanted = set(queues)
        return min((key.lane for key in self._marks if key.queue in wanted), default=LAST)

    def forget_drained(self, asked: Iterable[Lane], claims: Iterable[Claim]) -> None:
        """A claim that got less than it asked for emptied these lanes: forget them until a notification names one."""
        fruitful = {(claim.queue, claim.lane) for claim in claims}
        for key in asked:
            if key not in self._news and tuple(key) not in fruitful:
                self._marks.pop(key, None)

    def advance(self, claims: Iterable[Claim]) -> None:
        """Move each mark to the last claim of its lane: all tasks before it are claimed, by us or by others."""
        for key, seq in {(claim.queue, claim.lane): claim.seq for claim in claims}.items():
            self._marks[Lane(*key)] = seq
        # a ticket noted while the claim was under way may stand before the claimed ones
        for key, seq in self._news.items():
            self._marks[key] = min(self._marks.get(key, seq), seq)

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
        return known
