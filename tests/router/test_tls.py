"""A backend behind TLS that asks for a key, as the ones in the cloud do."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from gristmill.router.tls import TlsExchange

from .conftest import Router, Scene, until

PEM = Path(__file__).parent / "data" / "loopback.pem"  # signed by itself, for 127.0.0.1, used by nothing else


class Cloud:
    """An OpenAI-compatible server over TLS."""

    def __init__(self) -> None:
        self.behaviour = "ok"
        self.keys: list[str | None] = []
        self.running = 0
        self.port = 0

    async def models(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "big", "object": "model"}]})

    async def chat(self, request: web.Request) -> web.StreamResponse:
        self.keys.append(request.headers.get("Authorization"))
        if request.headers.get("Authorization") != "Bearer sk-cloud":
            return web.json_response({"error": {"message": "who are you?"}}, status=401)
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        self.running += 1
        try:
            for word in ("a", "b", "c"):
                await answer.write(
                    event({"choices": [{"index": 0, "delta": {"content": word}, "finish_reason": None}]})
                )
                if self.behaviour == "stall":
                    await asyncio.sleep(3600)
            await answer.write(event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}))
            await answer.write(event({"choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": 3}}))
            await answer.write(b"data: [DONE]\n\n")
        finally:
            self.running -= 1
        return answer


def event(body: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(body) + b"\n\n"


@pytest.fixture
async def cloud() -> AsyncIterator[Cloud]:
    server, app = Cloud(), web.Application()
    app.router.add_get("/v1/models", server.models)
    app.router.add_post("/v1/chat/completions", server.chat)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(PEM)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    server.port = runner.addresses[0][1]
    yield server
    await runner.cleanup()


async def routed(scene: Scene, cloud: Cloud, key: str = "sk-cloud", **settings: Any) -> Router:
    spec = {"name": "cloud", "kind": "openai", "url": f"https://127.0.0.1:{cloud.port}", "key": key}
    return await scene.router(spec, process=True, trusts=str(PEM), **settings)


async def test_an_ollama_client_is_answered_by_a_tls_backend_that_gets_its_key(scene: Scene, cloud: Cloud) -> None:
    router = await routed(scene, cloud)
    status, answer = await router.chat("hello", model="big", headers={"Authorization": "Bearer mine"})
    assert (status, answer["message"]["content"], answer["eval_count"]) == (200, "abc", 3)
    assert cloud.keys == ["Bearer sk-cloud"]


async def test_a_wrong_key_is_our_failure_and_not_the_clients(scene: Scene, cloud: Cloud) -> None:
    router = await routed(scene, cloud, key="sk-old")
    status, answer = await router.chat("hello", model="big")
    assert status == 502
    assert "who are you?" in answer["error"]


async def test_silence_of_a_tls_backend_is_an_idle_timeout(scene: Scene, cloud: Cloud) -> None:
    router = await routed(scene, cloud, idle_timeout="300ms")
    cloud.behaviour = "stall"
    status, _ = await router.chat("hello", model="big")
    assert status == 504
    assert (await router.status())["backends"][0]["breaker"]["failures"] == {"idle_timeout": 1}


async def test_a_client_that_leaves_closes_the_tls_request(scene: Scene, cloud: Cloud) -> None:
    router = await routed(scene, cloud)
    cloud.behaviour = "stall"
    task = asyncio.create_task(router.chat("hello", model="big"))
    await until(lambda: _runs(cloud, 1))
    task.cancel()
    await until(lambda: _runs(cloud, 0))
    await until(lambda: _free(router))


async def test_who_leaves_in_the_moment_the_headers_come_closes_the_tls_request_too(scene: Scene, cloud: Cloud) -> None:
    cloud.behaviour = "stall"
    trusted = ssl.create_default_context(cafile=str(PEM))
    address, key = f"https://127.0.0.1:{cloud.port}/v1/chat/completions", {"Authorization": "Bearer sk-cloud"}
    response = await scene.http.post(address, json={}, headers=key, ssl=trusted)

    async def arriving() -> Any:
        return response

    exchange = TlsExchange(arriving(), 60, 60)
    reader = asyncio.create_task(exchange.wait_for_headers())
    await asyncio.sleep(0)  # it asks
    await asyncio.sleep(0)  # the headers are there, and nobody has looked at them yet
    reader.cancel()
    await asyncio.wait([reader])
    assert not exchange.status
    assert await exchange.stop(1)
    await until(lambda: _runs(cloud, 0))


async def _runs(cloud: Cloud, count: int) -> bool:
    return cloud.running == count


async def _free(router: Router) -> bool:
    return await router.taken() == 0


async def test_a_certificate_nobody_vouches_for_is_not_accepted(scene: Scene, cloud: Cloud) -> None:
    spec = {
        "name": "cloud",
        "kind": "openai",
        "url": f"https://127.0.0.1:{cloud.port}",
        "key": "sk-cloud",
        "models": ["big"],
    }
    router = await scene.router(spec, process=True)
    status, answer = await router.chat("hello", model="big")
    assert status == 502
    assert cloud.keys == []
    assert "cannot be reached" in answer["error"]
