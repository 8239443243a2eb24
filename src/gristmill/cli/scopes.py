"""Whose knowledge a command is about: `--client` and `--project`, as every command reads them."""

from typing import Annotated

import typer

from gristmill.cli.output import Misused, warn
from gristmill.cli.session import blame_options
from gristmill.db import Tx
from gristmill.documents import explain_lack
from gristmill.scopes import GLOBAL, Scope

Client = Annotated[str | None, typer.Option(help="The client that owns it; without it, it is everybody's (GLOBAL).")]
ViewedClient = Annotated[
    str | None, typer.Option(help="The client whose knowledge is meant, or GLOBAL; without it, all clients.")
]
Project = Annotated[str | None, typer.Option(help="Which project of the client it belongs to.")]


def scope_of(client: str | None, project: str | None) -> Scope:
    """The scope that both options mean; a project without its client and an empty name are mistakes in use.

    An empty name most likely comes from a variable that is not set: its documents must not become everybody's.
    """
    if client == "" or project == "":
        raise Misused("The name is empty: name the client and the project, or leave the option out.")
    with blame_options():
        return Scope(client or "", project or "")


def view_of(client: str | None, project: str | None) -> Scope | None:
    """The scope that a command looks at; None is everything. `--client GLOBAL` is only what belongs to everybody."""
    if client == str(GLOBAL) and project is None:
        return GLOBAL
    scope = scope_of(client, project)
    return None if scope == GLOBAL else scope


def format_scope(client: str, project: str) -> str:
    """The client and project of a thing, in a few characters."""
    return f"{client}/{project}" if project else client or "GLOBAL"


async def warn_of_lack(tx: Tx, scope: Scope) -> None:
    """Warn if the scope has nothing that could be found."""
    if lack := await explain_lack(tx, scope):
        warn(lack)
