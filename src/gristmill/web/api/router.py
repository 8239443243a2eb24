"""The router for programs: how it stands, and its levers."""

from collections.abc import Awaitable
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, Field

from gristmill.serving import Caller, require, services_of
from gristmill.web.router_calls import NoRouter, RouterCalls, RouterStatus

ROUTES = APIRouter(prefix="/router", tags=["router"])
Watcher = Annotated[Caller, Depends(require("viewer", operator=True))]
Operator = Annotated[Caller, Depends(require("admin", operator=True))]


class RouterView(BaseModel):
    """`status` is there if a router answers; if not, `sentence` says why and what to do."""

    address: str
    status: RouterStatus | None
    sentence: str | None


class Draining(BaseModel):
    """Which backend takes no new work; without one, all of them. `resume` undoes it."""

    backend: str | None = Field(default=None, max_length=200)
    resume: bool = False


class Unloading(BaseModel):
    """Which model leaves the memory of the backends."""

    model: str = Field(min_length=1, max_length=200)


class ActionDone(BaseModel):
    """What was done."""

    said: str


@ROUTES.get("")
async def get_router(request: Request, caller: Watcher) -> RouterView:
    """Backends, models, memory, running and waiting requests."""
    calls = RouterCalls(services_of(request).settings)
    found = await calls.read_status()
    if isinstance(found, NoRouter):
        return RouterView(address=calls.address, status=None, sentence=found.sentence)
    return RouterView(address=calls.address, status=found, sentence=None)


@ROUTES.post("/drain")
async def drain(request: Request, caller: Operator, body: Draining) -> ActionDone:
    """Take no new work, or take it again."""
    calls = RouterCalls(services_of(request).settings)
    subject = f"backend {body.backend}" if body.backend else "router"
    word = "resume" if body.resume else "drain"
    return await pull(request, caller, word, subject, calls.drain(body.backend, resume=body.resume))


@ROUTES.post("/reload")
async def reload(request: Request, caller: Operator) -> ActionDone:
    """Read the settings of the router anew, without dropping a request."""
    return await pull(request, caller, "reload", "router", RouterCalls(services_of(request).settings).reload())


@ROUTES.post("/release")
async def release(request: Request, caller: Operator) -> ActionDone:
    """End all sessions that hold a GPU."""
    return await pull(request, caller, "release", "router", RouterCalls(services_of(request).settings).release())


@ROUTES.post("/unload")
async def unload(request: Request, caller: Operator, body: Unloading) -> ActionDone:
    """Take a model out of memory."""
    calls = RouterCalls(services_of(request).settings)
    return await pull(request, caller, "unload", f"model {body.model}", calls.unload(body.model))


async def pull(request: Request, caller: Caller, action: str, subject: str, call: Awaitable[str]) -> ActionDone:
    """Pull a lever, and write down who did."""
    services = services_of(request)
    said = await call
    async with caller.transaction(services.db) as tx:
        await services.record(tx, caller, action, subject)
    return ActionDone(said=said)
