"""The router: backends, models and memory, what runs, what waits and why, and its levers."""

from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request, Response

from gristmill.serving import Caller, MenuEntry, answer_action, require, services_of
from gristmill.web.api.router import Draining, Unloading, drain, release, reload, unload
from gristmill.web.router_calls import NoRouter, RouterCalls

PAGES = APIRouter(prefix="/router")
MENU = (MenuEntry("/router", "Router", "router", operator=True, place=92),)
Watcher = Annotated[Caller, Depends(require("viewer", operator=True))]
Operator = Annotated[Caller, Depends(require("admin", operator=True))]
Text = Annotated[str, Form(max_length=200)]


@PAGES.get("")
async def show_router(request: Request, caller: Watcher) -> Response:
    services = services_of(request)
    calls = RouterCalls(services.settings)
    found = await calls.read_status()
    silence = found.sentence if isinstance(found, NoRouter) else None
    return services.render(request, "router.html", router=None if silence else found, silence=silence)


@PAGES.post("/drain")
async def drain_backend(
    request: Request, caller: Operator, backend: Text = "", resume: Annotated[bool, Form()] = False
) -> Response:
    said = await drain(request, caller, Draining(backend=backend or None, resume=resume))
    return answer_action(request, said.said, back="/router")


@PAGES.post("/reload")
async def reload_settings(request: Request, caller: Operator) -> Response:
    return answer_action(request, (await reload(request, caller)).said, back="/router")


@PAGES.post("/release")
async def release_sessions(request: Request, caller: Operator) -> Response:
    return answer_action(request, (await release(request, caller)).said, back="/router")


@PAGES.post("/unload")
async def unload_model(
    request: Request, caller: Operator, model: Annotated[str, Form(min_length=1, max_length=200)]
) -> Response:
    return answer_action(request, (await unload(request, caller, Unloading(model=model))).said, back="/router")
