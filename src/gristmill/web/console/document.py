"""The page of a document: its pages beside their text, its troubles, its graph, its versions, and what one may do."""

from typing import Annotated, Any

from fastapi import APIRouter, Form, Request, Response

from gristmill.db import Tx
from gristmill.documents import (
    Document,
    add_again,
    list_chunks,
    list_versions,
    load_page,
    load_version_pages,
    preview_removal,
    retry,
    retry_unit,
)
from gristmill.errors import Unknown
from gristmill.ids import DocumentId
from gristmill.knowledge import graph
from gristmill.queue import Revived
from gristmill.scopes import Scope
from gristmill.serving import Caller, Manager, Services, Viewer, services_of
from gristmill.web.api.documents import load_document, load_own, remove_whole
from gristmill.web.console.answering import answer_action, is_partial
from gristmill.web.console.differing import VersionDifference, compare_texts
from gristmill.web.console.document_view import DocumentView, load_document_view
from gristmill.web.console.graph_picture import draw_excerpt
from gristmill.web.console.graph_view import GraphView
from gristmill.web.console.page_view import PageView, PageWish, read_wish, view_page
from gristmill.wording import format_count

PAGES = APIRouter()
TABS = ("pages", "graph", "parts", "versions", "about", "activity")
MOST_NODES = 30
MOST_CHUNKS = 500  # of one page


@PAGES.get("/documents/{id:int}")
async def show_document(request: Request, caller: Viewer, id: int) -> Response:
    services = services_of(request)
    wish = read_wish(request.query_params)
    asked = request.query_params.get("tab", "pages")
    tab = asked if asked in TABS else "pages"
    async with caller.transaction(services.db) as tx:
        view = await load_document_view(tx, DocumentId(id), wish.page)
        values = await load_tab(tx, view, tab, request)
    page = await find_page_view(services, caller, view.document, wish) if tab == "pages" else None
    return services.render(
        request,
        "document.html",
        view=view,
        tab=tab,
        page=page,
        wish=wish,
        may_change=may_change(caller, view.document),
        **values,
    )


async def load_tab(tx: Tx, view: DocumentView, tab: str, request: Request) -> dict[str, Any]:
    if tab == "graph":
        excerpt = await graph.document_excerpt(tx, scope_of(view.document), view.id, limit=MOST_NODES)
        own = GraphView(client=view.document.client, project=view.document.project)
        return {"excerpt": excerpt, "picture": draw_excerpt(excerpt), "link_node": own.begin_with}
    if tab == "versions":
        versions = await list_versions(tx, view.id)
        older, newer = read_pair(request, [one.version for one in versions])
        difference = await compare_versions(tx, view.id, older, newer) if older != newer else None
        return {"versions": versions, "older": older, "newer": newer, "difference": difference}
    return {}


def read_pair(request: Request, versions: list[int]) -> tuple[int, int]:
    """The two versions to compare: those that the address names, else the newest and the one before it."""
    usual = (versions[1] if len(versions) > 1 else versions[0], versions[0]) if versions else (0, 0)
    given = [request.query_params.get(name, "") for name in ("older", "newer")]
    chosen = [
        int(text) if text.isdecimal() and len(text) < 9 else default for text, default in zip(given, usual, strict=True)
    ]
    return chosen[0], chosen[1]


async def compare_versions(tx: Tx, document: DocumentId, older: int, newer: int) -> VersionDifference | None:
    """None if the text of one of them was not kept."""
    try:
        before = await load_version_pages(tx, document, older)
        after = await load_version_pages(tx, document, newer)
    except Unknown:
        return None
    return compare_texts("\n".join(before), "\n".join(after))


# --- pieces that a page fetches again, or into a pane


@PAGES.get("/documents/{id:int}/pane")
async def show_pane(request: Request, caller: Viewer, id: int) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        view = await load_document_view(tx, DocumentId(id))
    return services.render(request, "document_pane.html", pane=view, may_change=may_change(caller, view.document))


@PAGES.get("/documents/{id:int}/head")
async def show_head(request: Request, caller: Viewer, id: int) -> Response:
    services = services_of(request)
    wish = read_wish(request.query_params)
    async with caller.reading(services.db) as tx:
        view = await load_document_view(tx, DocumentId(id), wish.page)
    return services.render(
        request, "document_head.html", view=view, wish=wish, may_change=may_change(caller, view.document)
    )


@PAGES.get("/documents/{id:int}/thumbs")
async def show_thumbs(request: Request, caller: Viewer, id: int) -> Response:
    services = services_of(request)
    wish = read_wish(request.query_params)
    async with caller.reading(services.db) as tx:
        view = await load_document_view(tx, DocumentId(id), wish.page)
    return services.render(request, "document_thumbs.html", view=view, wish=wish)


@PAGES.get("/documents/{id:int}/pages/{number:int}/view")
async def show_page(request: Request, caller: Viewer, id: int, number: int) -> Response:
    """One page beside its text, for a pane or in place of the page before."""
    services = services_of(request)
    given = read_wish(request.query_params)
    wish = PageWish(number, given.query, given.at)
    async with caller.reading(services.db) as tx:
        document = await load_document(tx, id)
    page = await find_page_view(services, caller, document, wish)
    return services.render(request, "page_view.html", document=document, page=page, wish=wish, is_preview=True)


async def find_page_view(services: Services, caller: Caller, document: Document, wish: PageWish) -> PageView | None:
    """None if the page has no text yet."""
    async with caller.reading(services.db) as tx:
        try:
            page = await load_page(tx, document.id, wish.page)
        except Unknown:
            return None
        chunks = await list_chunks(tx, document.id, wish.page, limit=MOST_CHUNKS)
    return await view_page(services.db, caller.bound_to or scope_of(document), document, page, chunks, wish)


def scope_of(document: Document) -> Scope:
    return Scope(document.client, document.project)


def may_change(caller: Caller, document: Document) -> bool:
    """Whether buttons are shown; the database decides when one is pressed."""
    own = caller.bound_to
    is_own = own is None or (own.client == document.client and own.project in ("", document.project))
    return is_own and caller.has_role("manager")


# --- what one may do


@PAGES.post("/documents/{id:int}/retry")
async def try_again(
    request: Request,
    caller: Manager,
    id: int,
    phase: Annotated[str, Form()] = "",
    page: Annotated[int | None, Form()] = None,
    ordinal: Annotated[int | None, Form()] = None,
) -> Response:
    """Try what failed again: everything, one phase, or one page or chunk."""
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        document = await load_own(tx, caller, id)
        if page is not None and phase:
            again = await retry_unit(tx, document, phase, page, ordinal)
        else:
            again = await retry(tx, document, phase or None)
        what = {"phase": phase, "page": page, "ordinal": ordinal}
        given = {name: value for name, value in what.items() if value not in (None, "")}
        await services.record(tx, caller, "retry", f"document {id}", **given)
    return answer_action(request, tell_retried(document, again), back=f"/documents/{id}")


def tell_retried(document: Document, again: Revived) -> str:
    count = len(again.tasks)
    if not count:
        return f"Nothing of {document.name} is to be tried again."
    return f"{format_count(count, 'task')} of {document.name} {'is' if count == 1 else 'are'} tried again."


@PAGES.post("/documents/{id:int}/reindex")
async def make_again(request: Request, caller: Manager, id: int) -> Response:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        await load_own(tx, caller, id)
        fresh = await add_again(tx, DocumentId(id))
        await services.record(tx, caller, "reindex", f"document {id}", document=fresh)
    return answer_action(
        request,
        f"Document {fresh} is made of the same bytes; it takes the place of {id} when it is complete.",
        back=f"/documents/{fresh}",
        go=f"/documents/{fresh}",
    )


@PAGES.get("/documents/{id:int}/delete")
async def show_impact(request: Request, caller: Manager, id: int) -> Response:
    """What would go with the document, before anything goes."""
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        document = await load_own(tx, caller, id)
        impact = await preview_removal(tx, [DocumentId(id)])
    return services.render(
        request, "document_delete.html", document=document, impact=impact, partial=is_partial(request)
    )


@PAGES.post("/documents/{id:int}/delete")
async def delete(request: Request, caller: Manager, id: int) -> Response:
    services = services_of(request)
    document, gone = await remove_whole(services, caller, id)
    told = f"{document.name} is deleted: {format_count(gone.pages, 'page')}, {format_count(gone.chunks, 'chunk')}."
    return answer_action(request, told, back="/documents", go="/documents")
