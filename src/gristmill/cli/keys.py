"""`gristmill key`: who may call the API and open the console."""

from collections.abc import Sequence
from typing import Annotated, Literal

import typer
from rich.console import RenderableType

from gristmill.cli.output import Json, emit, make_table, to_plain
from gristmill.cli.scopes import Client, Project, scope_of
from gristmill.cli.session import run, session
from gristmill.scopes import GLOBAL
from gristmill.serving import Caller
from gristmill.web import AccessKey, NewKey, add_key, find_key, format_link, list_keys, make_link, revoke_key

app = typer.Typer(no_args_is_help=True)
Role = Literal["viewer", "manager", "admin"]
OPERATOR = Caller("operator", "admin", None, "this machine")  # a person who may run commands here may do everything


def register(root: typer.Typer, text: str) -> None:
    root.add_typer(app, name="key", help=text)


@app.command("add")
def add(
    name: Annotated[str, typer.Argument(help="Who holds it, for the audit log.")],
    role: Annotated[Role, typer.Option(help="viewer reads, manager also changes, admin also manages.")] = "viewer",
    client: Client = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """Make a key and show it, once. Without --client it sees all clients.

    Example: gristmill key add anna --role manager --client acme
    """
    new = run(_add(name, role, client, project))
    data = {**_as_dict(new.key), "secret": new.secret}
    emit(json, data, lambda: f"{new.secret}\nKeep it: nobody can show it again. {_describe(new.key)}")


@app.command("ls")
def ls(
    all: Annotated[bool, typer.Option("--all", help="The revoked ones, too.")] = False,
    json: Json = False,
) -> None:
    """All keys: their roles, whom they are bound to, when they were last used.

    Example: gristmill key ls
    """
    found = run(_list(all))
    emit(json, [_as_dict(one) for one in found], lambda: _keys_table(found))


@app.command("revoke")
def revoke(
    key: Annotated[str, typer.Argument(help="Its name or number.")],
    json: Json = False,
) -> None:
    """Take a key back: from now on it opens nothing, and browsers that signed in with it are signed out.

    Example: gristmill key revoke anna
    """
    revoked = run(_revoke(key))
    emit(json, _as_dict(revoked), lambda: f"The key {revoked.name} opens nothing any more.")


@app.command("link")
def link(json: Json = False) -> None:
    """Print a link that signs the operator in once, at the configured address.

    Example: gristmill key link
    """
    found = run(_make_link())
    emit(json, {"console": found}, lambda: found)


async def _add(name: str, role: Role, client: str | None, project: str | None) -> NewKey:
    scope = scope_of(client, project)
    async with session() as at, at.db.transaction() as tx:
        return await add_key(tx, OPERATOR, name, role, None if scope == GLOBAL else scope)


async def _list(all: bool) -> Sequence[AccessKey]:
    async with session() as at, at.db.transaction() as tx:
        return await list_keys(tx, all=all)


async def _revoke(name_or_id: str) -> AccessKey:
    async with session() as at, at.db.transaction() as tx:
        key = await find_key(tx, name_or_id)
        return await revoke_key(tx, OPERATOR, key.id)


async def _make_link() -> str:
    async with session() as at, at.db.transaction() as tx:
        token = await make_link(tx, at.settings.web)
        return format_link(at.settings.web, at.settings.web.port, token)


def _as_dict(key: AccessKey) -> dict[str, object]:
    return {**to_plain(key), "bound_to": key.bound_to}


def _describe(key: AccessKey) -> str:
    return f"{key.name} is {key.role} of {key.bound_to}."


def _keys_table(found: Sequence[AccessKey]) -> RenderableType:
    rows = [
        (one.id, one.name, one.role, one.bound_to, one.created_at, one.last_used_at, one.revoked_at) for one in found
    ]
    columns = (">key", "~name", "role", "~bound to", "made", "last used", "revoked")
    return make_table(columns, rows, empty="There are no keys: gristmill key add NAME makes one.")
