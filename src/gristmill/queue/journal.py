"""The crash journal: which tasks a worker has begun, readable on its machine after the worker died.

A journal is a small file in memory: a write costs a tenth of a microsecond, and the kernel keeps the file whatever
kills the process. If it cannot be read (on another machine), every task that the worker held counts as begun.
"""

import mmap
import os
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import psutil

from gristmill.errors import Refused
from gristmill.ids import TaskId
from gristmill.queue.claim import Claim

SPARE = 8192  # more tasks than a worker holds beside those that run
WORD = 8
KEPT = 86_400.0  # seconds that the journal of a dead worker waits for a rescuer


def journal_folder() -> Path:
    """A folder of this user alone, in memory if the machine offers that."""
    memory = Path("/dev/shm")
    root = memory if os.access(memory, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())
    path = root / f"gristmill-{os.geteuid()}"
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    found = path.lstat()
    # another user may have made it before us, and its owner could forge which task killed a worker
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise Refused(f"{path} is not a private folder of ours: remove it, then start again.")
    return path


class Journal:
    """One file per worker; `begin` before a handler starts, `end` when its task is settled."""

    def __init__(self, concurrency: int = 0) -> None:
        size = concurrency + SPARE
        self.name = f"{os.getpid()}-{uuid4().hex}"
        self._path = journal_folder() / self.name
        remove_old_journals()
        descriptor = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW, 0o600)
        try:
            # all of it now: if memory is full, a later write would kill us
            os.posix_fallocate(descriptor, 0, size * WORD)
            self._map = mmap.mmap(descriptor, size * WORD)
        finally:
            os.close(descriptor)
        self._words = memoryview(self._map).cast("q")
        self._free = list(range(size))
        self._open = True

    def begin(self, claim: Claim) -> None:
        claim.journal_place = self._free.pop()
        self._words[claim.journal_place] = claim.id

    def end(self, claim: Claim) -> None:
        """By the claim, not by the task: the same task may have come back and begun again meanwhile."""
        if claim.journal_place is not None and self._open:
            self._words[claim.journal_place] = 0
            self._free.append(claim.journal_place)
            claim.journal_place = None

    def close(self, *, leave: bool = False) -> None:
        """Nothing more will be written; `leave` the file if a rescuer must still read it."""
        self._open = False
        self._words.release()
        self._map.close()
        if not leave:
            self._path.unlink(missing_ok=True)


def read_begun(name: str) -> frozenset[TaskId] | None:
    """The tasks that the worker of this journal had begun and not settled; None if it cannot be read here."""
    try:
        words = memoryview((journal_folder() / name).read_bytes()).cast("q")
    except (OSError, TypeError, Refused):  # TypeError: it is cut off
        return None
    return frozenset(TaskId(word) for word in words if word)


def remove_old_journals() -> None:
    """Remove old journals of dead workers that no rescuer read: their database is gone, or it never knew them."""
    yesterday = time.time() - KEPT
    for path in journal_folder().iterdir():
        with suppress(OSError):
            if path.stat().st_mtime < yesterday and not psutil.pid_exists(_writer(path)):
                path.unlink()


def _writer(path: Path) -> int:
    pid = path.name.partition("-")[0]
    return int(pid) if pid.isdigit() and len(pid) < 12 else 0


def remove_journal(name: str) -> None:
    (journal_folder() / name).unlink(missing_ok=True)
