"""What agents remember, over HTTP: entries of sessions, and procedures."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from gristmill.agents.memory.model import ProcedureNode, ProcedureSource, ProcedureStep, SessionEntry, SessionSource
from gristmill.agents.memory.procedures import list_procedures, load_procedure, remove_procedure, state_procedure
from gristmill.agents.memory.sessions import forget_entry, forget_scope, list_entries
from gristmill.agents.specialists import check_agents
from gristmill.scopes import Scope
from gristmill.serving import Caller, Cursor, Listing, Manager, Viewer, read_cursor, services_of, write_cursor

MEMORY = APIRouter(prefix="/memory", tags=["memory"])
PROCEDURES = APIRouter(prefix="/procedures", tags=["procedures"])
PORTION = 50
Number = Annotated[int, Field(ge=1, le=2**63 - 1)]
Limit = Annotated[int, Query(ge=1, le=500)]
Wanted = Annotated[str | None, Query(max_length=100)]


class ShownEntry(BaseModel):
    """Something that happened lately. `asked_by` is empty if nobody asked for it: it was done for an item."""

    id: int
    client: str
    project: str
    run: int | None
    asked_by: str | None
    source: SessionSource
    summary: str
    details: Mapping[str, Any] | None
    timestamp: datetime


class ShownProcedureStep(BaseModel):
    """One step: which agent does what."""

    agent: str = Field(max_length=40)
    action: str = Field(min_length=1, max_length=300)
    parameters: dict[str, Any] = Field(default_factory=dict[str, Any])


class ShownProcedure(BaseModel):
    """How something is done. `strength` fades with the time since its last use, unless a person stated it."""

    id: int
    client: str
    project: str
    trigger_pattern: str
    steps: Sequence[ShownProcedureStep]
    source: ProcedureSource
    stated_by: str | None
    usage_count: int
    success_rate: float
    strength: float
    last_used: datetime | None
    created_at: datetime


class NewProcedure(BaseModel):
    """How requests like these are done; `|` stands between several patterns."""

    trigger_pattern: str = Field(min_length=1, max_length=500)
    steps: list[ShownProcedureStep] = Field(min_length=1, max_length=30)
    client: str | None = Field(default=None, max_length=100)
    project: str | None = Field(default=None, max_length=100)


class Forgotten(BaseModel):
    """How many entries were forgotten."""

    entries: int


def show_entry(one: SessionEntry) -> ShownEntry:
    return ShownEntry(run=one.task_id, **{name: value for name, value in vars(one).items() if name != "task_id"})


def show_procedure(one: ProcedureNode) -> ShownProcedure:
    steps = [
        ShownProcedureStep(agent=step.agent, action=step.action, parameters=dict(step.parameters))
        for step in one.procedure_steps
    ]
    named = ShownProcedure.model_fields.keys() - {"client", "steps"}
    return ShownProcedure.model_validate(
        {"client": one.client_id, "steps": steps, **{name: getattr(one, name) for name in named}}
    )


# --- sessions


@MEMORY.get("")
async def get_entries(
    request: Request,
    caller: Viewer,
    client: Wanted = None,
    project: Wanted = None,
    cursor: Cursor = None,
    limit: Limit = PORTION,
) -> Listing[ShownEntry]:
    """What happened lately, the newest first: at most 50 entries of each client and project, for a week."""
    scope = caller.choose_scope(client, project) if client or project else None
    found, more = await load_entries(request, caller, scope, cursor, limit)
    return Listing(items=[show_entry(one) for one in found], next=more)


@MEMORY.delete("/{id}")
async def delete_entry(request: Request, caller: Manager, id: Number) -> Forgotten:
    """Forget one entry."""
    await forget(request, caller, id)
    return Forgotten(entries=1)


@MEMORY.delete("")
async def delete_entries(request: Request, caller: Manager, client: Wanted = None, project: Wanted = None) -> Forgotten:
    """Forget all entries of exactly this client or project."""
    services = services_of(request)
    scope = caller.choose_scope(client, project)
    async with caller.transaction(services.db) as tx:
        entries = await forget_scope(tx, scope)
        await services.record(tx, caller, "forget", f"memory of {scope}", entries=entries)
    return Forgotten(entries=entries)


# --- procedures


@PROCEDURES.get("")
async def get_procedures(request: Request, caller: Viewer, limit: Limit = 200) -> Listing[ShownProcedure]:
    """Procedures that people stated, then those that were learned; each with how often and when it was used."""
    async with caller.reading(services_of(request).db) as tx:
        found = await list_procedures(tx, limit=limit)
    return Listing(items=[show_procedure(one) for one in found], next=None)


@PROCEDURES.post("", status_code=201)
async def post_procedure(request: Request, caller: Manager, body: NewProcedure) -> ShownProcedure:
    """Say how something is done; agents follow it where a request fits, before what they learned themselves."""
    steps = [ProcedureStep(one.agent, one.action, one.parameters) for one in body.steps]
    scope = caller.choose_scope(body.client, body.project)
    return show_procedure(await state(request, caller, scope, body.trigger_pattern, steps))


@PROCEDURES.delete("/{id}")
async def delete_procedure(request: Request, caller: Manager, id: Number) -> ShownProcedure:
    """Take a procedure back, or forget a learned one."""
    return show_procedure(await drop(request, caller, id))


# --- for pages, too


async def load_entries(
    request: Request, caller: Caller, scope: Scope | None, cursor: str | None, limit: int
) -> tuple[list[SessionEntry], str | None]:
    last = read_cursor(cursor, int)
    async with caller.reading(services_of(request).db) as tx:
        reader = None if caller.is_operator else caller.name
        before = int(last[0]) if last else None
        found = await list_entries(tx, scope, reader=reader, before=before, limit=limit + 1)
    return found[:limit], write_cursor(found[limit - 1].id) if len(found) > limit else None


async def forget(request: Request, caller: Caller, id_: int) -> None:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        await forget_entry(tx, id_)
        await services.record(tx, caller, "forget", f"memory {id_}")


async def state(
    request: Request, caller: Caller, scope: Scope, pattern: str, steps: Sequence[ProcedureStep]
) -> ProcedureNode:
    services = services_of(request)
    check_agents(step.agent for step in steps)
    async with caller.transaction(services.db) as tx:
        made = await state_procedure(tx, scope, pattern, steps, caller.name)
        await services.record(tx, caller, "state", f"procedure {made.id}", trigger=made.trigger_pattern)
    return made


async def drop(request: Request, caller: Caller, id_: int) -> ProcedureNode:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        found = await load_procedure(tx, id_)
        await remove_procedure(tx, id_)
        await services.record(tx, caller, "remove", f"procedure {id_}", trigger=found.trigger_pattern)
    return found
