"""Whose knowledge a command is about: `--client` and `--project`, as every command reads them."""

from typing import Annotated

import typer

from gristmill.cli.output import Misused
from gristmill.cli.session import options
from gristmill.knowledge import Scope

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
