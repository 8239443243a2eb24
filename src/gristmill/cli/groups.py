"""`gristmill group`: many tasks as one."""

import asyncio
from contextlib import nullcontext
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from gristmill.cli.output import COLOURS, Json, emit, make_facts, make_table, out, say_json, shorten, to_plain
from gristmill.cli.session import run, session
from gristmill.cli.tasks import describe_cancelling, describe_revival
from gristmill.errors import Refused
from gristmill.ids import TaskId
from gristmill.queue import Cancelling, GroupProgress, Revived, cancel, group_progress, retry_tasks, seal
from gristmill.wording import format_span

app = typer.Typer(no_args_is_help=True)
Id = Annotated[int, typer.Argument(help="The id of the group.")]
COUNTS = ("completed", "skipped", "processing", "pending", "failed", "cancelled")
ENDED = ("completed", "failed", "cancelled", "skipped")


def register(root: typer.Typer, text: str) -> None:
    root.add_typer(app, name="group", help=text)


@app.command()
def show(
    group: Id,
    watch: Annotated[bool, typer.Option("--watch", help="Until the group ends.")] = False,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between looks, with --watch.")] = 0.5,
    json: Json = False,
) -> None:
    """How far a group is, and the latest errors within it.

    Example: gristmill group show 7 --watch
    """
    if watch:
        run(_watch(TaskId(group), every, json))
        return
    found = run(_load_group(TaskId(group)))
    emit(json, _as_dict(found), lambda: _group_view(found))


@app.command("retry")
def retry_(
    group: Id,
    kind: Annotated[str | None, typer.Option(help="Only tasks of this kind: one phase of it.")] = None,
    queue: Annotated[str | None, typer.Option(help="Only tasks of this queue.")] = None,
    json: Json = False,
) -> None:
    """Try again what failed within a group, at any depth.

    Example: gristmill group retry 7 --kind documents.read_pages
    """
    done = run(_retry(TaskId(group), kind, queue))
    emit(json, done, lambda: describe_revival(done))
    if not done.tasks:
        raise typer.Exit(1)


@app.command("cancel")
def cancel_(group: Id, json: Json = False) -> None:
    """Cancel all that is still open within a group, and seal it.

    Example: gristmill group cancel 7
    """
    done = run(_cancel(TaskId(group)))
    emit(json, done, lambda: describe_cancelling(done))


@app.command("seal")
def seal_(group: Id, json: Json = False) -> None:
    """Say that no more children will come: a group with nothing left open ends.

    Example: gristmill group seal 7
    """
    found = run(_seal(TaskId(group)))
    emit(json, _as_dict(found), lambda: f"Group {group} is sealed and {found.status}.")


# --- work


async def _load_group(group: TaskId) -> GroupProgress:
    async with session() as at, at.db.transaction() as tx:
        return await group_progress(tx, group)


async def _watch(group: TaskId, every: float, as_json: bool) -> None:
    live = Live(console=out, auto_refresh=False) if out.is_terminal and not as_json else None
    async with session() as at:
        last = None
        with live or nullcontext():
            while True:
                async with at.db.transaction() as tx:
                    found = await group_progress(tx, group)
                if live:
                    live.update(_group_view(found), refresh=True)
                elif found != last:
                    say_json(_as_dict(found)) if as_json else out.print(_describe_group(found))
                last = found
                if found.status in ENDED:
                    return
                await asyncio.sleep(every)


async def _retry(group: TaskId, kind: str | None, queue: str | None) -> Revived:
    async with session() as at, at.db.transaction() as tx:
        await group_progress(tx, group, errors=0)
        return await retry_tasks(tx, [group], kind=kind, queue=queue)


async def _cancel(group: TaskId) -> Cancelling:
    async with session() as at, at.db.transaction() as tx:
        await group_progress(tx, group, errors=0)
        return await cancel(tx, [group])


async def _seal(group: TaskId) -> GroupProgress:
    async with session() as at, at.db.transaction() as tx:
        if (await group_progress(tx, group, errors=0)).sealed:
            raise Refused(f"Group {group} is sealed already.")
        await seal(tx, group)
        return await group_progress(tx, group)


# --- views


def _as_dict(found: GroupProgress) -> dict[str, Any]:
    return {**to_plain(found), "total": found.total, "done": found.done}


def _describe_group(found: GroupProgress) -> str:
    counts = ", ".join(f"{n} {name}" for name in COUNTS if (n := getattr(found, name)))
    return f"group {found.id}: {found.status}, {found.done} of {found.total} ({counts or 'empty'})"


def _group_view(found: GroupProgress) -> RenderableType:
    bar = Table.grid(padding=(0, 1))
    bar.add_row(ProgressBar(max(found.total, 1), found.done, width=40), f"{found.done:,} of {found.total:,}")
    counts = Text(", ").join(
        Text(f"{n:,} {name}", style=COLOURS[name]) for name in COUNTS if (n := getattr(found, name))
    )
    took = found.finished_at - found.created_at if found.finished_at else None
    top = make_facts(
        [
            ("group", f"{found.id} {found.label or ''}".strip()),
            ("status", found.status),
            ("children", counts),
            ("sealed", found.sealed),
            ("created", found.created_at),
            ("took", format_span(took) if took else None),
        ]
    )
    if not found.errors:
        return Group(top, bar)
    rows = [(str(one.id), one.kind, one.attempts, one.at, shorten(one.error, 100)) for one in found.errors]
    return Group(top, bar, "", make_table(("task", "kind", ">attempts", "died", "error"), rows, empty=""))
