"""Counters that the workers of a run share with the harness: one file in memory, two numbers per worker."""

import mmap
import os
import time
from collections.abc import Callable
from pathlib import Path

SLOTS = 16
BYTES = SLOTS * 16  # per slot: how many handlers ran, and when the last of them started (ns since 1970)


class Board:
    """Each worker writes its own slot and nobody else's, so nothing is locked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if os.fstat(handle).st_size < BYTES:
                os.ftruncate(handle, BYTES)
            self._words = memoryview(mmap.mmap(handle, BYTES)).cast("q")
        finally:
            os.close(handle)

    def note(self, slot: int) -> Callable[[], None]:
        """What a handler calls as the first thing it does."""
        words, count, stamp, now = self._words, 2 * slot, 2 * slot + 1, time.time_ns

        def noted() -> None:
            words[stamp] = now()
            words[count] += 1

        return noted

    def total(self) -> int:
        return sum(self._words[0::2])

    def last_start(self) -> int:
        """When the latest handler started."""
        return max(self._words[1::2])
