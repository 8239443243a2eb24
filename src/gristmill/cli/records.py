"""`gristmill records`: list, read, write out, embed and remove what imports have brought."""

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import RenderableType
from rich.text import Text

from gristmill.cli.imports import choose_project, report_view
from gristmill.cli.output import (
    COLOURS,
    Json,
    Misused,
    Yes,
    confirm_removal,
    emit,
    make_facts,
    make_table,
    out,
    say,
    shorten,
)
from gristmill.cli.scopes import format_scope
from gristmill.cli.session import Session, run, session
from gristmill.ids import DocumentId
from gristmill.records import (
    Import,
    Record,
    RecordId,
    embed_records,
    export_records,
    export_rejected,
    find_project,
    list_imports,
    list_records,
    load_record,
    load_report,
    remove_import,
    remove_records,
)
from gristmill.wording import format_count

Client = Annotated[str | None, typer.Option(help="Whose project it is; without it, the project is its own client.")]
Project = Annotated[str | None, typer.Option(help="Only this project.")]
OfImport = Annotated[int | None, typer.Option("--import", help="Only this import.")]
Most = Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")]


def register(root: typer.Typer, text: str) -> None:
    group = typer.Typer(no_args_is_help=True, help=text)
    group.command("ls")(ls)
    group.command("show")(show)
    group.command("export")(export)
    group.command("rejected")(rejected)
    group.command("embed")(embed)
    group.command("rm")(rm)
    root.add_typer(group, name="records")


def ls(
    import_: OfImport = None,
    client: Client = None,
    project: Project = None,
    category: Annotated[str | None, typer.Option(help="TOP_10 or BOTTOM_10; lists records.")] = None,
    limit: Most = 50,
    json: Json = False,
) -> None:
    """List imports; with --import or --category, their records.

    Example: gristmill records ls --project reviews --client acme
    """
    found = run(_list(import_, client, project, category, limit))
    emit(json, found, lambda: _list_view(found))


async def _list(
    import_: int | None, client: str | None, project: str | None, category: str | None, limit: int
) -> list[Any]:
    async with session() as at, at.db.transaction() as tx:
        scopes = [await find_project(tx, choose_project(client, project))] if project else None
        if import_ is None and category is None:
            return list(await list_imports(tx, scopes, most=limit))
        document = DocumentId(import_) if import_ is not None else None
        if document is not None:
            await load_report(tx, document)  # an import that does not exist is an error, and no empty list
        return list(await list_records(tx, scopes, document=document, category=category, most=limit))


def _list_view(found: list[Any]) -> RenderableType:
    if found and isinstance(found[0], Record):
        return make_table((">record", ">row", "id", "category", "text"), [_record_row(one) for one in found], empty="")
    columns = (">import", "~file", "project", "state", ">loaded", ">updated", ">rejected", ">rows")
    return make_table(
        columns, [_import_row(one) for one in found], empty="There are no imports: gristmill import FILE."
    )


def _record_row(one: Record) -> tuple[Any, ...]:
    return str(one.id), one.row, one.external_id, one.category, shorten(one.content, 100)


def _import_row(one: Import) -> tuple[Any, ...]:
    state = Text(one.state, style=COLOURS.get({"loaded": "completed"}.get(one.state, one.state), ""))
    counts = one.counts
    whose = format_scope(one.client, one.project)
    return (
        str(one.id),
        shorten(one.name, 40),
        whose,
        state,
        counts.loaded,
        counts.updated,
        counts.rejected,
        counts.total,
    )


def show(
    record: Annotated[int | None, typer.Argument(help="The number of a record.")] = None,
    import_: OfImport = None,
    json: Json = False,
) -> None:
    """One record with all its columns, or the report of an import.

    Example: gristmill records show 42
    """
    if (record is None) == (import_ is None):
        raise Misused("Say which: gristmill records show 42, or gristmill records show --import 7.")
    found = run(_load(record, import_))
    emit(json, found, lambda: report_view(found) if isinstance(found, Import) else _record_view(found))


async def _load(record: int | None, import_: int | None) -> Record | Import:
    async with session() as at, at.db.transaction() as tx:
        if record is not None:
            return await load_record(tx, RecordId(record))
        assert import_ is not None
        return await load_report(tx, DocumentId(import_))


def _record_view(one: Record) -> RenderableType:
    facts = [
        ("record", one.id),
        ("import", f"{one.document}, row {one.row}"),
        ("project", format_scope(one.client, one.project)),
        ("id", one.external_id),
        ("category", one.category),
        ("findable", one.trouble or one.searchable),
        ("updated", one.updated_at),
        *one.columns.items(),
        ("text", one.content),
    ]
    return make_facts(facts)


def export(
    to: Annotated[str, typer.Argument(help="A file that ends in .csv or .jsonl; - for CSV on stdout.")] = "-",
    import_: OfImport = None,
    client: Client = None,
    project: Project = None,
) -> None:
    """Write the records of an import or of a project as CSV or JSON lines.

    In CSV, cells that a spreadsheet would compute get an apostrophe before them.

    Example: gristmill records export reviews.jsonl --project reviews --client acme
    """
    if (project is None) == (import_ is None):
        raise Misused("Say which: --project, or --import.")
    kind: Literal["csv", "jsonl"] = "jsonl" if to.endswith((".jsonl", ".ndjson")) else "csv"
    run(_export(to, import_, client, project, kind))


async def _export(
    to: str, import_: int | None, client: str | None, project: str | None, kind: Literal["csv", "jsonl"]
) -> None:
    document = DocumentId(import_) if import_ is not None else None
    scope = choose_project(client, project) if project else None
    async with session() as at:
        await _write(export_records(at.db, document=document, scope=scope, format=kind), to)


async def _write(pieces: Any, to: str) -> None:
    if to == "-":
        async for piece in pieces:
            sys.stdout.buffer.write(piece)
        return
    size = 0
    with Path(to).open("wb") as file:  # noqa: ASYNC230 nobody else waits for this loop
        async for piece in pieces:
            size += file.write(piece)
    say(f"{to}: {format_count(size, 'byte')}.")


def rejected(
    import_: Annotated[int, typer.Argument(metavar="IMPORT", help="The number of an import.")],
    to: Annotated[str, typer.Argument(help="A file that ends in .csv; - for stdout.")] = "-",
) -> None:
    """Write the rows that became no record as CSV, each with the reason.

    Example: gristmill records rejected 7 mend.csv
    """
    run(_write_rejected(import_, to))


async def _write_rejected(import_: int, to: str) -> None:
    async with session() as at:
        await _write(export_rejected(at.db, DocumentId(import_)), to)


def embed(
    project: Annotated[str, typer.Option(help="The project whose records are meant.")],
    client: Client = None,
    json: Json = False,
) -> None:
    """Embed the records of a project that have no vectors: loaded without them, or refused by the provider.

    Example: gristmill records embed --project reviews --client acme
    """
    n = run(_embed(client, project))
    emit(json, {"records": n}, lambda: f"{format_count(n, 'record')} will be embedded.")


async def _embed(client: str | None, project: str) -> int:
    async with session() as at, at.db.transaction() as tx:
        return await embed_records(tx, await find_project(tx, choose_project(client, project)))


def rm(
    records: Annotated[list[int] | None, typer.Argument(help="Numbers of records.")] = None,
    import_: OfImport = None,
    client: Client = None,
    project: Project = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Remove records, an import or all imports of a project, with their vectors and terms.

    Example: gristmill records rm --import 7
    """
    if sum(map(bool, (records, import_ is not None, project))) != 1:
        raise Misused("Say which: numbers of records, --import, or --project.")
    what = f"import {import_}" if import_ is not None else project or format_count(len(records or ()), "record")
    confirm_removal(f"{what} with all its records" if not records else what, yes=yes, as_json=json)
    gone = run(_remove(records, import_, client, project))
    emit(
        json,
        gone,
        lambda: f"Removed {format_count(gone['records'], 'record')} and {gone['chunks']:,} of their vectors.",
    )


async def _remove(
    records: list[int] | None, import_: int | None, client: str | None, project: str | None
) -> dict[str, int]:
    async with session() as at:
        if records:
            async with at.db.transaction() as tx:
                n = await remove_records(tx, [RecordId(one) for one in records])
            return {"records": n, "chunks": n}
        meant = [DocumentId(import_)] if import_ is not None else await _imports_of(at, client, project)
        gone = {"records": 0, "chunks": 0}
        with out.status("Removing …"):
            for one in meant:
                removed = await remove_import(at.db, one)
                gone = {"records": gone["records"] + removed.records, "chunks": gone["chunks"] + removed.chunks}
        return gone


async def _imports_of(at: Session, client: str | None, project: str | None) -> list[DocumentId]:
    async with at.db.transaction() as tx:
        own = await find_project(tx, choose_project(client, project or ""))
        return [one.id for one in await list_imports(tx, [own], most=100_000)]
