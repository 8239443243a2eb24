"""Drawing the graph with an LLM asks it in the turns of the limiter `llm`, where there is one."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
import pytest_asyncio
from aiohttp import web
from prometheus_client.parser import text_string_to_metric_families

from documents.grindstone import Mill
from gristmill.db import Database
from gristmill.models import ModelPool
from gristmill.queue import Limit, Rate, Worker, list_limiters, set_limit
from gristmill.settings import DocumentSettings, LlmSettings, Settings

pytestmark = pytest.mark.asyncio(loop_scope="session")
ANSWER = {"message": {"role": "assistant", "content": '{"entities": [], "relations": []}'}, "done_reason": "stop"}
NOTES = ("Jane Doe signed the lease.", "John Roe sold the mill.", "Anna Berg met the mayor.")
WAITING = "SELECT error FROM tasks WHERE kind = 'graph.build' AND wait = 'time'"


class Router:
    """An LLM that takes its time, and counts who asks meanwhile."""

    def __init__(self) -> None:
        self.asking = self.most = 0
        self.status = 200

    async def handle(self, _: web.Request) -> web.Response:
        self.asking += 1
        self.most = max(self.most, self.asking)
        await asyncio.sleep(0.2)
        self.asking -= 1
        return web.json_response(ANSWER, status=self.status)


@dataclass
class Endpoint:
    """Where the models find the router of the test that runs."""

    models: ModelPool
    settings: Settings
    router: Router = field(default_factory=Router)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def endpoint() -> AsyncIterator[Endpoint]:
    """One for all tests here: to start its models takes four processor seconds."""

    async def handle(request: web.Request) -> web.Response:
        return await made.router.handle(request)

    app = web.Application()
    app.router.add_post("/api/chat", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    llm = LlmSettings(url=f"http://127.0.0.1:{runner.addresses[0][1]}", model="m")
    settings = Settings(documents=DocumentSettings(processes=1), llm=llm)
    async with ModelPool(settings) as models:
        made = Endpoint(models, settings)
        yield made
    await runner.cleanup()


@pytest.fixture
def router(endpoint: Endpoint) -> Router:
    endpoint.router = Router()
    return endpoint.router


@pytest.fixture
def mill(db: Database, tmp_path: Path, endpoint: Endpoint) -> Mill:
    settings = endpoint.settings.model_copy(update={"data": tmp_path / "data"})
    return Mill(db, tmp_path, settings, endpoint.models)


async def ground(mill: Mill) -> Worker:
    """The worker, once it has ground the notes, or one of them waits for its turn."""
    for n, note in enumerate(NOTES):
        await mill.add(f"{n}.md", note)
    worker = Worker(mill.db, mill.handlers, mill.settings.queue, until_idle=True)
    running = asyncio.create_task(worker.run())
    async with asyncio.timeout(60):
        while not (running.done() or await mill.rows(WAITING)):  # noqa: ASYNC110 the database tells nobody
            await asyncio.sleep(0.05)
        worker.stop()
        await running
    return worker


def calls(worker: Worker) -> dict[str, float]:
    """How often the worker says that it has asked an LLM, by how that ended."""
    families = text_string_to_metric_families(worker.metrics.render().decode())
    samples = [sample for family in families for sample in family.samples]
    return {one.labels["status"]: one.value for one in samples if one.name == "worker_llm_calls_total"}


async def test_calls_wait_for_their_turns_and_are_counted(db: Database, mill: Mill, router: Router) -> None:
    async with db.transaction() as tx:
        await set_limit(tx, "llm", Limit(concurrency=1, rate=Rate(5, timedelta(hours=1))))
    assert calls(await ground(mill)) == {"ok": 3}
    assert router.most == 1
    async with db.transaction() as tx:
        assert [(one.recent, one.held) for one in await list_limiters(tx)] == [(3, 0)]


async def test_without_a_limiter_nobody_waits_and_none_is_made(db: Database, mill: Mill, router: Router) -> None:
    assert calls(await ground(mill)) == {"ok": 3}
    async with db.transaction() as tx:
        assert await list_limiters(tx) == []


async def test_a_task_without_a_turn_comes_back_for_it_and_keeps_its_attempts(
    db: Database, mill: Mill, router: Router
) -> None:
    async with db.transaction() as tx:
        await set_limit(tx, "llm", Limit(rate=Rate(2, timedelta(hours=1))))
    assert calls(await ground(mill)) == {"ok": 2}
    (waiting,) = await mill.rows(WAITING)
    assert waiting.error.startswith("rate-limited by llm:")
    assert await mill.rows("SELECT FROM task_failure") == []
