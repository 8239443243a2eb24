"""The calls under /router: announce, release, status, drain."""

import asyncio
import itertools
import math
import time
from typing import Any

import orjson
from aiohttp import web

from gristmill.router.pool import Ticket
from gristmill.router.priority import Priority, Sender
from gristmill.router.scheduler import Scheduler, TurnedAway
from gristmill.router.status import status
from gristmill.router.wire import BadRequest, as_object, canonical
from gristmill.settings import RouterSettings

Json = dict[str, Any]


class Admin:
    """What the orchestrator and operators may ask of the router itself."""

    def __init__(self, settings: RouterSettings, scheduler: Scheduler) -> None:
        self._settings, self._scheduler = settings, scheduler
        self._ids = itertools.count(-1, -1)  # apart from requests, which count upwards
        self._now = time.monotonic

    async def announce(self, request: web.BaseRequest, sender: Sender) -> Json:
        """Make a GPU ready for a session: background work goes, the model comes, then the answer."""
        body = await _body(request)
        model = self._announced_model(body)
        if not any(self._scheduler.lanes.serving(model)):
            raise BadRequest(f"model {model!r} not found", 404)
        now = self._now()
        ticket = Ticket(
            next(self._ids), Priority.CRITICAL, model, now, now + self._settings.load_timeout.total_seconds(),
            session=_session(request, body, sender), patience=math.inf, announces=True,
        )  # fmt: skip
        try:
            self._scheduler.submit(ticket)
            lease = await self._scheduler.turn(ticket)
        except TurnedAway as away:
            raise BadRequest(f"no GPU could be made ready: {away.refusal.reason}", away.refusal.status) from None
        finally:
            # an announcement takes a place like a request, and gives it back the moment it has it
            if not ticket.ended:
                self._scheduler.gone(ticket)
        return {"status": "ready", "backend": lease.backend.name, "model": model}

    def _announced_model(self, body: Json) -> str:
        model = body.get("model") or next(iter(self._settings.orchestrator_models), "")
        if not isinstance(model, str) or not model:
            raise BadRequest("model is required: there is no orchestrator_models setting")
        return canonical(model)

    async def release(self, request: web.BaseRequest, sender: Sender) -> Json:
        """End a session: its GPU goes back to background work."""
        body = await _body(request)
        self._scheduler.release("" if body.get("all") is True else _session(request, body, sender))
        return {"status": "released"}

    async def drain(self, request: web.BaseRequest, sender: Sender) -> Json:
        """Take no new work: {"backend": …} for one, {"resume": true} to undo it, {"wait": true} to wait."""
        del sender
        body = await _body(request)
        backend = body.get("backend")
        if backend is not None and backend not in self._scheduler.lanes.backends:
            raise BadRequest(f"there is no backend called {backend!r}", 404)
        on = body.get("resume") is not True
        self._scheduler.drain(backend, on)
        while on and body.get("wait") is True and self._at_work(backend):  # noqa: ASYNC110 a person waits here
            await asyncio.sleep(0.02)
        return {"status": "resumed" if not on else "draining" if self._at_work(backend) else "drained"}

    def _at_work(self, backend: str | None) -> bool:
        return self._scheduler.busy if backend is None else bool(self._scheduler.lanes.backends[backend].leases)

    async def status(self, request: web.BaseRequest, sender: Sender) -> Json:
        del request, sender
        return status(self._scheduler, self._now())


async def _body(request: web.BaseRequest) -> Json:
    text = await request.read()
    if not text.strip():
        return {}
    try:
        body = as_object(orjson.loads(text))
    except orjson.JSONDecodeError:
        raise BadRequest("the body is not valid JSON") from None
    if body is None:
        raise BadRequest("the body must be a JSON object")
    return body


def _session(request: web.BaseRequest, body: Json, sender: Sender) -> str:
    named = body.get("session") or request.headers.get("X-Router-Session", "")
    return str(named)[:200] or f"{sender.name}@{request.remote}"
