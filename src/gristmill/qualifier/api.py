"""Items over HTTP: list, look at, add, talk to, answer, move, cancel, reopen; both queues as a stream."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from gristmill.db import Tx
from gristmill.errors import Refused
from gristmill.ids import WorkItemId
from gristmill.qualifier.adding import ItemWish, add_item, answer, cancel_item, reopen_item, say
from gristmill.qualifier.answers import (
    ItemDetails,
    Number,
    ShownEvent,
    ShownItem,
    ShownMessage,
    ShownStatus,
    Text,
    show_event,
    show_item,
    show_memory,
    show_message,
    show_result,
    show_source,
    show_status,
)
from gristmill.qualifier.line import place_item, position_item
from gristmill.qualifier.memory import load_memory
from gristmill.qualifier.model import STATES, ItemState, ItemType, Urgency, WorkItem
from gristmill.qualifier.status import LANES, load_status
from gristmill.qualifier.store import (
    NEWEST,
    get_item,
    list_children,
    list_copies,
    list_events,
    list_in_line,
    list_items,
    list_merged,
    list_messages,
    list_sources_of,
    load_result,
)
from gristmill.serving import (
    Caller,
    Cursor,
    Listing,
    Manager,
    Problem,
    Services,
    Viewer,
    read_cursor,
    services_of,
    write_cursor,
)

ROUTES = APIRouter(prefix="/items", tags=["items"])
PORTION = 50
EVERY = 1.0  # seconds between two looks of a stream
HEARTBEAT = 15.0  # seconds of silence after which a stream says that it is still there
LONGEST_STREAM = 3600.0  # seconds; a listener comes back by itself
RECONNECT = 2_000  # milliseconds after which it does
Limit = Annotated[int, Query(ge=1, le=500)]


class NewItem(BaseModel):
    """An item that a person or a program adds."""

    text: Text
    title: str = Field(default="", max_length=300, description="Without it, the first line of the text.")
    type: ItemType = Field(default="user_task", description="user_input, user_task or scheduled.")
    foreground: bool | None = Field(default=None, description="Whether a person waits for it; as for a user_input.")
    urgency: Urgency = "normal"
    deadline: datetime | None = None
    scheduled_at: datetime | None = Field(default=None, description="When it is to be done.")
    cron: str | None = Field(default=None, max_length=200, description="Again and again, at these times.")
    zone: str = Field(default="UTC", max_length=64, description="The time zone of the cron expression.")
    position: int | None = Field(default=None, ge=-(2**62), le=2**62, description="Before items without one.")
    client: str | None = Field(default=None, max_length=100)
    project: str | None = Field(default=None, max_length=100)


class NewMessage(BaseModel):
    """Something that is said to an item."""

    text: Text


class ItemMoveWish(BaseModel):
    """Where an item goes in line: one of these."""

    first: bool = False
    before: Number | None = None
    after: Number | None = None
    position: int | None = Field(default=None, ge=-(2**62), le=2**62)
    clear: bool = Field(default=False, description="Give up its position: it goes by its age again.")


# --- looking


@ROUTES.get("", summary="Items, the newest first")
async def get_items(
    request: Request,
    caller: Viewer,
    state: Annotated[list[ItemState] | None, Query(description="Only items in these states.")] = None,
    lane: Annotated[str | None, Query(description=f"Or a lane of the inbox: {', '.join(LANES)}.")] = None,
    cursor: Cursor = None,
    limit: Limit = PORTION,
) -> Listing[ShownItem]:
    states = find_states(state, lane)
    async with caller.reading(services_of(request).db) as tx:
        found, more = await load_portion(tx, states, cursor, limit, copied=lane is None)
    return Listing(items=[show_item(one) for one in found], next=more)


def find_states(state: Sequence[ItemState] | None, lane: str | None) -> Sequence[ItemState]:
    if lane is not None and lane not in LANES:
        raise Problem(422, f"“{lane}” is no lane: choose one of {', '.join(LANES)}.")
    return state or (LANES[lane] if lane else STATES)


async def load_portion(
    tx: Tx, states: Sequence[ItemState], cursor: str | None, limit: int, *, copied: bool = True
) -> tuple[list[WorkItem], str | None]:
    last = read_cursor(cursor, int)
    found = await list_items(tx, states, before=int(last[0]) if last else NEWEST, limit=limit + 1, copied=copied)
    return found[:limit], write_cursor(found[limit - 1].id) if len(found) > limit else None


@ROUTES.get("/line", summary="Items that wait for an executor, in the order in which they are taken")
async def get_line(
    request: Request, caller: Viewer, foreground: bool | None = None, limit: Limit = PORTION
) -> list[ShownItem]:
    async with caller.reading(services_of(request).db) as tx:
        return [show_item(one) for one in await list_in_line(tx, foreground=foreground, limit=limit)]


@ROUTES.get("/status", summary="Both queues, and whether the executor takes work")
async def get_status(request: Request, caller: Viewer) -> ShownStatus:
    async with caller.reading(services_of(request).db) as tx:
        return show_status(await load_status(tx), is_operator=caller.is_operator)


@ROUTES.get(
    "/status/events",
    summary="The same as server-sent events, whenever something changes",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}}},
)
async def stream_status(request: Request, caller: Viewer) -> Response:
    """Each event `status` tells all: a listener that comes back has missed nothing."""
    return StreamingResponse(
        write_events(services_of(request), caller),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def write_events(services: Services, caller: Caller) -> AsyncGenerator[str]:
    yield f"retry: {RECONNECT}\n\n"
    loop = asyncio.get_running_loop()
    end = loop.time() + LONGEST_STREAM
    last, said_at = "", loop.time()
    while loop.time() < end:
        async with caller.reading(services.db) as tx:
            shown = show_status(await load_status(tx), is_operator=caller.is_operator)
            data = shown.model_dump_json()
        digest = hashlib.sha256(data.encode()).hexdigest()[:16]
        if digest != last:
            last, said_at = digest, loop.time()
            yield f"id: {digest}\nevent: status\ndata: {data}\n\n"
        elif loop.time() - said_at > HEARTBEAT:
            said_at = loop.time()
            yield ": still there\n\n"
        await asyncio.sleep(EVERY)


@ROUTES.get("/{id}", summary="One item, with its memory, messages, result and documents")
async def get_one(request: Request, caller: Viewer, id: Number) -> ItemDetails:
    async with caller.reading(services_of(request).db) as tx:
        return await load_details(tx, WorkItemId(id))


async def load_details(tx: Tx, id_: WorkItemId) -> ItemDetails:
    item = await get_item(tx, id_)
    memory, result = await load_memory(tx, id_), await load_result(tx, id_)
    return ItemDetails(
        item=show_item(item),
        text=item.text,
        memory=show_memory(memory) if memory else None,
        result=show_result(result) if result else None,
        messages=[show_message(one) for one in await list_messages(tx, id_)],
        documents=[show_source(one) for one in await list_sources_of(tx, item.origin or id_)],
        parts=[show_item(one) for one in await list_children(tx, id_)],
        copies=[show_item(one) for one in await list_copies(tx, id_)],
        merged=[show_item(one) for one in await list_merged(tx, id_)],
    )


@ROUTES.get("/{id}/events", summary="What happened to an item, the oldest first")
async def get_events(
    request: Request, caller: Viewer, id: Number, cursor: Cursor = None, limit: Limit = PORTION
) -> Listing[ShownEvent]:
    last = read_cursor(cursor, int)
    async with caller.reading(services_of(request).db) as tx:
        item = await get_item(tx, WorkItemId(id))
        found = await list_events(tx, item.id, after=int(last[0]) if last else 0, limit=limit + 1)
    more = write_cursor(found[limit - 1].id) if len(found) > limit else None
    return Listing(items=[show_event(one) for one in found[:limit]], next=more)


@ROUTES.get("/{id}/messages", summary="What was said to an item, and by its executor")
async def get_messages(request: Request, caller: Viewer, id: Number) -> list[ShownMessage]:
    async with caller.reading(services_of(request).db) as tx:
        item = await get_item(tx, WorkItemId(id))
        return [show_message(one) for one in await list_messages(tx, item.id)]


# --- changing


@ROUTES.post("", status_code=201, summary="Add an item: it is decided next, or waits for its time")
async def post_item(request: Request, caller: Manager, body: NewItem) -> ShownItem:
    """With an `Idempotency-Key`, a request that is sent again adds nothing a second time."""
    wish = ItemWish(**body.model_dump(exclude={"client", "project"}))
    return show_item(await add_wish(request, caller, wish, body.client, body.project))


async def add_wish(
    request: Request, caller: Caller, wish: ItemWish, client: str | None, project: str | None
) -> WorkItem:
    services = services_of(request)
    scope = caller.choose_scope(client, project)
    async with caller.transaction(services.db) as tx:
        item = await add_item(tx, scope, wish, by=caller.name)
        await services.record(tx, caller, "add", f"item {item.id}", title=item.title, type=item.type)
    return item


@ROUTES.post("/{id}/messages", status_code=201, summary="Say something to an item")
async def post_message(request: Request, caller: Manager, id: Number, body: NewMessage) -> ShownItem:
    """An item that waits for an answer goes on, one that has ended begins again, one that runs hears it at its end."""
    return show_item(
        await change_item(request, caller, id, "say", lambda tx, one: say(tx, one, body.text, by=caller.name))
    )


@ROUTES.post("/{id}/answer", summary="Answer the question of an item")
async def post_answer(request: Request, caller: Manager, id: Number, body: NewMessage) -> ShownItem:
    return show_item(
        await change_item(request, caller, id, "answer", lambda tx, one: answer(tx, one, body.text, by=caller.name))
    )


@ROUTES.post("/{id}/cancel", summary="End an item, whatever it does")
async def post_cancel(request: Request, caller: Manager, id: Number) -> ShownItem:
    return show_item(
        await change_item(request, caller, id, "cancel", lambda tx, one: cancel_item(tx, one, by=caller.name))
    )


@ROUTES.post("/{id}/reopen", summary="Work on an item again")
async def post_reopen(request: Request, caller: Manager, id: Number) -> ShownItem:
    return show_item(
        await change_item(request, caller, id, "reopen", lambda tx, one: reopen_item(tx, one, by=caller.name))
    )


@ROUTES.post("/{id}/move", summary="Move an item in line")
async def post_move(request: Request, caller: Manager, id: Number, body: ItemMoveWish) -> ShownItem:
    return show_item(
        await change_item(request, caller, id, "move", lambda tx, one: apply_move(tx, one, body, by=caller.name))
    )


async def apply_move(tx: Tx, id_: WorkItemId, move: ItemMoveWish, *, by: str) -> WorkItem:
    """Exactly one of the places that a move may name."""
    item = await get_item(tx, id_)
    named = [move.first, move.before is not None, move.after is not None, move.position is not None, move.clear]
    if sum(named) != 1:
        raise Refused("Say one place: first, before an item, after an item, a position, or clear.")
    if move.position is not None or move.clear:
        await position_item(tx, item, move.position, by=by)
    else:
        other = {"before": move.before, "after": move.after}
        before, after = (WorkItemId(one) if one is not None else None for one in other.values())
        await place_item(tx, item, before=before, after=after, by=by)
    return await get_item(tx, id_)


Change = Callable[[Tx, WorkItemId], Awaitable[WorkItem]]


async def change_item(request: Request, caller: Caller, id_: int, action: str, change: Change) -> WorkItem:
    """Change an item of the caller, and write it down."""
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        await check_own(tx, caller, id_)
        item = await change(tx, WorkItemId(id_))
        await services.record(tx, caller, action, f"item {id_}", title=item.title)
    return item


async def check_own(tx: Tx, caller: Caller, id_: int) -> None:
    """What is everybody's is seen by clients, and changed by the operator."""
    item, own = await get_item(tx, WorkItemId(id_)), caller.bound_to
    if own and (item.client != own.client or (own.project and item.project != own.project)):
        raise Problem(403, f"Item {id_} is not {own}'s own: your key may see it, and not change it.")
