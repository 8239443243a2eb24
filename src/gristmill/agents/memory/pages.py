"""The page of what agents remember: what happened lately, how things are done, and how well each agent did."""

from typing import Annotated

from fastapi import APIRouter, Form, Path, Request, Response

from gristmill.agents.delegation.store import list_agent_metrics
from gristmill.agents.memory import api
from gristmill.agents.memory.procedures import list_procedures, read_step
from gristmill.agents.specialists import SPECIALISTS
from gristmill.errors import Refused
from gristmill.serving import Caller, Cursor, Manager, Viewer, answer_action, services_of

PAGES = APIRouter(prefix="/memory")
Number = Annotated[int, Path(ge=1, le=2**63 - 1)]


@PAGES.get("")
async def show_memory(request: Request, caller: Viewer, cursor: Cursor = None) -> Response:
    return await _render(request, caller, cursor)


async def _render(
    request: Request, caller: Caller, cursor: str | None = None, *, pattern: str = "", steps: str = "", wrong: str = ""
) -> Response:
    services = services_of(request)
    entries, more = await api.load_entries(request, caller, None, cursor, api.PORTION)
    async with caller.reading(services.db) as tx:
        procedures = await list_procedures(tx)
        figures = await list_agent_metrics(tx)
    return services.render(
        request,
        "agents/memory.html",
        status=422 if wrong else 200,
        entries=entries,
        procedures=procedures,
        figures=figures,
        agents=["general", *SPECIALISTS],
        use_procedures=services.settings.agents.use_procedural_memory,
        pattern=pattern,
        steps=steps,
        wrong=wrong,
        next=more and f"/memory?cursor={more}",
        first=cursor and "/memory",
    )


@PAGES.post("/procedures")
async def state_procedure(
    request: Request,
    caller: Manager,
    pattern: Annotated[str, Form(max_length=500)],
    steps: Annotated[str, Form(max_length=20_000)],
) -> Response:
    try:
        read = [read_step(line) for line in steps.splitlines() if line.strip()]
        made = await api.state(request, caller, caller.choose_scope(None, None), pattern, read)
    except Refused as error:
        return await _render(request, caller, pattern=pattern, steps=steps, wrong=str(error))
    return answer_action(request, f"Procedure {made.id} is stated.", back="/memory", go="/memory")


@PAGES.post("/procedures/{id}/remove")
async def remove_procedure(request: Request, caller: Manager, id: Number) -> Response:
    await api.drop(request, caller, id)
    return answer_action(request, f"Procedure {id} is taken back.", back="/memory", go="/memory")


@PAGES.post("/{id}/forget")
async def forget_entry(request: Request, caller: Manager, id: Number) -> Response:
    await api.forget(request, caller, id)
    return answer_action(request, f"Entry {id} is forgotten.", back="/memory", go="/memory")
