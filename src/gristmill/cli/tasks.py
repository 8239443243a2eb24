"""`gristmill task`: look at tasks, ask why, send, cancel, retry and move them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from gristmill.cli.elsewhere import is_elsewhere, remote
from gristmill.cli.letters import PAYLOAD, find_letter, read_payload
from gristmill.cli.output import COLOURS, Json, Misused, emit, err, make_facts, make_table, shorten
from gristmill.cli.session import blame_options, parse_instant, parse_span, run, session
from gristmill.db import Column, Tx, queries
from gristmill.ids import TaskId
from gristmill.queue import (
    STATUSES,
    Cancelling,
    Envelope,
    HistoryEvent,
    Revived,
    Spot,
    Task,
    TaskFilter,
    TasksFound,
    Unique,
    Why,
    cancel,
    find_tasks,
    get_task,
    history,
    retry_tasks,
    send_many,
    set_foreground,
    set_position,
    set_priority,
    why,
)
from gristmill.scopes import GLOBAL_ID

SQL = queries("gristmill.cli", "tasks.sql")
app = typer.Typer(no_args_is_help=True)
PATIENCE = 5.0  # seconds that a list may look for tasks that fit
Id = Annotated[int, typer.Argument(help="The id of the task.")]
Ids = Annotated[list[int], typer.Argument(help="The ids of tasks or groups.")]


def register(root: typer.Typer, text: str) -> None:
    root.add_typer(app, name="task", help=text)


@app.command("list")
def list_(
    queue: Annotated[str | None, typer.Option(help="Only of this queue.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only of this kind.")] = None,
    status: Annotated[
        str | None, typer.Option(help="pending, processing, completed, failed, skipped or cancelled.")
    ] = None,
    group: Annotated[int | None, typer.Option(help="Only children of this group.")] = None,
    text: Annotated[str | None, typer.Option(help="Only with this text inside payload, result or error.")] = None,
    cluster: Annotated[str | None, typer.Option(help="Only dead letters with this error: see dead clusters.")] = None,
    owner: Annotated[str | None, typer.Option(help="Only of this owner, such as document:7.")] = None,
    since: Annotated[str | None, typer.Option(help="Only sent at this time or later: 2026-12-01T08:00.")] = None,
    until: Annotated[str | None, typer.Option(help="Only sent at this time or earlier.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")] = 50,
    before: Annotated[int | None, typer.Option(help="Only older than this task: the next page.")] = None,
    json: Json = False,
) -> None:
    """Tasks, the newest first; dead letters by the time of their death.

    It looks for a few seconds at most, and then says how to go on.

    Example: gristmill task list --queue extract --status failed --limit 20
    """
    if status is not None and status not in STATUSES:
        raise Misused(f"“{status}” is no status; there are {', '.join(STATUSES)}.")
    with blame_options(fingerprint="--cluster"):
        wanted = TaskFilter(
            queue=queue,
            kind=kind,
            status=status,
            parent=TaskId(group) if group is not None else None,
            text=text,
            fingerprint=cluster,
            owner=owner,
            since=parse_instant(since) if since else None,
            until=parse_instant(until) if until else None,
        )
    if is_elsewhere():
        asked = {"queue": queue, "kind": kind, "status": status, "parent": group, "text": text, "cluster": cluster}
        tasks = remote().fetch_tasks(limit, **asked, owner=owner, since=wanted.since, until=wanted.until)
        emit(json, tasks, lambda: _tasks_table(tasks))
        return
    found = run(_find_tasks(wanted, limit, TaskId(before) if before is not None else None))
    emit(json, found.tasks, lambda: _tasks_table(found.tasks))
    if found.next is not None and len(found.tasks) < limit:
        err.print(f"Looked through {found.looked:,} tasks; go on with --before {found.next.id}.")


@app.command()
def show(task: Id, json: Json = False) -> None:
    """One task: what was asked for, what became of it, and all that happened on the way.

    Example: gristmill task show 42
    """
    found, events, reason = run(_load_task(TaskId(task)))
    emit(json, {"task": found, "why": reason.sentence, "history": events}, lambda: _task_view(found, events, reason))


@app.command("why")
def why_(task: Id, json: Json = False) -> None:
    """Why a task is where it is, in one sentence.

    Example: gristmill task why 42
    """
    found = run(_explain_task(TaskId(task)))
    emit(json, found, lambda: Text(f"Task {task}: {found.sentence}."))


@app.command()
def send(
    kind: Annotated[str, typer.Argument(help="The kind of letter.")],
    payload: Annotated[str, typer.Argument(help=PAYLOAD)] = "{}",
    queue: Annotated[str | None, typer.Option(help="Another queue than that of the letter.")] = None,
    priority: Annotated[int, typer.Option(min=-100, max=100, help="Higher goes first.")] = 0,
    foreground: Annotated[bool, typer.Option("--foreground", help="A person waits for it.")] = False,
    run_at: Annotated[str | None, typer.Option(help="Not before this time, such as 2026-12-01T08:00.")] = None,
    delay: Annotated[str | None, typer.Option(help="Not before so long from now, such as 5min.")] = None,
    after: Annotated[int | None, typer.Option(help="Not before this task or group is completed.")] = None,
    unique: Annotated[str | None, typer.Option(help="At most one open task has this key.")] = None,
    serial: Annotated[str | None, typer.Option(help="Tasks with this key run one at a time.")] = None,
    app: Annotated[str | None, typer.Option(help="Where the handlers are: module:name or file.py:name.")] = None,
    json: Json = False,
) -> None:
    """Send a letter, checked against the handler that will answer it.

    Example: gristmill task send demo-extract.facts '{"item": 7}' --foreground --app examples/mill.py:handlers
    """
    outside: dict[str, Any] = {
        "queue": queue,
        "priority": priority,
        "foreground": foreground,
        "serial_key": serial,
        "run_at": parse_instant(run_at) if run_at else None,
        "delay": parse_span(delay),
        "after": TaskId(after) if after is not None else None,
        "unique": Unique(unique) if unique else None,
    }
    task, where, new = run(_send(kind, read_payload(payload), app, outside))
    sentence = (
        f"Sent as task {task} to {where}" if new else f"Task {task} has this unique key already; nothing was sent"
    )
    emit(json, {"task": task, "queue": where, "new": new}, lambda: f"{sentence}: gristmill task why {task}")


@app.command("cancel")
def cancel_(tasks: Ids, json: Json = False) -> None:
    """Cancel tasks, and all within groups: waiting ones at once, running ones are asked to stop.

    Example: gristmill task cancel 42 43
    """
    done = run(_cancel([TaskId(task) for task in tasks]))
    emit(json, done, lambda: describe_cancelling(done))


@app.command("retry")
def retry_(
    tasks: Ids,
    again: Annotated[bool, typer.Option("--any", help="Also what was completed or skipped.")] = False,
    json: Json = False,
) -> None:
    """Try failed or cancelled tasks again: each has its full number of attempts again.

    Example: gristmill task retry 42
    """
    done = run(_retry([TaskId(task) for task in tasks], again))
    emit(json, done, lambda: describe_revival(done))
    if not done.tasks:
        raise typer.Exit(1)


@app.command()
def move(
    task: Id,
    position: Annotated[
        str | None, typer.Option(help="Before all without a position, in their order; or none.")
    ] = None,
    priority: Annotated[int | None, typer.Option(min=-100, max=100, help="Higher goes first.")] = None,
    foreground: Annotated[
        bool | None, typer.Option("--foreground/--background", help="Whether a person waits for it.")
    ] = None,
    json: Json = False,
) -> None:
    """Change the place of a pending task in line.

    Example: gristmill task move 42 --foreground
    """
    if position is None and priority is None and foreground is None:
        raise Misused("Say where to move it: --position, --priority, --foreground or --background.")
    found = run(_move(TaskId(task), position, priority, foreground))
    emit(json, found, lambda: Text(f"Task {task}: {found.sentence}."))


# --- work


async def _find_tasks(wanted: TaskFilter, limit: int, before: TaskId | None) -> TasksFound:
    async with session() as at, at.db.transaction() as tx:
        start = None if before is None else Spot(before, await _find_death(tx, before) if wanted.is_dead else None)
        return await find_tasks(tx, wanted, limit=limit, start=start, budget=PATIENCE)


async def _find_death(tx: Tx, task: TaskId) -> datetime | None:
    return (await get_task(tx, task)).finished_at


async def _load_task(task: TaskId) -> tuple[Task, list[HistoryEvent], Why]:
    if is_elsewhere():
        return remote().fetch_task(task)
    async with session() as at, at.db.transaction() as tx:
        return await get_task(tx, task), await history(tx, task), await why(tx, task)


async def _explain_task(task: TaskId) -> Why:
    if is_elsewhere():
        return remote().explain_elsewhere(task)
    async with session() as at, at.db.transaction() as tx:
        return await why(tx, task)


async def _send(
    kind: str, payload: dict[str, Any], app: str | None, outside: dict[str, Any]
) -> tuple[TaskId, str, bool]:
    """The task, its queue, and whether it is new."""
    async with session() as at:
        handler, letter = await find_letter(kind, payload, app, at)
        with blame_options(run_at="--run-at", delay="--delay", priority="--priority"):
            envelope = Envelope(letter, **outside)
        async with at.db.transaction() as tx:
            key = envelope.unique.key if envelope.unique else None
            holder = (
                await tx.value(SQL["holder"], Column[TaskId], key=key, scope=GLOBAL_ID) if key is not None else None
            )
            (task,) = await send_many(tx, [envelope], max_payload=at.settings.queue.max_payload)
        return task, envelope.queue or handler.queue, task != holder


async def _cancel(tasks: Sequence[TaskId]) -> Cancelling:
    if is_elsewhere():
        return remote().cancel_elsewhere(tasks)
    async with session() as at, at.db.transaction() as tx:
        return await cancel(tx, tasks)


async def _retry(tasks: Sequence[TaskId], again: bool) -> Revived:
    if is_elsewhere():
        return remote().retry_tasks_elsewhere(tasks)
    async with session() as at, at.db.transaction() as tx:
        return await retry_tasks(tx, tasks, any_outcome=again)


async def _move(task: TaskId, position: str | None, priority: int | None, foreground: bool | None) -> Why:
    if position is not None and position != "none" and not position.lstrip("-").isdigit():
        raise Misused(f"“{position}” is neither a whole number nor none.")
    async with session() as at, at.db.transaction() as tx:
        if priority is not None:
            await set_priority(tx, task, priority)
        if foreground is not None:
            await set_foreground(tx, task, foreground)
        if position is not None:
            await set_position(tx, task, None if position == "none" else int(position))
        return await why(tx, task)


# --- views


def _tasks_table(found: Sequence[Task]) -> RenderableType:
    rows = [
        (str(one.id), one.kind, one.status, _format_place(one), one.attempts, one.created_at, _format_outcome(one))
        for one in found
    ]
    columns = ("task", "kind", "status", "place", ">attempts", "created", "")
    return make_table(columns, rows, empty="There are no such tasks.")


def _format_place(one: Task) -> str:
    """Priority, position and foreground, as the envelope says them."""
    parts = [f"position {one.position}"] if one.position is not None else []
    parts += ["foreground"] if one.foreground else []
    parts += [f"{one.priority:+d}"] if one.priority else []
    return ", ".join(parts)


def _format_outcome(one: Task) -> str:
    if one.status in ("failed", "skipped", "cancelled") or (one.status == "pending" and one.error):
        return shorten(one.error or "", 80)
    return format_progress(one) or (shorten(one.result, 80) if one.result is not None else shorten(one.payload, 80))


def format_progress(one: Task) -> str:
    if one.status != "processing" or one.progress_current is None:
        return ""
    total = f" of {one.progress_total}" if one.progress_total is not None else ""
    return f"{one.progress_current}{total} {one.progress_message or ''}".strip()


def _task_view(one: Task, events: Sequence[HistoryEvent], reason: Why) -> RenderableType:
    top = make_facts(
        [
            ("task", str(one.id)),
            ("kind", one.kind),
            ("queue", one.queue),
            ("status", one.status),
            ("why", Text(reason.sentence, style=COLOURS.get(one.status, ""))),
            ("place", _format_place(one)),
            ("attempts", f"{one.attempts} of {one.max_attempts}" if one.max_attempts else one.attempts),
            ("progress", format_progress(one)),
            ("created", one.created_at),
            ("started", one.started_at),
            ("finished", one.finished_at),
            ("group", one.parent and str(one.parent)),
            ("after", one.after and str(one.after)),
            ("serial key", one.serial_key),
            ("unique key", one.unique_key),
            ("owner", one.owner),
            ("payload", None if one.payload is None else shorten(one.payload, 400)),
            ("result", None if one.result is None else shorten(one.result, 400)),
            ("error", one.error),
        ]
    )
    rows = [(event.at, event.what, event.attempt, event.worker, event.text or "") for event in events]
    return Group(top, "", make_table(("when", "what", ">attempt", ">worker", ""), rows, empty=""))


def describe_cancelling(done: Cancelling) -> str:
    asked = f", {len(done.asked):,} were running and have been asked to stop" if done.asked else ""
    return (
        f"{len(done.cancelled):,} cancelled{asked}." if done.cancelled or asked else "There was nothing left to cancel."
    )


def describe_revival(done: Revived) -> str:
    lines = [f"{len(done.tasks):,} pending again."] if done.tasks else []
    return "\n".join([*lines, *(f"Task {one.id} stays as it is: {one.reason}." for one in done.refused)])
