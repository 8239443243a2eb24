"""`gristmill documents`: all of them, with how far they are."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from gristmill.cli.elsewhere import is_elsewhere, remote
from gristmill.cli.grinding import as_dict, draw_counts
from gristmill.cli.output import Json, emit, err, is_narrow, make_table, shorten
from gristmill.cli.scopes import format_scope, scope_of, warn_of_lack
from gristmill.cli.session import run, session
from gristmill.documents import Progress, list_columns, list_documents
from gristmill.ids import DocumentId
from gristmill.scopes import GLOBAL

NOTHING = "There are no documents: gristmill add PATH takes some in."
NONE_OF_THEM = "No document is like that: gristmill documents, without options, lists all."


def register(root: typer.Typer, text: str) -> None:
    root.command("documents")(documents)


def documents(
    client: Annotated[str | None, typer.Option(help="Only those of this client; without it, of all of them.")] = None,
    project: Annotated[str | None, typer.Option(help="Only those of this project of the client.")] = None,
    status: Annotated[
        str | None, typer.Option(help="Only those that are pending, processing, completed, failed or cancelled.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="How many, the newest first.")] = 50,
    before: Annotated[
        int | None, typer.Option(help="Only those with a lower id: the next page of a long list.")
    ] = None,
    json: Json = False,
) -> None:
    """List documents with the progress of each phase, the newest first.

    Example: gristmill documents --client acme --status failed
    """
    if status is not None and status not in ("pending", "processing", "completed", "failed", "cancelled"):
        raise typer.BadParameter(
            "a document is pending, processing, completed, failed or cancelled", param_hint="--status"
        )
    found = run(_load_documents(client, project, status, limit + 1, before))
    chosen = any(one is not None for one in (client, project, status, before))
    shown = found[:limit]
    emit(json, [as_dict(one) for one in shown], lambda: documents_view(shown, NONE_OF_THEM if chosen else NOTHING))
    if len(found) > limit:  # on stderr: a program reads stdout, and it asked for this many
        err.print(f"… and older ones: --before {shown[-1].id}, or a higher --limit.", style="dim")


async def _load_documents(
    client: str | None, project: str | None, status: str | None, limit: int, before: int | None
) -> list[Progress]:
    if is_elsewhere():
        return remote().fetch_documents(limit, before, client=client, project=project, status=status)
    # --client "" means GLOBAL; without --client, documents of all clients are listed
    scope = scope_of(client or None, project) if client or project else GLOBAL
    async with session() as at, at.db.transaction() as tx:
        await warn_of_lack(tx, scope)
        earlier = None if before is None else DocumentId(before)
        return await list_documents(tx, client=client, project=project, status=status, limit=limit, before=earlier)


def documents_view(found: Sequence[Progress], empty: str) -> RenderableType:
    owned = any(one.client for one in found)  # if all documents are GLOBAL, the column says nothing
    phases = list_columns(found)
    # a narrow screen has no summary: it repeats the phases, and the names need the space
    columns = (">id", "~file", "type", *["~client"] * owned, "status", *phases.values(), *([] if is_narrow() else [""]))
    return make_table(columns, [_document_row(one, phases, owned)[: len(columns)] for one in found], empty=empty)


def _document_row(one: Progress, phases: Iterable[str], owned: bool) -> tuple[Any, ...]:
    cells = (draw_counts(one.phase(name)) for name in phases)
    return (
        str(one.id),
        _name_with_container(one),
        one.type,
        *[format_scope(one.client, one.project)] * owned,
        one.status,
        *cells,
        one.summary,
    )


def _name_with_container(one: Progress) -> Text:
    """Its name and the name of its container. A narrow screen cuts the container first."""
    return Text.assemble(shorten(one.name, 40), (f" in {shorten(one.part_of, 40)}" if one.part_of else "", "dim"))
