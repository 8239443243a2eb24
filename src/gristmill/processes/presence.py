"""Tells whether a process of this machine is gone, so that nobody waits for a heartbeat that cannot come."""

import os
import select
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from uuid import uuid4

PROC = Path("/proc")


def process_key() -> str:
    """A name that no other process ever gets: a pid is used again, a pid with its start time and boot is not."""
    ticks = _start_ticks(os.getpid())
    if not _machine() or ticks is None:
        return f"unseen {os.getpid()} {uuid4().hex}"  # no /proc: only the heartbeat can tell
    return f"{_machine()} {os.getpid()} {ticks}"


def find_gone_processes(keys: Iterable[str]) -> list[str]:
    """The keys whose process has ended; only processes of this machine and pid namespace can be known here."""
    return [key for key in keys if _is_gone(key)]


def wait_for_end(key: str) -> None:
    """Return when the process of this key has ended; at once if it ended before. For the parent of this process."""
    process = int(key.split()[-2])
    try:
        pidfd = os.pidfd_open(process)
    except ProcessLookupError:
        return
    try:
        # asked after the pidfd is open: from here on, nobody else can get this pid unnoticed
        if not _is_gone(key) and (not key.startswith("unseen") or os.getppid() == process):
            poll = select.poll()
            poll.register(pidfd, select.POLLIN)
            poll.poll()
    finally:
        os.close(pidfd)


def _is_gone(key: str) -> bool:
    machine, _, process = key.rpartition(" ")[0].rpartition(" ")
    ticks = key.rpartition(" ")[2]
    if not machine or machine != _machine() or not process.isdigit():
        return False
    return _start_ticks(int(process)) != ticks


@cache
def _machine() -> str:
    """Boot and pid namespace: within these a pid means one thing. Cached: neither changes under a process."""
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink(PROC / 'self/ns/pid')}"
    except OSError:
        return ""


def _start_ticks(pid: int) -> str | None:
    """When the process started, in ticks since boot; None if it does not exist or is a zombie."""
    try:
        stat = (PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    # the name in parentheses may contain anything, spaces and parentheses too
    fields = stat[stat.rindex(")") + 2 :].split()
    return None if fields[0] in "ZX" else fields[19]
