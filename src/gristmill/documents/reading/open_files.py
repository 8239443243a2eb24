"""Keeps the file that was opened last, so that all pages of one file cost one opening."""

import os
from collections.abc import Callable
from time import process_time
from typing import Any, ClassVar, Generic, TypeVar

T = TypeVar("T")


class OpenFile(Generic[T]):
    """Opens files of one format, and keeps the last one open.

    All formats together keep one file: the memory of several would add up.
    """

    spent: ClassVar[float] = 0.0
    _kept: ClassVar[tuple[tuple[Any, ...], Any, Callable[[Any], None]] | None] = None

    def __init__(self, open_: Callable[[str], T], close: Callable[[T], None] = lambda _: None) -> None:
        self._open_path = open_
        self._close = close

    def get(self, path: str) -> T:
        status = os.stat(path)
        key = (self, path, status.st_ino, status.st_mtime_ns, status.st_size)
        if OpenFile._kept is None or OpenFile._kept[0] != key:
            OpenFile.forget()
            OpenFile._kept = key, self._open(path), self._close
        return OpenFile._kept[1]

    def _open(self, path: str) -> T:
        start = process_time()
        try:
            return self._open_path(path)
        finally:
            OpenFile.spent += process_time() - start

    @staticmethod
    def forget() -> None:
        kept, OpenFile._kept = OpenFile._kept, None
        if kept is not None:
            kept[2](kept[1])


def spent_opening() -> float:
    """Seconds of the processor that this process has spent on opening files."""
    return OpenFile.spent
