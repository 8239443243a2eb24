"""The router as a process: it serves, it stops when told, and it says what is wrong in one sentence."""

import asyncio
import os
import signal
import socket
import sys

import aiohttp

from .conftest import Scene, until


async def started(port: int, *backends: str) -> asyncio.subprocess.Process:
    env = {
        **os.environ,
        "GRISTMILL_ROUTER_PORT": str(port),
        "GRISTMILL_ROUTER_STOP": "10s",
        "GRISTMILL_ROUTER_GPU_BACKENDS": f"[{','.join(backends)}]",
    }
    arguments = ("-m", "gristmill.router")
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(sys.executable, *arguments, env=env, stdout=pipe, stderr=pipe)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


async def test_it_finishes_what_runs_before_it_stops(scene: Scene) -> None:
    gpu, port = await scene.backend(token=0.05), free_port()
    process = await started(port, f'{{"name": "g", "url": "{gpu.url}"}}')
    url = f"http://127.0.0.1:{port}"
    await until(lambda: healthy(scene.http, url))
    body = {"model": "plain", "prompt": "long", "stream": False, "options": {"num_predict": 20}}
    running = asyncio.create_task(scene.http.post(f"{url}/api/generate", json=body))
    await until(lambda: works(gpu))
    process.send_signal(signal.SIGTERM)
    answer = await running
    assert (answer.status, (await answer.json())["done"]) == (200, True)
    await process.communicate()
    assert process.returncode == 0


async def healthy(http: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with http.get(f"{url}/healthz") as answer:
            return answer.status == 200
    except aiohttp.ClientError:
        return False


async def works(fake) -> bool:
    return (await fake.stats())["running"] == 1


async def test_a_port_that_is_taken_is_one_sentence_and_a_non_zero_exit() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        process = await started(taken.getsockname()[1], '{"name": "g", "url": "http://127.0.0.1:9"}')
        _, errors = await process.communicate()
    assert process.returncode == 2
    assert errors.decode().strip().splitlines()[-1].startswith("The router cannot listen on 127.0.0.1:")
