"""`gristmill document`: one of them, page by page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bars
from rich.text import Text

from gristmill.cli.elsewhere import is_elsewhere, remote
from gristmill.cli.grinding import as_dict, hint_at_workers
from gristmill.cli.output import Json, Yes, confirm_removal, emit, err, make_facts, make_table, shorten, to_plain
from gristmill.cli.scopes import format_scope
from gristmill.cli.session import run, session
from gristmill.cli.tasks import describe_revival
from gristmill.db import Database, Tx
from gristmill.documents import (
    MOST_FAILURES,
    OPEN,
    PageProgress,
    PhaseProgress,
    Progress,
    Removed,
    Skipped,
    UnitFailure,
    add_again,
    clear_copies,
    clear_images,
    find_parts,
    list_failures,
    list_pages,
    list_phases,
    list_setbacks,
    list_skipped,
    load_documents,
    load_progress,
    load_texts,
    place_error,
    remove_in_portions,
    say_reindex,
)
from gristmill.documents import retry as retry_document
from gristmill.errors import Refused
from gristmill.ids import DocumentId
from gristmill.queue import Revived
from gristmill.wording import format_count

app = typer.Typer(no_args_is_help=True)
Id = Annotated[int, typer.Argument(help="The id of the document.")]
MOST_NAMED = 10  # documents that a question names
MOST_PAGES = 60  # of a document's pages in one table, and of its parts


@dataclass(frozen=True)
class DocumentSeen:
    """A document as it is shown."""

    document: Progress
    parts: list[Progress]
    errors: dict[DocumentId, str]  # of the parts that failed; of the first ones if there are very many
    pages: list[PageProgress]
    skipped: list[Skipped]
    setbacks: list[UnitFailure]
    failures: list[UnitFailure]


def register(root: typer.Typer, text: str) -> None:
    root.add_typer(app, name="document", help=text)


@app.command()
def show(document: Id, json: Json = False) -> None:
    """One document: its phases, its pages and what went wrong with them.

    Example: gristmill document show 12
    """
    seen = run(_open_and_load(DocumentId(document)))
    data = {
        **as_dict(seen.document),
        "skipped": to_plain(seen.skipped),
        "parts": [{**as_dict(part), "error": seen.errors.get(part.id)} for part in seen.parts],
        "page_status": to_plain(seen.pages),
        "setbacks": to_plain(seen.setbacks),
        "failures": to_plain(seen.failures),
    }
    emit(json, data, lambda: _document_view(seen))


@app.command()
def text(
    document: Id,
    page: Annotated[int | None, typer.Option(min=1, help="Only this page.")] = None,
    json: Json = False,
) -> None:
    """The text of a document, as it was read, page by page.

    Example: gristmill document text 12 --page 3
    """
    pages = run(_load_text(DocumentId(document), page))
    data = {"document": document, "pages": [{"page": number, "text": text} for number, text in pages.items()]}
    emit(json, data, lambda: _text_view(pages))


@app.command()
def retry(
    document: Id,
    phase: Annotated[str | None, typer.Option(help="Only one phase, as document show names it, or open.")] = None,
    json: Json = False,
) -> None:
    """Try again the pages and chunks that failed, and nothing else.

    Example: gristmill document retry 12 --phase ocr
    """
    done, status = run(_retry(DocumentId(document), phase))
    emit(json, done, lambda: _describe_retry(document, phase, done, status))
    if not done.tasks:
        raise typer.Exit(1)


@app.command()
def reindex(document: Id, json: Json = False) -> None:
    """Make a document anew from its bytes; results that would be the same are taken over, not computed again.

    Example: gristmill document reindex 12
    """
    new = run(_reindex(DocumentId(document)))
    emit(
        json,
        {"document": new},
        lambda: f"Document {document} is made anew as document {new}, which takes its place when done.",
    )


@app.command()
def rm(
    documents: Annotated[list[int], typer.Argument(help="The ids of documents.")],
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Remove documents, what lies in them and all that was made of them; after an interruption, ask for it again.

    If more than one document would go, the parts of a mail or mailbox included, it names them and asks.

    Example: gristmill document rm 12
    """
    ids = [DocumentId(one) for one in dict.fromkeys(documents)]
    gone = run(_remove(ids, lambda what: confirm_removal(what, yes=yes, as_json=json)))
    emit(json, gone, lambda: _removal_view(gone))


async def _open_and_load(id_: DocumentId) -> DocumentSeen:
    if is_elsewhere():
        one, parts, pages, detail = remote().fetch_document(id_)
        known = remote().make_failures
        return DocumentSeen(
            one, parts, {}, pages, remote().make_skipped(detail.skipped), known(detail.setbacks), known(detail.failures)
        )
    async with session() as at, at.db.transaction(snapshot=True) as tx:
        return await _load_seen(tx, id_)


async def _load_seen(tx: Tx, id_: DocumentId) -> DocumentSeen:
    found = await load_progress(tx, [id_, *await find_parts(tx, [id_])])
    one = _pick_document(found, id_)
    parts = [part for part in found if part.id != id_]
    troubles = await list_setbacks(tx, id_), await list_failures(tx, id_)
    return DocumentSeen(
        one, parts, await _load_errors(tx, parts), await list_pages(tx, id_), await list_skipped(tx, id_), *troubles
    )


async def _load_errors(tx: Tx, parts: Sequence[Progress]) -> dict[DocumentId, str]:
    failed = [part.id for part in parts if part.status == "failed"][:MOST_PAGES]
    told = {one: await list_failures(tx, one, limit=1) for one in failed}
    return {one: place_error(found[0].page, found[0].error) for one, found in told.items() if found}


async def _retry(id_: DocumentId, phase: str | None) -> tuple[Revived, str]:
    """What is tried again, and how the document was."""
    if is_elsewhere():
        return remote().retry_elsewhere(id_, phase)
    async with session() as at:
        async with at.db.transaction() as tx:
            shown = [OPEN, *(one.name for one in await list_phases(tx) if one.shown)]
            if phase is not None and phase not in shown:
                raise typer.BadParameter(f"a phase is one of {', '.join(shown)}", param_hint="--phase")
            document = (await load_documents(tx, [id_])).get(id_)
            if document is None:
                raise _refuse_unknown(id_)
            (seen,) = await load_progress(tx, [id_])
            done = await retry_document(tx, document, phase)
        if done.tasks:
            await hint_at_workers(at)
        return done, seen.status


async def _reindex(id_: DocumentId) -> DocumentId:
    if is_elsewhere():
        return remote().reindex_elsewhere(id_)
    async with session() as at, at.db.transaction() as tx:
        return await add_again(tx, id_)


async def _load_text(id_: DocumentId, page: int | None) -> dict[int, str]:
    """The texts of the pages that were read, by number."""
    if is_elsewhere():
        return remote().fetch_texts(id_, page)
    async with session() as at, at.db.transaction() as tx:
        one = _pick_document(await load_progress(tx, [id_]), id_)
        if page is not None and one.pages is not None and page > one.pages:
            raise Refused(f"There is no page {page}: document {id_} has {format_count(one.pages, 'page')}.")
        numbers = [page] if page is not None else range(1, (one.pages or 0) + 1)
        found = await load_texts(tx, [(id_, number) for number in numbers])
    if not found:
        raise Refused(f"Nothing of it was read yet: gristmill document show {id_} says how far it is.")
    return {number: found[id_, number] for number in numbers if (id_, number) in found}


async def _name_removal(db: Database, ids: Sequence[DocumentId]) -> str:
    """Names the documents that would be removed; empty for one document without parts."""
    async with db.transaction() as tx:
        found = {one.id: one for one in await load_progress(tx, ids)}
        for id_ in ids:
            _pick_document(list(found.values()), id_)
        parts = len(await find_parts(tx, ids))
    if len(ids) + parts == 1:
        return ""
    names = [f"{id_} {shorten(found[id_].name, 40)}" for id_ in ids[:MOST_NAMED]]
    names += [f"{len(ids) - MOST_NAMED:,} more"] if len(ids) > MOST_NAMED else []
    within = f" with {format_count(parts, 'part')}" if parts else ""
    return f"{format_count(len(ids), 'document')} ({', '.join(names)}){within}"


async def _remove(ids: list[DocumentId], confirm: Callable[[str], None]) -> Removed:
    if is_elsewhere():
        return remote().remove_elsewhere(ids, confirm)
    columns = (TextColumn("Removing"), BarColumn(), MofNCompleteColumn())
    async with session() as at:
        if named := await _name_removal(at.db, ids):
            confirm(named)
        with Bars(*columns, console=err, transient=True, disable=not err.is_terminal) as bars:
            bar = bars.add_task("", visible=False)
            gone = await remove_in_portions(
                at.db, ids, lambda done, of: bars.update(bar, completed=done, total=of, visible=True)
            )
        await clear_copies(at.db, at.settings.data / "spool")
        await clear_images(at.db, at.settings.data / "images")
        return gone


def _pick_document(found: list[Progress], id_: DocumentId) -> Progress:
    for one in found:
        if one.id == id_:
            return one
    raise _refuse_unknown(id_)


def _refuse_unknown(id_: DocumentId) -> Refused:
    return Refused(f"There is no document {id_}: gristmill documents lists them.")


def _document_view(seen: DocumentSeen) -> RenderableType:
    one = seen.document
    top = make_facts(
        [
            ("document", f"{one.id}, version {one.version}"),
            ("title", one.title),
            ("file", one.name),
            ("type", one.type),
            ("whose", format_scope(one.client, one.project)),
            ("source", one.urn),
            ("status", one.status),
            ("", one.summary),
            ("added", one.added_at),
            ("took", one.completed_at - one.added_at if one.completed_at else None),
        ]
    )
    phases = make_table(
        ("phase", "status", ">done", ">failed", ""),
        [
            (phase.label, phase.status, f"{phase.done}/{phase.total}", phase.failed, _why_skipped(phase, seen.skipped))
            for phase in one.phases
        ],
        empty="",
    )
    below: list[RenderableType] = [top, "", phases]
    if seen.pages:
        below += ["", *_pages_view(seen.pages)]
    if seen.parts:
        below += ["", *_parts_view(seen.parts, seen.errors)]
    below += [
        Text(f"{one.kind} (task {one.task}) is tried again: {place_error(one.page, one.error)}", style="yellow")
        for one in seen.setbacks
    ]
    below += [
        Text(f"{failure.kind} (task {failure.task}): {place_error(failure.page, failure.error)}", style="red")
        for failure in seen.failures
    ]
    if len(seen.failures) == MOST_FAILURES:
        below.append(Text("… perhaps more: gristmill dead list", style="dim"))
    return Group(*below)


def _text_view(pages: dict[int, str]) -> RenderableType:
    """The texts below each other; where there are several pages, each begins with its number."""
    shown: list[RenderableType] = []
    for number, text in pages.items():
        shown += [Text(f"--- page {number} ---", style="dim")] if len(pages) > 1 else []
        shown.append(Text(text))
    return Group(*shown)


def _why_skipped(phase: PhaseProgress, found: list[Skipped]) -> str:
    """The reason, and how many units have it, unless all have it."""
    ours = [one for one in found if one.phase == phase.name]
    return "; ".join(one.reason if one.units == phase.total else f"{one.units:,} skipped: {one.reason}" for one in ours)


def _pages_view(found: list[PageProgress]) -> list[RenderableType]:
    """All, or of very many the first; those that are not done come before the others."""
    shown = sorted(found, key=lambda page: page.phases[-1].status in ("completed", "skipped"))[:MOST_PAGES]
    first, *others = [phase.label for phase in found[0].phases]
    told = make_table(
        (">page", first, "how", ">chunks", *others, ""),
        [_page_row(page) for page in sorted(shown, key=lambda page: page.number)],
        empty="",
    )
    return [told, *_mention_more(found, "pages")]


def _page_row(page: PageProgress) -> tuple[Any, ...]:
    first, *others = [phase.status for phase in page.phases]
    return (page.number, first, page.method, page.chunks, *others, shorten(_explain_page(page), 80))


def _explain_page(page: PageProgress) -> str:
    """The error of a page, or why it was left out. That a page needed no reading is said once, for the document."""
    first, *others = page.phases
    told = [(first.status != "skipped", first.error), *((one.status == "skipped", one.error) for one in others)]
    return next((reason for matters, reason in told if matters and reason), "")


def _parts_view(found: list[Progress], errors: dict[DocumentId, str]) -> list[RenderableType]:
    """All, or of very many the first; those that are not done come before the others."""
    shown = sorted(found, key=lambda part: part.status == "completed")[:MOST_PAGES]
    told = make_table(
        (">document", "part", "status", ""),
        [
            (str(part.id), shorten(part.name, 60), part.status, errors.get(part.id, part.summary))
            for part in sorted(shown, key=lambda part: part.id)
        ],
        empty="",
    )
    return [told, *_mention_more(found, "parts")]


def _mention_more(found: Sequence[object], what: str) -> list[RenderableType]:
    rest = len(found) - MOST_PAGES
    return [Text(f"… and {rest:,} more {what}: --json", style="dim")] if rest > 0 else []


def _describe_retry(document: int, phase: str | None, done: Revived, status: str) -> str:
    if done.tasks:
        return describe_revival(done)
    if status == "cancelled":
        return f"Document {document} was cancelled: {say_reindex(DocumentId(document))}."
    part = f"its phase {phase}" if phase else "it"
    return f"Document {document} stays as it is: nothing of {part} has failed."


def _removal_view(gone: Removed) -> RenderableType:
    return make_facts(
        [
            ("documents", gone.documents),
            ("pages", gone.pages),
            ("chunks", gone.chunks),
            ("nodes", gone.nodes),
            ("edges", gone.edges),
            ("nodes that lost evidence", gone.nodes_weaker),
            ("edges that lost evidence", gone.edges_weaker),
        ]
    )
