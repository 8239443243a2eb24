"""`gristmill profile`: who “we” are for a client, and how long before a deadline work begins."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from gristmill.cli.output import Json, emit, make_table
from gristmill.cli.scopes import Client, Project, format_scope, scope_of
from gristmill.cli.session import name_user, run, session
from gristmill.qualifier import Profile, list_profiles, remove_profile, set_profile
from gristmill.scopes import Scope

app = typer.Typer(no_args_is_help=True)


def register(root: typer.Typer, text: str) -> None:
    root.add_typer(app, name="profile", help=text)


@app.command("ls")
def ls(json: Json = False) -> None:
    """All profiles.

    Example: gristmill profile ls
    """
    known = run(_load())
    emit(json, [_describe(one) for one in known], lambda: _profiles_table(known))


@app.command("set")
def set_(
    name: Annotated[list[str] | None, typer.Option(help="A name by which people write to us; may be repeated.")] = None,
    address: Annotated[list[str] | None, typer.Option(help="An e-mail address, or @host for all of it.")] = None,
    lead_days: Annotated[
        int | None, typer.Option(min=0, max=365, help="How many days before a deadline work begins.")
    ] = None,
    client: Client = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """Say who we are. What was said before for this client or project is replaced.

    Example: gristmill profile set --client acme --name "Jana Nová" --address jana@acme.example --lead-days 3
    """
    known = run(_set(scope_of(client, project), name or [], address or [], lead_days))
    emit(json, _describe(known), lambda: _profiles_table([known]))


@app.command("rm")
def rm(client: Client = None, project: Project = None, json: Json = False) -> None:
    """Forget a profile.

    Example: gristmill profile rm --client acme
    """
    scope = scope_of(client, project)
    run(_remove(scope))
    emit(json, {"scope": str(scope), "removed": True}, lambda: f"The profile of {scope} is forgotten.")


async def _load() -> list[Profile]:
    async with session() as at, at.db.reading() as tx:
        return await list_profiles(tx)


async def _set(scope: Scope, names: Sequence[str], addresses: Sequence[str], lead_days: int | None) -> Profile:
    async with session() as at, at.db.transaction() as tx:
        return await set_profile(tx, scope, name_user(), names=names, addresses=addresses, lead_days=lead_days)


async def _remove(scope: Scope) -> None:
    async with session() as at, at.db.transaction() as tx:
        await remove_profile(tx, scope)


def _describe(one: Profile) -> dict[str, Any]:
    return dict(vars(one))


def _profiles_table(known: Sequence[Profile]) -> RenderableType:
    rows = [
        (format_scope(one.client, one.project), one.lead_days, ", ".join(one.names), ", ".join(one.addresses))
        for one in known
    ]
    empty = "Nobody has said who we are: gristmill profile set does."
    return make_table(("scope", ">lead days", "names", "addresses"), rows, empty=empty)
