"""Imports and records over HTTP."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, File, Form, Query, Request, UploadFile
from fastapi import Path as InPath
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from gristmill.db import Tx
from gristmill.ids import DocumentId
from gristmill.records import imports, records
from gristmill.records.credit import load_account, refresh_balance
from gristmill.records.model import FilePreview, Import, ImportPlan, Record, RecordId, RowCounts
from gristmill.records.uploads import keep_upload, name_upload, open_intake, read_options
from gristmill.scopes import visible
from gristmill.serving import (
    Caller,
    Cursor,
    Listing,
    Manager,
    Services,
    Viewer,
    read_cursor,
    require,
    services_of,
    take_files,
    write_cursor,
)

ROUTES = APIRouter(tags=["records"])
Number = Annotated[int, InPath(ge=1, le=2**63 - 1)]
Most = Annotated[int, Query(ge=1, le=1_000)]
Name = Annotated[str | None, Form(max_length=200)]


class StartedImport(BaseModel):
    """An import whose rows are being loaded; its job is a task of the queue `ingestion`."""

    jobId: int
    import_id: int
    plan: ImportPlan
    estimated_rows: int
    estimated_tokens: int
    estimated_cost: float


class ImportReport(BaseModel):
    """What became of the rows of a file."""

    id: int
    client: str
    project: str
    name: str
    state: Literal["draft", "waiting", "loading", "loaded", "failed"]
    plan: ImportPlan
    size: int
    row: int = Field(description="The last row that was read.")
    estimated_rows: int
    counts: RowCounts
    examples: Mapping[str, Sequence[str]]
    estimated_tokens: int
    estimated_cost: float
    tokens: int
    cost: float
    error: str | None
    task: int | None
    created_at: datetime | None
    finished_at: datetime | None


class KeptRecord(BaseModel):
    """A row as it is kept."""

    id: int
    client: str
    project: str
    document: int = Field(description="Its import.")
    row: int
    external_id: str | None
    category: str | None
    content: str
    columns: Mapping[str, Any]
    searchable: bool
    trouble: str | None
    created_at: datetime
    updated_at: datetime


class RemovedReport(BaseModel):
    """What a removal removed."""

    records: int
    chunks: int
    tasks: int


class AccountReport(BaseModel):
    """The account at the provider of embeddings."""

    balance: float | None = Field(description="None: the provider does not tell.")
    checked_at: datetime | None
    empty_since: datetime | None
    reason: str | None


def show_import(found: Import) -> ImportReport:
    return ImportReport.model_validate(found, from_attributes=True)


def show_record(found: Record) -> KeptRecord:
    return KeptRecord.model_validate(found, from_attributes=True)


# --- files


@ROUTES.post(
    "/ingest/csv", status_code=202, summary="Load a table: CSV, JSON lines or XLSX", openapi_extra=take_files("records")
)
async def ingest_csv(
    request: Request,
    caller: Manager,
    file: Annotated[UploadFile, File()],
    client: Name = None,
    project: Name = None,
    text: Annotated[list[str] | None, Form()] = None,
    id: Name = None,
    filter: Annotated[str, Form(max_length=2_000)] = "",
    min_length: Annotated[int, Form(ge=0, le=1_000_000)] = 0,
    rank_by: Name = None,
    category: Name = None,
    embed: Annotated[bool, Form()] = True,
    unique_text: Annotated[bool, Form()] = True,
) -> StartedImport:
    services, name = services_of(request), name_upload(file)
    scope = caller.choose_scope(client, project)
    options = read_options(text, id, filter, min_length, rank_by, category, embed, unique_text)
    async with keep_upload(file) as path, open_intake(services) as intake:
        drafted = await intake.draft(path, name, scope, options, seen_from=caller.bound_to)
    async with caller.transaction(services.db) as tx:
        task = await imports.start_import(tx, drafted.document)
        await services.record(tx, caller, "import", f"import {drafted.document}", file=name, project=str(scope))
        report = await imports.load_report(tx, drafted.document)
    return StartedImport(
        jobId=task,
        import_id=drafted.document,
        plan=report.plan,
        estimated_rows=report.estimated_rows,
        estimated_tokens=report.estimated_tokens,
        estimated_cost=report.estimated_cost,
    )


@ROUTES.post(
    "/ingest/preview", summary="How a table would be read; nothing is kept", openapi_extra=take_files("records")
)
async def preview_csv(
    request: Request,
    caller: Manager,
    file: Annotated[UploadFile, File()],
    text: Annotated[list[str] | None, Form()] = None,
    id: Name = None,
    filter: Annotated[str, Form(max_length=2_000)] = "",
    min_length: Annotated[int, Form(ge=0, le=1_000_000)] = 0,
) -> FilePreview:
    name = name_upload(file)
    async with keep_upload(file) as path, open_intake(services_of(request)) as intake:
        return await intake.preview(path, name, read_options(text, id, filter, min_length))


# --- reports of imports


@ROUTES.get("/imports", summary="Imports, the newest first")
async def list_imports(
    request: Request, caller: Viewer, cursor: Cursor = None, limit: Most = 50
) -> Listing[ImportReport]:
    before = read_cursor(cursor, int)
    async with caller.reading(services_of(request).db) as tx:
        scopes = None if caller.bound_to is None else await visible(tx, caller.bound_to)
        found = await imports.list_imports(tx, scopes, before=int(before[0]) if before else None, most=limit)
    following = write_cursor(found[-1].id) if len(found) == limit else None
    return Listing(items=[show_import(one) for one in found], next=following)


@ROUTES.get("/imports/{number}", summary="The report of an import")
async def read_import(request: Request, caller: Viewer, number: Number) -> ImportReport:
    async with caller.reading(services_of(request).db) as tx:
        return show_import(await imports.load_report(tx, DocumentId(number)))


@ROUTES.delete("/imports/{number}", summary="Remove an import with its records, their vectors and terms")
async def remove_import(request: Request, caller: Manager, number: Number) -> RemovedReport:
    gone = await remove_whole(services_of(request), caller, number)
    return RemovedReport.model_validate(gone, from_attributes=True)


async def remove_whole(services: Services, caller: Caller, number: int) -> imports.RemovedImport:
    """Remove an import of the caller, and write it down."""

    async def record(tx: Tx, found: imports.StoredImport) -> None:
        await services.record(tx, caller, "remove", f"import {number}", file=found.name)

    services.change_in_parts()  # what is gone stays gone: a repetition removes the rest
    return await imports.remove_import(services.db, DocumentId(number), seen_from=caller.bound_to, note=record)


@ROUTES.get(
    "/imports/{number}/rejected", summary="The rows that became no record, as CSV", response_class=StreamingResponse
)
async def read_rejected(request: Request, caller: Viewer, number: Number) -> StreamingResponse:
    return await send_rejected(request, caller, number)


async def send_rejected(request: Request, caller: Caller, number: int) -> StreamingResponse:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        await imports.load_stored(tx, DocumentId(number))  # before the answer begins
    pieces = records.export_rejected(services.db, DocumentId(number), seen_from=caller.bound_to)
    return send_file(pieces, f"rejected-{number}.csv", "text/csv; charset=utf-8")


@ROUTES.get(
    "/imports/{number}/export",
    summary="The records of an import, as CSV or JSON lines",
    response_class=StreamingResponse,
)
async def export_import(
    request: Request, caller: Viewer, number: Number, format: Literal["csv", "jsonl"] = "csv"
) -> StreamingResponse:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        await imports.load_stored(tx, DocumentId(number))
    pieces = records.export_records(services.db, document=DocumentId(number), format=format, seen_from=caller.bound_to)
    kind = "text/csv; charset=utf-8" if format == "csv" else "application/jsonl"
    return send_file(pieces, f"import-{number}.{format}", kind)


def send_file(pieces: Any, name: str, kind: str) -> StreamingResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(pieces, media_type=kind, headers=headers)


# --- records


@ROUTES.get("/records", summary="Records, the oldest first; of one import in the order of its rows")
async def list_records(
    request: Request,
    caller: Viewer,
    import_id: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None,
    category: Literal["TOP_10", "BOTTOM_10"] | None = None,
    cursor: Cursor = None,
    limit: Most = 50,
) -> Listing[KeptRecord]:
    after = read_cursor(cursor, int)
    document = DocumentId(import_id) if import_id is not None else None
    async with caller.reading(services_of(request).db) as tx:
        scopes = None if caller.bound_to is None else await visible(tx, caller.bound_to)
        start = int(after[0]) if after else 0
        found = await records.list_records(tx, scopes, document=document, category=category, after=start, most=limit)
    following = None
    if len(found) == limit:
        following = write_cursor(found[-1].id if document is None else found[-1].row)
    return Listing(items=[show_record(one) for one in found], next=following)


@ROUTES.get("/records/{number}", summary="One record with all its columns")
async def read_record(request: Request, caller: Viewer, number: Number) -> KeptRecord:
    async with caller.reading(services_of(request).db) as tx:
        return show_record(await records.load_record(tx, RecordId(number)))


@ROUTES.delete("/records/{number}", summary="Remove one record with its vectors and terms")
async def remove_record(request: Request, caller: Manager, number: Number) -> RemovedReport:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        n = await records.remove_records(tx, [RecordId(number)])
        await services.record(tx, caller, "remove", f"record {number}")
    return RemovedReport(records=n, chunks=n, tasks=0)


# --- the account

Operator = Annotated[Caller, Depends(require("viewer", operator=True))]


@ROUTES.get("/embedding/account", summary="What is left at the provider of embeddings, where it tells")
async def read_account(request: Request, _: Operator) -> AccountReport:
    services = services_of(request)
    if services.settings.embedding.kind == "openai":
        return AccountReport.model_validate(
            await refresh_balance(services.db, services.settings.embedding), from_attributes=True
        )
    async with services.db.reading() as tx:
        return AccountReport.model_validate(await load_account(tx), from_attributes=True)
