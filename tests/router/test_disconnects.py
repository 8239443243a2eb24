"""A client that goes away is noticed at once, in every phase, and its backend is told."""

import asyncio

import pytest

from .conftest import Router, Scene, until, with_little_room


async def gone(task: "asyncio.Task[object]") -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def nothing_taken(router: Router) -> bool:
    status = await router.status()
    return not status["running"] and not status["waiting"]


async def test_a_queued_request_whose_client_left_is_forgotten(scene: Scene) -> None:
    gpu = await scene.backend(parallel=1, token=0.05)
    router = await scene.router(gpu)
    first = asyncio.create_task(router.chat("first", options={"num_predict": 40}))
    await until(lambda: router.has_running(1))
    second = asyncio.create_task(router.chat("second"))
    await until(lambda: waiting(router))
    await gone(second)
    await until(lambda: nobody_waits(router))
    assert (await first)[0] == 200
    assert (await gpu.stats())["started"] == 1


async def waiting(router: Router) -> bool:
    return bool((await router.status())["waiting"])


async def nobody_waits(router: Router) -> bool:
    return not await waiting(router)


async def test_a_load_whose_only_client_left_is_stopped(scene: Scene) -> None:
    gpu = await scene.backend(load=30.0)
    router = await scene.router(gpu)
    task = asyncio.create_task(router.chat("cold"))
    await until(lambda: router.has_running(1, "loading"))
    await gone(task)
    await until(lambda: nothing_taken(router))
    await until(lambda: not_loading(router))
    assert (await gpu.stats())["loads"] == []


async def not_loading(router: Router) -> bool:
    return (await router.status())["backends"][0]["loading"] is None


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("phase", "behaviour"), [("prefill", {"prefill": 30.0}), ("streaming", {"token": 0.05, "tokens": 10000})]
)
async def test_a_running_request_whose_client_left_is_stopped(
    scene: Scene, phase: str, behaviour: dict, stream: bool
) -> None:
    gpu = await scene.backend(**behaviour)
    router = await scene.router(gpu)
    task = asyncio.create_task(router.chat("hello", priority="P1", stream=stream))
    await until(lambda: at_work(gpu))
    await gone(task)
    await until(lambda: stopped(gpu))
    await until(lambda: nothing_taken(router))
    assert await router.metric('requests_total{api="ollama",priority="P1",status="gone"}') == 1
    if phase == "streaming":
        assert await router.metric('tokens_total{direction="completion",model="bg:7b",outcome="aborted"}') > 0


async def at_work(fake) -> bool:
    return (await fake.stats())["running"] == 1


async def stopped(fake) -> bool:
    stats = await fake.stats()
    return stats["running"] == 0 and stats["cancelled"] == 1


async def test_a_slot_stays_taken_until_a_slow_backend_has_let_go(scene: Scene) -> None:
    gpu = await scene.backend(parallel=1, token=0.02, cancel=3, tokens=100_000)
    router = await scene.router(gpu, release_wait="60s")
    task = asyncio.create_task(router.chat("first", priority="P1"))
    await until(lambda: at_work(gpu))
    await gone(task)
    await until(lambda: router.has_running(1, "leaving"))
    await router.chat("second", priority="P1", options={"num_predict": 1})
    assert (await gpu.stats())["most_running"] == 1


async def test_a_slow_reader_pauses_the_backend_instead_of_filling_the_memory(scene: Scene) -> None:
    gpu = await scene.backend(tokens=2_000_000)
    router = await scene.router(gpu)
    reader, writer = await with_little_room(router)
    body = b'{"model": "plain", "messages": [{"role": "user", "content": "hello"}]}'
    writer.write(b"POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    await reader.readuntil(b"\r\n\r\n")
    sent = -1
    while (now := (await gpu.stats())["sent"]) != sent:  # until nothing moves any more
        sent = now
        await asyncio.sleep(0.2)
    assert sent < 200_000  # of two million: what fits in sockets and bounded buffers
    writer.close()
    await until(lambda: stopped(gpu))
