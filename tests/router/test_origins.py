"""Web pages and names: what a foreign page or a rebound name sends reaches neither a model nor a figure."""

from typing import Any

import pytest

from .conftest import Router, Scene

CHAT = {"model": "plain", "messages": [{"role": "user", "content": "hello"}], "stream": False}
PATHS = [("GET", "/router/status"), ("GET", "/metrics"), ("GET", "/api/tags"), ("POST", "/router/drain"), ("GET", "/")]


async def asked(router: Router, method: str, path: str, headers: dict[str, str], **more: Any) -> int:
    async with router.http.request(method, f"{router.url}{path}", headers=headers, **more) as answer:
        return answer.status


async def test_a_foreign_page_cannot_ask_a_model_by_a_simple_post(scene: Scene) -> None:
    gpu = await scene.backend()
    router = await scene.router(gpu)
    for origin in ("https://evil.example", "null", "http://localhost.evil.example"):
        page = {"Origin": origin, "Content-Type": "text/plain"}
        assert (origin, await asked(router, "POST", "/api/chat", page, data=b"{}")) == (origin, 403)
        assert (origin, await asked(router, "POST", "/v1/chat/completions", page, json=CHAT)) == (origin, 403)
    assert (await gpu.stats())["started"] == 0


@pytest.mark.parametrize(("method", "path"), PATHS)
async def test_a_foreign_page_or_a_rebound_name_learns_nothing(scene: Scene, method: str, path: str) -> None:
    router = await scene.router(await scene.backend())
    assert await asked(router, method, path, {"Origin": "https://evil.example"}) == 403
    assert await asked(router, method, path, {"Host": f"evil.example:{router.port}"}) == 403
    assert await asked(router, method, path, {"Host": f"localhost:{router.port}"}) == 200


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:11430", "[::1]:80", "box.local", "10.1.2.3", "host.internal"])
async def test_the_names_of_this_machine_and_bare_addresses_are_let_in(scene: Scene, host: str) -> None:
    router = await scene.router(await scene.backend())
    assert await asked(router, "POST", "/api/chat", {"Host": host}, json=CHAT) == 200


async def test_configured_names_and_pages_are_let_in(scene: Scene) -> None:
    router = await scene.router(
        await scene.backend(), hosts=["llm.example.org"], origins=["https://*.example.org", "chrome-extension://*"]
    )
    for headers, status in (
        ({"Host": "LLM.example.org:11430"}, 200),
        ({"Host": "llm.example.com"}, 403),
        ({"Origin": "https://chat.example.org"}, 200),
        ({"Origin": "chrome-extension://abcdef"}, 200),
        ({"Origin": "http://chat.example.org"}, 403),
        ({"Host": "llm.example.org", "Origin": "http://llm.example.org"}, 200),  # its own page
    ):
        assert (headers, await asked(router, "POST", "/api/chat", headers, json=CHAT)) == (headers, status)


async def test_a_router_for_the_world_checks_names_only_when_some_are_configured(scene: Scene) -> None:
    gpu = await scene.backend()
    for hosts, status in (((), 200), (("llm.example.org",), 403)):
        router = await scene.router(gpu, host="0.0.0.0", hosts=hosts)
        assert await asked(router, "POST", "/api/chat", {"Host": "other.example.org"}, json=CHAT) == status


async def test_the_browser_of_an_allowed_page_is_told_that_it_may(scene: Scene) -> None:
    router = await scene.router(await scene.backend())
    page = {"Origin": "http://localhost:3000"}
    wish = {**page, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    async with router.http.options(f"{router.url}/api/chat", headers=wish) as answer:
        assert (answer.status, await answer.read()) == (204, b"")
        assert answer.headers["Access-Control-Allow-Origin"] == "http://localhost:3000"
        assert answer.headers["Access-Control-Allow-Headers"] == "content-type"
    for stream in (False, True):
        async with router.http.post(f"{router.url}/api/chat", json={**CHAT, "stream": stream}, headers=page) as answer:
            assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (200, "http://localhost:3000")
