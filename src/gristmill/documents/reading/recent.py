"""Keeps the file that was opened last, so that all pages of one file cost one opening."""

import os
from collections.abc import Callable
from time import process_time
from typing import Any, ClassVar, Generic, TypeVar

T = TypeVar("T")


class Recent(Generic[T]):
    """One opened file; another one takes its place, whatever its format: what each keeps would add up."""

    spent: ClassVar[float] = 0.0
    _kept: ClassVar[tuple[tuple[Any, ...], Any, Callable[[Any], None]] | None] = None

    def __init__(self, opened: Callable[[str], T], close: Callable[[T], None] = lambda _: None) -> None:
        self._opened = opened
        self._close = close

    def get(self, path: str) -> T:
        status = os.stat(path)
        key = (self, path, status.st_ino, status.st_mtime_ns, status.st_size)
        if Recent._kept is None or Recent._kept[0] != key:
            Recent.forget()
            Recent._kept = key, self._open(path), self._close
        return Recent._kept[1]

    def _open(self, path: str) -> T:
        start = process_time()
        try:
            return self._opened(path)
        finally:
            Recent.spent += process_time() - start

    @staticmethod
    def forget() -> None:
        kept, Recent._kept = Recent._kept, None
        if kept is not None:
            kept[2](kept[1])


def spent_opening() -> float:
    """Seconds of the processor that this process has spent on opening files."""
    return Recent.spent
