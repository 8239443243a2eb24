"""`gristmill schedule`: letters that are sent at set times."""

from collections.abc import Mapping
from typing import Annotated, Any, cast

import typer
from rich.console import RenderableType

from gristmill.cli.letters import PAYLOAD, find_letter, read_payload
from gristmill.cli.output import Json, Misused, emit, make_table, shorten
from gristmill.cli.session import blame_options, parse_instant, parse_span, run, session
from gristmill.durations import format_duration
from gristmill.errors import Refused
from gristmill.ids import TaskId
from gristmill.queue import (
    Schedule,
    add_schedule,
    check_cron,
    check_zone,
    enable_schedule,
    list_schedules,
    remove_schedule,
    run_schedule,
)

app = typer.Typer(no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="The name of the schedule.")]


def register(root: typer.Typer, text: str) -> None:
    root.add_typer(app, name="schedule", help=text)


@app.command("list")
def list_(json: Json = False) -> None:
    """All schedules, the next to run first.

    Example: gristmill schedule list
    """
    found = run(_load_schedules())
    emit(json, found, lambda: _schedules_table(found))


@app.command()
def add(
    name: Name,
    kind: Annotated[str, typer.Argument(help="The kind of letter to send.")],
    payload: Annotated[str, typer.Argument(help=PAYLOAD)] = "{}",
    cron: Annotated[str | None, typer.Option(help='Five fields, such as "0 6 * * *", or @daily.')] = None,
    daily: Annotated[str | None, typer.Option(help="A time of day, such as 06:00.")] = None,
    at: Annotated[str | None, typer.Option(help="Once, at this time, such as 2026-12-01T08:00.")] = None,
    follow: Annotated[str | None, typer.Option(help="After this other schedule …")] = None,
    delay: Annotated[str | None, typer.Option(help="… by this much, such as 60s.")] = None,
    zone: Annotated[str, typer.Option(help="The time zone that is meant.")] = "UTC",
    queue: Annotated[str | None, typer.Option(help="Another queue than that of the kind.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="If there is one of this name already.")] = False,
    app: Annotated[str | None, typer.Option(help="Where the handlers are: module:name or file.py:name.")] = None,
    json: Json = False,
) -> None:
    """Send a letter again and again, once, or some time after another schedule.

    Example: gristmill schedule add morning hello.greet '{"name": "you"}' --daily 06:00 --app examples/hello.py:handlers
    """
    given = [
        name for name, value in (("--cron", cron), ("--daily", daily), ("--at", at), ("--follow", follow)) if value
    ]
    if len(given) != 1:
        raise Misused(f"Give one of --cron, --daily, --at and --follow, not {' and '.join(given) or 'none'}.")
    if delay and not follow:
        raise Misused("--delay needs --follow: say after which schedule.")
    with blame_options():
        check_zone(zone)
        if cron or daily:
            check_cron(cron or daily or "", zone)
    when = {"cron": cron or daily, "zone": zone, "once_at": parse_instant(at, zone) if at else None, "follows": follow}
    found = run(
        _add(name, kind, read_payload(payload), queue, app, {**when, "delay": parse_span(delay), "replace": replace})
    )
    emit(json, found, lambda: _schedules_table([found]))


@app.command()
def remove(
    name: Name,
    cascade: Annotated[bool, typer.Option("--cascade", help="With all that follow it.")] = False,
    json: Json = False,
) -> None:
    """Remove a schedule; what it has sent stays.

    Example: gristmill schedule remove morning
    """
    removed = run(_remove(name, cascade))
    emit(json, {"removed": removed}, lambda: f"Removed {', '.join(removed)}.")


@app.command()
def enable(name: Name, json: Json = False) -> None:
    """Let a schedule fire again, from its next time on.

    Example: gristmill schedule enable morning
    """
    found = run(_enable(name, True))
    emit(json, found, lambda: _schedules_table([found]))


@app.command()
def disable(name: Name, json: Json = False) -> None:
    """Let a schedule rest.

    Example: gristmill schedule disable morning
    """
    found = run(_enable(name, False))
    emit(json, found, lambda: _schedules_table([found]))


@app.command("run")
def run_now(name: Name, json: Json = False) -> None:
    """Send its letter now; its next time stays where it is.

    Example: gristmill schedule run morning
    """
    task = run(_run(name))
    emit(json, {"task": task}, lambda: f"Sent as task {task}.")


async def _load_schedules() -> list[Schedule]:
    async with session() as at, at.db.transaction() as tx:
        return await list_schedules(tx)


async def _add(
    name: str, kind: str, payload: Mapping[str, Any], queue: str | None, app: str | None, given: dict[str, Any]
) -> Schedule:
    async with session() as at:
        handler, _ = await find_letter(kind, payload, app, at)
        async with at.db.transaction() as tx:
            if not given["replace"] and any(one.name == name for one in await list_schedules(tx)):
                raise Refused(f"There is already a schedule “{name}”: add --replace, or choose another name.")
            await add_schedule(tx, name, (kind, queue or handler.queue, payload), **given)
            return await _load_schedule(tx, name)


async def _remove(name: str, cascade: bool) -> list[str]:
    async with session() as at, at.db.transaction() as tx:
        followers = [] if cascade else [one.name for one in await list_schedules(tx) if one.follows == name]
        if followers:
            those = "it" if len(followers) == 1 else "them"
            raise Refused(f"{', '.join(followers)} would follow nothing: remove {those} first, or add --cascade.")
        return await remove_schedule(tx, name, cascade=cascade)


async def _enable(name: str, enabled: bool) -> Schedule:
    async with session() as at, at.db.transaction() as tx:
        await enable_schedule(tx, name, enabled)
        return await _load_schedule(tx, name)


async def _run(name: str) -> TaskId:
    async with session() as at, at.db.transaction() as tx:
        return await run_schedule(tx, name)


async def _load_schedule(tx: Any, name: str) -> Schedule:
    return next(one for one in await list_schedules(tx) if one.name == name)


def _schedules_table(found: list[Schedule]) -> RenderableType:
    rows = [
        (
            one.name,
            one.kind,
            shorten(one.payload, 30),
            _format_when(one),
            one.zone,
            one.enabled,
            one.next_at,
            one.last_at,
            str(one.last_task) if one.last_task else None,
        )
        for one in found
    ]
    columns = ("~schedule", "~kind", "~payload", "when", "zone", "enabled", "next", "last", "last task")
    return make_table(
        columns, rows, empty="There are no schedules: gristmill schedule add --help shows how to make one."
    )


def _format_when(one: Schedule) -> str:
    if one.follows:
        return f"{format_duration(cast(Any, one.delay))} after {one.follows}"
    return one.cron or "once"
