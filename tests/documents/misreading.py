"""Reads pages in a child process, and does with bad ones what bad ones do to parsers."""

import ctypes
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from gristmill.documents.parsers import read_pages
from gristmill.documents.reading import Limits


def misread(how: str, mark: str, wanted: Sequence[tuple[str, str, int]], limits: Limits, careful: bool) -> None:
    for sheet in wanted:
        if "Ben Holt" in Path(sheet[0]).read_text():
            misbehave(how, Path(mark))
        read_pages([sheet], limits, careful)
        if how == "is slow":
            return


def misbehave(how: str, mark: Path) -> None:
    match how:
        case "is slow":
            time.sleep(0.2)
        case "hangs":
            hang()
        case "eats memory":
            hoard = [bytes(1 << 20) for _ in range(4096)]
            assert hoard
        case "dies once" if deaths(mark) < 1:
            die(mark)
        case "dies twice" if deaths(mark) < 2:
            die(mark)
        case _:
            pass


def hang() -> None:
    """In native code that lets no other thread go on, as `re`, `csv` and `unicodedata` do, but without computing."""
    lock = ctypes.create_string_buffer(64)  # a mutex of zeros is an open one
    native = ctypes.PyDLL(None)  # it calls without letting other threads go on
    native.pthread_mutex_lock(lock)
    native.pthread_mutex_lock(lock)


def deaths(mark: Path) -> int:
    return mark.stat().st_size if mark.exists() else 0


def die(mark: Path) -> None:
    with mark.open("a") as file:
        file.write("+")
    os.kill(os.getpid(), signal.SIGKILL)
