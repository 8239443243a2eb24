"""Bulk actions: what an action would change, before; how far it is, while it runs; stop, undo."""

from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Request, Response

from gristmill.queue import (
    Action,
    Bulk,
    TaskFilter,
    find_runner,
    get_bulk,
    list_bulks,
    preview_bulk,
    start_bulk,
    stop_bulk,
    undo_bulk,
    why,
)
from gristmill.serving import Manager, MenuEntry, Problem, Viewer, services_of
from gristmill.web.console.answering import answer_action
from gristmill.web.console.reasons import link_reason
from gristmill.web.console.sorting import Columns, read_sort, sort_rows
from gristmill.web.console.tasks import TaskQuery, read_query

PAGES = APIRouter()
MENU = (MenuEntry("/bulk", "Bulk actions", "check", role="manager", place=78),)


@dataclass(frozen=True)
class BulkWording:
    """How an action is called, and which tasks it is for."""

    verb: str
    done: str
    icon: str
    statuses: tuple[str, ...]
    value: str | None = None  # what its number means


WORDINGS: dict[Action, BulkWording] = {
    "retry": BulkWording("Replay", "replayed", "retry", ("failed", "cancelled")),
    "cancel": BulkWording("Cancel", "cancelled", "cancelled", ("pending", "processing")),
    "priority": BulkWording("Set the priority", "given another priority", "up", ("pending",), "priority, -100 to 100"),
    "foreground": BulkWording("Bring forward", "brought forward", "first", ("pending",)),
    "purge": BulkWording("Remove", "removed", "trash", ("failed", "completed", "skipped", "cancelled")),
}
COLUMNS: Columns[Bulk] = {
    "action": lambda one: one.action,
    "status": lambda one: one.status,
    "changed": lambda one: one.changed,
    "refused": lambda one: one.refused,
    "by": lambda one: one.created_by,
    "begun": lambda one: one.id,
}
FOREVER = "remove"  # what must be typed before something is done that cannot be undone


def list_fitting(asked: TaskQuery) -> list[Action]:
    """The actions that can be done with tasks of the status that is asked for."""
    status = "failed" if asked.cluster else asked.status
    return [name for name, one in WORDINGS.items() if not status or status in one.statuses]


def choose_action(asked: TaskQuery, given: str) -> Action:
    fitting = list_fitting(asked)
    for name in fitting:
        if not given or name == given:
            return name
    raise Problem(422, f"“{given}” cannot be done with these tasks; there are {', '.join(fitting)}.")


@PAGES.get("/bulk/new")
async def show_preview(request: Request, caller: Manager, action: str = "", value: int | None = None) -> Response:
    services, asked = services_of(request), read_query(request)
    chosen = choose_action(asked, action)
    value = default_value(chosen, value)
    async with caller.reading(services.db) as tx:
        preview = await preview_bulk(tx, chosen, asked.filter, value)
    return services.render(
        request,
        "bulk_new.html",
        asked=asked,
        action=chosen,
        value=value,
        wordings={name: WORDINGS[name] for name in list_fitting(asked)},
        wording=WORDINGS[chosen],
        preview=preview,
        forever=FOREVER,
        described=describe_filter(asked),
    )


def default_value(action: Action, value: int | None) -> int | None:
    match action:
        case "priority":
            return 10 if value is None else value
        case "foreground":
            return 1 if value is None else value
        case _:
            return None


def describe_filter(asked: TaskQuery) -> str:
    """Which tasks are meant, in words."""
    said = [f"in {asked.queue}" if asked.queue else "in every queue"]
    said += [f"of kind {asked.kind}"] if asked.kind else []
    said += ["with the same error"] if asked.cluster else []
    said += [f"sent within the last {asked.age}"] if asked.age else []
    said += [f"in group {asked.parent}"] if asked.parent else []
    said += [f"that hold “{asked.q}”"] if asked.q else []
    return ", ".join(said)


@PAGES.post("/bulk")
async def start(
    request: Request,
    caller: Manager,
    action: Annotated[str, Form()],
    value: Annotated[int | None, Form()] = None,
    expected: Annotated[int | None, Form()] = None,
    typed: Annotated[str, Form()] = "",
) -> Response:
    services, asked = services_of(request), read_query(request)
    chosen = choose_action(asked, action)
    if chosen == "purge" and typed.strip().lower() != FOREVER:
        raise Problem(422, f"This cannot be undone: type “{FOREVER}” into the field, then press the button.")
    async with caller.transaction(services.db) as tx:
        id = await start_bulk(
            tx, chosen, asked.filter, value=default_value(chosen, value), by=caller.name, expected=expected
        )
        await services.record(tx, caller, f"{chosen} all", f"bulk action {id}", **asked.params)
    wording = WORDINGS[chosen]
    return answer_action(request, f"{wording.verb}: it runs.", back=f"/bulk/{id}", go=f"/bulk/{id}")


@PAGES.get("/bulk")
async def show_bulks(request: Request, caller: Manager) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        found = await list_bulks(tx)
    sort = read_sort(request, COLUMNS, "-begun")
    return services.render(
        request,
        "bulks.html",
        bulks=sort_rows(found, sort, COLUMNS),
        sort=sort,
        wordings=WORDINGS,
        here=str(request.url.replace(scheme="", netloc="")),
    )


@PAGES.get("/bulk/{id}")
async def show_bulk(request: Request, caller: Viewer, id: int) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        bulk = await get_bulk(tx, id)
        runner = await find_runner(tx, id) if bulk.is_open else None
        reason = await why(tx, runner) if runner is not None else None
    waits = reason is not None and reason.state not in ("running", "queued")
    return services.render(
        request,
        "bulk.html",
        bulk=bulk,
        wording=WORDINGS.get(bulk.action, WORDINGS["retry"]),
        link=link_filter,
        seconds_left=estimate(bulk),
        reason=link_reason(reason, operator=caller.is_operator) if reason and waits else None,
    )


def link_filter(bulk: Bulk) -> str:
    """The list of the tasks that it is about."""
    wanted: TaskFilter = bulk.filter
    params: dict[str, Any] = {
        "queue": wanted.queue,
        "kind": wanted.kind,
        "cluster": wanted.fingerprint,
        "parent": wanted.parent,
        "q": wanted.text,
    }
    return f"/tasks?{urlencode({name: value for name, value in params.items() if value is not None})}"


def estimate(bulk: Bulk) -> int | None:
    """About how many seconds are left, by the pace so far."""
    treated, passed = bulk.changed + bulk.refused, (bulk.now - bulk.created_at).total_seconds()
    if not bulk.is_open or not bulk.expected or not treated or passed <= 0:
        return None
    return max(0, round((bulk.expected - treated) / (treated / passed)))


@PAGES.post("/bulk/{id}/stop")
async def stop(request: Request, caller: Manager, id: int) -> Response:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        await stop_bulk(tx, id)
        await services.record(tx, caller, "stop", f"bulk action {id}")
    return answer_action(request, "It stops after the portion that runs now.", back=f"/bulk/{id}")


@PAGES.post("/bulk/{id}/undo")
async def undo(request: Request, caller: Manager, id: int) -> Response:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        await undo_bulk(tx, id)
        await services.record(tx, caller, "undo", f"bulk action {id}")
    return answer_action(request, "It is being undone.", back=f"/bulk/{id}")
