"""The port that tells how a worker is, with the metrics under the names that dashboards know."""

import asyncio
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from crew import sent, until, until_status, working
from engine import Grind
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from gristmill.db import Database
from gristmill.errors import Permanent
from gristmill.queue import Worker, on
from gristmill.queue.worker.health import HealthPort
from gristmill.telemetry import metrics

# as the requirements write them, and what we add: how long claims take, and how large they and settlements are
METRICS: dict[str, tuple[str, set[str]]] = {
    "worker_jobs_processed": ("counter", {"worker", "status", "queue"}),
    "worker_job_duration_seconds": ("histogram", {"worker", "queue"}),
    "worker_queue_depth": ("gauge", {"queue"}),
    "worker_active_jobs": ("gauge", {"worker"}),
    "worker_llm_calls": ("counter", {"worker", "status"}),
    "worker_rate_limit_hits": ("counter", {"worker", "domain"}),
    "worker_claim_seconds": ("histogram", {"worker"}),
    "worker_claim_batch_size": ("histogram", {"worker"}),
    "worker_settle_batch_size": ("histogram", {"worker"}),
}


async def grind(letter: Grind) -> None:
    if letter.grain < 0:
        raise Permanent("torn")


@pytest.fixture
async def worker(db: Database) -> AsyncIterator[Worker]:
    async with working(db, on(Grind, grind), name="miller") as one:
        yield one


@pytest.fixture
async def port(worker: Worker) -> AsyncIterator[int]:
    served = HealthPort(
        "127.0.0.1", 0, alive=lambda: worker.alive, ready=lambda: worker.ready, metrics=worker.metrics.render
    )
    served.start()
    yield served.port
    await asyncio.to_thread(served.stop)


async def get(port: int, path: str) -> tuple[int, str, str]:
    """Status, type and body."""

    def ask() -> tuple[int, str, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
                return answer.status, answer.headers["Content-Type"], answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers["Content-Type"], error.read().decode()

    return await asyncio.to_thread(ask)


async def test_a_worker_that_works_lives_and_is_ready(port: int, worker: Worker) -> None:
    async def is_ready() -> bool:
        return (await get(port, "/readyz"))[0] == 200

    await until(is_ready)
    assert await get(port, "/healthz") == (200, "text/plain; charset=utf-8", "ok\n")


async def test_a_worker_that_stops_lives_but_is_not_ready_and_one_that_ended_does_not_live(
    db: Database, port: int, worker: Worker
) -> None:
    async def is_alive() -> bool:
        return (await get(port, "/healthz"))[0] == 200

    async def has_ended() -> bool:
        return (await get(port, "/healthz"))[0] == 503

    await until(is_alive)
    worker.stop()
    assert (await get(port, "/readyz"))[0] == 503
    await until(has_ended)


async def test_there_are_three_pages_and_no_more(port: int) -> None:
    for path in ("/", "/healthz/", "/metrics/x", "/../etc/passwd"):
        assert (await get(port, path))[0] == 404
    assert (await get(port, "/metrics?x=1"))[0] == 200


async def test_the_metrics_have_exactly_the_names_and_labels_that_were_asked_for(
    db: Database, port: int, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "PROCESS", CollectorRegistry())  # other tests of this process may have counted there
    await until_status(db, await sent(db, Grind(1)), "completed")
    await until_status(db, await sent(db, Grind(-1)), "failed")
    worker.metrics.count_llm_call("ok")
    worker.metrics.count_rate_limit_hit("example.org")
    worker.metrics.set_depth("mill", 3)
    status, kind, text = await get(port, "/metrics")
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    found = {
        family.name: (family.type, {name for sample in family.samples for name in sample.labels} - {"le"})
        for family in text_string_to_metric_families(text)
    }
    assert found == METRICS


def test_every_metric_is_documented() -> None:
    text = (Path(__file__).parents[3] / "docs" / "engine.md").read_text()
    named = [name + "_total" * (kind == "counter") for name, (kind, _) in METRICS.items()]
    assert [name for name in [*named, "graph_llm_extractions_total"] if f"`{name}`" not in text] == []


async def test_the_metrics_count_what_became_of_each_task(db: Database, port: int) -> None:
    for grain in (1, 2, -1):
        await until_status(db, await sent(db, Grind(grain)), "completed", "failed")

    async def counted() -> dict[str, float]:
        _, _, text = await get(port, "/metrics")
        samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
        return {
            sample.labels["status"]: sample.value
            for sample in samples
            if sample.name == "worker_jobs_processed_total"
            and (sample.labels["worker"], sample.labels["queue"]) == ("miller", "mill")
        }

    async def all_counted() -> bool:
        return await counted() == {"completed": 2, "failed": 1}

    await until(all_counted)
    _, _, text = await get(port, "/metrics")
    assert 'worker_job_duration_seconds_count{queue="mill",worker="miller"} 3.0' in text
