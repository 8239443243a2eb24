"""Counts the unsettled tasks of each lease, so that the rows of spent leases can be deleted."""

from collections import Counter
from collections.abc import Iterable

from gristmill.queue.claim import Claim

ENOUGH = 16  # spent leases worth a statement of their own


class Leases:
    """A lease is spent when everything claimed under it is settled or handed back, and that is committed."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        self._spent: list[int] = []

    def add(self, lease: int, n: int) -> None:
        if n:
            self._open[lease] = n

    def release(self, claims: Iterable[Claim]) -> None:
        for lease, n in Counter([claim.lease for claim in claims]).items():
            left = self._open.pop(lease, 0) - n
            if left > 0:
                self._open[lease] = left
            elif left == 0:
                self._spent.append(lease)

    def take_spent(self) -> list[int]:
        """All spent leases, once there are enough to be worth a statement; each is returned once."""
        if len(self._spent) < ENOUGH:
            return []
        spent, self._spent = self._spent, []
        return spent
