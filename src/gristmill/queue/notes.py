"""What a worker has begun, noted where its machine can still read it after the worker died.

The notes are a small file in memory: a write costs a tenth of a microsecond, and the kernel keeps it whatever kills the
process. Where they cannot be read (another machine), everything the worker held counts as begun.
"""

import mmap
import os
import tempfile
from pathlib import Path
from uuid import uuid4

from gristmill.ids import TaskId
from gristmill.queue.claim import Claim

SIZE = 8192  # tasks; far more than a worker holds
WORD = 8


def folder() -> Path:
    """A folder of this user alone, in memory if the machine offers that."""
    memory = Path("/dev/shm")
    root = memory if os.access(memory, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())
    path = root / f"gristmill-{os.geteuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    return path


class Notes:
    """One file per worker; `begin` before a handler starts, `end` when its task is settled."""

    def __init__(self) -> None:
        self.name = uuid4().hex
        self._path = folder() / self.name
        descriptor = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        try:
            os.truncate(descriptor, SIZE * WORD)
            self._map = mmap.mmap(descriptor, SIZE * WORD)
        finally:
            os.close(descriptor)
        self._words = memoryview(self._map).cast("q")
        self._free = list(range(SIZE))
        self._open = True

    def begin(self, claim: Claim) -> None:
        claim.noted = self._free.pop()
        self._words[claim.noted] = claim.id

    def end(self, claim: Claim) -> None:
        """By the claim, not by the task: the same task may have come back and begun again meanwhile."""
        if claim.noted is not None and self._open:
            self._words[claim.noted] = 0
            self._free.append(claim.noted)
            claim.noted = None

    def close(self, *, leave: bool = False) -> None:
        """Nothing more will be noted; `leave` the file where somebody else must still read it."""
        self._open = False
        self._words.release()
        self._map.close()
        if not leave:
            self._path.unlink(missing_ok=True)


def read(name: str) -> frozenset[TaskId] | None:
    """What the worker with these notes had begun and not settled; None if this machine does not know."""
    try:
        words = memoryview((folder() / name).read_bytes()).cast("q")
    except OSError:
        return None
    return frozenset(TaskId(word) for word in words if word)


def forget(name: str) -> None:
    (folder() / name).unlink(missing_ok=True)
