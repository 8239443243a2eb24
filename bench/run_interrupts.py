"""Measures how soon a background run gives way to a person: its slot is free, and the backend of its model is left."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from statistics import median

from aiohttp import web
from bench.qualifier import House, add_items, open_house, wait_until_free

from gristmill.agents.executor import AgentExecutor
from gristmill.ids import WorkItemId
from gristmill.models import RouterLlm
from gristmill.qualifier import Route
from gristmill.qualifier.idle import RequestNotes
from gristmill.qualifier.letters import RunInBackground
from gristmill.qualifier.routing import apply_route
from gristmill.qualifier.store import get_item
from gristmill.queue import Worker
from gristmill.rooms import Tools
from gristmill.settings import LlmSettings

TIMES = 20
PATIENCE = 60.0  # seconds, for a machine that is busy


@dataclass
class Backend:
    """A model that streams a word now and then, never comes to its end, and knows when nobody listens any more."""

    url: str = ""
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        await request.read()
        response = web.StreamResponse()
        await response.prepare(request)
        self.begun.set()
        try:
            while True:
                await response.write(b'{"message":{"content":"word "},"done":false}\n')
                await asyncio.sleep(0.02)
        except (asyncio.CancelledError, ConnectionError):
            self.left.set()
            raise


@asynccontextmanager
async def run_backend() -> AsyncGenerator[Backend]:
    backend, app = Backend(), web.Application()
    app.router.add_post("/api/chat", backend.answer)
    app.router.add_get("/api/version", _tell_version)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    backend.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield backend
    finally:
        await runner.cleanup()


async def _tell_version(request: web.Request) -> web.Response:
    del request
    return web.json_response({"version": "0"})


async def measure_run_interrupts(times: int = TIMES) -> dict[str, float]:
    """Milliseconds from a person's request until the slot of a background run is free, and until its model is left."""
    async with open_house() as house, run_backend() as backend:
        llm = LlmSettings(url=backend.url, model="endless")
        settings = house.tools.settings.model_copy(update={"llm": llm})
        house.tools.models.llm = RouterLlm(llm)
        executor = AgentExecutor(Tools(house.db, settings, house.tools.models))
        only = {kind: one for kind, one in house.bind(executor).items() if kind == RunInBackground.kind}
        (item,) = await add_items(house, 1)
        async with house.db.transaction() as tx:
            await apply_route(tx, await get_item(tx, item), Route("now"), decision=None, why="bench", by="bench")
        working = asyncio.create_task(Worker(house.db, only, settings.queue).run())
        try:
            taken = [await _interrupt(house, item, backend) for _ in range(times)]
        finally:
            working.cancel()
            await asyncio.wait({working})
            await house.tools.models.llm.close()
    free, left = zip(*taken, strict=True)
    return {
        "run_free_ms": round(median(free), 1),
        "run_free_max_ms": round(max(free), 1),
        "model_left_ms": round(median(left), 1),
    }


async def _interrupt(house: House, item: WorkItemId, backend: Backend) -> tuple[float, float]:
    async with asyncio.timeout(PATIENCE):
        await backend.begun.wait()
        backend.begun.clear()
        backend.left.clear()
        began = time.perf_counter()
        await RequestNotes(house.db, "bench").note_request()

        async def note(wait: asyncio.Future[None]) -> float:
            await wait
            return 1000 * (time.perf_counter() - began)

        free = asyncio.ensure_future(wait_until_free(house, item))
        left = asyncio.ensure_future(_wait_for(backend.left))
        return await asyncio.gather(note(free), note(left))  # type: ignore[return-value]


async def _wait_for(event: asyncio.Event) -> None:
    await event.wait()
