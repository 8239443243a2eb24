"""Documents over HTTP: lists with progress, one document, its tree, retries, removal, and events while it is read."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from gristmill.db import Tx
from gristmill.documents import (
    Document,
    DocumentFilter,
    ListPlace,
    ProgressEvent,
    Removed,
    add_again,
    clear_copies,
    find_containers,
    find_documents,
    has_picture,
    list_containers,
    list_failures,
    list_setbacks,
    list_skipped,
    list_versions,
    load_documents,
    load_one,
    load_version_pages,
    make_event,
    order_documents,
    preview_removal,
    remove_in_portions,
    retry,
    retry_unit,
)
from gristmill.errors import Refused, Unknown
from gristmill.ids import DocumentId
from gristmill.serving import (
    Caller,
    Cursor,
    Listing,
    Manager,
    Problem,
    Services,
    Viewer,
    answer_events,
    read_cursor,
    services_of,
    write_cursor,
)
from gristmill.web.api.document_answers import (
    DetailAnswer,
    DocumentAnswer,
    ImpactAnswer,
    ReindexAnswer,
    RetryAnswer,
    TreeAnswer,
    VersionAnswer,
    VersionTextAnswer,
    describe,
    describe_all,
    describe_part,
)

ROUTES = APIRouter(prefix="/documents", tags=["documents"])
Id = Annotated[int, Path(ge=1, le=2**63 - 1, description="The id of a document.")]
Limit = Annotated[int, Query(ge=1, le=200)]
Name = Annotated[str | None, Query(max_length=100)]
LONGEST_STREAM = 600.0  # seconds after which a stream ends; the browser comes back, and its key is checked again
RECONNECT = 2_000  # milliseconds that a browser waits before it comes back


@ROUTES.get("", summary="List documents, the newest first or in another order")
async def list_documents(
    request: Request,
    caller: Viewer,
    client: Name = None,
    project: Name = None,
    status: Literal["pending", "processing", "completed", "failed", "cancelled"] | None = None,
    type: Name = None,
    name: Annotated[str | None, Query(max_length=200, description="A part of the name or title.")] = None,
    container: Annotated[int | None, Query(ge=1, le=2**63 - 1, description="Its parts alone.")] = None,
    top: Annotated[bool, Query(description="Only documents that lie in no other.")] = False,
    order: Annotated[Literal["newest", "oldest", "name", "-name"], Query(description="Of the whole list.")] = "newest",
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Listing[DocumentAnswer]:
    """A portion may have fewer documents than asked for, or none, and yet a `next`: it says how far was looked."""
    wanted = DocumentFilter(client, project, status, type, name, _id(container), top)
    async with caller.reading(services_of(request).db) as tx:
        if order == "newest":
            portion = await find_documents(tx, wanted, before=read_id(cursor), limit=limit)
            return Listing(items=describe_all(portion.documents), next=write_id(portion.next))
        ordered = await order_documents(tx, wanted, order, start=read_place(cursor), limit=limit)
    return Listing(items=describe_all(ordered.documents), next=write_place(ordered.next))


@ROUTES.get("/{id}", summary="One document: how far it is, its errors, what it is made of")
async def get_document(request: Request, caller: Viewer, id: Id) -> DetailAnswer:
    async with caller.reading(services_of(request).db) as tx:
        document, progress = await load_document(tx, id), await load_one(tx, DocumentId(id))
        return DetailAnswer.model_validate(
            {
                **describe(progress).model_dump(),
                "size": document.size,
                "hash": document.hash.hex(),
                "metadata": dict(document.meta),
                "has_picture": has_picture(document.type),
                "containers": await list_containers(tx, document.id),
                "failures": await list_failures(tx, document.id),
                "setbacks": await list_setbacks(tx, document.id),
                "skipped": await list_skipped(tx, document.id),
            }
        )


@ROUTES.get("/{id}/tree", summary="Where a document lies, and what lies in it")
async def get_tree(request: Request, caller: Viewer, id: Id, cursor: Cursor = None, limit: Limit = 50) -> TreeAnswer:
    async with caller.reading(services_of(request).db) as tx:
        document = await load_one(tx, DocumentId(id))
        containers = await list_containers(tx, document.id)
        portion = await find_documents(tx, DocumentFilter(container=document.id), before=read_id(cursor), limit=limit)
        holders = await find_containers(tx, [one.id for one in portion.documents])
    return TreeAnswer.model_validate(
        {
            "containers": containers,
            "document": describe(document),
            "parts": [describe_part(one, one.id in holders) for one in portion.documents],
            "next": write_id(portion.next),
        }
    )


@ROUTES.get("/{id}/versions", summary="The versions of its source, the newest first")
async def get_versions(request: Request, caller: Viewer, id: Id) -> Listing[VersionAnswer]:
    async with caller.reading(services_of(request).db) as tx:
        await load_document(tx, id)
        found = await list_versions(tx, DocumentId(id))
    return Listing(items=[VersionAnswer.model_validate(one) for one in found])


@ROUTES.get("/{id}/versions/{version}", summary="The text of a version, also of one that was replaced")
async def get_version(
    request: Request, caller: Viewer, id: Id, version: Annotated[int, Path(ge=1, le=2**31 - 1)]
) -> VersionTextAnswer:
    async with caller.reading(services_of(request).db) as tx:
        await load_document(tx, id)
        return VersionTextAnswer(version=version, pages=await load_version_pages(tx, DocumentId(id), version))


# --- changes


@ROUTES.post("/{id}/retry", summary="Try again what failed: all of it, one phase, one page or one chunk")
async def retry_document(
    request: Request,
    caller: Manager,
    id: Id,
    phase: Annotated[str | None, Query(max_length=50, description="open, ocr, vector, graph …")] = None,
    page: Annotated[int | None, Query(ge=1, le=2**31 - 1, description="One page, in the phase that is named.")] = None,
    chunk: Annotated[int | None, Query(ge=0, le=2**31 - 1, description="One chunk of it, counted from 0.")] = None,
) -> RetryAnswer:
    services = services_of(request)
    if page is None and chunk is not None:
        raise Refused("A chunk is one of a page: name the page, too.")
    if page is not None and phase is None:
        raise Refused("Name the phase in which the page is to be tried again: ocr, vector or graph.")
    async with caller.transaction(services.db) as tx:
        document = await load_own(tx, caller, id)
        again = await (
            retry(tx, document, phase)
            if page is None or phase is None
            else retry_unit(tx, document, phase, page, chunk)
        )
        await services.record(tx, caller, "retry", f"document {id}", phase=phase, page=page, tasks=len(again.tasks))
    return RetryAnswer.model_validate(again)


@ROUTES.post("/{id}/reindex", summary="Read a document anew, from the same bytes")
async def reindex_document(request: Request, caller: Manager, id: Id) -> ReindexAnswer:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        await load_own(tx, caller, id)
        new = await add_again(tx, DocumentId(id))
        await services.record(tx, caller, "reindex", f"document {id}", new=new)
    return ReindexAnswer(document=new)


@ROUTES.get("/{id}/impact", summary="What removing a document would take with it; nothing is changed")
async def get_impact(request: Request, caller: Viewer, id: Id) -> ImpactAnswer:
    async with caller.reading(services_of(request).db) as tx:
        await load_document(tx, id)
        return ImpactAnswer.model_validate(await preview_removal(tx, [DocumentId(id)]))


@ROUTES.delete("/{id}", summary="Remove a document with everything that was made of it")
async def remove_document(request: Request, caller: Manager, id: Id) -> ImpactAnswer:
    """What lies in it goes, too. The answer counts what is gone."""
    _, gone = await remove_whole(services_of(request), caller, id)
    return ImpactAnswer.model_validate(gone)


async def remove_whole(services: Services, caller: Caller, id: int) -> tuple[Document, Removed]:
    """Remove a document of the caller, write it down, and drop the copies that this machine has of it."""
    async with caller.reading(services.db) as tx:
        document = await load_own(tx, caller, id)

    async def record(tx: Tx) -> None:
        await services.record(tx, caller, "remove", f"document {id}", name=document.name, urn=document.urn)

    services.change_in_parts()  # what is gone stays gone: a repetition removes the rest
    gone = await remove_in_portions(services.db, [document.id], seen_from=caller.bound_to, note=record)
    await _clear_copies(services)
    return document, gone


async def _clear_copies(services: Services) -> None:
    """Copies of its bytes on this machine, and pictures of its pages, go with a document."""
    await clear_copies(services.db, services.settings.data / "spool")
    await services.images.clear()


# --- events


@ROUTES.get(
    "/{id}/events",
    summary="Progress as server-sent events, until the document has ended",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}}, 204: {"description": "It has ended, and you know it."}},
)
async def stream_events(
    request: Request,
    caller: Viewer,
    id: Id,
    last_event_id: Annotated[str | None, Header(max_length=100)] = None,
) -> Response:
    """Each event has the whole state: `progress`, then `ended` (completed, failed, cancelled) or `gone`.

    With `Last-Event-ID`, a state that is known already is not sent again. A browser that comes back after the end gets
    a 204 and stays away.
    """
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        now = make_event(DocumentId(id), await load_one(tx, DocumentId(id)))
    if now.what == "ended" and now.id == last_event_id:
        return Response(status_code=204)
    return answer_events(list_events(services, DocumentId(id), last_event_id), longest=LONGEST_STREAM)


async def list_events(services: Services, document: DocumentId, last_id: str | None) -> AsyncGenerator[str]:
    yield f"retry: {RECONNECT}\n\n"
    async with aclosing(services.watcher.listen(document, last_id)) as events:
        async for event in events:
            yield describe_event(event)


def describe_event(event: ProgressEvent) -> str:
    data = describe(event.progress).model_dump_json() if event.progress else "{}"
    return f"id: {event.id}\nevent: {event.what}\ndata: {data}\n\n"


# --- what all of them need


async def load_document(tx: Tx, id: int) -> Document:
    """A document that the caller sees."""
    found = (await load_documents(tx, [DocumentId(id)])).get(DocumentId(id))
    if found is None:
        raise Unknown(f"There is no document {id}.")
    return found


async def load_own(tx: Tx, caller: Caller, id: int) -> Document:
    """A document that the caller may change: clients see everybody's documents, but only the operator changes them."""
    document = await load_document(tx, id)
    own = caller.bound_to
    if own and (document.client != own.client or (own.project and document.project != own.project)):
        raise Problem(403, f"Document {id} is not {own}'s own: your key may see it, and not change it.")
    return document


def read_place(cursor: str | None) -> ListPlace | None:
    """The document behind which a portion of an ordered list begins."""
    values = read_cursor(cursor, int, str)
    return None if values is None else ListPlace(DocumentId(int(values[0])), str(values[1]))


def write_place(place: ListPlace | None) -> str | None:
    return None if place is None else write_cursor(place.id, place.name)


def read_id(cursor: str | None) -> DocumentId | None:
    values = read_cursor(cursor, int)
    return None if values is None else DocumentId(int(values[0]))


def write_id(next_: DocumentId | None) -> str | None:
    return None if next_ is None else write_cursor(next_)


def _id(given: int | None) -> DocumentId | None:
    return None if given is None else DocumentId(given)
