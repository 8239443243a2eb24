"""Models that come and go by a client's word: pulled, made, copied, deleted, unloaded, as with Ollama itself."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import ollama
import pytest

from .conftest import Router, Scene

ASK = [{"role": "user", "content": "hello"}]
MEGABYTE = 1024**2


@pytest.fixture
async def scene_and_client(scene: Scene) -> AsyncIterator[tuple[Router, ollama.AsyncClient]]:
    router = await scene.router(await scene.backend(), probe="1h")
    client = ollama.AsyncClient(host=router.url)
    yield router, client
    await client._client.aclose()


async def names(client: ollama.AsyncClient) -> set[str]:
    return {model.model or "" for model in (await client.list()).models}


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_pulls_lists_asks_copies_and_deletes_a_model(
    scene_and_client: tuple[Router, ollama.AsyncClient], stream: bool
) -> None:
    _, client = scene_and_client
    if stream:
        told = [piece.status async for piece in await client.pull("new:1b", stream=True)]
        assert told == ["pulling manifest", "downloading", "success"]
    else:
        assert (await client.pull("new:1b")).status == "success"
    assert "new:1b" in await names(client)
    assert ((await client.chat("new:1b", ASK)).message.content or "").startswith("echo hello")
    assert (await client.copy("new:1b", "other:1b")).status == "success"
    assert (await client.delete("new:1b")).status == "success"
    assert await names(client) >= {"other:1b"}
    with pytest.raises(ollama.ResponseError, match="not found") as error:
        await client.chat("new:1b", ASK)
    assert error.value.status_code == 404
    with pytest.raises(ollama.ResponseError, match="model 'new:1b' not found"):
        await client.delete("new:1b")


async def test_a_model_is_made_from_a_file_that_is_larger_than_a_body_may_be(scene: Scene, tmp_path: Path) -> None:
    gpu = await scene.backend()
    router = await scene.router(gpu, body_limit=MEGABYTE)
    client = ollama.AsyncClient(host=router.url)
    content = b"GGUF" * (2 * MEGABYTE)
    (tmp_path / "made.gguf").write_bytes(content)
    digest = await client.create_blob(tmp_path / "made.gguf")
    assert digest == f"sha256:{hashlib.sha256(content).hexdigest()}"
    assert (await gpu.stats())["blobs"] == {digest: len(content)}
    async with router.http.head(f"{router.url}/api/blobs/{digest}") as answer:
        assert answer.status == 200
    async with router.http.head(f"{router.url}/api/blobs/sha256:none") as answer:
        assert answer.status == 404
    assert (await client.create("made:1b", files={"made.gguf": digest})).status == "success"
    assert "made:1b" in await names(client)
    await client._client.aclose()


async def test_a_client_is_paused_when_a_backend_takes_a_file_more_slowly_than_it_is_sent(scene: Scene) -> None:
    released = asyncio.Event()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if b"/api/blobs/" in await reader.readuntil(b"\r\n\r\n"):
            await released.wait()
            while b"0\r\n\r\n" not in await reader.read(MEGABYTE):
                pass
        writer.write(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(slow, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    router = await scene.router({"name": "slow", "url": url}, probe="1h")
    sent = 0

    async def file() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(200):
            sent += MEGABYTE
            yield b"a" * MEGABYTE

    upload = asyncio.create_task(posted(router, "/api/blobs/sha256:x", file()))
    before = -1
    while before < sent or not sent:
        before = sent
        await asyncio.sleep(0.3)
    assert before < 100 * MEGABYTE
    released.set()
    assert await upload == 201
    server.close()


async def posted(router: Router, path: str, body: Any, **more: Any) -> int:
    async with router.http.post(f"{router.url}{path}", data=body, **more) as answer:
        await answer.read()
        return answer.status


@pytest.mark.parametrize("how", ["header", "query"])
async def test_an_admin_names_the_backend(scene: Scene, how: str) -> None:
    first, second = await scene.backend(), await scene.backend()
    router = await scene.router(first, cpus=(second,))
    headers = {"X-Router-Backend": "cpu0"} if how == "header" else {}
    query = "?backend=cpu0" if how == "query" else ""
    asked: Any = {"json": {"model": "new:1b"}, "headers": headers}
    async with router.http.post(f"{router.url}/api/pull{query}", **asked) as answer:
        assert answer.status == 200
        await answer.read()
    assert [body["path"] for body in (await second.stats())["bodies"]] == ["/api/pull"]
    assert (await first.stats())["bodies"] == []
    # what only the second has is deleted there, without its name
    async with router.http.delete(f"{router.url}/api/delete", json={"model": "new:1b"}) as answer:
        assert answer.status == 200
    asked["headers"] = {"X-Router-Backend": "nowhere"}
    async with router.http.post(f"{router.url}/api/pull", **asked) as answer:
        assert (answer.status, "gpu0, cpu0" in (await answer.json())["error"]) == (404, True)


async def test_who_is_no_admin_changes_no_models(scene: Scene) -> None:
    gpu = await scene.backend()
    keys = [{"name": "user", "key": "k-user"}, {"name": "chief", "key": "k-chief", "admin": True}]
    router = await scene.router(gpu, keys=keys)
    for key, status in (("k-user", 403), ("k-chief", 200)):
        headers = {"Authorization": f"Bearer {key}"}
        for path, body in (
            ("/api/pull", {"model": "new:1b"}),
            ("/api/create", {"model": "new:2b"}),
            ("/api/copy", {"source": "plain", "destination": "b"}),
            ("/api/generate", {"model": "plain", "keep_alive": 0}),
        ):
            async with router.http.post(f"{router.url}{path}", json=body, headers=headers) as answer:
                assert (key, path, answer.status) == (key, path, status)
    assert await posted(router, "/api/blobs/sha256:x", b"a") == 403
    assert (await gpu.stats())["blobs"] == {}


@pytest.mark.parametrize("path", ["generate", "chat"])
async def test_a_client_loads_a_model_and_unloads_it(
    scene_and_client: tuple[Router, ollama.AsyncClient], path: str
) -> None:
    router, client = scene_and_client
    ask: Any = getattr(client, path)
    assert (await ask("plain")).done_reason == "load"
    assert [model.model for model in (await client.ps()).models] == ["plain:latest"]
    assert (await ask("plain", keep_alive=0)).done_reason == "unload"
    assert [model.model for model in (await client.ps()).models] == []
    assert router.scheduler is not None
    assert router.scheduler.lanes.backends["gpu0"].resident == {}


async def test_a_model_of_an_openai_backend_is_always_loaded(scene: Scene) -> None:
    fake = await scene.backend()
    router = await scene.router({"name": "gpu0", "kind": "openai", "url": fake.url})
    status, answer = await router.chat("x", model="plain", messages=[])
    assert (status, answer["done_reason"]) == (200, "load")
    assert (await fake.stats())["bodies"] == []
    assert await posted(router, "/api/pull", b"{}") == 501
