"""`gristmill procedure`: how agents do things, as people state it and as they learned it."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from gristmill.agents import (
    ProcedureNode,
    ProcedureStep,
    check_agents,
    list_procedures,
    load_procedure,
    read_step,
    remove_procedure,
    state_procedure,
)
from gristmill.cli.output import Json, emit, make_table
from gristmill.cli.scopes import Client, Project, format_scope, scope_of
from gristmill.cli.session import name_user, run, session
from gristmill.scopes import Scope

app = typer.Typer(no_args_is_help=True)


def register(root: typer.Typer, text: str) -> None:
    root.add_typer(app, name="procedure", help=text)


@app.command("add")
def add(
    pattern: Annotated[str, typer.Argument(help="Words of such requests; | stands between several: release | deploy")],
    step: Annotated[list[str], typer.Option(help="An agent and what it does: “test: run make test”. Repeat it.")],
    client: Client = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """State how something is done. Agents follow it before what they learned (GRISTMILL_AGENTS_USE_PROCEDURAL_MEMORY).

    Example: gristmill procedure add "release | deploy" --step "test: run make test" --step "git: commit on agent/new"
    """
    steps = [read_step(one) for one in step]
    check_agents(one.agent for one in steps)
    made = run(_add(scope_of(client, project), pattern, steps))
    emit(json, _describe(made), lambda: f"Procedure {made.id} is stated for requests like “{made.trigger_pattern}”.")


@app.command("ls")
def ls(client: Client = None, project: Project = None, json: Json = False) -> None:
    """All procedures with how often and when each was used: first those that people stated.

    Example: gristmill procedure ls
    """
    scope = scope_of(client, project) if client or project else None
    found = run(_load(scope))
    rows = [
        (
            one.id,
            format_scope(one.client_id, one.project),
            one.stated_by or "learned",
            one.usage_count,
            f"{100 * one.success_rate:.0f} %" if one.usage_count else None,
            one.last_used,
            one.trigger_pattern,
            " → ".join(f"{step.agent}: {step.action}" for step in one.procedure_steps),
        )
        for one in found
    ]
    empty = "There is no procedure yet: gristmill procedure add states one."
    columns = (">procedure", "scope", "by", ">used", ">well", "last", "for", "steps")
    emit(json, [_describe(one) for one in found], lambda: make_table(columns, rows, empty=empty))


@app.command("rm")
def rm(
    number: Annotated[int, typer.Argument(min=1, help="Its number, as gristmill procedure ls shows it.")],
    json: Json = False,
) -> None:
    """Take a procedure back, or forget a learned one.

    Example: gristmill procedure rm 3
    """
    pattern = run(_remove(number))
    emit(json, {"id": number, "removed": True}, lambda: f"Procedure {number} is gone: {pattern}")


async def _add(scope: Scope, pattern: str, steps: Sequence[ProcedureStep]) -> ProcedureNode:
    async with session() as at, at.db.transaction() as tx:
        return await state_procedure(tx, scope, pattern, steps, name_user())


async def _load(scope: Scope | None) -> list[ProcedureNode]:
    async with session() as at, at.db.reading() as tx:
        return await list_procedures(tx, scope, limit=10_000)


async def _remove(number: int) -> str:
    async with session() as at, at.db.transaction() as tx:
        found = await load_procedure(tx, number)
        await remove_procedure(tx, number)
        return found.trigger_pattern


def _describe(one: ProcedureNode) -> dict[str, Any]:
    steps = [vars(step) for step in one.procedure_steps]
    derived = {"usage_count": one.usage_count, "success_rate": one.success_rate, "strength": one.strength}
    kept = {name: value for name, value in vars(one).items() if name not in ("procedure_steps", "idle", "client_id")}
    return {**kept, "client": one.client_id, "steps": steps, **derived}
