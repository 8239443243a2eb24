"""`gristmill add`: take in files, and see them ground."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from gristmill.cli.grinding import as_dict, errors_of, follow
from gristmill.cli.output import COLOURS, Json, emit, err, out, say_json, short, table, warn
from gristmill.cli.scopes import Client, Project, scope_of
from gristmill.cli.session import Session, outlast, run, session
from gristmill.documents import ORDINARY, Taken, Urgency, add_file, files_in, name_of, of_arrival, progress
from gristmill.documents import Progress as Document
from gristmill.errors import Unreachable
from gristmill.scopes import Scope

MOST_ROWS = 40
OUTCOMES = ("added", "changed", "unchanged", "failed", "cancelled", "refused")


def register(root: typer.Typer, text: str) -> None:
    root.command("add")(add)


def add(
    paths: Annotated[list[str], typer.Argument(help="Files, folders or patterns.")],
    client: Client = None,
    project: Project = None,
    wait: Annotated[bool, typer.Option("--wait", help="Show how they are ground, until all is done.")] = False,
    json: Json = False,
) -> None:
    """Take in documents; those whose content is known are skipped, those that changed get a new version.

    Of those that are known and failed it is told why, and how to try them again.

    Example: gristmill add contracts/ 'mail/*.eml' --client acme --wait
    """
    scope = scope_of(client, project)
    files = [file for path in paths for file in files_in(path)]
    failed = run(_add(files, scope, wait, json))
    if failed:
        raise typer.Exit(1)


async def _add(files: Sequence[Path], scope: Scope, wait: bool, as_json: bool) -> bool:
    async with session() as at:
        added = await take_in(at, files, scope, Urgency(foreground=wait))
        ids = [one.document for one in added if one.document is not None] if wait else []
        known = {one.document for one in added if one.status == "unchanged"}
        async with at.db.transaction() as tx:
            whole = {one.id for one in await progress(tx, ids) if one.id in known and one.ended}
        new = [id_ for id_ in ids if id_ not in whole]
        if not (as_json and wait):
            emit(as_json, added, lambda: _told(added))
        found = await follow(at.db, new, quiet=as_json) if new else []
        if as_json and wait:
            say_json({"added": added, "documents": [as_dict(one) for one in found]})
        elif found:
            out.print(ended(found))
            for one, error in await errors_of(at.db, found):
                out.print(Text(f"  {one.id} {one.name}: {error}", style="red"), soft_wrap=True)
        return any(one.status == "refused" for one in added) or not all(one.status == "completed" for one in found)


async def take_in(
    at: Session, files: Sequence[Path], scope: Scope, urgency: Urgency = ORDINARY, *, patient: bool = False
) -> list[Taken]:
    """Add files, with a bar where somebody watches; `patient` waits for a database that is away."""
    files = _foreign(files, at.settings.data)
    added: list[Taken] = []
    new = 0
    columns = (TextColumn("Adding"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        step = bar.add_task("", total=len(files))
        for file in files:
            bar.update(step, description=name_of(file))
            added.append(await _taken_in(at, file, scope, of_arrival(new, urgency), patient))
            new += added[-1].status in ("added", "changed")
            bar.advance(step)
    return added


def _foreign(files: Sequence[Path], data: Path) -> Sequence[Path]:
    """Those that are not our own: a mill that grinds its database writes more of it with every file."""
    ours = data.resolve()
    left = [file for file in files if not file.parent.resolve().is_relative_to(ours)]
    if len(left) < len(files):
        warn(f"The data folder {data} is left out ({len(files) - len(left):,} of the files).")
    return left


async def _taken_in(at: Session, file: Path, scope: Scope, urgency: Urgency, patient: bool) -> Taken:
    while True:
        try:
            return await add_file(at.db, file, scope, max_bytes=at.settings.documents.max_bytes, urgency=urgency)
        except Unreachable:
            if not patient:
                raise
            await outlast(at.db)


def _told(added: Sequence[Taken]) -> RenderableType:
    if not added:
        return Text("There is no file in there.", style="dim")
    counts = Counter(one.status for one in added)
    line = ", ".join(f"{counts[status]} {status}" for status in OUTCOMES if counts[status])
    rows = [
        (one.document and str(one.document), short(one.name, 60), one.status, one.reason or "")
        for one in added[:MOST_ROWS]
    ]
    more = [Text(f"… and {len(added) - MOST_ROWS} more", style="dim")] if len(added) > MOST_ROWS else []
    return Group(table((">document", "~file", "", ""), rows, empty=""), *more, Text(line))


def ended(found: Sequence[Document]) -> RenderableType:
    """How documents ended, one line each."""
    rows: list[tuple[Any, ...]] = [
        (
            str(one.id),
            short(one.name, 60),
            one.type or "–",
            Text(one.status, style=COLOURS.get(one.status, "")),
            one.summary,
        )
        for one in found[:MOST_ROWS]
    ]
    told = table((">document", "~file", "type", "status", ""), rows, empty="")
    rest = len(found) - MOST_ROWS
    return Group(told, Text(f"… and {rest:,} more: gristmill documents", style="dim")) if rest > 0 else told
