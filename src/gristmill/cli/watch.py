"""`gristmill watch`: take in whatever appears or changes in a folder, for as long as it runs."""

import asyncio
import os
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from watchfiles import (
    Change,
    DefaultFilter,
    awatch,  # pyright: ignore[reportUnknownVariableType] it also knows events of a loop that is not installed
)
from watchfiles._rust_notify import WatchfilesRustInternalError  # it is exported nowhere else

from gristmill.cli.add import take_in
from gristmill.cli.output import Json, err, plain, say_json, short, warn
from gristmill.cli.scopes import Client, Project, scope_of
from gristmill.cli.session import Session, run, session
from gristmill.documents import Taken, files_at
from gristmill.errors import Refused
from gristmill.scopes import Scope
from gristmill.wording import format_count

QUIET = 1_000  # milliseconds without a change after which a file counts as written
LONGEST = 60_000
FIRST = 200  # … after which the first look is taken
LOOK = 2.0  # seconds from one look through a folder to the next, where changes are not told


def register(root: typer.Typer, text: str) -> None:
    root.command("watch")(watch)


def watch(
    folder: Annotated[str, typer.Argument(help="The folder.")],
    client: Client = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """Take in everything in a folder, and what appears or changes there until Ctrl-C.

    Example: gristmill watch inbox/ --client acme
    """
    scope = scope_of(client, project)
    run(_watch(existing(folder), scope, json))


def existing(folder: str) -> Path:
    """A name that is empty is no path to here: somebody's variable is not set."""
    if not folder or not os.path.isdir(folder):
        raise Refused(f"There is no folder {folder or 'without a name'}.")
    return Path(folder)


async def _watch(folder: Path, scope: Scope, as_json: bool) -> None:
    async with session() as at:
        async for added in taken_in(at, folder, scope):
            for one in added:
                if as_json:
                    say_json(plain(one))
                elif one.status != "unchanged":
                    err.print(f"{one.name}: {one.status}" + (f", {one.reason}" if one.reason else ""), soft_wrap=True)


def first_look(folder: Path, data: Path) -> list[Path]:
    """What is in a folder, but for what would not be taken in either if it appeared later."""
    visible = _Visible(folder, data)
    files = files_at(visible.folder)
    meant = [file for file in files if not visible.is_litter(file)]
    if len(meant) < len(files):
        left = format_count(len(files) - len(meant), "file")
        warn(f"What editors, downloads and packages leave lying about is left out ({left}): gristmill add takes it in.")
    return meant


async def taken_in(
    at: Session, folder: Path, scope: Scope, *, stop: asyncio.Event | None = None
) -> AsyncGenerator[Sequence[Taken]]:
    """What is in the folder, then what appears or changes there; if it goes away, again when it is back."""
    while True:
        async for added in _while_there(at, folder, scope, stop):
            yield added
        if stop is not None and stop.is_set():
            return
        warn(f"The folder {folder} was removed or replaced: it is watched again when it is there.")
        while _identity(folder) is None and not (stop is not None and stop.is_set()):  # noqa: ASYNC110 nobody announces it
            await asyncio.sleep(FIRST / 1000)


async def _while_there(
    at: Session, folder: Path, scope: Scope, stop: asyncio.Event | None
) -> AsyncGenerator[Sequence[Taken]]:
    """As changes are told, or by looking: a single name that is not UTF-8 ends what tells of them, polling or not."""
    try:
        async for added in _as_told(at, folder, scope, stop):
            yield added
    except* WatchfilesRustInternalError as errors:
        reason = short(str(errors.exceptions[0]), 200)
        warn(f"Changes in {folder} are not told ({reason}): it is looked through every {LOOK:g} s instead.")
        async for added in _by_looking(at, folder, scope, stop):
            yield added


async def _by_looking(
    at: Session, folder: Path, scope: Scope, stop: asyncio.Event | None
) -> AsyncGenerator[Sequence[Taken]]:
    """What was the same in two looks and is not what was taken in: a file that grows is not written yet."""
    meant, visible = _identity(folder), _Visible(folder, at.settings.data)
    before: dict[Path, _Mark] = {}
    taken: dict[Path, _Mark] = {}
    while meant is not None and _identity(folder) == meant:
        now = await asyncio.to_thread(_marks, visible)
        taken = {file: mark for file, mark in taken.items() if file in now}
        new = {file: mark for file, mark in now.items() if before.get(file) == mark != taken.get(file)}
        if new:
            yield await take_in(at, list(new), scope, patient=True)
        before, taken = now, taken | new
        if await _stopped(stop):
            return


async def _stopped(stop: asyncio.Event | None) -> bool:
    """Whether it is the end, which would come before the next look."""
    if stop is None:
        await asyncio.sleep(LOOK)
        return False
    with suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), LOOK)
    return stop.is_set()


_Mark = tuple[int, int, int] | None


def _marks(visible: "_Visible") -> dict[Path, _Mark]:
    """The files that are meant, each with what changes when it is written."""
    return {file: _mark(file) for file in files_at(visible.folder) if visible(Change.added, str(file))}


def _mark(file: Path) -> _Mark:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


async def _as_told(
    at: Session, folder: Path, scope: Scope, stop: asyncio.Event | None
) -> AsyncGenerator[Sequence[Taken]]:
    """The watch begins before the first look, so that nothing slips in between."""
    meant, visible = _identity(folder), _Visible(folder, at.settings.data)
    changes = awatch(
        visible.folder,
        watch_filter=visible,
        debounce=LONGEST,
        step=QUIET,
        stop_event=stop,
        yield_on_timeout=True,
        rust_timeout=FIRST,
    )
    first = True
    async for seen in changes:
        if _identity(folder) != meant:
            return
        if first:
            first = False
            yield await take_in(at, first_look(folder, at.settings.data), scope, patient=True)
        if files := _changed(seen, visible):
            yield await take_in(at, files, scope, patient=True)


def _changed(seen: Iterable[tuple[Change, str]], visible: "_Visible") -> list[Path]:
    """The files at the paths that changed: of a folder that was moved here only its own name is told."""
    found = {file for _, path in seen for file in files_at(Path(path))}
    return sorted(file for file in found if visible(Change.added, str(file)))


def _identity(folder: Path) -> tuple[int, int] | None:
    """Which folder it is that has this name, if any: a watch stays with the one it began with."""
    try:
        found = folder.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


class _Visible(DefaultFilter):
    """Hidden files, what editors and downloads leave lying about, our own data and the folder itself are not meant."""

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
        """By its name and the folders it lies in, as far as they lie in ours."""
        within = file.relative_to(self.folder).parts
        hidden = any(part.startswith(".") for part in within)
        unfinished = file.name.endswith((".part", ".crdownload", ".tmp", "~"))
        return hidden or unfinished or not super().__call__(Change.added, os.sep.join(within))
