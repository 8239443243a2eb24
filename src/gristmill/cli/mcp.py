"""`gristmill mcp`: what is stored, as tools for another agent, over standard input and output."""

from typing import Annotated

import typer

from gristmill.agents import AskService, serve_stdio
from gristmill.cli.scopes import scope_of
from gristmill.cli.session import run, session
from gristmill.knowledge import Finder
from gristmill.scopes import Scope


def register(root: typer.Typer, text: str) -> None:
    root.command("mcp")(mcp)


def mcp(
    client: Annotated[str | None, typer.Option(help="See what this client sees; without it, everything.")] = None,
    project: Annotated[str | None, typer.Option(help="See what this project of the client sees.")] = None,
) -> None:
    """Serve the Model Context Protocol over standard input and output: search, documents, graph, ask.

    Example: gristmill mcp --client acme
    """
    run(_serve(scope_of(client, project)))


async def _serve(scope: Scope) -> None:
    async with session(size=8, quiet=True) as at, Finder(at.db, at.settings) as finder:
        asking = AskService(at.db, at.settings, finder)
        try:
            await serve_stdio(asking, scope)
        finally:
            await asking.close()
