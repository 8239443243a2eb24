"""`gristmill policy`: what agents may do in a project without asking, and what they never do."""

from typing import Annotated, Any, cast

import typer
from rich.console import RenderableType

from gristmill.agents import Policy, drop_policy, find_policy, load_policy, set_policy
from gristmill.cli.output import Json, Misused, emit, make_facts
from gristmill.cli.scopes import Client, Project, format_scope, scope_of
from gristmill.cli.session import name_user, run, session
from gristmill.scopes import Scope

app = typer.Typer(no_args_is_help=True)
Patterns = list[str] | None


def register(root: typer.Typer, text: str) -> None:
    root.add_typer(app, name="policy", help=text)


@app.command("show")
def show(client: Client = None, project: Project = None, json: Json = False) -> None:
    """What agents may do in a project: its own policy, its client's, or everybody's.

    Example: gristmill policy show --client acme --project mill
    """
    scope = scope_of(client, project)
    policy, is_own = run(_load(scope))
    emit(json, _describe(policy, scope, is_own), lambda: _show(policy, scope, is_own))


@app.command("set")
def set_(
    client: Client = None,
    project: Project = None,
    branch: Annotated[Patterns, typer.Option(help="A branch that agents may write: agent/*. Repeat it.")] = None,
    forbid: Annotated[Patterns, typer.Option(help="Files that they never change: *.pem, deploy/**. Repeat it.")] = None,
    max_files: Annotated[int | None, typer.Option(min=0, help="Files that one run changes without asking.")] = None,
    auto_push: Annotated[bool | None, typer.Option(help="Whether such branches are pushed without asking.")] = None,
    recipient: Annotated[Patterns, typer.Option(help="Who may be written to: anna@example.org. Repeat it.")] = None,
    domain: Annotated[Patterns, typer.Option(help="Whose pages may be fetched: docs.example.org. Repeat it.")] = None,
    command: Annotated[Patterns, typer.Option(help="What may run in the sandbox: “make test”. Repeat it.")] = None,
    tool: Annotated[
        Patterns,
        typer.Option(help="Tools that act unasked if a person named the target and no text the words. Repeat it."),
    ] = None,
    reset: Annotated[bool, typer.Option(help="Drop the policy of this client or project.")] = False,
    json: Json = False,
) -> None:
    """Change what agents may do in a project. An option that is given replaces all of its kind; "" empties it.

    Example: gristmill policy set --client acme --project mill --command "make test" --domain docs.example.org
    """
    given = {
        "branches": branch,
        "forbidden_files": forbid,
        "max_files": max_files,
        "auto_push": auto_push,
        "recipients": recipient,
        "domains": domain,
        "commands": command,
        "tools": tool,
    }
    changes = {name: _read(value) for name, value in given.items() if value is not None}
    if reset == bool(changes):
        raise Misused("Say what shall change, or --reset.")
    scope = scope_of(client, project)
    policy, is_own = run(_drop(scope) if reset else _set(scope, changes))
    emit(json, _describe(policy, scope, is_own), lambda: _show(policy, scope, is_own))


def _read(value: Any) -> Any:
    return [one for one in cast(list[str], value) if one] if isinstance(value, list) else value


async def _load(scope: Scope) -> tuple[Policy, bool]:
    async with session() as at, at.db.reading() as tx:
        return await load_policy(tx, scope), await find_policy(tx, scope) is not None


async def _set(scope: Scope, changes: dict[str, Any]) -> tuple[Policy, bool]:
    async with session() as at, at.db.transaction() as tx:
        await set_policy(tx, scope, name_user(), **changes)
        return await load_policy(tx, scope), True


async def _drop(scope: Scope) -> tuple[Policy, bool]:
    async with session() as at, at.db.transaction() as tx:
        await drop_policy(tx, scope)
        return await load_policy(tx, scope), False


def _describe(policy: Policy, scope: Scope, is_own: bool) -> dict[str, Any]:
    return {"client": scope.client, "project": scope.project, "is_own": is_own, **vars(policy)}


def _name_origin(scope: Scope) -> str:
    """Where a scope without a policy of its own has it from."""
    above = "its client or everybody's" if scope.project else "everybody's"
    return (
        f": it has no policy of its own, and follows {above}"
        if scope.client
        else ": as Gristmill has it; nobody has set one"
    )


def _show(policy: Policy, scope: Scope, is_own: bool) -> RenderableType:
    def list_or(values: Any, otherwise: str) -> str:
        return ", ".join(values) or otherwise

    return make_facts(
        [
            ("for", format_scope(scope.client, scope.project) + ("" if is_own else _name_origin(scope))),
            ("branches", list_or(policy.branches, "none may be written")),
            ("forbidden files", list_or(policy.forbidden_files, "none")),
            ("files of a run", policy.max_files),
            ("push without asking", policy.auto_push),
            ("recipients", list_or(policy.recipients, "none: every mail is asked for")),
            ("domains", list_or(policy.domains, "none: only pages that a person named")),
            ("commands", list_or(policy.commands, "none: only those that a person named")),
            ("tools", list_or(policy.tools, "none: every change outside is asked for")),
        ]
    )
