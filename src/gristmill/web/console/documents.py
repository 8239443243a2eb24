"""The list of documents: what is there, how far each is, what went wrong, and the way in for new ones."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request, Response
from starlette.datastructures import QueryParams

from gristmill.db import Tx
from gristmill.documents import (
    STATUSES,
    ListPlace,
    Order,
    Progress,
    count_documents,
    find_documents,
    list_failures,
    list_types,
    order_documents,
    place_error,
)
from gristmill.ids import DocumentId
from gristmill.scopes import list_clients
from gristmill.serving import Manager, MenuEntry, Viewer, services_of
from gristmill.web.api.documents import read_place, write_place
from gristmill.web.console.answering import answer_action
from gristmill.web.console.document import may_change
from gristmill.web.console.document_list import NEWEST, PAGE, ListView, read_list_view
from gristmill.web.console.document_view import find_document_view
from gristmill.web.console.saved_views import list_views, remove_view, save_view
from gristmill.web.console.sorting import read_sort, sort_rows

PAGES = APIRouter()
MENU = (MenuEntry("/documents", "Documents", "documents", place=12),)
PORTION = 50  # rows
SORTED = 100  # rows of a portion that is ordered by something that no index knows
ORDERS: Mapping[str, Order] = {"added": "oldest", "name": "name", "-name": "-name"}  # of all documents
COLUMNS: Mapping[str, Callable[[Progress], Any]] = {
    "added": lambda one: one.id,
    "name": lambda one: one.name.casefold(),
    "type": lambda one: one.type,
    "status": lambda one: STATUSES.index(one.status),
    "pages": lambda one: one.pages,
}


@dataclass(frozen=True)
class DocumentsShown:
    """A portion of the list."""

    rows: Sequence[Progress]
    errors: Mapping[DocumentId, str]  # the first error of those that failed
    next: str | None  # the cursor of the portion behind it
    is_partly_sorted: bool  # there are older ones that the order does not know of


@PAGES.get("/documents")
async def show_documents(request: Request, caller: Viewer) -> Response:
    services = services_of(request)
    view = read_list_view(request.query_params)
    async with caller.transaction(services.db) as tx:
        shown = await load_rows(tx, request, view)
        tally, types = await count_documents(tx), await list_types(tx, caller.bound_to)
        clients = await list_clients(tx) if caller.is_operator else []
        views = await list_views(tx, caller.scope, PAGE)
        pane = await find_document_view(tx, DocumentId(view.open)) if view.open else None
    return services.render(
        request,
        "documents.html",
        view=view,
        shown=shown,
        tally=tally,
        types=types,
        views=views,
        clients_to_choose=clients,
        pane=pane,
        may_change=pane is not None and may_change(caller, pane.document),
        statuses=STATUSES,
        sort=read_sort(request, COLUMNS, NEWEST),
    )


@PAGES.get("/documents/rows")
async def show_rows(request: Request, caller: Viewer) -> Response:
    """The rows alone, which a page that is open asks for again and again."""
    services = services_of(request)
    view = read_list_view(request.query_params)
    async with caller.reading(services.db) as tx:
        shown = await load_rows(tx, request, view)
    return services.render(request, "document_rows.html", view=view, shown=shown)


@PAGES.get("/documents/tally")
async def show_tally(request: Request, caller: Viewer) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        tally = await count_documents(tx)
    return services.render(request, "document_tally.html", tally=tally)


async def load_rows(tx: Tx, request: Request, view: ListView) -> DocumentsShown:
    start = read_place(view.cursor or None)
    if order := ORDERS.get(view.sort):
        portion = await order_documents(tx, view.filter, order, start=start, limit=PORTION)
        following, rows = write_place(portion.next), portion.documents
        return DocumentsShown(rows, await load_errors(tx, rows), following, is_partly_sorted=False)
    is_newest = view.sort == NEWEST
    newest = await find_documents(tx, view.filter, before=start and start.id, limit=PORTION if is_newest else SORTED)
    sort = read_sort(request, COLUMNS, NEWEST)
    rows = newest.documents if is_newest else sort_rows(newest.documents, sort, COLUMNS)
    following = write_place(ListPlace(newest.next, "")) if newest.next is not None else None
    return DocumentsShown(rows, await load_errors(tx, rows), following, not is_newest and following is not None)


async def load_errors(tx: Tx, rows: Sequence[Progress]) -> dict[DocumentId, str]:
    return {one.id: await load_error(tx, one.id) for one in rows if one.status == "failed"}


async def load_error(tx: Tx, document: DocumentId) -> str:
    """The first thing that went wrong, with its page."""
    failed = await list_failures(tx, document, limit=1)
    return place_error(failed[0].page, failed[0].error) if failed else ""


# --- views that people keep


@PAGES.post("/documents/views")
async def keep_view(
    request: Request, caller: Manager, name: Annotated[str, Form()], query: Annotated[str, Form()] = ""
) -> Response:
    services = services_of(request)
    view = read_list_view(QueryParams(query))
    async with caller.transaction(services.db) as tx:
        saved = await save_view(tx, caller.scope, PAGE, name, view.saved_query)
        await services.record(tx, caller, "save view", f"view {saved.name}", query=saved.query)
    return answer_action(request, f"The view “{saved.name}” is saved.", back=view.link, go=view.link)


@PAGES.post("/documents/views/{id:int}/remove")
async def drop_view(request: Request, caller: Manager, id: int) -> Response:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        gone = await remove_view(tx, caller.scope, id)
        await services.record(tx, caller, "remove view", f"view {gone.name}")
    return answer_action(request, f"The view “{gone.name}” is removed.", back=PAGE, go=PAGE)
