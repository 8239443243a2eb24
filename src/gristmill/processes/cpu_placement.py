"""Chooses the cores of a child process: others than ours on a quiet machine, any core on a busy one."""

import ctypes
import os
from contextlib import suppress
from functools import cache
from pathlib import Path

LIBC = ctypes.CDLL(None)
LOAD = Path("/proc/loadavg")
LINE = 128  # bytes: more than the file ever has


def place_process(process: int, *, apart: bool, confined: bool) -> bool:
    """Keep a process off our core if `apart`, else let it run on every core; whether it is kept off now.

    `confined` says whether an earlier call kept it off. Linux often wakes two processes that talk to each other on the
    same core, where one waits for the other while a second core is idle. We choose only on a quiet machine: when other
    programs are at work, the system's own choice is better.
    """
    cores = os.sched_getaffinity(0)
    others = cores - {our_core()}
    apart = apart and bool(others) and is_quiet()
    with suppress(OSError):  # the process has ended, or we may not move it
        if apart:
            os.sched_setaffinity(process, others)
        elif confined:  # each of its threads, for a thread keeps the cores of the thread that started it
            for thread in os.listdir(f"/proc/{process}/task"):
                os.sched_setaffinity(int(thread), cores)
    return apart


def our_core() -> int:
    """The core that this thread runs on; -1 if the system does not tell."""
    return LIBC.sched_getcpu()


def is_quiet() -> bool:
    """Whether no other program wants a core just now."""
    with suppress(OSError, ValueError, IndexError):
        running, _, _ = os.pread(_load(LOAD), LINE, 0).split()[3].partition(b"/")
        return int(running) <= 1
    return False


@cache
def _load(path: Path) -> int:
    """The open file, kept open: opening takes ten times as long as reading, and every search reads it."""
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
