"""The calls under /router: announce, release, status, drain, reload."""

import asyncio
import itertools
import math
import time
from collections.abc import Awaitable, Callable
from typing import Any

from gristmill.errors import Refused
from gristmill.router.pool import Ticket
from gristmill.router.priority import Priority, Sender
from gristmill.router.requests import Request
from gristmill.router.rows import RouterStatusRow
from gristmill.router.scheduler import Scheduler, TurnedAway
from gristmill.router.status import status
from gristmill.router.wire import BadRequest, canonical, model_missing, read_object
from gristmill.settings import RouterSettings

Json = dict[str, Any]


class Admin:
    """The calls of orchestrators and operators about the router itself."""

    def __init__(self, settings: RouterSettings, scheduler: Scheduler, reload: Callable[[], Awaitable[Json]]) -> None:
        self._settings, self._scheduler, self._reload = settings, scheduler, reload
        self._ids = itertools.count(-1, -1)  # apart from requests, which count upwards
        self._now = time.monotonic

    def configure(self, settings: RouterSettings) -> None:
        """Go by these settings from now on."""
        self._settings = settings

    async def reload(self, request: Request, sender: Sender) -> Json:
        """Read the settings anew, without dropping a request: a GPU that was added takes work at once."""
        del request, sender
        try:
            return await self._reload()
        except Refused as wrong:
            raise BadRequest(f"nothing was changed. {wrong}") from None

    async def announce(self, request: Request, sender: Sender) -> Json:
        """Make a GPU ready for a session: background work goes, the model comes, then the answer."""
        body = read_object(request.body or b"{}")
        model = self._read_announced_model(body)
        if not any(self._scheduler.lanes.serving(model)):
            known = {name for adapter in self._scheduler.adapters.values() for name in adapter.models or ()}
            raise model_missing(model, known)
        now = self._now()
        ticket = Ticket(
            next(self._ids),
            Priority.CRITICAL,
            model,
            now,
            now + self._settings.load_timeout.total_seconds(),
            session=_session(request, body, sender),
            patience=math.inf,
            announces=True,
        )
        try:
            self._scheduler.submit(ticket)
            lease = await self._scheduler.turn(ticket)
        except TurnedAway as away:
            raise BadRequest(f"no GPU could be made ready: {away.refusal.reason}", away.refusal.status) from None
        finally:
            # an announcement takes a place like a request, and gives it back the moment it has it
            self._scheduler.over(ticket)
        return {"status": "ready", "backend": lease.backend.name, "model": model}

    def _read_announced_model(self, body: Json) -> str:
        model = body.get("model") or next(iter(self._settings.orchestrator_models), "")
        if not isinstance(model, str) or not model:
            raise BadRequest("model is required: there is no orchestrator_models setting")
        return canonical(model)

    async def release(self, request: Request, sender: Sender) -> Json:
        """End a session: its GPU goes back to background work."""
        body = read_object(request.body or b"{}")
        self._scheduler.release("" if body.get("all") is True else _session(request, body, sender))
        return {"status": "released"}

    async def drain(self, request: Request, sender: Sender) -> Json:
        """Take no new work: {"backend": …} for one, {"resume": true} to undo it, {"wait": true} to wait."""
        del sender
        body = read_object(request.body or b"{}")
        backend = body.get("backend")
        if backend is not None and (not isinstance(backend, str) or backend not in self._scheduler.lanes.backends):
            raise BadRequest(f"there is no backend called {backend!r}", 404)
        on = body.get("resume") is not True
        self._scheduler.drain(backend, on)
        while on and body.get("wait") is True and self._at_work(backend):  # noqa: ASYNC110 a person waits here
            await asyncio.sleep(0.02)
        return {"status": "resumed" if not on else "draining" if self._at_work(backend) else "drained"}

    def _at_work(self, backend: str | None) -> bool:
        return self._scheduler.busy if backend is None else bool(self._scheduler.lanes.backends[backend].leases)

    async def status(self, request: Request, sender: Sender) -> RouterStatusRow:
        del request, sender
        return status(self._scheduler, self._now())


def _session(request: Request, body: Json, sender: Sender) -> str:
    return str(body.get("session") or "")[:200] or request.head.session(sender)
