"""`gristmill bulk`: one action on all tasks that a filter fits, previewed, stopped and undone."""

import sys
from collections.abc import Sequence
from typing import Annotated, Any, cast

import typer
from rich.console import RenderableType
from rich.text import Text

from gristmill.cli.output import Json, Misused, Yes, emit, err, make_facts, make_table, shorten, to_plain
from gristmill.cli.session import Session, blame_options, parse_instant, run, session
from gristmill.durations import format_duration
from gristmill.ids import TaskId
from gristmill.queue import (
    Action,
    Bulk,
    BulkPreview,
    TaskFilter,
    get_bulk,
    list_bulks,
    preview_bulk,
    run_portion,
    start_bulk,
    stop_bulk,
    undo_bulk,
)

app = typer.Typer(no_args_is_help=True)
Id = Annotated[int, typer.Argument(help="The number of the bulk action.")]
BY = "the command line"
NOTHING = "There were no bulk actions yet."


def register(root: typer.Typer, text: str) -> None:
    root.add_typer(app, name="bulk", help=text)


@app.command("run")
def run_(
    action: Annotated[str, typer.Argument(help="retry, cancel, purge, priority, foreground or position.")],
    value: Annotated[int | None, typer.Option(help="Of the priority or position; of the foreground 1 or 0.")] = None,
    queue: Annotated[str | None, typer.Option(help="Tasks of this queue.")] = None,
    kind: Annotated[str | None, typer.Option(help="Tasks of this kind.")] = None,
    status: Annotated[str | None, typer.Option(help="Tasks with this status.")] = None,
    cluster: Annotated[str | None, typer.Option(help="Dead letters with this error: see dead clusters.")] = None,
    text: Annotated[str | None, typer.Option(help="With this text inside payload, result or error.")] = None,
    owner: Annotated[str | None, typer.Option(help="Of this owner, such as document:7.")] = None,
    group: Annotated[int | None, typer.Option(help="Children of this group.")] = None,
    since: Annotated[str | None, typer.Option(help="Sent at this time or later.")] = None,
    until: Annotated[str | None, typer.Option(help="Sent at this time or earlier.")] = None,
    preview: Annotated[bool, typer.Option("--preview", help="Show what it would change, and change nothing.")] = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Show what an action would change, ask, and do it in portions; Ctrl-C leaves the rest to the workers.

    Without a status, retry and purge mean dead letters, the others pending tasks.

    Example: gristmill bulk run retry --queue extract --text "time-out" --preview
    """
    with blame_options():
        wanted = TaskFilter(
            queue=queue,
            kind=kind,
            status=status,
            fingerprint=cluster,
            text=text,
            owner=owner,
            parent=TaskId(group) if group is not None else None,
            since=parse_instant(since) if since else None,
            until=parse_instant(until) if until else None,
        )
    seen = run(_preview(cast(Action, action), wanted, value))
    if preview:
        emit(json, seen, lambda: _preview_view(seen))
        return
    _confirm(action, seen, yes=yes, as_json=json)
    found = run(_run_here(cast(Action, action), wanted, value, seen.count))
    emit(json, _as_dict(found), lambda: _describe(found))


@app.command("list")
def list_(
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="How many at most.")] = 20, json: Json = False
) -> None:
    """Bulk actions, the latest first.

    Example: gristmill bulk list
    """
    found = run(_load_latest(limit))
    emit(json, [_as_dict(one) for one in found], lambda: _table(found))


@app.command()
def show(bulk: Id, json: Json = False) -> None:
    """One bulk action: its filter, and how far it is.

    Example: gristmill bulk show 7
    """
    found = run(_load(bulk))
    emit(json, _as_dict(found), lambda: _view(found))


@app.command()
def stop(bulk: Id, json: Json = False) -> None:
    """End it after the portion that runs now; what was changed stays changed.

    Example: gristmill bulk stop 7
    """
    found = run(_stop(bulk))
    emit(json, _as_dict(found), lambda: _describe(found))


@app.command()
def undo(bulk: Id, json: Json = False) -> None:
    """Give every task that it changed its former state, unless something happened to the task since.

    Example: gristmill bulk undo 7
    """
    found = run(_undo(bulk))
    emit(json, _as_dict(found), lambda: _describe(found))


# --- work


async def _preview(action: Action, wanted: TaskFilter, value: int | None) -> BulkPreview:
    async with session() as at, at.db.transaction() as tx:
        return await preview_bulk(tx, action, wanted, value)


def _confirm(action: str, seen: BulkPreview, *, yes: bool, as_json: bool) -> None:
    if yes or not seen.count:
        return
    if as_json or not sys.stdin or not sys.stdin.isatty():
        raise Misused(f"This would {action} {_count(seen)}: look at --preview, then say --yes.")
    err.print(_preview_view(seen))
    typer.confirm(f"{action.capitalize()} {_count(seen)}?", abort=True)


async def _run_here(action: Action, wanted: TaskFilter, value: int | None, expected: int) -> Bulk:
    async with session() as at:
        async with at.db.transaction() as tx:
            bulk = await start_bulk(tx, action, wanted, value=value, by=BY, expected=expected)
        return await _follow(at, bulk)


async def _follow(at: Session, bulk: int) -> Bulk:
    """Do portion after portion here. A worker may do the same: the two take turns."""
    with err.status(f"Bulk action {bulk} …") as status:
        while True:
            found = await run_portion(at.db, bulk)
            if not found.is_open:
                return found
            status.update(f"{found.undone if found.status == 'undoing' else found.changed:,} tasks …")


async def _load_latest(limit: int) -> list[Bulk]:
    async with session() as at, at.db.transaction() as tx:
        return await list_bulks(tx, limit=limit)


async def _load(bulk: int) -> Bulk:
    async with session() as at, at.db.transaction() as tx:
        return await get_bulk(tx, bulk)


async def _stop(bulk: int) -> Bulk:
    async with session() as at:
        async with at.db.transaction() as tx:
            await stop_bulk(tx, bulk)
        return await _follow(at, bulk)


async def _undo(bulk: int) -> Bulk:
    async with session() as at:
        async with at.db.transaction() as tx:
            await undo_bulk(tx, bulk)
        return await _follow(at, bulk)


# --- views


def _count(seen: BulkPreview) -> str:
    return f"{'' if seen.exact else 'at least '}{seen.count:,} task{'' if seen.count == 1 else 's'}"


def _preview_view(seen: BulkPreview) -> RenderableType:
    if not seen.count:
        return Text("No task fits.")
    rows = [(str(one.id), one.kind, one.status, shorten(one.error or one.payload or "", 80)) for one in seen.samples]
    took = format_duration(seen.duration) if seen.duration.total_seconds() >= 1 else "a moment"
    return make_table(("task", "kind", "status", ""), rows, empty="", title=f"{_count(seen)}, about {took}; such as")


def _as_dict(one: Bulk) -> dict[str, Any]:
    plain = to_plain(one)
    hidden = ("filter_text", "spot", "now", "last_id", "step")
    return {name: value for name, value in plain.items() if name not in hidden} | {"filter": _filter_of(one)}


def _filter_of(one: Bulk) -> dict[str, Any]:
    return {name: value for name, value in to_plain(one.filter).items() if value is not None}


def _describe(one: Bulk) -> str:
    match one.status:
        case "undone":
            return f"{one.undone:,} of {one.changed:,} are as they were before."
        case "failed":
            return f"It ended after {one.changed:,} tasks: {one.problem}"
        case _:
            left = f" {one.refused:,} fit and stayed as they are." if one.refused else ""
            more = f" gristmill bulk undo {one.id} takes it back." if one.can_undo else ""
            return f"Bulk action {one.id} is {one.status}: {one.changed:,} changed.{left}{more}"


def _table(found: Sequence[Bulk]) -> RenderableType:
    rows = [
        (str(one.id), one.action, one.status, one.changed, one.refused, one.undone, one.created_at, one.created_by)
        for one in found
    ]
    columns = ("bulk", "action", "status", ">changed", ">unchanged", ">undone", "begun", "by")
    return make_table(columns, rows, empty=NOTHING)


def _view(one: Bulk) -> RenderableType:
    return make_facts(
        [
            ("bulk action", str(one.id)),
            ("action", one.action if one.value is None else f"{one.action} {one.value}"),
            ("tasks", ", ".join(f"{name} {value}" for name, value in _filter_of(one).items())),
            ("status", one.status),
            ("changed", one.changed),
            ("unchanged", one.refused),
            ("undone", one.undone),
            ("looked at", one.examined),
            ("begun", one.created_at),
            ("by", one.created_by),
            ("finished", one.finished_at),
            ("problem", one.problem),
        ]
    )
