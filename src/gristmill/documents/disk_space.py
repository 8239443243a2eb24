"""Keeps folders of copies within a limit: the files that were used longest ago go first."""

import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

COMING = "coming-"  # how the name of a file begins until it is whole
ABANDONED = 3600  # seconds after its last byte, a file that is not whole has lost its writer


class Copy(NamedTuple):
    """A file of such a folder; they are sorted by when they were last used."""

    used_at: float
    size: int
    path: Path


def list_copies(folder: Path) -> Iterator[Copy]:
    """The files that are there; other processes add and remove while we look.

    A file that another process is still writing is not ours to remove.
    """
    for entry in folder.iterdir():
        with suppress(FileNotFoundError):
            about = entry.stat()
            if not entry.name.startswith(COMING) or time.time() - about.st_mtime > ABANDONED:
                yield Copy(about.st_atime, about.st_size, entry)


def remove_oldest(folder: Path, limit: int, *, coming: int = 0, wanted: Collection[str] = ()) -> None:
    """Remove the oldest files until all that are left, and the bytes that are coming, fit into the limit."""
    copies = sorted(list_copies(folder))
    used = sum(copy.size for copy in copies) + coming
    for copy in copies:
        if used <= limit:
            return
        if copy.path.name in wanted:
            continue
        copy.path.unlink(missing_ok=True)
        used -= copy.size
