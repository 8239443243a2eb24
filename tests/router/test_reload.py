"""Settings that change while the router serves: backends come and go, keys too, and no request is dropped."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from .conftest import Fake, Scene, free_port, until

LONG = {"num_predict": 40}


def spec(fake: Fake, name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "url": fake.url, "parallel": 2, "vram": "24GB", **more}


async def test_a_gpu_that_is_added_takes_work_and_nothing_that_runs_is_disturbed(scene: Scene) -> None:
    first, second = await scene.backend(parallel=1, token=0.02), await scene.backend(parallel=1)
    router = await scene.router(spec(first, "gpu0", parallel=1))
    running = asyncio.create_task(router.chat("a", options=LONG))
    await until(lambda: router.has_running(1))
    waiting = asyncio.create_task(router.chat("b"))
    status, told = await router.reload(gpu_backends=[spec(first, "gpu0", parallel=1), spec(second, "gpu1", parallel=1)])
    assert (status, told) == (
        200,
        {"status": "reloaded", "added": ["gpu1"], "removed": [], "kept": ["gpu0"], "ignored": []},
    )
    assert (await waiting)[0] == 200
    assert not running.done()
    assert (await running)[0] == 200
    assert ((await first.stats())["started"], (await second.stats())["started"]) == (1, 1)


async def test_a_backend_that_is_removed_finishes_what_it_runs_and_gets_no_more(scene: Scene) -> None:
    first, second = await scene.backend(token=0.02), await scene.backend()
    router = await scene.router(spec(first, "gpu0"))
    running = asyncio.create_task(router.chat("a", options=LONG, stream=True))
    await until(lambda: router.has_running(1))
    _, told = await router.reload(gpu_backends=[spec(second, "gpu1")])
    assert (told["added"], told["removed"], told["kept"]) == (["gpu1"], ["gpu0"], [])
    assert await router.has_running(1)
    status, lines = await running
    assert (status, lines[-1]["done"]) == (200, True)
    assert (await router.chat("b"))[0] == 200
    assert (await first.stats())["started"] == 1
    await until(lambda: _left(router))


async def _left(router: Any) -> bool:
    return list(router.scheduler._by_backend.values()) == list(router.scheduler.adapters.values())


async def test_a_backend_that_moves_takes_its_name_along(scene: Scene) -> None:
    first, second = await scene.backend(token=0.02), await scene.backend()
    router = await scene.router(spec(first, "gpu0"))
    running = asyncio.create_task(router.chat("a", options=LONG))
    await until(lambda: router.has_running(1))
    _, told = await router.reload(gpu_backends=[spec(second, "gpu0")])
    assert (told["added"], told["removed"]) == (["gpu0"], ["gpu0"])
    assert (await router.chat("b"))[0] == 200
    assert (await running)[0] == 200
    assert (await second.stats())["finished"] == 1


async def test_whoever_waits_for_a_model_on_a_backend_that_is_removed_gets_another_place(scene: Scene) -> None:
    first, second = await scene.backend(load=60), await scene.backend()
    router = await scene.router(spec(first, "gpu0"))
    waiting = asyncio.create_task(router.chat("a"))
    await until(lambda: router.has_running(1, "loading"))
    await router.reload(gpu_backends=[spec(second, "gpu1")])
    assert (await asyncio.wait_for(waiting, 30))[0] == 200


async def test_a_key_that_is_taken_away_is_refused_on_connections_that_are_open(scene: Scene) -> None:
    router = await scene.router(await scene.backend(), keys=[{"name": "a", "key": "k-a"}])
    headers = {"Authorization": "Bearer k-a"}
    assert (await router.chat("x", headers=headers))[0] == 200
    await router.reload(keys=[{"name": "b", "key": "k-b"}])
    assert (await router.chat("x", headers=headers))[0] == 401


async def test_slots_limits_and_priorities_are_those_of_the_new_settings(scene: Scene) -> None:
    gpu = await scene.backend(parallel=4)
    router = await scene.router(spec(gpu, "gpu0"))
    await router.reload(gpu_backends=[spec(gpu, "gpu0", parallel=4)], body_limit=1024, priorities={"bg:*": "P2"})
    assert (await router.status())["backends"][0]["slots"] == 4
    assert (await router.chat("x" * 2000))[0] == 413
    assert (await router.chat("x"))[0] == 200
    assert 'priority="P2"' in await router.metrics()


async def test_wrong_settings_change_nothing_and_are_told(scene: Scene, tmp_path: Path) -> None:
    gpu = await scene.backend(token=0.02)
    port = free_port()
    process = await started(tmp_path, port, [spec(gpu, "gpu0")])
    url = f"http://127.0.0.1:{port}"
    await until(lambda: _names(scene, url))
    (tmp_path / "gristmill.toml").write_text("[router]\nport = 99999\n")
    async with scene.http.post(f"{url}/router/reload") as answer:
        assert (answer.status, "nothing was changed" in (await answer.json())["error"]) == (400, True)
    assert await _names(scene, url) == ["gpu0"]
    process.send_signal(signal.SIGTERM)
    await process.communicate()


async def test_sighup_reads_the_settings_anew_while_a_request_runs(scene: Scene, tmp_path: Path) -> None:
    first, second = await scene.backend(token=0.02), await scene.backend()
    port = free_port()
    process = await started(tmp_path, port, [spec(first, "gpu0")])
    url = f"http://127.0.0.1:{port}"
    await until(lambda: _names(scene, url))
    body = {"model": "plain", "prompt": "long", "stream": False, "options": LONG}
    running = asyncio.create_task(scene.http.post(f"{url}/api/generate", json=body))
    await until(lambda: _works(first))
    configure(tmp_path, port, [spec(first, "gpu0"), spec(second, "gpu1")])
    process.send_signal(signal.SIGHUP)
    await until(lambda: _has(scene, url, "gpu1"))
    answer = await running
    assert (answer.status, (await answer.json())["done"]) == (200, True)
    (tmp_path / "gristmill.toml").write_text("[router")
    process.send_signal(signal.SIGHUP)  # wrong settings: it goes on with those it has
    await asyncio.sleep(0.3)
    assert await _has(scene, url, "gpu1")
    process.send_signal(signal.SIGTERM)
    await process.communicate()
    assert process.returncode == 0


async def test_the_end_of_its_terminal_is_still_its_end(scene: Scene, tmp_path: Path) -> None:
    gpu, port = await scene.backend(), free_port()
    ours, its = os.openpty()
    process = await started(tmp_path, port, [spec(gpu, "gpu0")], terminal=its)
    os.close(its)
    await until(lambda: _names(scene, f"http://127.0.0.1:{port}"))
    os.close(ours)  # the kernel sends SIGHUP
    await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0


def configure(folder: Path, port: int, backends: list[dict[str, Any]]) -> None:
    tables = [
        "[[router.gpu_backends]]\n" + "\n".join(f"{name} = {json.dumps(value)}" for name, value in backend.items())
        for backend in backends
    ]
    (folder / "gristmill.toml").write_text("\n".join([f"[router]\nport = {port}", *tables]))


async def started(
    folder: Path, port: int, backends: list[dict[str, Any]], terminal: int | None = None
) -> asyncio.subprocess.Process:
    configure(folder, port, backends)
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "gristmill.router",
        cwd=folder,
        env=dict(os.environ),
        stdin=asyncio.subprocess.DEVNULL if terminal is None else terminal,
        preexec_fn=None if terminal is None else lambda: os.login_tty(terminal),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def _names(scene: Scene, url: str) -> list[str]:
    try:
        async with scene.http.get(f"{url}/router/status") as answer:
            return [backend["name"] for backend in (await answer.json())["backends"]]
    except OSError:
        return []


async def _has(scene: Scene, url: str, name: str) -> bool:
    return name in await _names(scene, url)


async def _works(fake: Fake) -> bool:
    return (await fake.stats())["running"] == 1
