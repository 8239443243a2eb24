"""Where a child runs: on a quiet machine apart from whoever calls it, and wherever the system likes otherwise."""

import ctypes
import os
from contextlib import suppress
from functools import cache
from pathlib import Path

LIBC = ctypes.CDLL(None)
LOAD = Path("/proc/loadavg")
LINE = 128  # bytes that hold all of it


def place_process(process: int, *, apart: bool, confined: bool) -> bool:
    """Lets a process run on any core or, apart, on any but ours; whether it is confined so, as it may have been before.

    The system likes to wake those up together who talk together, and then one waits for the other beside an idle core.
    Where others are at work, it knows better.
    """
    cores = os.sched_getaffinity(0)
    others = cores - {our_core()}
    apart = apart and bool(others) and is_quiet()
    with suppress(OSError):  # it is gone, or may not be moved
        if apart:
            os.sched_setaffinity(process, others)
        elif confined:  # with the threads that it started meanwhile
            for thread in os.listdir(f"/proc/{process}/task"):
                os.sched_setaffinity(int(thread), cores)
    return apart


def our_core() -> int:
    """The one that this thread is running on; -1 where that cannot be known."""
    return LIBC.sched_getcpu()


def is_quiet() -> bool:
    """Whether nobody but us wants a core just now."""
    with suppress(OSError, ValueError, IndexError):
        running, _, _ = os.pread(_load(LOAD), LINE, 0).split()[3].partition(b"/")
        return int(running) <= 1
    return False


@cache
def _load(path: Path) -> int:
    """Open for good: to open it takes ten times as long as to read it, and every question asks for it."""
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
