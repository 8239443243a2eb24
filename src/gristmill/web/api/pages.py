"""Pages over HTTP: their progress, text, picture, chunks, the places of words; and the bytes of the document."""

from collections.abc import AsyncGenerator, Sequence
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Header, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from gristmill.documents import (
    Document,
    ImageSize,
    Page,
    Span,
    list_chunks,
    list_pages,
    load_page,
    load_pages,
    load_piece,
    name_image,
)
from gristmill.errors import Refused
from gristmill.ids import DocumentId
from gristmill.knowledge import mark_words
from gristmill.scopes import Scope
from gristmill.serving import (
    Caller,
    Cursor,
    Listing,
    Services,
    Viewer,
    read_cursor,
    services_of,
    write_cursor,
)
from gristmill.web.api.document_answers import BoxAnswer, BoxesAnswer, ChunkAnswer, PageAnswer, TextAnswer
from gristmill.web.api.documents import Id, load_document

ROUTES = APIRouter(prefix="/documents/{id}", tags=["documents"])
Number = Annotated[int, Path(ge=1, le=2**31 - 1, description="The page, counted from 1.")]
KEPT = "private, max-age=86400, immutable"  # the bytes of a document never change: another version is another document
NO_PLACES = "Where its words stand was not kept when it was read: reindex the document to see them marked."
PIECE = 1 << 20


@ROUTES.get("/pages", summary="How far each page is")
async def get_pages(request: Request, caller: Viewer, id: Id) -> Listing[PageAnswer]:
    async with caller.reading(services_of(request).db) as tx:
        await load_document(tx, id)
        found = await list_pages(tx, DocumentId(id))
    return Listing(items=[PageAnswer.model_validate(one) for one in found])


@ROUTES.get("/text", summary="The text of its pages")
async def get_text(
    request: Request,
    caller: Viewer,
    id: Id,
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Listing[TextAnswer]:
    after = read_cursor(cursor, int)
    async with caller.reading(services_of(request).db) as tx:
        await load_document(tx, id)
        pages = await load_pages(tx, DocumentId(id), after=int(after[0]) if after else 0, limit=limit + 1)
    more = write_cursor(pages[limit - 1].number) if len(pages) > limit else None
    return Listing(items=[TextAnswer.model_validate(one) for one in pages[:limit]], next=more)


@ROUTES.get("/pages/{number}/text", summary="The text of a page")
async def get_page_text(request: Request, caller: Viewer, id: Id, number: Number) -> TextAnswer:
    async with caller.reading(services_of(request).db) as tx:
        return TextAnswer.model_validate(await load_page(tx, DocumentId(id), number))


@ROUTES.get("/chunks", summary="Its chunks, with their places in the text of their pages")
async def get_chunks(
    request: Request,
    caller: Viewer,
    id: Id,
    page: Annotated[int | None, Query(ge=1, le=2**31 - 1, description="Of this page alone.")] = None,
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Listing[ChunkAnswer]:
    values = read_cursor(cursor, int, int)
    after = (int(values[0]), int(values[1])) if values else (0, -1)
    async with caller.reading(services_of(request).db) as tx:
        await load_document(tx, id)
        found = await list_chunks(tx, DocumentId(id), page, after=after, limit=limit + 1)
    more = write_cursor(found[limit - 1].page, found[limit - 1].ordinal) if len(found) > limit else None
    return Listing(items=[ChunkAnswer.model_validate(one) for one in found[:limit]], next=more)


@ROUTES.get(
    "/pages/{number}/image",
    summary="A picture of a page",
    response_class=Response,
    responses={200: {"content": {"image/webp": {}}}, 304: {"description": "It is the one that you have."}},
)
async def get_image(
    request: Request,
    caller: Viewer,
    id: Id,
    number: Number,
    size: Annotated[ImageSize, Query(description="240, 1,100 or 2,200 pixels wide.")] = "page",
    if_none_match: Annotated[str | None, Header(max_length=500)] = None,
) -> Response:
    """Pages of PDFs and pictures have one; of other types the text is all that there is to see (404)."""
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        document = await load_document(tx, id)
    headers = {"ETag": f'"{name_image(document.hash, number, size)}"', "Cache-Control": KEPT}
    if if_none_match == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    return Response(await services.images.draw(document, number, size), media_type="image/webp", headers=headers)


@ROUTES.get("/pages/{number}/boxes", summary="Where words stand on the picture of a page")
async def get_boxes(
    request: Request,
    caller: Viewer,
    id: Id,
    number: Number,
    q: Annotated[str | None, Query(max_length=2000, description="The words of this query.")] = None,
    start: Annotated[int | None, Query(ge=0, le=2**31 - 1, description="From this character of the text …")] = None,
    stop: Annotated[int | None, Query(ge=0, le=2**31 - 1, description="… to before this one.")] = None,
) -> BoxesAnswer:
    """Of the words of a query, of a part of the page's text, or of a query's words within that part."""
    services = services_of(request)
    if q is None and (start is None or stop is None):
        raise Refused("Say which words are meant: a query (q), or a part of the text (start and stop).")
    async with caller.reading(services.db) as tx:
        document, page = await load_document(tx, id), await load_page(tx, DocumentId(id), number)
        first = await list_chunks(tx, document.id, number, limit=1)
    language = first[0].language if first else None
    spans = await choose_spans(services, caller, document, page.text, q, start, stop, language)
    found = await services.images.find_places(document, page, spans) if spans else []
    note = NO_PLACES if spans and not found and lacks_places(document, page) else None
    return BoxesAnswer(boxes=[BoxAnswer.model_validate(one) for one in found], note=note)


def lacks_places(document: Document, page: Page) -> bool:
    return page.words is None and (page.method == "ocr" or document.type == "image")


async def choose_spans(
    services: Services,
    caller: Caller,
    document: Document,
    text: str,
    q: str | None,
    start: int | None,
    stop: int | None,
    language: str | None,
) -> Sequence[Span]:
    """The parts of the text that are to be marked."""
    begin, end = start or 0, len(text) if stop is None else stop
    if q is None:
        return [(begin, end)]
    seen_from = caller.bound_to or Scope(document.client, document.project)
    marked = await mark_words(services.db, seen_from, q, text, language)
    return [(first, last) for first, last in marked if first < end and last > begin]


@ROUTES.get(
    "/original",
    summary="The bytes of the document, as they came",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/octet-stream": {}}}, 304: {"description": "They are what you have."}},
)
async def get_original(
    request: Request,
    caller: Viewer,
    id: Id,
    if_none_match: Annotated[str | None, Header(max_length=500)] = None,
) -> Response:
    """Always as a file to be saved: nothing that somebody sent us is shown as a page of this server."""
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        document = await load_document(tx, id)
        if document.size:
            await load_piece(tx, document.hash, 0)  # fails with a sentence now: a broken download would say nothing
    tag = f'"{document.hash.hex()}"'
    headers = {"ETag": tag, "Cache-Control": KEPT}
    if if_none_match == tag:
        return Response(status_code=304, headers=headers)
    headers |= {"Content-Disposition": name_attachment(document.name), "Content-Length": str(document.size)}
    return StreamingResponse(read_pieces(services, caller, document), headers=headers, media_type=UNKNOWN_TYPE)


UNKNOWN_TYPE = "application/octet-stream"


async def read_pieces(services: Services, caller: Caller, document: Document) -> AsyncGenerator[bytes]:
    """Piece by piece, each with a connection of its own: a slow reader must not keep one from others."""
    for n in range(-(-document.size // PIECE)):
        async with caller.reading(services.db) as tx:
            piece = await load_piece(tx, document.hash, n)
        yield piece


def name_attachment(name: str) -> str:
    """The header for a file to be saved: the plain name for old programs, and the real one."""
    plain = "".join(char if char.isascii() and char.isprintable() and char not in '"\\%;' else "_" for char in name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='', errors='replace')}"
