"""`gristmill import`: load a table of records into a project, and see what became of its rows."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from gristmill.cli.grinding import hint_at_workers
from gristmill.cli.output import Json, Misused, err, make_facts, make_table, out, say_json, shorten
from gristmill.cli.scopes import scope_of
from gristmill.cli.session import Session, run, session
from gristmill.errors import GristmillError
from gristmill.processes import ProcessPool
from gristmill.records import (
    FilePreview,
    Import,
    ImportPlan,
    LoadingImport,
    Options,
    Readers,
    TableIntake,
    load_embedding_progress,
    load_report,
)
from gristmill.scopes import Scope
from gristmill.sources import files_in
from gristmill.wording import format_count

LOOK = 0.25  # seconds between two looks at an import
FATES = ("invalid", "filtered", "duplicate")
NAMES = {
    "cp1250": "Windows-1250",
    "cp1252": "Windows-1252",
    "utf-8": "UTF-8",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
}
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}


def register(root: typer.Typer, text: str) -> None:
    root.command("import")(import_)


def import_(
    files: Annotated[list[str], typer.Argument(help="Tables: CSV, JSON lines or XLSX.")],
    project: Annotated[str, typer.Option(help="The project that the records belong to.")],
    client: Annotated[
        str | None, typer.Option(help="Whose project it is; without it, the project is its own client.")
    ] = None,
    text: Annotated[list[str] | None, typer.Option(help="The column with the text; may be repeated.")] = None,
    id: Annotated[str | None, typer.Option(help="The column with the id; '' for none.")] = None,
    filter: Annotated[
        str, typer.Option(help="Only rows with one of these words: late,refund. -word drops its rows.")
    ] = "",
    min_length: Annotated[int, typer.Option(min=0, help="The fewest characters of a text.")] = 0,
    rank_by: Annotated[
        str | None, typer.Option(help="Rank by this column: its top tenth is TOP_10, the bottom tenth BOTTOM_10.")
    ] = None,
    embed: Annotated[bool, typer.Option("--embed/--no-embed", help="Make the records findable by meaning.")] = True,
    unique_text: Annotated[
        bool, typer.Option("--unique-text/--repeat-text", help="Whether a text that is known is a duplicate.")
    ] = True,
    encoding: Annotated[str | None, typer.Option(help="utf-8, utf-16, windows-1250 or windows-1252.")] = None,
    delimiter: Annotated[str | None, typer.Option(help="The character between two cells.")] = None,
    header: Annotated[
        bool | None, typer.Option("--header/--no-header", help="Whether the first row names columns.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show how the file would be read.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Show the progress until all is loaded and embedded.")] = False,
    json: Json = False,
) -> None:
    """Load tables of records into a project. Options that are not given are found out from the file, and shown first.

    Example: gristmill import reviews.csv --project reviews --client acme --rank-by rating --wait
    """
    options = Options(
        text=tuple(text or ()),
        id=id,
        words=tuple(word for word in filter.split(",") if word.strip()),
        min_length=min_length,
        rank_by=rank_by,
        embed=embed,
        unique_text=unique_text,
        encoding=encoding,
        delimiter={"\\t": "\t", "tab": "\t"}.get(delimiter or "", delimiter),
        header=header,
    )
    paths = [path for name in files for path in files_in(name)]
    if not paths:
        raise Misused("There is no file in there.")
    if run(_import(paths, choose_project(client, project), options, dry_run=dry_run, wait=wait, as_json=json)):
        raise typer.Exit(1)


def choose_project(client: str | None, project: str) -> Scope:
    """A project without a client is one of its own."""
    return scope_of(client, project) if client is not None else scope_of(project, None)


@asynccontextmanager
async def open_intake(at: Session) -> AsyncGenerator[TableIntake]:
    processes = ProcessPool(1, nice=at.settings.queue.nice)
    try:
        yield TableIntake(at.db, at.settings, Readers(processes, at.settings.records))
    finally:
        await processes.close()


async def _import(
    paths: Sequence[Path], scope: Scope, options: Options, *, dry_run: bool, wait: bool, as_json: bool
) -> bool:
    """Whether something went wrong with one of them."""
    answers, failed = list[Any](), False
    async with session() as at, open_intake(at) as intake:
        for path in paths:
            try:
                answer = await _import_file(at, intake, path, scope, options, dry_run, wait, quiet=as_json)
            except GristmillError as error:
                if len(paths) == 1:
                    raise
                answer, failed = {"file": str(path), "error": str(error)}, True
                err.print(Text(str(error), style="red"), soft_wrap=True)
            answers.append(answer)
            failed = failed or (isinstance(answer, Import) and answer.state == "failed")
        if as_json:
            say_json(answers[0] if len(answers) == 1 else answers)
        elif not wait and not dry_run:
            await hint_at_workers(at)
    return failed


async def _import_file(
    at: Session,
    intake: TableIntake,
    path: Path,
    scope: Scope,
    options: Options,
    dry_run: bool,
    wait: bool,
    *,
    quiet: bool,
) -> Any:
    if dry_run:
        preview = await intake.preview(path, path.name, options)
        if not quiet:
            out.print(preview_view(path.name, preview, at.settings.embedding.price))
        return preview
    started = await intake.add(path, path.name, scope, options)
    if not quiet:
        out.print(_started_view(path.name, started))
    if not wait:
        return {"file": path.name, "import": started.document, "task": started.task, "plan": started.preview.plan}
    if not quiet:
        await hint_at_workers(at)  # nobody waits in silence
    report = await _follow(at, started, quiet=quiet)
    if not quiet:
        out.print(report_view(report))
    return report


async def _follow(at: Session, started: LoadingImport, *, quiet: bool) -> Import:
    """Look at an import until its rows are loaded, and its records embedded if that was asked for."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=err, transient=True, disable=quiet or not err.is_terminal) as bars:
        loading = bars.add_task("Loading", total=started.preview.estimated_rows)
        embedding = bars.add_task("Embedding", total=None, visible=False)
        while True:
            async with at.db.transaction() as tx:
                report = await load_report(tx, started.document)
                progress = await load_embedding_progress(tx, started.document)
            bars.update(loading, completed=report.counts.total, total=max(report.estimated_rows, report.counts.total))
            if report.state == "failed" or (report.state == "loaded" and not progress.waiting):
                return report
            if report.state == "loaded":
                done, total = progress.searchable, progress.searchable + progress.waiting
                bars.update(embedding, completed=done, total=total, visible=True)
            await asyncio.sleep(LOOK)


# --- views


def _started_view(name: str, started: LoadingImport) -> RenderableType:
    rows = format_count(started.preview.estimated_rows, "row")
    return Text.assemble(
        (f"{name}: ", "bold"),
        _write_dialect(started.preview.plan),
        f". Import {started.document}, task {started.task}, about {rows}.",
    )


def _write_dialect(plan: ImportPlan) -> str:
    dialect = plan.dialect
    how = dialect.format.upper()
    if dialect.format == "csv":
        delimiter = DELIMITERS.get(dialect.delimiter, repr(dialect.delimiter))
        how += f" in {NAMES[dialect.encoding]}, {delimiter}, {'with' if dialect.header else 'without'} a header"
    parts = [how, f"text: {', '.join(plan.text)}", f"id: {plan.id or 'none'}"]
    return "; ".join(parts + ([f"category: {plan.category}"] if plan.category else []))


def preview_view(name: str, preview: FilePreview, price: float) -> RenderableType:
    """What a file would become."""
    plan = preview.plan
    cost = preview.estimated_tokens * price / 1_000_000
    facts = make_facts(
        [
            ("file", name),
            ("read as", _write_dialect(plan)),
            ("rows", f"about {preview.estimated_rows:,}"),
            (
                "tokens",
                f"about {preview.estimated_tokens:,}" + (f", {cost:,.4f} at {price:g} a million" if price else ""),
            ),
            ("rejected", f"{len(preview.rejected)} of the first {preview.looked_at}" if preview.rejected else "none"),
        ]
    )
    shown = plan.columns[:8]
    rows = [[shorten(cell, 40) for cell in row[: len(shown)]] for row in preview.rows]
    rows = [[*row, *[""] * (len(shown) - len(row))] for row in rows]
    why = [Text(f"  row {one.row} is {one.why}: {one.reason}", style="yellow") for one in preview.rejected[:5]]
    names = [*(f"~{name}" for name in shown[:-1]), shown[-1]]
    return Group(facts, "", make_table(names, rows, empty="There are no rows."), *why)


def report_view(report: Import) -> RenderableType:
    """What became of the rows of an import."""
    counts = report.counts
    facts = make_facts(
        [
            ("import", f"{report.id}  {report.name}"),
            ("state", report.state),
            ("error", report.error),
            ("loaded", counts.loaded),
            ("updated", counts.updated or None),
            *((fate, getattr(counts, fate) or None) for fate in FATES),
            ("cost", f"{report.cost:,.4f} for {report.tokens:,} tokens" if report.cost else None),
        ]
    )
    examples = [
        Text(f"  {fate}: {example}", style="dim") for fate in FATES for example in report.examples.get(fate, ())
    ]
    return Group(facts, *examples)
