"""What the children of the tests of processes do: in a file of its own, as they import none of what the tests need."""

import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

from gristmill.processes.child import TOGETHER, tell

MB = 2**20
CACHE: list[str] = []


def remember(word: str) -> list[str]:
    CACHE.append(word)
    return CACHE


def allocate(size: int) -> int:
    return len(bytearray(size))


def translate_lack_of_memory() -> None:
    try:
        bytearray(1024 * MB)
    except MemoryError as error:
        raise ValueError("the page cannot be drawn") from error


def count_and_hang(numbers: int) -> None:
    for number in range(numbers):
        tell(number)
    time.sleep(1000)


def say_in_a_fork(words: int) -> None:
    """Says a word, and has a process that it forks say some, with time for each to be sent."""
    tell("ours")
    helper = os.fork()
    if not helper:
        for _ in range(words):
            time.sleep(2 * TOGETHER)
            tell("the helper's")
        os._exit(0)
    os.waitpid(helper, 0)


def count_slowly(n: int, pause: float) -> int:
    for number in range(n):
        tell(number)
        time.sleep(pause)
    return n


def divide(a: int, b: int) -> float:
    return a / b


class Unreadable(Exception):
    """Can be written by pickle, and not be read."""

    def __init__(self, page: int, reason: str) -> None:
        super().__init__(f"page {page}: {reason}")


class Unwritable(Exception):
    def __reduce__(self) -> Any:
        raise TypeError("never")


class ForTheParentOnly:
    """Cannot be read in a child."""

    def __reduce__(self) -> Any:
        return only_in, (os.getpid(),)


def only_in(pid: int) -> None:
    if os.getpid() != pid:
        raise ImportError("no module named elsewhere")


def fail(error: type[Exception], *args: Any) -> None:
    raise error(*args)


def sockets() -> set[str]:
    links = (f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd"))
    return {os.readlink(link) for link in links if os.path.lexists(link)}


def hang_with_helper(file: str) -> None:
    helper = subprocess.Popen(["sleep", "1000"])
    Path(file).write_text(f"{helper.pid}\n")
    helper.wait()


def crash_with_helper(file: str) -> None:
    helper = os.fork()  # holds the pipe open
    if not helper:
        time.sleep(1000)
    Path(file).write_text(f"{helper}\n")
    os._exit(7)


def note(file: str, word: str) -> None:
    with Path(file).open("a") as out:
        out.write(f"{word}\n")


def start_thread() -> None:
    threading.Thread(target=time.sleep, args=[1000], daemon=True).start()


def cores_of_threads() -> set[frozenset[int]]:
    return {frozenset(os.sched_getaffinity(int(thread))) for thread in os.listdir("/proc/self/task")}
