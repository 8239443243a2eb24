"""Whose knowledge a command is about: `--client` and `--project`, as every command reads them."""

from typing import Annotated

import typer

from gristmill.cli.output import Misused, warn
from gristmill.cli.session import options
from gristmill.db import Tx
from gristmill.documents import holds_anything
from gristmill.scopes import GLOBAL, Scope

Client = Annotated[str | None, typer.Option(help="Whose it is; without it, it is everybody's (GLOBAL).")]
Project = Annotated[str | None, typer.Option(help="Which project of the client it belongs to.")]


def scope_of(client: str | None, project: str | None) -> Scope:
    """What they mean together; a project without its client is a mistake of the command line, and so is no name at all.

    An empty one is most likely that of a variable which is not set: what it names must not become everybody's.
    """
    if client == "" or project == "":
        raise Misused("An empty name is none: name the client and the project, or leave the option out.")
    with options():
        return Scope(client or "", project or "")


async def heed(tx: Tx, scope: Scope) -> None:
    """Say that nothing is there to be found: a client that is misspelt looks like one that never wrote of it."""
    if lack := await lack_of(tx, scope):
        warn(lack)


async def lack_of(tx: Tx, scope: Scope) -> str | None:
    """The sentence that says so, if it is so."""
    if scope == GLOBAL or await holds_anything(tx, scope):
        return None
    return f"Nothing belongs to {scope}: gristmill documents lists what there is, and whose it is."
