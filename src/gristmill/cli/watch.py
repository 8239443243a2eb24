"""`gristmill watch`: take in whatever appears or changes in a folder, for as long as it runs."""

from pathlib import Path
from typing import Annotated

import typer

from gristmill.cli.add import make_intake
from gristmill.cli.output import Json, err, say_json, to_plain
from gristmill.cli.scopes import Client, Project, scope_of
from gristmill.cli.session import run, session
from gristmill.scopes import Scope
from gristmill.sources import check_folder, watch_folder


def register(root: typer.Typer, text: str) -> None:
    root.command("watch")(watch)


def watch(
    folder: Annotated[str, typer.Argument(help="The folder.")],
    client: Client = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """Take in everything in a folder, and what appears or changes there until Ctrl-C.

    Example: gristmill watch inbox/ --client acme
    """
    scope = scope_of(client, project)
    run(_watch(check_folder(folder), scope, json))


async def _watch(folder: Path, scope: Scope, as_json: bool) -> None:
    async with session() as at:
        async for added in watch_folder(make_intake(at, scope, patient=True), folder):
            for one in added:
                if as_json:
                    say_json(to_plain(one))
                elif one.status != "unchanged":
                    err.print(f"{one.name}: {one.status}" + (f", {one.reason}" if one.reason else ""), soft_wrap=True)
