"""`gristmill memory`: what agents remember of the last days."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from gristmill.agents import SessionEntry, forget_entry, forget_scope, list_entries
from gristmill.cli.output import Json, Misused, emit, make_table
from gristmill.cli.scopes import Client, Project, format_scope, scope_of
from gristmill.cli.session import run, session
from gristmill.scopes import Scope

app = typer.Typer(no_args_is_help=True)


def register(root: typer.Typer, text: str) -> None:
    root.add_typer(app, name="memory", help=text)


@app.command("ls")
def ls(
    client: Client = None,
    project: Project = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")] = 100,
    json: Json = False,
) -> None:
    """What happened lately, the newest first; of one client or project if it is named.

    Example: gristmill memory ls --client acme --project mill
    """
    scope = scope_of(client, project) if client or project else None
    found = run(_load(scope, limit))
    rows = [
        (one.id, format_scope(one.client, one.project), one.task_id, one.source, one.timestamp, one.summary)
        for one in found
    ]
    empty = "Nothing is remembered: entries are kept for a week."
    columns = (">entry", "scope", ">run", "by", "when", "what")
    emit(json, [_describe(one) for one in found], lambda: make_table(columns, rows, empty=empty))


@app.command("forget")
def forget(
    entry: Annotated[int | None, typer.Argument(min=1, help="The number of an entry.")] = None,
    client: Client = None,
    project: Project = None,
    all_: Annotated[bool, typer.Option("--all", help="Everything of the client and project, or of GLOBAL.")] = False,
    json: Json = False,
) -> None:
    """Forget one entry, or all of a client or project.

    Example: gristmill memory forget --all --client acme --project mill
    """
    if (entry is None) != all_:
        raise Misused("Name an entry to forget, or --all with a client and project.")
    scope = scope_of(client, project)
    forgotten = run(_forget(entry, scope))
    said = f"{forgotten:,} {'entry is' if forgotten == 1 else 'entries are'} forgotten, of {scope}."
    emit(json, {"entries": forgotten}, lambda: said if all_ else f"Entry {entry} is forgotten.")


async def _load(scope: Scope | None, limit: int) -> Sequence[SessionEntry]:
    async with session() as at, at.db.reading() as tx:
        return await list_entries(tx, scope, limit=limit)


async def _forget(entry: int | None, scope: Scope) -> int:
    async with session() as at, at.db.transaction() as tx:
        if entry is None:
            return await forget_scope(tx, scope)
        await forget_entry(tx, entry)
        return 1


def _describe(one: SessionEntry) -> dict[str, Any]:
    return {"run": one.task_id, **{name: value for name, value in vars(one).items() if name != "task_id"}}
