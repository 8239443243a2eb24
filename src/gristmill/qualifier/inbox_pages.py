"""The pages of items: the inbox with its lanes, one lane as a list, and one item with all that belongs to it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Form, Request, Response

from gristmill.db import Tx
from gristmill.errors import Refused
from gristmill.ids import WorkItemId
from gristmill.qualifier.adding import ItemWish, answer, cancel_item, reopen_item, say
from gristmill.qualifier.answers import Number
from gristmill.qualifier.api import (
    ItemMoveWish,
    add_wish,
    apply_move,
    change_item,
    find_states,
    load_details,
    load_portion,
)
from gristmill.qualifier.explaining import explain_item
from gristmill.qualifier.model import WorkItem
from gristmill.qualifier.status import LANES, NOW, LineStatus, count_lanes, load_status
from gristmill.qualifier.store import list_due, list_events, list_in_line, list_items
from gristmill.serving import Cursor, Manager, Viewer, answer_action, services_of, stay_here

PAGES = APIRouter()
SHOWN = 12  # items of a lane that the board shows
MOST_EVENTS = 200
PORTION = 50
Lane = Literal["now", "later", "information", "questions", "errors", "deciding", "completed"]
TITLES: Mapping[Lane, str] = {
    "now": "Now",
    "later": "Later",
    "information": "Information",
    "questions": "Questions",
    "errors": "Errors",
    "deciding": "Being decided",
    "completed": "Completed",
}
Words = Annotated[str, Form(max_length=200_000)]
Back = Annotated[str | None, Form(max_length=500)]


@PAGES.get("/inbox")
async def show_inbox(request: Request, caller: Viewer, lane: Lane | None = None, cursor: Cursor = None) -> Response:
    """The board of all lanes; with `lane`, that one as a list."""
    if lane is not None:
        return await _show_lane(request, caller, lane, cursor)
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        status = await load_status(tx)
        board = await _load_board(tx, status)
    return services.render(
        request,
        "qualifier/inbox.html",
        board=board,
        counts=count_lanes(status.counts),
        health=status.health,
        titles=TITLES,
    )


async def _load_board(tx: Tx, status: LineStatus) -> Mapping[str, Sequence[WorkItem]]:
    """The first items of each lane: of those that are worked on, in the order in which they are taken."""
    waiting = await list_in_line(tx, limit=SHOWN)
    return {
        "running": status.running,
        "now": waiting,
        "later": await list_due(tx, limit=SHOWN),
        "information": await list_items(tx, LANES["information"], limit=SHOWN, copied=False),
        "questions": await list_items(tx, LANES["questions"], limit=SHOWN),
        "errors": await list_items(tx, LANES["errors"], limit=SHOWN),
    }


async def _show_lane(request: Request, caller: Viewer, lane: Lane, cursor: str | None) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        found, more = await load_portion(tx, find_states(None, lane), cursor, PORTION, copied=False)
        status = await load_status(tx)
    base = f"/inbox?lane={lane}"
    return services.render(
        request,
        "qualifier/lane.html",
        lane=lane,
        titles=TITLES,
        counts=count_lanes(status.counts),
        items=found,
        next=more and f"{base}&cursor={more}",
        first=cursor and base,
        here=base + (f"&cursor={cursor}" if cursor else ""),
    )


@PAGES.get("/items/{id}")
async def show_item(request: Request, caller: Viewer, id: Number) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        details = await load_details(tx, WorkItemId(id))
        events = await list_events(tx, WorkItemId(id), limit=MOST_EVENTS)
        why = await explain_item(tx, WorkItemId(id))
    own = caller.bound_to
    item = details.item
    is_own = own is None or (item.client == own.client and own.project in ("", item.project))
    return services.render(
        request,
        "qualifier/item.html",
        about=details,
        item=item,
        events=events,
        why=why,
        may_change=is_own and caller.has_role("manager"),
        waits=item.state in NOW,
    )


# --- actions


@PAGES.post("/inbox")
async def add_to_inbox(
    request: Request,
    caller: Manager,
    text: Words = "",
    scheduled_at: Annotated[str, Form(max_length=40)] = "",
    client: Annotated[str, Form(max_length=100)] = "",
    project: Annotated[str, Form(max_length=100)] = "",
) -> Response:
    """A wish of the person who looks at the page: it waits for it, unless it names a time."""
    when = _read_moment(scheduled_at)
    wish = ItemWish(text, type="scheduled" if when else "user_input", scheduled_at=when)
    item = await add_wish(request, caller, wish, client or None, project or None)
    return answer_action(request, f"Item {item.id} is added.", back="/inbox", go=f"/items/{item.id}")


def _read_moment(text: str) -> datetime | None:
    if not text.strip():
        return None
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise Refused(f"“{text}” is no time: write for example 2026-12-24T10:00+01:00.") from None
    if found.utcoffset() is None:
        raise Refused(f"“{text}” has no time zone: write for example 2026-12-24T10:00+01:00.")
    return found


@PAGES.post("/inbox/order")
async def order_line(
    request: Request,
    caller: Manager,
    item: Annotated[int, Form(ge=1)],
    before: Annotated[int | None, Form(ge=1)] = None,
    after: Annotated[int | None, Form(ge=1)] = None,
) -> Response:
    """Put an item before or after another one in line."""
    move = ItemMoveWish(before=before, after=after, first=before is None and after is None)
    await change_item(request, caller, item, "move", lambda tx, one: apply_move(tx, one, move, by=caller.name))
    return answer_action(request, f"Item {item} is moved.", back="/inbox")


@PAGES.post("/items/{id}/say")
async def say_to_item(request: Request, caller: Manager, id: Number, text: Words = "", back: Back = None) -> Response:
    await change_item(request, caller, id, "say", lambda tx, one: say(tx, one, text, by=caller.name))
    return answer_action(request, "It is said.", back=stay_here(back, f"/items/{id}"))


@PAGES.post("/items/{id}/answer")
async def answer_item(request: Request, caller: Manager, id: Number, text: Words = "", back: Back = None) -> Response:
    await change_item(request, caller, id, "answer", lambda tx, one: answer(tx, one, text, by=caller.name))
    return answer_action(request, "It goes on with your answer.", back=stay_here(back, f"/items/{id}"))


@PAGES.post("/items/{id}/cancel")
async def cancel_one(request: Request, caller: Manager, id: Number) -> Response:
    await change_item(request, caller, id, "cancel", lambda tx, one: cancel_item(tx, one, by=caller.name))
    return answer_action(request, f"Item {id} is cancelled.", back=f"/items/{id}", undo=f"/items/{id}/reopen")


@PAGES.post("/items/{id}/reopen")
async def reopen_one(request: Request, caller: Manager, id: Number) -> Response:
    await change_item(request, caller, id, "reopen", lambda tx, one: reopen_item(tx, one, by=caller.name))
    return answer_action(request, f"Item {id} is open again.", back=f"/items/{id}")


@PAGES.post("/items/{id}/first")
async def move_first(request: Request, caller: Manager, id: Number) -> Response:
    move = ItemMoveWish(first=True)
    await change_item(request, caller, id, "move", lambda tx, one: apply_move(tx, one, move, by=caller.name))
    return answer_action(request, f"Item {id} is the first in line.", back=f"/items/{id}")
