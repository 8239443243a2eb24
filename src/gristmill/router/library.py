"""Ollama's calls that change which models a backend has: passed on to one backend, past the lanes."""

from collections.abc import AsyncIterable
from typing import Any
from urllib.parse import parse_qs

import aiohttp

from gristmill.router.backends import Adapter
from gristmill.router.requests import JSON_TYPE, Request
from gristmill.router.scheduler import Scheduler
from gristmill.router.upstream import cause_of
from gristmill.router.wire import BadRequest, canonical, read_object
from gristmill.settings import RouterSettings

BLOBS = "/api/blobs/"
CALLS = {
    ("POST", "/api/pull"),
    ("POST", "/api/push"),
    ("POST", "/api/create"),
    ("POST", "/api/copy"),
    ("DELETE", "/api/delete"),
}
OF_A_MODEL_THAT_IS_THERE = ("/api/push", "/api/copy", "/api/delete")


def is_library_call(method: str, path: str) -> bool:
    """Whether this is one of these calls."""
    return (method, path) in CALLS or (path.startswith(BLOBS) and method in ("HEAD", "POST"))


class Library:
    """Passes these calls on to the backend that is named, and tells the router of the change."""

    def __init__(self, settings: RouterSettings, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._limits = aiohttp.ClientTimeout(
            total=None,
            sock_connect=settings.connect_timeout.total_seconds(),
            sock_read=settings.load_timeout.total_seconds(),  # a backend is silent while it checks a pulled file
        )

    async def serve(self, request: Request) -> None:
        """Answer one of these calls with the words of the backend."""
        head, path = request.head, request.path
        body = None if path.startswith(BLOBS) else read_object(request.body)
        adapter = self._choose_adapter(request, body)
        given: AsyncIterable[bytes] | bytes | None = request.pieces if request.pieces is not None else request.body
        headers = {"Accept-Encoding": "identity", "Content-Type": head.header(b"content-type") or JSON_TYPE}
        if adapter.spec.key is not None:
            headers["Authorization"] = f"Bearer {adapter.spec.key.get_secret_value()}"
        url = adapter.spec.url.rstrip("/") + path
        try:
            async with (
                aiohttp.ClientSession(timeout=self._limits) as session,
                session.request(head.method, url, data=given or None, headers=headers) as reply,
            ):
                await self._pass_on(request, adapter, reply)
        except TimeoutError:
            raise BadRequest(f"the backend {adapter.name} does not answer", 504) from None
        except aiohttp.ClientConnectorError as error:
            raise BadRequest(
                f"the backend {adapter.name} cannot be reached ({cause_of(error.os_error)})", 502
            ) from None
        except aiohttp.ClientError:
            raise BadRequest(f"the backend {adapter.name} broke off", 502) from None

    async def _pass_on(self, request: Request, adapter: Adapter, reply: aiohttp.ClientResponse) -> None:
        kind = reply.headers.get("Content-Type", JSON_TYPE)
        if reply.status != 200 or "ndjson" not in kind:
            body = await reply.read()
            await self._scheduler.look_again(adapter)
            request.answer(reply.status, body, kind)
            return
        request.begin(kind)
        async for piece in reply.content.iter_any():
            if b'"success"' in piece:  # the client may ask the model as soon as it reads this
                await self._scheduler.look_again(adapter)
            await request.write(piece)
        await self._scheduler.look_again(adapter)
        request.end()

    def _choose_adapter(self, request: Request, body: dict[str, Any] | None) -> Adapter:
        """The backend an admin names; else the first Ollama that has the model, else the first Ollama."""
        ollamas = [adapter for adapter in self._scheduler.adapters.values() if adapter.spec.kind == "ollama"]
        asked = parse_qs(request.head.query).get("backend", [request.head.header(b"x-router-backend") or ""])[0]
        if asked:
            named = next((adapter for adapter in ollamas if adapter.name == asked), None)
            if named is None:
                known = ", ".join(adapter.name for adapter in ollamas) or "none"
                raise BadRequest(f"there is no Ollama backend called {asked[:200]!r}; there are: {known}", 404)
            return named
        if not ollamas:
            raise BadRequest("no backend is an Ollama, so none can change its models", 501)
        if request.path not in OF_A_MODEL_THAT_IS_THERE:
            return ollamas[0]
        model = (body or {}).get("model") or (body or {}).get("name") or (body or {}).get("source") or ""
        having = (adapter for adapter in ollamas if canonical(str(model)) in (adapter.models or ()))
        return next(having, ollamas[0])
