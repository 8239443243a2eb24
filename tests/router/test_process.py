"""The router as a process: it serves, it stops when told, and it says what is wrong in one sentence."""

import asyncio
import json
import os
import signal
import socket
import sys

import aiohttp
import pytest

from .conftest import Fake, Scene, free_port, until


async def started(port: int, *backends: str, stop: str = "10s") -> asyncio.subprocess.Process:
    env = {
        **os.environ,
        "GRISTMILL_ROUTER_PORT": str(port),
        "GRISTMILL_ROUTER_STOP": stop,
        "GRISTMILL_ROUTER_GPU_BACKENDS": f"[{','.join(backends)}]",
    }
    arguments = ("-m", "gristmill.router")
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(sys.executable, *arguments, env=env, stdout=pipe, stderr=pipe)


@pytest.mark.parametrize("wish", [signal.SIGTERM, signal.SIGINT])
async def test_it_finishes_what_runs_before_it_stops(scene: Scene, wish: signal.Signals) -> None:
    gpu, port = await scene.backend(token=0.05), free_port()
    process = await started(port, f'{{"name": "g", "url": "{gpu.url}"}}')
    url = f"http://127.0.0.1:{port}"
    await until(lambda: healthy(scene.http, url))
    body = {"model": "plain", "prompt": "long", "stream": False, "options": {"num_predict": 20}}
    running = asyncio.create_task(scene.http.post(f"{url}/api/generate", json=body))
    await until(lambda: works(gpu))
    process.send_signal(wish)
    answer = await running
    assert (answer.status, (await answer.json())["done"]) == (200, True)
    await process.communicate()
    assert process.returncode == 0


async def test_when_time_is_up_everybody_is_told_in_the_words_of_the_api_called(scene: Scene) -> None:
    gpu, port = await scene.backend(token=0.02, parallel=3), free_port()
    process = await started(port, f'{{"name": "g", "url": "{gpu.url}", "parallel": 3}}', stop="300ms")
    url = f"http://127.0.0.1:{port}"
    await until(lambda: healthy(scene.http, url))
    endless = {"model": "plain", "messages": [{"role": "user", "content": "a"}], "options": {"num_predict": 100_000}}
    ollama = await scene.http.post(f"{url}/api/chat", json=endless)
    openai = await scene.http.post(
        f"{url}/v1/chat/completions", json={**endless, "stream": True, "max_tokens": 100_000}
    )
    await ollama.content.readline(), await openai.content.readline()
    whole, waiting = (
        asyncio.create_task(scene.http.post(f"{url}/api/chat", json={**endless, "stream": False})) for _ in range(2)
    )
    await until(lambda: waits(scene.http, url))
    process.send_signal(signal.SIGTERM)
    lines, events = (await ollama.read()).splitlines(), (await openai.read()).strip().split(b"\n\n")
    assert json.loads(lines[-1]) == {"error": "the router is stopping"}
    assert not any(json.loads(line).get("done") for line in lines)
    assert json.loads(events[-1].removeprefix(b"data: "))["error"]["message"] == "the router is stopping"
    assert b"data: [DONE]" not in events
    for task in (whole, waiting):
        answer = await task
        assert (answer.status, await answer.json()) == (503, {"error": "the router is stopping"})
        assert answer.headers["Retry-After"]
    await process.communicate()
    assert process.returncode == 0
    await until(lambda: works(gpu, 0))


async def waits(http: aiohttp.ClientSession, url: str) -> bool:
    async with http.get(f"{url}/router/status") as answer:
        return (await answer.json())["queues"]["P1"] == 1


async def healthy(http: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with http.get(f"{url}/healthz") as answer:
            return answer.status == 200
    except aiohttp.ClientError:
        return False


async def works(fake: Fake, count: int = 1) -> bool:
    return (await fake.stats())["running"] == count


async def test_a_port_that_is_taken_is_one_sentence_and_a_non_zero_exit() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        process = await started(taken.getsockname()[1], '{"name": "g", "url": "http://127.0.0.1:9"}')
        _, errors = await process.communicate()
    assert process.returncode == 2
    assert errors.decode().strip().splitlines()[-1].startswith("The router cannot listen on 127.0.0.1:")


@pytest.mark.parametrize("wrong", ["99999", "-1"])
async def test_a_port_that_is_none_is_one_sentence_and_exit_code_2(wrong: str) -> None:
    arguments = ("-m", "gristmill", "router", f"--port={wrong}")
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=pipe, stderr=pipe)
    _, errors = await process.communicate()
    assert process.returncode == 2
    assert (
        errors.decode().split() == f"--port {wrong} is no port: write a number from 0 (any free port) to 65535.".split()
    )


async def test_the_command_says_where_it_listens_once_it_does(scene: Scene) -> None:
    gpu = await scene.backend()
    env = {**os.environ, "GRISTMILL_ROUTER_GPU_BACKENDS": f'[{{"name": "g", "url": "{gpu.url}"}}]'}
    arguments = ("-m", "gristmill", "router", "--port", "0", "--json")
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, env=env, stdout=pipe, stderr=pipe)
    assert process.stdout is not None
    told = json.loads(await process.stdout.readline())
    async with scene.http.get(f"http://127.0.0.1:{told['port']}/healthz") as answer:
        assert answer.status == 200
    process.send_signal(signal.SIGTERM)
    await process.communicate()
    assert process.returncode == 0
