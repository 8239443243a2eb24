"""`gristmill qualify`: decides about past items again with today's rules, and shows what would differ."""

import os
from datetime import timedelta
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.progress import Progress

from gristmill.cli.output import Json, emit, err, make_table
from gristmill.cli.scopes import Client, Project
from gristmill.cli.session import parse_span, run, session
from gristmill.qualifier import DecisionReplayWish, ReplayedOutcome, ReplayReport, describe_report, load_moment, replay
from gristmill.wording import format_count

app = typer.Typer(no_args_is_help=True)


def register(root: typer.Typer, text: str) -> None:
    root.add_typer(app, name="qualify", help=text)


@app.callback()
def qualify() -> None:
    """Decisions about items."""


@app.command("replay")
def replay_(
    since: Annotated[str, typer.Option(help="How far back, for example 30d.")] = "30d",
    client: Client = None,
    project: Project = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="How many differences are shown at most.")] = 50,
    json: Json = False,
) -> None:
    """Decide about past items again with today's rules and conventions, and show what would differ.

    Nothing is changed. The date, the other items and the advice of an LLM are those of the past.

    Example: gristmill qualify replay --since 30d
    """
    report = run(_replay(parse_span(since) or timedelta(days=30), client, project, quiet=json))
    shown = describe_report(report)
    emit(json, {**shown, "differences": shown["differences"][:limit]}, lambda: _show_report(report, limit))


async def _replay(span: timedelta, client: str | None, project: str | None, *, quiet: bool) -> ReplayReport:
    async with session() as at:
        async with at.db.reading() as tx:
            since = await load_moment(tx) - span
        with Progress(console=err, transient=True, disable=quiet or not err.is_terminal) as bar:
            line = bar.add_task("Deciding again", total=None)
            return await replay(
                at.db,
                at.settings.qualifier,
                DecisionReplayWish(since, client, project),
                processes=max(1, os.cpu_count() or 1),
                tell=lambda done, total: bar.update(line, completed=done, total=total),
            )


def _show_report(report: ReplayReport, limit: int) -> RenderableType:
    said = f"{format_count(report.looked_at, 'item')} decided again: {report.changed:,} would differ."
    if report.lowered:
        some = "One of them is" if report.lowered == 1 else f"{report.lowered:,} of them are"
        said += f" {some} work now, and would be put away."
    if report.unreadable:
        said += f" The words of {format_count(report.unreadable, 'item')} are gone."
    if not report.differences:
        return said
    rows = [
        (one.item, _write_outcome(one.was), _write_outcome(one.now), one.title, one.because[-1].sentence)
        for one in report.differences[:limit]
    ]
    return Group(said, make_table((">item", "was", "today", "~title", "because"), rows, empty=""))


def _write_outcome(one: ReplayedOutcome) -> str:
    at = f" {one.scheduled_at:%Y-%m-%d}" if one.scheduled_at else ""
    who = f" for {one.assign}" if one.assign else ""
    return f"{one.route}{at}, {one.urgency}{who}"
