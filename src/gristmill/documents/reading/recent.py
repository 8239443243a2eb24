"""Keeps the file that was opened last, so that all pages of one file cost one opening."""

import os
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Recent(Generic[T]):
    """One opened file; another one takes its place."""

    def __init__(self, opened: Callable[[str], T], close: Callable[[T], None] = lambda _: None) -> None:
        self._opened = opened
        self._close = close
        self._kept: tuple[tuple[str | int, ...], T] | None = None

    def get(self, path: str) -> T:
        status = os.stat(path)
        key = (path, status.st_ino, status.st_mtime_ns, status.st_size)
        if self._kept is None or self._kept[0] != key:
            self.forget()
            self._kept = key, self._opened(path)
        return self._kept[1]

    def forget(self) -> None:
        kept, self._kept = self._kept, None
        if kept is not None:
            self._close(kept[1])
