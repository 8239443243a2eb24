"""The pages of records: upload a table, see how it is read, follow its load, read its report; the queue monitor."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Query, Request, Response, UploadFile
from fastapi import Path as InPath
from fastapi.responses import RedirectResponse, StreamingResponse

from gristmill.db import Tx
from gristmill.documents import Spool
from gristmill.errors import GristmillError
from gristmill.ids import DocumentId, TaskId
from gristmill.models import compute_cost
from gristmill.queue import (
    InLine,
    StatusCounts,
    Task,
    TaskFilter,
    add_up,
    cancel,
    count_tasks,
    find_tasks,
    list_line,
    retry_tasks,
)
from gristmill.records import imports, records
from gristmill.records.api import remove_whole, send_rejected
from gristmill.records.credit import load_account
from gristmill.records.letters import INGESTION, VECTORIZATION
from gristmill.records.model import FilePreview, RecordId
from gristmill.records.uploads import keep_upload, name_upload, open_intake, read_options
from gristmill.scopes import visible
from gristmill.serving import Caller, Manager, Services, Viewer, services_of, take_files
from gristmill.wording import format_count

PAGES = APIRouter()
QUEUES = (INGESTION, VECTORIZATION)
RECENT = 25
Number = Annotated[int, InPath(ge=1, le=2**63 - 1)]
Name = Annotated[str, Form(max_length=200)]


def lead_to(request: Request, path: str) -> Response:
    """Lead to another page, with scripts and without."""
    if request.headers.get("hx-request") == "true":
        return Response(status_code=204, headers={"HX-Redirect": path})
    return RedirectResponse(path, status_code=303)


# --- tables


@PAGES.get("/records")
async def show_imports(
    request: Request, caller: Viewer, before: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None
) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        scopes = None if caller.bound_to is None else await visible(tx, caller.bound_to)
        found = await imports.list_imports(tx, scopes, before=before, most=50)
    following = f"/records?before={found[-1].id}" if len(found) == 50 else None
    return services.render(
        request, "records/imports.html", imports=found, following=following, here=request.url.path, wrong=None
    )


@PAGES.post("/records", openapi_extra=take_files("records"))
async def upload(
    request: Request,
    caller: Manager,
    file: Annotated[UploadFile, File()],
    project: Name = "",
    client: Name = "",
) -> Response:
    """Keep the file as a draft, and show how it would be read."""
    services = services_of(request)
    name, scope = name_upload(file), caller.choose_scope(client or None, project or None)

    async def record(tx: Tx, document: DocumentId) -> None:
        await services.record(tx, caller, "upload", f"import {document}", file=name, project=str(scope))

    async with keep_upload(file) as path, open_intake(services) as intake:
        drafted = await intake.draft(path, name, scope, read_options(), seen_from=caller.bound_to, note=record)
    return lead_to(request, f"/records/{drafted.document}")


@PAGES.get("/records/record/{number}")
async def show_record(request: Request, caller: Viewer, number: Number) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        record = await records.load_record(tx, RecordId(number))
        report = await imports.load_report(tx, record.document)
    partial = request.headers.get("hx-request") == "true"
    return services.render(request, "records/record.html", partial=partial, record=record, report=report)


@PAGES.get("/records/{number}")
async def show_import(request: Request, caller: Viewer, number: Number) -> Response:
    """A draft with its preview, or the progress and the report of an import."""
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        report = await imports.load_report(tx, DocumentId(number))
        progress = await records.load_embedding_progress(tx, DocumentId(number))
        some = await records.list_records(tx, document=DocumentId(number), most=10)
    if report.state == "draft":
        return await show_draft(request, caller, number, {})
    return services.render(
        request, "records/import.html", report=report, progress=progress, records=some, here=request.url.path
    )


async def show_draft(request: Request, caller: Caller, number: int, form: Mapping[str, Any]) -> Response:
    services = services_of(request)
    preview, wrong = await preview_draft(services, caller, number, form)
    async with caller.reading(services.db) as tx:
        report = await imports.load_report(tx, DocumentId(number))
    cost = compute_cost(preview.estimated_tokens, services.settings.embedding.price)
    return services.render(
        request,
        "records/draft.html",
        status=422 if wrong else 200,
        report=report,
        preview=preview,
        plan=preview.plan,
        cost=cost,
        form=form,
        wrong=wrong,
    )


async def preview_draft(
    services: Services, caller: Caller, number: int, form: Mapping[str, Any]
) -> tuple[FilePreview, str | None]:
    """How the kept file is read with these options; where they are wrong, without them, and the sentence about it."""
    async with caller.reading(services.db) as tx:
        found = await imports.load_stored(tx, DocumentId(number))
    spool = Spool(services.db, services.settings.data / "spool", services.settings.documents.spool)
    path = await spool.fetch(found.hash, found.size)
    async with open_intake(services) as intake:
        try:
            return await intake.preview(path, found.name, read_options(**form)), None
        except GristmillError as error:
            return await intake.preview(path, found.name, read_options()), str(error)


@PAGES.post("/records/{number}/load")
async def load_draft(
    request: Request,
    caller: Manager,
    number: Number,
    text: Annotated[list[str] | None, Form()] = None,
    id: Name = "",
    filter: Annotated[str, Form(max_length=2_000)] = "",
    min_length: Annotated[int, Form(ge=0, le=1_000_000)] = 0,
    rank_by: Name = "",
    embed: Annotated[bool, Form()] = False,
    unique_text: Annotated[bool, Form()] = False,
    only_look: Annotated[bool, Form()] = False,
) -> Response:
    """Load the draft as the form says; with `only_look`, show how it would be read."""
    services = services_of(request)
    form = {
        "text": text,
        "id": id,
        "filter": filter,
        "min_length": min_length,
        "rank_by": rank_by,
        "embed": embed,
        "unique_text": unique_text,
    }
    preview, wrong = await preview_draft(services, caller, number, form)
    if only_look or wrong:
        return await show_draft(request, caller, number, form)
    async with caller.transaction(services.db) as tx:
        task = await imports.start_import(tx, DocumentId(number), preview.plan)
        await services.record(tx, caller, "import", f"import {number}", task=task)
    return lead_to(request, f"/records/{number}")


@PAGES.post("/records/{number}/remove")
async def remove_import(request: Request, caller: Manager, number: Number) -> Response:
    await remove_whole(services_of(request), caller, number)
    return lead_to(request, "/records")


@PAGES.get("/records/{number}/rejected.csv")
async def download_rejected(request: Request, caller: Viewer, number: Number) -> StreamingResponse:
    return await send_rejected(request, caller, number)


# --- the queue monitor


@dataclass(frozen=True)
class RecordsTask:
    """A task of records, as the monitor shows it."""

    task: Task

    @property
    def type(self) -> str:
        """INGEST_DATA, VECTORIZE."""
        return self.task.kind.partition(".")[2].upper()

    @property
    def outcome(self) -> str | None:
        """What a job has done."""
        match self.task.result:
            case {"vectorizedCount": int(n)}:
                return f"{format_count(n, 'record')} embedded"
            case {"loaded": int(loaded), "updated": int(updated)}:
                return f"{loaded:,} loaded, {updated:,} updated"
            case _:
                return None


@dataclass(frozen=True)
class Monitor:
    """What the monitor shows."""

    counts: StatusCounts
    jobs: list[RecordsTask]
    oldest: InLine | None


async def load_monitor(tx: Tx) -> Monitor:
    counts = add_up(one for one in await count_tasks(tx) if one.queue in QUEUES)
    found = [task for queue in QUEUES for task in (await find_tasks(tx, TaskFilter(queue=queue), limit=RECENT)).tasks]
    jobs = [RecordsTask(task) for task in sorted(found, key=lambda task: task.id, reverse=True)[:RECENT]]
    first = [task for queue in QUEUES for task in await list_line(tx, queue, limit=1)]
    return Monitor(counts, jobs, min(first, key=lambda task: task.created_at, default=None))


@PAGES.get("/admin/queue-monitor")
async def show_monitor(request: Request, caller: Manager) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        monitor = await load_monitor(tx)
    async with services.db.reading() as tx:
        account = await load_account(tx) if caller.is_operator else None
    return services.render(request, "records/monitor.html", monitor=monitor, account=account, here=request.url.path)


@PAGES.post("/admin/queue-monitor/{task}/retry")
async def retry_job(request: Request, caller: Manager, task: Number) -> Response:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        await retry_tasks(tx, [TaskId(task)])
        await services.record(tx, caller, "retry", f"task {task}")
    return lead_to(request, "/admin/queue-monitor")


@PAGES.post("/admin/queue-monitor/{task}/cancel")
async def cancel_job(request: Request, caller: Manager, task: Number) -> Response:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        await cancel(tx, [TaskId(task)], reason=f"cancelled by {caller.name}")
        await services.record(tx, caller, "cancel", f"task {task}")
    return lead_to(request, "/admin/queue-monitor")
