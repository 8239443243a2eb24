"""Preemption that loses nothing, on real connections to backends that take their time."""

import asyncio
import json
from contextlib import AbstractAsyncContextManager

from aiohttp import ClientResponse

from .conftest import Router, Scene, until


def begun(router: Router, tokens: int, path: str = "/api/chat") -> AbstractAsyncContextManager[ClientResponse]:
    """A background stream that is not held back."""
    length = {"options": {"num_predict": tokens}, "max_tokens": tokens}  # each API reads its own
    body = {"model": "bg:7b", "messages": [{"role": "user", "content": "long"}], "stream": True, **length}
    headers = {"X-Ollama-Priority": "P3", "X-Router-Holdback": "0"}
    return router.http.post(f"{router.url}{path}", json=body, headers=headers)


async def test_a_preempted_request_is_run_elsewhere_and_its_client_never_knows(scene: Scene) -> None:
    gpu, cpu = await scene.backend(parallel=1, token=0.05), await scene.backend(parallel=4)
    router = await scene.router(gpu, cpus=(cpu,))
    background = asyncio.create_task(router.chat("slow", priority="P3", options={"num_predict": 100}))
    await until(lambda: router.metric('first_token_seconds_count{priority="P3"}'))
    status, urgent = await router.chat("quick", model="bg:7b", priority="P0", options={"num_predict": 2})
    assert (status, urgent["message"]["content"]) == (200, "echo quick w0")
    status, answer = await background
    assert status == 200
    assert answer["message"]["content"].split()[-1] == "w98"
    assert (await gpu.stats())["cancelled"] == 1
    assert (await cpu.stats())["finished"] == 1
    assert await router.metric("preemptions_total") == 1
    assert await router.metric('reruns_total{reason="preempted"}') == 1
    assert await router.metric('tokens_total{direction="completion",model="bg:7b",outcome="preempted"}') > 0


async def test_background_streams_are_held_back_so_that_they_too_can_be_run_anew(scene: Scene) -> None:
    gpu, cpu = await scene.backend(parallel=1, token=0.05), await scene.backend(parallel=4)
    router = await scene.router(gpu, cpus=(cpu,))
    background = asyncio.create_task(router.chat("slow", priority="P3", stream=True, options={"num_predict": 60}))
    await until(lambda: _tokens_flow(gpu))
    await router.chat("quick", priority="P0", options={"num_predict": 1})
    status, lines = await background
    assert status == 200
    assert [line["done"] for line in lines] == [False] * 60 + [True]
    assert (await cpu.stats())["finished"] == 1


async def _tokens_flow(fake) -> bool:
    return (await fake.stats())["running"] > 0


async def test_a_stream_that_has_begun_ends_with_an_explicit_error_and_no_done(scene: Scene) -> None:
    gpu = await scene.backend(parallel=1, token=0.02)
    router = await scene.router(gpu, finish_grace="100ms")
    async with begun(router, 100_000) as answer:
        first = json.loads(await answer.content.readline())
        assert first["done"] is False
        status, urgent = await router.chat("quick", priority="P0", options={"num_predict": 1})
        assert (status, urgent["message"]["content"]) == (200, "echo quick")
        lines = [json.loads(line) async for line in answer.content]
    assert "more urgent work" in lines[-1]["error"]
    assert not any(line.get("done") for line in lines)


async def test_a_begun_openai_stream_that_must_end_says_so_and_sends_no_done(scene: Scene) -> None:
    gpu = await scene.backend(parallel=1, token=0.02)
    router = await scene.router(gpu, finish_grace="100ms")
    async with begun(router, 100_000, "/v1/chat/completions") as answer:
        await answer.content.readline()
        await router.chat("quick", priority="P0", options={"num_predict": 1})
        rest = await answer.content.read()
    assert b'"error":{"message":"ended to make way' in rest
    assert b"[DONE]" not in rest


async def test_a_begun_stream_that_ends_within_the_bound_is_left_alone(scene: Scene) -> None:
    gpu = await scene.backend(parallel=1, token=0.02)
    router = await scene.router(gpu, finish_grace="20s")
    async with begun(router, 10) as answer:
        await answer.content.readline()
        urgent = asyncio.create_task(router.chat("quick", priority="P0", options={"num_predict": 1}))
        lines = [json.loads(line) async for line in answer.content]
    assert lines[-1]["done"] is True
    assert (await urgent)[0] == 200


async def test_a_critical_request_starts_only_when_the_backend_has_confirmed_the_stop(scene: Scene) -> None:
    gpu = await scene.backend(parallel=1, token=0.02, cancel=0.3)
    router = await scene.router(gpu)
    background = asyncio.create_task(router.chat("slow", priority="P3", options={"num_predict": 30}))
    await until(lambda: router.has_running(1))
    assert (await router.chat("quick", priority="P0", options={"num_predict": 1}))[0] == 200
    assert (await gpu.stats())["most_running"] == 1
    await router.http.post(f"{router.url}/router/release", json={"all": True})
    assert (await background)[0] == 200
    assert await router.metric("unconfirmed_stops_total") == 0


async def test_a_critical_request_swaps_the_model_set_and_background_goes_on_on_the_cpu(scene: Scene) -> None:
    gpu, cpu = await scene.backend(load=0.1, token=0.01), await scene.backend(parallel=8)
    router = await scene.router(
        gpu, cpus=(cpu,), background_models=["bg:7b", "bg:14b"], orchestrator_models=["orch:30b"]
    )
    await until(lambda: _loaded(gpu, {"bg:7b", "bg:14b"}))
    background = [
        asyncio.create_task(router.chat(f"b{n}", model=m, options={"num_predict": 50}))
        for n, m in enumerate(("bg:7b", "bg:14b"))
    ]
    await until(lambda: router.has_running(2))
    assert (await router.chat("orchestrate", model="orch:30b"))[0] == 200
    assert (await gpu.stats())["loaded"] == ["orch:30b"]
    assert [status for status, _ in await asyncio.gather(*background)] == [200, 200]
    assert await router.metric("cpu_fallbacks_total") == 2
    await router.http.post(f"{router.url}/router/release", json={})
    await until(lambda: _loaded(gpu, {"bg:7b", "bg:14b"}))


async def _loaded(fake, models: set[str]) -> bool:
    return set((await fake.stats())["loaded"]) == models


async def test_announce_makes_the_gpu_ready_and_release_gives_it_back(scene: Scene) -> None:
    gpu = await scene.backend(load=0.05)
    router = await scene.router(gpu, background_models=["bg:7b"], orchestrator_models=["orch:30b"])
    await until(lambda: _loaded(gpu, {"bg:7b"}))
    async with router.http.post(f"{router.url}/router/announce", json={"session": "chat"}) as answer:
        assert answer.status == 200
        assert (await answer.json())["status"] == "ready"
    assert (await gpu.stats())["loaded"] == ["orch:30b"]
    assert len((await router.status())["backends"][0]["reservations"]) == 1
    assert await router.taken() == 0
    await router.http.post(f"{router.url}/router/release", json={"session": "chat"})
    await until(lambda: _loaded(gpu, {"bg:7b"}))


async def test_an_idle_session_loses_its_gpu_and_the_background_set_comes_back(scene: Scene) -> None:
    gpu = await scene.backend()
    router = await scene.router(
        gpu, background_models=["bg:7b"], orchestrator_models=["orch:30b"], reserve_idle="300ms"
    )
    assert (await router.chat("orchestrate", model="orch:30b"))[0] == 200
    await until(lambda: _loaded(gpu, {"bg:7b"}))
    assert (await router.status())["backends"][0]["reservations"] == []


async def test_two_gpus_hold_both_sets_and_nothing_is_swapped(scene: Scene) -> None:
    first, second = await scene.backend(), await scene.backend()
    router = await scene.router(first, second, background_models=["bg:7b", "bg:14b"], orchestrator_models=["orch:30b"])
    await until(lambda: _loaded(first, {"orch:30b"}))
    await until(lambda: _loaded(second, {"bg:7b", "bg:14b"}))
    for number in range(10):
        pair = await asyncio.gather(
            router.chat(f"p0 {number}", model="orch:30b"), router.chat(f"p3 {number}", model="bg:7b")
        )
        assert [status for status, _ in pair] == [200, 200]
    assert (await first.stats())["loads"] == ["orch:30b"]
    assert sorted((await second.stats())["loads"]) == ["bg:14b", "bg:7b"]
    assert await router.metric("preemptions_total") == 0


async def test_many_requests_for_a_cold_model_load_it_once(scene: Scene) -> None:
    gpu = await scene.backend(load=0.2, parallel=4)
    router = await scene.router(gpu)
    answers = await asyncio.gather(*(router.chat(f"n{n}", priority="P1") for n in range(12)))
    assert [status for status, _ in answers] == [200] * 12
    assert (await gpu.stats())["loads"] == ["bg:7b"]
    assert (await gpu.stats())["most_running"] <= 4


async def test_what_is_pinned_for_a_model_reaches_every_request_and_every_load(scene: Scene) -> None:
    gpu = await scene.backend()
    router = await scene.router(gpu, models={"bg:*": {"num_ctx": 8192, "keep_alive": -1}}, keep_alive="10m")
    await router.chat("a", options={"num_ctx": 1024, "temperature": 0.5}, keep_alive=0)
    load, request = (await gpu.stats())["bodies"][-2:]
    assert (load["options"]["num_ctx"], load["keep_alive"]) == (8192, -1)
    assert (request["options"], request["keep_alive"]) == ({"num_ctx": 8192, "temperature": 0.5}, -1)
    await router.chat("b", model="plain", options={"num_ctx": 2048})
    await router.chat("c", model="plain", options={"num_ctx": 1024})
    assert [body["options"]["num_ctx"] for body in (await gpu.stats())["bodies"][-2:]] == [2048, 2048]
