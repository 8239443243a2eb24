"""Sources over HTTP: how each is, its items with their bytes, the comparison of ids; pause, resume, sync."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request, Response
from pydantic import BaseModel, Field

from gristmill.db import Tx
from gristmill.errors import Refused
from gristmill.ids import ItemId, SourceId
from gristmill.serving import (
    Caller,
    Cursor,
    Listing,
    Manager,
    MenuEntry,
    Problem,
    Viewer,
    WebPart,
    answer_action,
    read_cursor,
    services_of,
    write_cursor,
)
from gristmill.sources.git.connector import name_workspace
from gristmill.sources.items import NEWEST, ItemRow, list_items, load_item, load_item_bytes, retry_set_aside
from gristmill.sources.model import Source, State
from gristmill.sources.poller import ask_for_poll
from gristmill.sources.register import get_source, list_sources, pause_source
from gristmill.sources.site import show_options
from gristmill.sources.status import SourceStanding, Status, count_items, load_standings

ROUTES = APIRouter(prefix="/sources", tags=["sources"])
PAGES = APIRouter(prefix="/sources")
PORTION = 50
MOST_SHOWN = 20_000  # bytes of an item that a page shows
Number = Annotated[int, Field(ge=1, le=2**63 - 1)]
WantedState = Annotated[State | None, Query(description="Only items in this state.")]


class ShownSource(BaseModel):
    """A source, without its secrets: its options only name where they are."""

    id: int
    name: str
    kind: str
    client: str
    project: str
    status: Status
    sentence: str
    workspace: str | None = Field(description="Of a git repository: CLONING, CLONE_FAILED or READY.")
    options: Mapping[str, Any]
    every_seconds: float
    last_success: datetime | None
    lag_seconds: float | None
    next_at: datetime | None
    failures: int
    error: str | None
    items: Mapping[str, int]
    listed_at: datetime | None
    listing: Mapping[str, Any] | None
    listing_every_seconds: float
    last_listing_success: datetime | None
    next_listing_at: datetime | None
    listing_failures: int
    listing_error: str | None
    listing_trouble: str | None = Field(description="What a person should know of its listings, in one sentence.")
    awaits_agreement: bool = Field(description="Most items seem gone: no listing until somebody says what is true.")

    @property
    def lag(self) -> timedelta | None:
        return None if self.lag_seconds is None else timedelta(seconds=self.lag_seconds)


class ShownSourceItem(BaseModel):
    """An item of a source."""

    id: int
    external: str
    type: str | None
    state: State
    urn: str | None
    title: str | None
    thread: str | None
    document: int | None
    size: int
    error: str | None
    version: int
    first_at: datetime
    changed_at: datetime
    removed: Mapping[str, Any] | None


class SyncStarted(BaseModel):
    """What was asked for."""

    task: int
    tried_again: int = Field(description="How many items are tried again that were set aside.")


class Sync(BaseModel):
    """How a source is to be polled."""

    full: bool = Field(default=False, description="Compare all ids, and remove what is gone there.")
    agreed: bool = Field(default=False, description="Also if most of it is gone.")


def show_source(caller: Caller, source: Source, standing: SourceStanding, items: Mapping[str, int]) -> ShownSource:
    """The options of everybody's source name places of the machine: they are the operator's alone."""
    return ShownSource(
        id=source.id,
        name=source.name,
        kind=source.kind,
        client=source.client,
        project=source.project,
        status=standing.status,
        sentence=standing.sentence,
        workspace=name_workspace(source) if source.kind == "git" else None,
        options=show_options(source.options) if caller.is_operator or source.client else {},
        every_seconds=source.every.total_seconds(),
        last_success=source.succeeded_at,
        lag_seconds=None if standing.lag is None else standing.lag.total_seconds(),
        next_at=standing.next_at,
        failures=source.failures,
        error=source.error,
        items=items,
        listed_at=source.listed_at,
        listing=source.listing,
        listing_every_seconds=source.listing_every.total_seconds(),
        last_listing_success=source.listing_succeeded_at,
        next_listing_at=standing.next_listing_at,
        listing_failures=source.listing_failures,
        listing_error=source.listing_error,
        listing_trouble=standing.listing_trouble,
        awaits_agreement=source.awaits_agreement,
    )


def show_item(item: ItemRow) -> ShownSourceItem:
    return ShownSourceItem.model_validate(vars(item))


async def _load_all(tx: Tx, caller: Caller, sources: Sequence[Source]) -> list[ShownSource]:
    standings, counts = await load_standings(tx, sources), await count_items(tx, [one.id for one in sources])
    return [show_source(caller, one, standings[one.id], counts[one.id]) for one in sources]


# --- for programs


@ROUTES.get("")
async def get_sources(request: Request, caller: Viewer) -> list[ShownSource]:
    """All sources: how each is, its last and next poll, its items."""
    async with caller.reading(services_of(request).db) as tx:
        return await _load_all(tx, caller, await list_sources(tx))


@ROUTES.get("/{id}")
async def get_one(request: Request, caller: Viewer, id: Number) -> ShownSource:
    """One source."""
    async with caller.reading(services_of(request).db) as tx:
        return (await _load_all(tx, caller, [await get_source(tx, SourceId(id))]))[0]


@ROUTES.get("/{id}/items")
async def get_items(
    request: Request,
    caller: Viewer,
    id: Number,
    state: WantedState = None,
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=500)] = PORTION,
) -> Listing[ShownSourceItem]:
    """The items of a source, the newest first."""
    found, more = await _load_items(request, caller, id, state, cursor, limit)
    return Listing(items=[show_item(one) for one in found], next=more)


@ROUTES.get("/{id}/items/{item}/bytes", response_class=Response)
async def get_bytes(request: Request, caller: Viewer, id: Number, item: Number) -> Response:
    """The bytes of an item that waits, or that was set aside; an indexed item has them in its document."""
    async with caller.reading(services_of(request).db) as tx:
        await load_item(tx, SourceId(id), ItemId(item))
        body = await load_item_bytes(tx, ItemId(item))
    headers = {"Content-Disposition": f'attachment; filename="item-{item}.bin"'}
    return Response(body, media_type="application/octet-stream", headers=headers)


@ROUTES.post("/{id}/sync")
async def post_sync(request: Request, caller: Manager, id: Number, body: Sync) -> SyncStarted:
    """Poll a source now; pauses after failures begin anew."""
    return await _sync(request, caller, SourceId(id), full=body.full or body.agreed, agreed=body.agreed)


@ROUTES.post("/{id}/pause")
async def post_pause(request: Request, caller: Manager, id: Number) -> ShownSource:
    """Let a source rest."""
    return await _pause(request, caller, SourceId(id), paused=True)


@ROUTES.post("/{id}/resume")
async def post_resume(request: Request, caller: Manager, id: Number) -> ShownSource:
    """Let a source go on from where it was."""
    return await _pause(request, caller, SourceId(id), paused=False)


# --- for people


@PAGES.get("")
async def show_list(request: Request, caller: Viewer) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        found = await _load_all(tx, caller, await list_sources(tx))
    return services.render(request, "sources/sources.html", sources=found)


@PAGES.get("/{id}")
async def show_one(
    request: Request, caller: Viewer, id: Number, state: WantedState = None, cursor: Cursor = None
) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        (source,) = await _load_all(tx, caller, [await get_source(tx, SourceId(id))])
    found, more = await _load_items(request, caller, id, state, cursor, PORTION)
    base = f"/sources/{id}?state={state}" if state else f"/sources/{id}?"
    return services.render(
        request,
        "sources/source.html",
        source=source,
        items=found,
        state=state,
        next=more and f"{base}&cursor={more}",
        first=cursor and base,
        here=request.url.path + (f"?{request.url.query}" if request.url.query else ""),
    )


@PAGES.get("/{id}/items/{item}")
async def show_item_page(request: Request, caller: Viewer, id: Number, item: Number) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        source = await get_source(tx, SourceId(id))
        found = await load_item(tx, source.id, ItemId(item))
        body = await load_item_bytes(tx, found.id)
    raw = body[:MOST_SHOWN].decode("utf-8", "replace")
    return services.render(request, "sources/item.html", source=source, item=found, raw=raw, cut=len(body) > MOST_SHOWN)


@PAGES.post("/{id}/sync")
async def sync_source(
    request: Request,
    caller: Manager,
    id: Number,
    full: Annotated[bool, Form()] = False,
    agreed: Annotated[bool, Form()] = False,
) -> Response:
    asked = await _sync(request, caller, SourceId(id), full=full or agreed, agreed=agreed)
    return answer_action(request, f"It is asked for as task {asked.task}.", back=f"/sources/{id}")


@PAGES.post("/{id}/pause")
async def pause_one(request: Request, caller: Manager, id: Number) -> Response:
    source = await _pause(request, caller, SourceId(id), paused=True)
    return answer_action(request, f"{source.name} is paused.", back=f"/sources/{id}")


@PAGES.post("/{id}/resume")
async def resume_one(request: Request, caller: Manager, id: Number) -> Response:
    source = await _pause(request, caller, SourceId(id), paused=False)
    return answer_action(request, f"{source.name} goes on.", back=f"/sources/{id}")


# --- both


async def _load_items(
    request: Request, caller: Caller, id_: int, state: State | None, cursor: str | None, limit: int
) -> tuple[list[ItemRow], str | None]:
    last = read_cursor(cursor, int)
    before = int(last[0]) if last else NEWEST
    async with caller.reading(services_of(request).db) as tx:
        source = await get_source(tx, SourceId(id_))
        found = await list_items(tx, source.id, state=state, before=before, limit=limit + 1)
    return found[:limit], write_cursor(found[limit - 1].id) if len(found) > limit else None


async def _find_own(tx: Tx, caller: Caller, id_: SourceId) -> Source:
    """A source that the caller may change: everybody's is the operator's."""
    source = await get_source(tx, id_)
    if not caller.is_operator and not source.client:
        raise Problem(403, f"{source.name} is everybody's source: only an operator changes it.")
    return source


async def _sync(request: Request, caller: Caller, id_: SourceId, *, full: bool, agreed: bool) -> SyncStarted:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        source = await _find_own(tx, caller, id_)
        if source.paused:
            raise Refused(f"{source.name} is paused: let it go on first.")
        again = await retry_set_aside(tx, source)
        task = await ask_for_poll(tx, source, listing=full, agreed=agreed)
        await services.record(tx, caller, "sync", f"source {source.name}", full=full, agreed=agreed)
    return SyncStarted(task=task, tried_again=again)


async def _pause(request: Request, caller: Caller, id_: SourceId, *, paused: bool) -> ShownSource:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        source = await _find_own(tx, caller, id_)
        await pause_source(tx, source, paused)
        await services.record(tx, caller, "pause" if paused else "resume", f"source {source.name}")
        return (await _load_all(tx, caller, [await get_source(tx, id_)]))[0]


WEB = WebPart(api=[ROUTES], console=[PAGES], menu=[MenuEntry("/sources", "Sources", "sources", place=60)])
