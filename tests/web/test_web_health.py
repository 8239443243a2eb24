"""Probes and metrics: what orchestrators and dashboards ask."""

import httpx
from serving import Web, serve

from gristmill.app import ROOMS
from gristmill.db import Database
from gristmill.knowledge import Finder
from gristmill.settings import Settings
from gristmill.web.application import create_app


async def test_a_server_that_lives_and_can_serve_says_so(web: Web) -> None:
    for path in ("/healthz", "/readyz"):
        answer = await web.client(None).get(path)
        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def test_a_server_whose_tables_are_of_another_version_is_not_ready(web: Web) -> None:
    async with web.db.transaction() as tx:
        await tx.execute("DELETE FROM gristmill_migration WHERE room = 'web'")
    answer = await web.client(None).get("/readyz")
    assert answer.status_code == 503
    assert "gristmill db migrate" in answer.json()["detail"]
    assert (await web.client(None).get("/healthz")).status_code == 200


async def test_a_server_without_its_database_lives_and_is_not_ready() -> None:
    async with Database("postgresql://gristmill@127.0.0.1:1/none") as db:
        web = await serve_without_keys(db)
        assert (await web.get("/healthz")).status_code == 200
        answer = await web.get("/readyz")
    assert answer.status_code == 503
    assert "gristmill doctor" in answer.json()["detail"]


async def serve_without_keys(db: Database) -> httpx.AsyncClient:
    app = create_app(db, Settings(), ROOMS, Finder(db, Settings()))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1")


async def test_metrics_count_requests_by_their_route_and_hold_no_id(web: Web) -> None:
    await web.client("operator").delete("/api/keys/7700007")
    await web.client("operator").get("/nothing/at/all")
    text = (await web.client(None).get("/metrics")).text
    assert 'web_requests_total{method="DELETE",route="/api/keys/{key}",status="404"} 1.0' in text
    assert "7700007" not in text
    assert "/nothing" not in text


async def test_metrics_need_a_key_where_others_can_ask(db: Database) -> None:
    async with serve(db, Settings(web={"host": "0.0.0.0"})) as web:  # type: ignore[arg-type]
        answers = [
            (await web.client(caller).get("/metrics")).status_code for caller in (None, "acme admin", "operator viewer")
        ]
    assert answers == [401, 403, 200]


async def test_metrics_need_a_key_behind_a_proxy(web: Web) -> None:
    answer = await web.client(None).get("/metrics", headers={"X-Forwarded-For": "203.0.113.7"})
    assert answer.status_code == 401
