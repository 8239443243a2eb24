"""`gristmill watch`: take in whatever appears or changes in a folder, for as long as it runs."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from watchfiles import (
    Change,
    DefaultFilter,
    awatch,  # pyright: ignore[reportUnknownVariableType] it also knows events of a loop that is not installed
)

from gristmill.cli.add import take_in
from gristmill.cli.output import Json, err, plain, say_json, warn
from gristmill.cli.scopes import Client, Project, scope_of
from gristmill.cli.session import Session, run, session
from gristmill.documents import Added, files_at, files_in
from gristmill.errors import Refused
from gristmill.knowledge import Scope

QUIET = 1_000  # milliseconds without a change after which a file counts as written
LONGEST = 60_000
FIRST = 200  # … after which the first look is taken


def register(root: typer.Typer, text: str) -> None:
    root.command("watch")(watch)


def watch(
    folder: Annotated[Path, typer.Argument(help="The folder.")],
    client: Client = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """Take in everything in a folder, and what appears or changes there until Ctrl-C.

    Example: gristmill watch inbox/ --client acme
    """
    scope = scope_of(client, project)
    if not folder.is_dir():
        raise Refused(f"There is no folder {folder}.")
    run(_watch(folder, scope, json))


async def _watch(folder: Path, scope: Scope, as_json: bool) -> None:
    async with session() as at:
        async for added in taken_in(at, folder, scope):
            for one in added:
                if as_json:
                    say_json(plain(one))
                elif one.status != "unchanged":
                    err.print(f"{one.name}: {one.status}" + (f", {one.reason}" if one.reason else ""), soft_wrap=True)


async def taken_in(
    at: Session, folder: Path, scope: Scope, *, stop: asyncio.Event | None = None
) -> AsyncGenerator[Sequence[Added]]:
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
) -> AsyncGenerator[Sequence[Added]]:
    """The watch begins before the first look, so that nothing slips in between."""
    meant, visible = _identity(folder), _Visible(folder, at.settings.data)
    changes = awatch(
        visible.folder, watch_filter=visible, debounce=LONGEST, step=QUIET, stop_event=stop, yield_on_timeout=True,
        rust_timeout=FIRST,
    )  # fmt: skip
    first = True
    async for seen in changes:
        if _identity(folder) != meant:
            return
        if first:
            first = False
            yield await take_in(at, files_in(str(folder)), scope, patient=True)
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
        within = Path(path).relative_to(self.folder).parts  # none: what happened to the folder itself
        hidden = not within or any(part.startswith(".") for part in within)
        unfinished = path.endswith((".part", ".crdownload", ".tmp", "~"))
        if change == Change.deleted or hidden or unfinished or Path(path).is_relative_to(self._ours):
            return False
        return super().__call__(change, path)
