"""Watches a folder: adds the files that are there, then the files that appear or change."""

import asyncio
import os
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from watchfiles import (
    Change,
    DefaultFilter,
    awatch,  # pyright: ignore[reportUnknownVariableType] it also knows events of a loop that is not installed
)
from watchfiles._rust_notify import WatchfilesRustInternalError  # it is exported nowhere else

from gristmill.documents import Taken
from gristmill.sources.folder.files import files_at, find_closed_folders
from gristmill.sources.folder.intake import FileIntake
from gristmill.wording import format_count

QUIET = 1_000  # milliseconds without a change after which a file counts as written
LONGEST = 60_000  # milliseconds after which changes are told though others still come
FIRST = 200  # milliseconds after which the first look is taken
LOOK = 2.0  # seconds from one look through a folder to the next, where the system does not tell changes …
LOOK_SHARE = 9  # … or so many times as long as a look takes, so that looking stays below a tenth of the time
MOST_NAMED = 3  # closed folders that a sentence names
LONGEST_REASON = 200  # characters of an error that a sentence repeats


def find_first_files(intake: FileIntake, folder: Path) -> list[Path]:
    """The files in a folder, without those that a watch would leave out if they appeared later."""
    wanted = _WantedFiles(folder, intake.data)
    files = files_at(wanted.folder)
    meant = [file for file in files if not wanted.is_litter(file)]
    if len(meant) < len(files):
        left = format_count(len(files) - len(meant), "file")
        intake.reporter.warn(
            f"Files that editors, downloads and packages leave behind are left out ({left}): gristmill add adds them."
        )
    return meant


async def watch_folder(
    intake: FileIntake, folder: Path, *, stop: asyncio.Event | None = None
) -> AsyncGenerator[Sequence[Taken]]:
    """Add the files in a folder, then those that appear or change; a folder that goes away is waited for."""
    while True:
        async for added in _watch_while_there(intake, folder, stop):
            yield added
        if stop is not None and stop.is_set():
            return
        intake.reporter.warn(f"The folder {folder} was removed or replaced: it is watched again when it is there.")
        while _identify(folder) is None and not (stop is not None and stop.is_set()):  # noqa: ASYNC110 nobody tells
            await asyncio.sleep(FIRST / 1000)


async def _watch_while_there(
    intake: FileIntake, folder: Path, stop: asyncio.Event | None
) -> AsyncGenerator[Sequence[Taken]]:
    """By the changes that the system tells; where it cannot, by looking through the folder again and again.

    The system cannot tell changes if a single name is not UTF-8, nor if a single folder within, even a hidden one, is
    closed to us: an error about one folder ends the whole watch. To ignore that error would be worse: the folders that
    come after the closed one would not be watched, and nobody would know.
    """
    reason = ""
    try:
        async for added in _watch_by_changes(intake, folder, stop):
            yield added
    except* WatchfilesRustInternalError as errors:
        reason = f"Changes in {folder} are not told ({_shorten(str(errors.exceptions[0]))})"
    except* PermissionError as errors:
        reason = await asyncio.to_thread(_explain_closed, folder, str(errors.exceptions[0]))
    if reason:
        intake.reporter.warn(f"{reason}: it is looked through every {LOOK:g} s instead.")
        async for added in _watch_by_looking(intake, folder, stop):
            yield added


def _explain_closed(folder: Path, error: str) -> str:
    closed = find_closed_folders(folder)
    if not closed:  # somebody opened it meanwhile, or the system means something else
        return f"Changes in {folder} are not told ({_shorten(error)})"
    more = f" and {len(closed) - MOST_NAMED:,} more" if len(closed) > MOST_NAMED else ""
    names = ", ".join(str(one) for one in closed[:MOST_NAMED]) + more
    return f"Changes in {folder} are not told, because {names} {'is' if len(closed) == 1 else 'are'} closed to us"


def _shorten(reason: str) -> str:
    line = " ".join(reason.split())
    return line if len(line) <= LONGEST_REASON else line[: LONGEST_REASON - 1] + "…"


# --- by looking

_Stamp = tuple[int, int, int] | None  # changes whenever the file is written; None if it cannot be asked for


async def _watch_by_looking(
    intake: FileIntake, folder: Path, stop: asyncio.Event | None
) -> AsyncGenerator[Sequence[Taken]]:
    """Add each new state of a file once it is the same in two looks: a file that still grows is not complete."""
    watched, wanted = _identify(folder), _WantedFiles(folder, intake.data)
    before: dict[Path, _Stamp] = {}
    known: dict[Path, _Stamp] = {}
    loop = asyncio.get_running_loop()
    while watched is not None and _identify(folder) == watched:
        began = loop.time()
        now = await asyncio.to_thread(_stamp_files, wanted)
        took = loop.time() - began
        known = {file: stamp for file, stamp in known.items() if file in now}
        settled = now.items() & before.items()
        new = dict(settled - known.items())
        if new:
            yield await intake.add_files(sorted(new))
        before, known = now, known | new
        if await _stops_within(stop, max(LOOK, LOOK_SHARE * took)):
            return


async def _stops_within(stop: asyncio.Event | None, seconds: float) -> bool:
    if stop is None:
        await asyncio.sleep(seconds)
        return False
    with suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)
    return stop.is_set()


def _stamp_files(wanted: "_WantedFiles") -> dict[Path, _Stamp]:
    return {file: _stamp_file(file) for file in files_at(wanted.folder) if wanted(Change.added, str(file))}


def _stamp_file(file: Path) -> _Stamp:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


# --- by changes


async def _watch_by_changes(
    intake: FileIntake, folder: Path, stop: asyncio.Event | None
) -> AsyncGenerator[Sequence[Taken]]:
    """The watch begins before the first look, so that no file slips in between."""
    watched, wanted = _identify(folder), _WantedFiles(folder, intake.data)
    changes = awatch(
        wanted.folder,
        watch_filter=wanted,
        debounce=LONGEST,
        step=QUIET,
        stop_event=stop,
        yield_on_timeout=True,
        rust_timeout=FIRST,
    )
    first = True
    async for seen in changes:
        if _identify(folder) != watched:
            return
        if first:
            first = False
            yield await intake.add_files(find_first_files(intake, folder))
        if files := _find_changed(seen, wanted):
            yield await intake.add_files(files)


def _find_changed(seen: Iterable[tuple[Change, str]], wanted: "_WantedFiles") -> list[Path]:
    """The files at the paths that changed; of a folder that was moved here, the system tells only its own name."""
    found = {file for _, path in seen for file in files_at(Path(path))}
    return sorted(file for file in found if wanted(Change.added, str(file)))


def _identify(folder: Path) -> tuple[int, int] | None:
    """The identity of the folder that has this name now: a watch stays with the folder it began with."""
    try:
        found = folder.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


class _WantedFiles(DefaultFilter):
    """Leaves out hidden files, litter of editors and downloads, our own data and the folder itself."""

    def __init__(self, folder: Path, data: Path) -> None:
        super().__init__()
        self._ours = data.resolve()
        self.folder = folder.resolve()  # as it is watched, so that all paths begin with it

    def __call__(self, change: Change, path: str) -> bool:
        file = Path(path)
        if change == Change.deleted or file == self.folder or file.is_relative_to(self._ours):
            return False
        return not self.is_litter(file)

    def is_litter(self, file: Path) -> bool:
        """By its name and the names of the folders between it and the folder that is watched."""
        within = file.relative_to(self.folder).parts
        hidden = any(part.startswith(".") for part in within)
        unfinished = file.name.endswith((".part", ".crdownload", ".tmp", "~"))
        return hidden or unfinished or not super().__call__(Change.added, os.sep.join(within))
