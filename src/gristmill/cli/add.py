"""`gristmill add`: take in files, and see how far each document is."""

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from gristmill.cli.elsewhere import is_elsewhere, remote
from gristmill.cli.grinding import as_dict, follow, hint_at_workers
from gristmill.cli.output import COLOURS, Json, emit, err, make_table, out, say_json, shorten, warn
from gristmill.cli.scopes import Client, Project, scope_of
from gristmill.cli.session import Session, run, session
from gristmill.documents import Progress as Document
from gristmill.documents import Taken, Urgency, explain_failures, load_progress
from gristmill.scopes import Scope
from gristmill.sources import FileIntake, Reporter, files_in

MOST_ROWS = 40
OUTCOMES = ("added", "changed", "unchanged", "failed", "cancelled", "refused")


def register(root: typer.Typer, text: str) -> None:
    root.command("add")(add)


def add(
    paths: Annotated[list[str], typer.Argument(help="Files, folders or patterns.")],
    client: Client = None,
    project: Project = None,
    wait: Annotated[bool, typer.Option("--wait", help="Show the progress until all documents have ended.")] = False,
    json: Json = False,
) -> None:
    """Take in documents: known content is skipped, a changed document gets a new version.

    If a known document has failed, it says why, and how to try it again.

    Example: gristmill add contracts/ 'mail/*.eml' --client acme --wait
    """
    scope = scope_of(client, project)
    files = [file for path in paths for file in files_in(path)]
    failed = _add_elsewhere(files, scope, wait, json) if is_elsewhere() else run(_add(files, scope, wait, json))
    if failed:
        raise typer.Exit(1)


def _add_elsewhere(files: Sequence[Path], scope: Scope, wait: bool, as_json: bool) -> bool:
    """As `_add`, by the API of a server elsewhere."""
    with _show_bar(len(files)) as tell:
        added: list[Taken] = remote().send_files(files, scope, tell)
    if not (as_json and wait):
        emit(as_json, added, lambda: _added_view(added))
    new = [one.document for one in added if one.document is not None and one.status in ("added", "changed")]
    found: Sequence[Document] = remote().follow_remote(new) if wait else ()
    if as_json and wait:
        say_json({"added": added, "documents": [as_dict(one) for one in found]})
    elif found:
        out.print(outcomes_view(found))
    return any(one.status == "refused" for one in added) or not all(one.status == "completed" for one in found)


async def _add(files: Sequence[Path], scope: Scope, wait: bool, as_json: bool) -> bool:
    async with session() as at:
        added = await make_intake(at, scope).add_files(files, Urgency(foreground=wait))
        ids = [one.document for one in added if one.document is not None] if wait else []
        known = {one.document for one in added if one.status == "unchanged"}
        async with at.db.transaction() as tx:
            whole = {one.id for one in await load_progress(tx, ids) if one.id in known and one.has_ended}
        new = [id_ for id_ in ids if id_ not in whole]
        if not (as_json and wait):
            emit(as_json, added, lambda: _added_view(added))
        if not wait and any(one.status in ("added", "changed") for one in added):
            await hint_at_workers(at)
        found: Sequence[Document] = await follow(at, new, quiet=as_json) if new else ()
        if as_json and wait:
            say_json({"added": added, "documents": [as_dict(one) for one in found]})
        elif found:
            out.print(outcomes_view(found))
            async with at.db.transaction() as tx:
                errors = await explain_failures(tx, found)
            for one, error in errors:
                out.print(Text(f"  {one.id} {one.name}: {error}", style="red"), soft_wrap=True)
        return any(one.status == "refused" for one in added) or not all(one.status == "completed" for one in found)


def make_intake(at: Session, scope: Scope, *, patient: bool = False) -> FileIntake:
    """Adds files, with a bar in a terminal; a `patient` intake waits while the database cannot be reached."""
    return FileIntake(at.db, at.settings, scope, Reporter(warn, _show_bar), patient=patient)


@contextmanager
def _show_bar(total: int) -> Generator[Callable[[str], None]]:
    columns = (TextColumn("Adding"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        step, place = bar.add_task("", total=total), count()
        yield lambda name: bar.update(step, description=name, completed=next(place))


def _added_view(added: Sequence[Taken]) -> RenderableType:
    if not added:
        return Text("There is no file in there.", style="dim")
    counts = Counter(one.status for one in added)
    line = ", ".join(f"{counts[status]} {status}" for status in OUTCOMES if counts[status])
    rows = [
        (one.document and str(one.document), shorten(one.name, 60), one.status, one.reason or "")
        for one in added[:MOST_ROWS]
    ]
    more = [Text(f"… and {len(added) - MOST_ROWS} more", style="dim")] if len(added) > MOST_ROWS else []
    return Group(make_table((">document", "~file", "", ""), rows, empty=""), *more, Text(line))


def outcomes_view(found: Sequence[Document]) -> RenderableType:
    """How documents ended, one line each."""
    rows: list[tuple[Any, ...]] = [
        (
            str(one.id),
            shorten(one.name, 60),
            one.type or "–",
            Text(one.status, style=COLOURS.get(one.status, "")),
            one.summary,
        )
        for one in found[:MOST_ROWS]
    ]
    grid = make_table((">document", "~file", "type", "status", ""), rows, empty="")
    rest = len(found) - MOST_ROWS
    return Group(grid, Text(f"… and {rest:,} more: gristmill documents", style="dim")) if rest > 0 else grid
