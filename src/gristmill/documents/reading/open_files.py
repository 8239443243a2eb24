"""Keeps the file that was opened last, so that all pages of one file cost one opening."""

import os
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any, ClassVar, Generic, TypeVar

T = TypeVar("T")
File = str | bytes  # the path of a file, or its bytes if they are few


def read_file(file: File) -> bytes:
    return file if isinstance(file, bytes) else Path(file).read_bytes()


def size_of(file: File) -> int:
    return len(file) if isinstance(file, bytes) else os.path.getsize(file)


class OpenFile(Generic[T]):
    """Opens files of one format, and keeps the last one open.

    All formats together keep one file: the memory of several would add up.
    """

    spent: ClassVar[float] = 0.0
    _kept: ClassVar[tuple[tuple[Any, ...], Any, Callable[[Any], None]] | None] = None

    def __init__(self, open_: Callable[[Any], T], close: Callable[[T], None] = lambda _: None) -> None:
        """`open_` takes a path; it may take bytes, too, if the format is read from bytes as well."""
        self._open_file = open_
        self._close = close

    def get(self, file: File) -> T:
        key = (self, file) if isinstance(file, bytes) else self._make_key(file)
        if OpenFile._kept is None or OpenFile._kept[0] != key:
            OpenFile.forget()
            OpenFile._kept = key, self._open(file), self._close
        return OpenFile._kept[1]

    def _make_key(self, path: str) -> tuple[Any, ...]:
        status = os.stat(path)
        return self, path, status.st_ino, status.st_mtime_ns, status.st_size

    def _open(self, file: File) -> T:
        start = process_time()
        try:
            return self._open_file(file)
        finally:
            OpenFile.spent += process_time() - start

    @staticmethod
    def forget() -> None:
        kept, OpenFile._kept = OpenFile._kept, None
        if kept is not None:
            kept[2](kept[1])


def measure_opening() -> float:
    """Seconds of the processor that this process has spent on opening files."""
    return OpenFile.spent
