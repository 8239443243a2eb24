"""The router over HTTP: how it stands, its levers for operators, and a clear word where none runs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web as http
from serving import SAME_ORIGIN, Web, serve

from gristmill.db import Database
from gristmill.router.server import open_router
from gristmill.settings import BackendSettings, LlmSettings, RouterSettings, Settings
from gristmill.web.router_calls import NoRouter, RouterCalls, choose_key

GB = 2**30
MODEL = "small:1b"


@asynccontextmanager
async def run_ollama() -> AsyncIterator[tuple[int, asyncio.Event]]:
    """A backend with one loaded model, that answers when the event is set; its port, and the event."""
    loaded, go_on = [MODEL], asyncio.Event()

    async def tags(_: http.Request) -> http.Response:
        return http.json_response({"models": [{"name": MODEL, "model": MODEL, "size": GB}]})

    async def ps(_: http.Request) -> http.Response:
        rows = [{"name": name, "model": name, "size": GB, "size_vram": GB} for name in loaded]
        return http.json_response({"models": rows})

    async def version(_: http.Request) -> http.Response:
        return http.json_response({"version": "0.12.6"})

    async def generate(request: http.Request) -> http.Response:
        body = await request.json()
        if body.get("keep_alive") == 0:
            loaded.clear()
        elif body.get("prompt"):
            await go_on.wait()
        return http.json_response({"model": MODEL, "response": "", "done": True})

    app = http.Application()
    app.add_routes([http.get("/api/tags", tags), http.get("/api/ps", ps), http.post("/api/generate", generate)])
    app.add_routes([http.get("/api/version", version)])
    runner = http.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await http.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield runner.addresses[0][1], go_on
    finally:
        go_on.set()
        await runner.cleanup()


@pytest.fixture
async def routed(db: Database) -> AsyncIterator[tuple[Web, asyncio.Event, int]]:
    """The web with a real router before a fake backend, which has one slot."""
    async with run_ollama() as (port, go_on):
        backend = BackendSettings(name="gpu0", url=f"http://127.0.0.1:{port}", parallel=1, vram=8 * GB)
        settings = RouterSettings(port=0, gpu_backends=(backend,), cpu_backends=(), admin_key="hush")  # type: ignore[arg-type]
        async with open_router(settings, lambda: settings) as served:
            own = settings.model_copy(update={"port": served.port})
            chosen = Settings(llm=LlmSettings(url=f"http://127.0.0.1:{served.port}"), router=own)
            async with serve(db, chosen) as opened:
                yield opened, go_on, served.port


async def look(web: Web) -> dict[str, Any]:
    return (await web.client("operator viewer").get("/api/router")).json()["status"]


async def until(web: Web, condition: Any) -> dict[str, Any]:
    async with asyncio.timeout(30):
        while not condition(found := await look(web)):  # noqa: ASYNC110 it happens in the router
            await asyncio.sleep(0.02)
    return found


async def test_an_operator_sees_backends_models_and_memory(routed: tuple[Web, asyncio.Event, int]) -> None:
    web, _, _ = routed
    found = await until(web, lambda found: found["backends"][0]["loaded"])
    (backend,) = found["backends"]
    assert (backend["name"], backend["slots"], backend["vram"], backend["vram_used"]) == ("gpu0", 1, 8 * GB, GB)
    assert found["totals"] == {"preemptions": 0, "reruns": 0, "swaps": 0}
    page = (await web.client("operator viewer").get("/router")).text
    assert MODEL in page
    assert "1.0 GB of 8.0 GB" in page
    assert "Unload" not in page, "a viewer pulls no lever"
    assert "Unload" in (await web.client("operator").get("/router")).text


async def test_what_waits_is_shown_with_its_reason(routed: tuple[Web, asyncio.Event, int]) -> None:
    web, go_on, port = routed
    from aiohttp import ClientSession  # noqa: PLC0415 beside its server, which is called http here

    await until(web, lambda found: found["backends"][0]["loaded"])
    async with ClientSession(headers={"Authorization": "Bearer hush"}) as client, asyncio.TaskGroup() as group:

        async def ask() -> None:
            body = {"model": MODEL, "prompt": "x", "stream": False}
            async with client.post(f"http://127.0.0.1:{port}/api/generate", json=body) as answer:
                await answer.read()

        for _ in range(3):
            group.create_task(ask())
        found = await until(web, lambda found: len(found["running"]) == 1 and len(found["waiting"]) == 2)
        page = (await web.client("operator").get("/router")).text
        go_on.set()
    assert found["waiting"][0]["why"]
    assert page.count('id="waiting-') == 2
    assert page.count('id="running-') == 1


async def test_an_operator_pulls_the_levers(routed: tuple[Web, asyncio.Event, int]) -> None:
    web, _, _ = routed
    client = web.client("operator")
    await until(web, lambda found: found["backends"][0]["loaded"])
    assert (await client.post("/api/router/drain", json={"backend": "gpu0"})).status_code == 200
    assert (await look(web))["backends"][0]["draining"]
    assert (await client.post("/api/router/drain", json={"backend": "gpu0", "resume": True})).status_code == 200
    assert not (await look(web))["backends"][0]["draining"]
    missing = await client.post("/api/router/drain", json={"backend": "gpu9"})
    assert (missing.status_code, "gpu9" in missing.json()["detail"]) == (404, True)
    assert (await client.post("/api/router/reload")).json()["said"].startswith("The settings were read anew")
    assert (await client.post("/api/router/release")).status_code == 200
    assert (await client.post("/api/router/unload", json={"model": MODEL})).status_code == 200
    await until(web, lambda found: not found["backends"][0]["loaded"])
    async with web.db.transaction() as tx:
        rows = await tx.all("SELECT action, subject FROM audit ORDER BY id")
    actions = [(row.action, row.subject) for row in rows if row.action in ("drain", "resume", "reload", "unload")]
    assert actions == [
        ("drain", "backend gpu0"),
        ("resume", "backend gpu0"),
        ("reload", "router"),
        ("unload", f"model {MODEL}"),
    ]


async def test_a_click_drains_the_router_and_lets_it_work_again(routed: tuple[Web, asyncio.Event, int]) -> None:
    web, _, _ = routed
    browser = web.make_browser()
    await browser.sign_in(web.keys["operator"])
    form = {"csrf": await browser.read_token()}
    done = await browser.client.post("/router/drain", data=form, headers=SAME_ORIGIN)
    assert (done.status_code, done.headers["location"]) == (303, "/router")
    assert "The router takes no new work" in (await browser.client.get("/router")).text
    await browser.client.post("/router/drain", data={**form, "resume": "true"}, headers=SAME_ORIGIN)
    assert not (await look(web))["draining"]


@pytest.mark.parametrize("caller", ["acme admin", "acme viewer", "operator manager"])
async def test_nobody_else_pulls_a_lever(routed: tuple[Web, asyncio.Event, int], caller: str) -> None:
    web, _, _ = routed
    client = web.client(caller)
    assert (await client.post("/api/router/reload")).status_code == 403
    assert (await client.post("/router/drain", data={})).status_code == 403
    if "acme" in caller:
        assert (await client.get("/api/router")).status_code == 403
        assert (await client.get("/router")).status_code == 403


@asynccontextmanager
async def served(db: Database, url: str, **llm: Any) -> AsyncIterator[Web]:
    async with serve(db, Settings(llm=LlmSettings(url=url, **llm))) as opened:
        yield opened


async def test_where_no_router_runs_the_page_says_how_to_start_one(db: Database) -> None:
    async with served(db, "http://name:hush@127.0.0.1:9/") as web:
        view = (await web.client("operator").get("/api/router")).json()
        assert view["status"] is None
        assert view["sentence"] == "No router answers at http://127.0.0.1:9: start it with gristmill router."
        page = (await web.client("operator").get("/router")).text
        assert "No router runs" in page
        assert "hush" not in page
        answer = await web.client("operator").post("/api/router/reload")
        assert (answer.status_code, answer.json()["detail"]) == (409, view["sentence"])


async def test_what_is_no_router_is_told_as_such(db: Database) -> None:
    async with run_ollama() as (port, _), served(db, f"http://127.0.0.1:{port}") as web:
        view = (await web.client("operator").get("/api/router")).json()
    assert "is no router" in view["sentence"]


async def test_a_router_that_wants_its_key_is_told_as_such(routed: tuple[Web, asyncio.Event, int]) -> None:
    _, _, port = routed
    found = await RouterCalls(Settings(llm=LlmSettings(url=f"http://127.0.0.1:{port}"))).read_status()
    assert isinstance(found, NoRouter)
    assert "wants its admin key" in found.sentence


def test_the_admin_key_is_sent_to_our_own_router_alone() -> None:
    router = RouterSettings(port=11430, admin_key="admin")  # type: ignore[arg-type]
    for url, key in {
        "http://127.0.0.1:11430": "admin",
        "http://localhost:11430/": "admin",
        "https://api.example.org": "plain",
        "http://127.0.0.1:9999": "plain",
    }.items():
        assert choose_key(Settings(llm=LlmSettings(url=url, key="plain"), router=router)) == key  # type: ignore[arg-type]
