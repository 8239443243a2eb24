"""Real processes on loopback: backends, a router, and the clients that people use."""

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gristmill.router.scheduler import Scheduler
from gristmill.router.server import open_router
from gristmill.settings import RouterSettings

HERE = Path(__file__).parent
GB = 1024**3
MODELS = {
    "orch:30b": 20 * GB,
    "bg:7b": 5 * GB,
    "bg:14b": 9 * GB,
    "my-embedding:8b": 5 * GB,
    "eyes:7b": 8 * GB,
    "plain:latest": 4 * GB,
}
PATIENCE = 60.0  # how long a test waits for something that will happen; never how long it takes


async def until(condition: Callable[[], Awaitable[Any]], patience: float = PATIENCE) -> Any:
    """Wait until something is so."""
    async with asyncio.timeout(patience):
        while not (found := await condition()):  # noqa: ASYNC110 it happens in other processes
            await asyncio.sleep(0.01)
    return found


async def at_any_pace(in_time: Callable[[float], Awaitable[None]]) -> None:
    """What only design makes true, whatever the limit: one success proves it, a busy machine gets more time."""
    for limit in (0.3, 1.5):
        with suppress(AssertionError):
            return await in_time(limit)
    return await in_time(8)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


async def spawned(*arguments: str, env: dict[str, str] | None = None) -> tuple[asyncio.subprocess.Process, bytes]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, **(env or {})},
    )
    assert process.stdout is not None
    return process, await asyncio.wait_for(process.stdout.readline(), 60)


async def ended(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
    await process.wait()
    if process.stdin is not None:
        process.stdin.close()
    transport = process._transport  # type: ignore[attr-defined]
    transport.close()
    await asyncio.sleep(0)


@dataclass
class Fake:
    """A fake backend in a process of its own."""

    process: asyncio.subprocess.Process
    port: int
    http: aiohttp.ClientSession
    behaviour: dict[str, Any]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def stats(self) -> dict[str, Any]:
        async with self.http.post(f"{self.url}/fake/stats", json={}) as answer:
            return await answer.json()

    async def behave(self, **changes: Any) -> None:
        async with self.http.post(f"{self.url}/fake/behaviour", json=changes) as answer:
            assert answer.status == 200

    async def forget_models(self) -> None:
        async with self.http.post(f"{self.url}/fake/forget", json={}) as answer:
            assert answer.status == 200

    async def kill(self) -> None:
        await ended(self.process)

    async def restart(self) -> None:
        """Come back on the same port, with nothing in memory."""
        self.process, _ = await spawned(
            str(HERE / "fake_backend.py"), "--port", str(self.port), "--behaviour", json.dumps(self.behaviour)
        )


@dataclass
class Router:
    """A router that serves."""

    port: int
    http: aiohttp.ClientSession
    scheduler: Scheduler | None = None
    changes: dict[str, Any] = field(default_factory=dict)  # of its settings, for the next reload

    async def reload(self, **changes: Any) -> tuple[int, dict[str, Any]]:
        """Change settings and tell the router."""
        self.changes |= changes
        async with self.http.post(f"{self.url}/router/reload") as answer:
            return answer.status, await answer.json()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def status(self) -> dict[str, Any]:
        async with self.http.get(f"{self.url}/router/status") as answer:
            return await answer.json()

    async def metrics(self) -> str:
        async with self.http.get(f"{self.url}/metrics") as answer:
            return await answer.text()

    async def metric(self, name: str) -> float:
        """The sum of a metric over its labels; with labels in the name, that one alone."""
        lines = (line for line in (await self.metrics()).splitlines() if line.startswith(f"gristmill_router_{name}"))
        return sum(float(line.rpartition(" ")[2]) for line in lines)

    async def chat(
        self,
        text: str,
        *,
        model: str = "bg:7b",
        priority: str | None = None,
        stream: bool = False,
        **more: Any,
    ) -> tuple[int, Any]:
        headers = {"X-Ollama-Priority": priority} if priority else {}
        headers |= more.pop("headers", {})
        body = {"model": model, "messages": [{"role": "user", "content": text}], "stream": stream, **more}
        async with self.http.post(f"{self.url}/api/chat", json=body, headers=headers) as answer:
            raw = await answer.read()
            return answer.status, [
                json.loads(line) for line in raw.splitlines()
            ] if stream and answer.status == 200 else json.loads(raw)

    async def taken(self) -> int:
        return sum(backend["slots_taken"] for backend in (await self.status())["backends"])

    async def has_running(self, count: int, phase: str = "running") -> bool:
        return sum(item["phase"] == phase for item in (await self.status())["running"]) >= count


async def with_little_room(router: Router) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A client for whom little is kept until it reads: by itself the system takes in megabytes before anybody waits."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setblocking(False)
    await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", router.port))
    return await asyncio.open_connection(sock=client, limit=1024)


class Scene:
    """Starts what a test needs and ends all of it."""

    def __init__(self, stack: AsyncExitStack, http: aiohttp.ClientSession) -> None:
        self._stack, self.http = stack, http

    async def backend(self, **behaviour: Any) -> Fake:
        behaviour = {"models": MODELS, **behaviour}
        process, line = await spawned(str(HERE / "fake_backend.py"), "--behaviour", json.dumps(behaviour))
        fake = Fake(process, int(line), self.http, behaviour)
        self._stack.push_async_callback(lambda: ended(fake.process))
        return fake

    async def router(
        self,
        *gpus: Fake | dict[str, Any],
        cpus: tuple[Fake | dict[str, Any], ...] = (),
        process: bool = False,
        trusts: str = "",
        **settings: Any,
    ) -> Router:
        """A router; in a process of its own when asked, with its settings from the environment."""
        wanted = {
            "port": 0,
            "probe": "200ms",
            "release_wait": "5s",
            "stop": "100ms",
            "priorities": {"orch:*": "P0", "bg:*": "P3", "*embedding*": "P3"},
            "gpu_backends": [_spec(gpu, f"gpu{n}") for n, gpu in enumerate(gpus)],
            "cpu_backends": [_spec(cpu, f"cpu{n}") for n, cpu in enumerate(cpus)],
            **settings,
        }
        if not process:
            served = await self._stack.enter_async_context(
                open_router(RouterSettings(**wanted), lambda: RouterSettings(**{**wanted, **router.changes}))
            )
            router = Router(served.port, self.http, served.scheduler)
            return router
        env = {
            f"GRISTMILL_ROUTER_{name.upper()}": value if isinstance(value, str) else json.dumps(value)
            for name, value in wanted.items()
        }
        if trusts:
            env["SSL_CERT_FILE"] = trusts
        started, line = await spawned(str(HERE / "router_process.py"), env=env)
        self._stack.push_async_callback(lambda: ended(started))
        return Router(int(line), self.http)


def _spec(backend: Fake | dict[str, Any], name: str) -> dict[str, Any]:
    if isinstance(backend, dict):
        return backend
    return {
        "name": name,
        "url": backend.url,
        "parallel": backend.behaviour.get("parallel", 2),
        "vram": 24 * GB,
    }


@asynccontextmanager
async def staged() -> AsyncIterator[Scene]:
    async with AsyncExitStack() as stack:
        connector = aiohttp.TCPConnector(limit=0)
        http = await stack.enter_async_context(
            aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=120))
        )
        yield Scene(stack, http)


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    async with staged() as built:
        yield built
