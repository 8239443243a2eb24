"""Alarms over HTTP: the list, who knows of them, the bell, and a test of a channel."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from pydantic import BaseModel, Field

from gristmill.alarms.model import Alarm, AlarmId, Event, States
from gristmill.alarms.store import (
    acknowledge,
    count_alarms,
    explain_silence,
    list_alarms,
    list_deliveries,
    load_alarm,
)
from gristmill.alarms.telling import find_channel, try_channel
from gristmill.errors import Permanent, Refused, Transient, Unknown
from gristmill.serving import (
    Caller,
    Cursor,
    Listing,
    Manager,
    MenuEntry,
    Problem,
    Services,
    Viewer,
    WebPart,
    answer_action,
    read_cursor,
    require,
    services_of,
    write_cursor,
)

ROUTES = APIRouter(prefix="/alarms", tags=["alarms"])
PAGES = APIRouter(prefix="/alarms")
PORTION = 50
Operator = Annotated[Caller, Depends(require("admin", operator=True))]
Number = Annotated[int, Field(ge=1, le=2**63 - 1)]
Wanted = Annotated[States, Query(description="Those that last, those that are over, or both.")]


class ShownAlarm(BaseModel):
    """An alarm."""

    id: int
    state: Literal["firing", "acknowledged", "over"]
    client: str
    project: str
    rule: str
    subject: str
    level: Literal["warning", "critical"]
    sentence: str
    advice: str
    fired_at: datetime
    seen_at: datetime
    told_at: datetime | None
    told: int
    over_at: datetime | None
    acknowledged_at: datetime | None
    acknowledged_by: str | None
    note: str | None


class ShownDelivery(BaseModel):
    """Where and when an alarm was told."""

    channel: str
    event: Event
    number: int
    sent_at: datetime


class AlarmWithDeliveries(ShownAlarm):
    """An alarm, and where it was told."""

    deliveries: Sequence[ShownDelivery]


class AlarmCount(BaseModel):
    """How many alarms nobody has acknowledged; `silence` says why that means nothing, if nobody looks at the rules."""

    firing: int
    silence: str | None


class ShownChannel(BaseModel):
    """A channel; its addresses and secrets are not shown."""

    name: str
    kind: Literal["webhook", "email", "command"]
    level: Literal["warning", "critical"]


class Acknowledgement(BaseModel):
    """A note for the other people."""

    note: str = Field(default="", max_length=1_000)


class Tried(BaseModel):
    """What became of a test."""

    said: str


def show(alarm: Alarm) -> ShownAlarm:
    return ShownAlarm(state=alarm.state, **vars(alarm))


# --- for programs


@ROUTES.get("")
async def get_alarms(
    request: Request,
    caller: Viewer,
    states: Wanted = "open",
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=500)] = PORTION,
) -> Listing[ShownAlarm]:
    """The newest alarms first."""
    found, more = await _load_portion(request, caller, states, cursor, limit)
    return Listing(items=[show(one) for one in found], next=more)


@ROUTES.get("/count")
async def get_count(request: Request, caller: Viewer) -> AlarmCount:
    """The number at the bell."""
    async with caller.reading(services_of(request).db) as tx:
        return AlarmCount(firing=await count_alarms(tx), silence=await explain_silence(tx))


@ROUTES.get("/channels")
async def get_channels(request: Request, caller: Operator) -> list[ShownChannel]:
    """Where alarms are told."""
    return [
        ShownChannel(name=one.name, kind=one.kind, level=one.level)
        for one in services_of(request).settings.alarms.channels
    ]


@ROUTES.post("/channels/{name}/test")
async def post_test(request: Request, caller: Operator, name: str) -> Tried:
    """Tell a channel of an alarm that is none."""
    return Tried(said=await _try(request, caller, name))


@ROUTES.get("/{id}")
async def get_alarm(request: Request, caller: Viewer, id: Number) -> AlarmWithDeliveries:
    """One alarm, and where it was told."""
    async with caller.reading(services_of(request).db) as tx:
        alarm, told = await load_alarm(tx, AlarmId(id)), await list_deliveries(tx, AlarmId(id))
    shown = [ShownDelivery(**vars(one)) for one in told]
    return AlarmWithDeliveries(deliveries=shown, **show(alarm).model_dump())


@ROUTES.post("/{id}/acknowledge")
async def post_acknowledgement(request: Request, caller: Manager, id: Number, body: Acknowledgement) -> ShownAlarm:
    """Say that you know of it: it is not repeated any more."""
    return show(await _acknowledge(request, caller, AlarmId(id), body.note))


# --- for people


@PAGES.get("")
async def show_alarms(request: Request, caller: Viewer, states: Wanted = "open", cursor: Cursor = None) -> Response:
    services = services_of(request)
    found, more = await _load_portion(request, caller, states, cursor, PORTION)
    async with caller.reading(services.db) as tx:
        silence = await explain_silence(tx)
    return services.render(
        request,
        "alarms/alarms.html",
        alarms=found,
        states=states,
        silence=silence,
        channels=services.settings.alarms.channels if caller.is_operator else (),
        next=more and f"/alarms?states={states}&cursor={more}",
        first=cursor and f"/alarms?states={states}",
        here=request.url.path + (f"?{request.url.query}" if request.url.query else ""),
    )


@PAGES.get("/bell")
async def show_bell(request: Request, caller: Viewer) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        n = await count_alarms(tx)
    return services.render(request, "alarms/bell.html", n=n)


@PAGES.get("/{id}")
async def show_alarm(request: Request, caller: Viewer, id: Number) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        alarm, told = await load_alarm(tx, AlarmId(id)), await list_deliveries(tx, AlarmId(id))
    return services.render(request, "alarms/alarm.html", alarm=alarm, deliveries=told)


@PAGES.post("/{id}/acknowledge")
async def acknowledge_alarm(
    request: Request, caller: Manager, id: Number, note: Annotated[str, Form(max_length=1_000)] = ""
) -> Response:
    await _acknowledge(request, caller, AlarmId(id), note)
    return answer_action(request, f"Alarm {id} is acknowledged: it is not repeated any more.", back="/alarms")


@PAGES.post("/channels/{name}/test")
async def test_channel(request: Request, caller: Operator, name: str) -> Response:
    return answer_action(request, await _try(request, caller, name), back="/alarms")


# --- both


async def _load_portion(
    request: Request, caller: Caller, states: States, cursor: str | None, limit: int
) -> tuple[list[Alarm], str | None]:
    """A portion of the list, and the cursor of the next one."""
    last = read_cursor(cursor, int)
    async with caller.reading(services_of(request).db) as tx:
        found = await list_alarms(tx, states, before=int(last[0]) if last else None, limit=limit + 1)
    more = write_cursor(found[limit - 1].id) if len(found) > limit else None
    return found[:limit], more


async def _acknowledge(request: Request, caller: Caller, id_: AlarmId, note: str) -> Alarm:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        alarm = await acknowledge(tx, id_, caller.name, note)
        await services.record(tx, caller, "acknowledge", f"alarm {id_}", rule=alarm.rule, note=note)
    return alarm


async def _try(request: Request, caller: Caller, name: str) -> str:
    services = services_of(request)
    find_channel(services.settings.alarms, name)
    services.change_in_parts()  # a test that did not reach the channel may be repeated
    await _note_test(services, caller, name)
    try:
        async with services.db.reading() as tx:
            await try_channel(tx, services.settings, name)
    except Unknown:
        raise
    except (Permanent, Transient, Refused) as error:
        raise Problem(422, f"The test did not reach {name}: {error}") from None
    return f"The test reached {name}."


async def _note_test(services: Services, caller: Caller, name: str) -> None:
    async with caller.transaction(services.db) as tx:
        await services.record(tx, caller, "test", f"channel {name}")


WEB = WebPart(api=[ROUTES], console=[PAGES], menu=[MenuEntry("/alarms", "Alarms", "bell", place=90)])
