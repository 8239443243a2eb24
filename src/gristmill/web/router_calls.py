"""Asks the router over HTTP how it stands, and pulls its levers."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import orjson
from pydantic import BaseModel, ValidationError

from gristmill.serving import Problem
from gristmill.settings import Settings

TIMEOUT = aiohttp.ClientTimeout(total=5)
LARGEST = 5 * 2**20  # bytes of one answer
LONGEST = 300  # characters of a sentence of the router
LOOPBACK = ("127.0.0.1", "localhost", "::1")
COUNTED = re.compile(r"^gristmill_router_(preemptions|reruns|swaps)_total\{[^}]*\} ([0-9.e+]+)$", re.MULTILINE)


class LoadedModel(BaseModel):
    """A model in the memory of a backend."""

    model: str
    vram: int
    age: float
    idle: float


class BackendBreaker(BaseModel):
    """Whether a backend is trusted."""

    state: str
    tries_in: float
    failures: dict[str, int]


class RouterReservation(BaseModel):
    """A session that holds a GPU; its name is a digest."""

    session: str
    age: float
    idle: float


class RouterBackend(BaseModel):
    """A server behind the router."""

    name: str
    kind: str
    gpu: bool
    role: str | None
    slots: int
    slots_taken: int
    draining: bool
    vram: int | None
    vram_used: int
    loaded: list[LoadedModel]
    loading: str | None
    breaker: BackendBreaker
    reservations: list[RouterReservation]


class RunningRequest(BaseModel):
    """A request that has a place; times are in seconds."""

    id: int
    backend: str
    phase: str
    priority: str
    model: str
    age: float
    running_for: float
    begun: bool
    preemptions: int


class WaitingRequest(BaseModel):
    """A request that waits, and why."""

    id: int
    priority: str
    model: str
    age: float
    deadline_in: float
    preemptions: int
    why: str


class RouterStatus(BaseModel):
    """How the router stands; `totals` counts since it was started."""

    draining: bool
    backends: list[RouterBackend]
    running: list[RunningRequest]
    queues: dict[str, int]
    waiting: list[WaitingRequest]
    totals: dict[str, int] = {}


@dataclass(frozen=True)
class NoRouter:
    """No router answers, and the sentence that says why and what to do."""

    sentence: str


class RouterCalls:
    """The calls of an operator to the router that the settings name."""

    def __init__(self, settings: Settings) -> None:
        self.address = settings.llm.url.rstrip("/")
        self._key = choose_key(settings)

    async def read_status(self) -> RouterStatus | NoRouter:
        try:
            status, body = await self._call("GET", "/router/status")
            if status != 200:
                return NoRouter(self._explain(status, body))
            found = RouterStatus.model_validate_json(body)
        except Problem as problem:
            return NoRouter(problem.detail)
        except ValidationError:
            return NoRouter(f"What listens at {self._shown} is no router of this version: look at the setting llm.url.")
        return found.model_copy(update={"totals": await self._read_totals()})

    async def drain(self, backend: str | None, *, resume: bool) -> str:
        """Take no new work, or take it again; all backends if none is named."""
        body = {"resume": resume, **({"backend": backend} if backend else {})}
        await self._pull("/router/drain", body)
        whom = backend or "The router"
        return f"{whom} takes work again." if resume else f"{whom} takes no new work; what runs goes on."

    async def reload(self) -> str:
        """Read the settings anew."""
        found = await self._pull("/router/reload", {})
        ignored: Sequence[str] = found.get("ignored") or ()
        return f"The settings were read anew{'; a restart is needed for ' + ', '.join(ignored) if ignored else ''}."

    async def release(self) -> str:
        """End all sessions: their GPUs go back to background work."""
        await self._pull("/router/release", {"all": True})
        return "All sessions were ended; their GPUs serve everybody."

    async def unload(self, model: str) -> str:
        """Take a model out of the memory of every backend that has nothing to do with it."""
        await self._pull("/api/generate", {"model": model, "keep_alive": 0, "stream": False})
        return f"{model} leaves the memory of the backends where nothing runs with it."

    async def _pull(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        status, answer = await self._call("POST", path, body)
        if status != 200:
            raise Problem({404: 404, 409: 409, 503: 409}.get(status, 422), self._explain(status, answer))
        return _read_object(answer)

    async def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        try:
            async with (
                aiohttp.ClientSession(timeout=TIMEOUT, headers=headers) as session,
                session.request(method, self.address + path, json=body, allow_redirects=False) as answer,
            ):
                return answer.status, await answer.content.read(LARGEST)
        except (aiohttp.ClientError, TimeoutError, ValueError, OSError):
            # `from None`: the error may carry our headers, and these hold the key
            raise Problem(409, f"No router answers at {self._shown}: start it with gristmill router.") from None

    async def _read_totals(self) -> dict[str, int]:
        """From its metrics; a router that keeps them to itself has no totals."""
        try:
            status, body = await self._call("GET", "/metrics")
        except Problem:
            return {}
        totals = {"preemptions": 0, "reruns": 0, "swaps": 0}
        for name, value in COUNTED.findall(body.decode(errors="replace")):
            totals[name] += int(float(value))
        return totals if status == 200 else {}

    def _explain(self, status: int, body: bytes) -> str:
        if status in (401, 403):
            return f"The router at {self._shown} wants its admin key: set router.admin_key, or llm.key to an admin key."
        if status == 404 and not _read_object(body):
            return f"What listens at {self._shown} is no router: look at the setting llm.url."
        said = _read_object(body).get("error", "")
        sentence = said.get("message", "") if isinstance(said, dict) else said  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        return f"The router refuses it: {str(sentence)[:LONGEST] or f'status {status}'}"  # pyright: ignore[reportUnknownArgumentType]

    @property
    def _shown(self) -> str:
        """Without a password that the address may carry."""
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def choose_key(settings: Settings) -> str | None:
    """The admin key is for our own router alone: an address elsewhere gets the key that was set for it."""
    parts = urlsplit(settings.llm.url)
    router = settings.router
    ours = parts.port == router.port and (parts.hostname == router.host or parts.hostname in LOOPBACK)
    key = router.admin_key if ours and router.admin_key else settings.llm.key
    return key.get_secret_value() if key else None


def _read_object(body: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType]
