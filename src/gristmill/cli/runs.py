"""`gristmill runs`: what agents were asked for, and how far they are."""

from collections.abc import Sequence
from typing import Annotated, Any, get_args

import typer

from gristmill.agents import Run, RunState, WantedRuns, list_runs
from gristmill.cli.elsewhere import is_elsewhere, remote
from gristmill.cli.output import Json, Misused, emit, make_table
from gristmill.cli.scopes import format_scope
from gristmill.cli.session import run, session

STATES: Sequence[RunState] = get_args(RunState)


def register(root: typer.Typer, text: str) -> None:
    root.command("runs")(runs_)


def runs_(
    state: Annotated[str | None, typer.Option(help=f"Only runs in this state: {', '.join(STATES)}.")] = None,
    client: Annotated[str | None, typer.Option(help="Only runs for this client.")] = None,
    project: Annotated[str | None, typer.Option(help="Only runs for this project.")] = None,
    text: Annotated[str | None, typer.Option(help="Only runs whose request has these words.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")] = 50,
    json: Json = False,
) -> None:
    """Runs of agents, the newest first.

    Example: gristmill runs --state waiting_for_user
    """
    if state is not None and state not in STATES:
        raise Misused(f"“{state}” is no state of a run: choose one of {', '.join(STATES)}.")
    chosen: Sequence[RunState] | None = [one for one in STATES if one == state] or None
    wanted = WantedRuns(chosen, client, project, text)
    found = remote().fetch_runs(wanted, limit) if is_elsewhere() else run(_load(wanted, limit))
    rows = [_make_row(one) for one in found]
    columns = (">run", "state", "~for", ">tokens", "asked", "what")
    empty = "No run fits." if vars(wanted) != vars(WantedRuns()) else 'No run yet: gristmill run "…" starts one.'
    emit(json, [describe_run(one) for one in found], lambda: make_table(columns, rows, empty=empty))


def _make_row(one: Run) -> tuple[Any, ...]:
    tokens = one.tokens_in + one.tokens_out
    return one.id, describe_state(one), format_scope(one.client, one.project), tokens, one.created_at, one.title


def describe_state(one: Run) -> str:
    """Whoever looks at a list sees that a run came to its end without its goals."""
    return f"{one.state}, {one.unreached}" if one.unreached else one.state


async def _load(wanted: WantedRuns, limit: int) -> list[Run]:
    found: list[Run] = []
    before: int | None = None
    async with session() as at, at.db.reading() as tx:
        while True:
            runs, before = await list_runs(tx, wanted, before=before, limit=limit - len(found))
            found += runs
            if before is None or len(found) == limit:
                return found


def describe_run(one: Run) -> dict[str, Any]:
    """A run for programs: the same here as over the API."""
    return {name: value for name, value in vars(one).items() if name not in ("scope", "fence")}
