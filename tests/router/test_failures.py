"""Backends that break: failover before the first byte, explicit errors after it, breakers, timeouts."""

import asyncio
import json
from typing import Any

import pytest

from .conftest import Fake, Router, Scene, at_any_pace, free_port, until

NEVER_ENDING = {"num_predict": 100000}


async def breaker(router: Router, name: str) -> str:
    return next(
        backend["breaker"]["state"] for backend in (await router.status())["backends"] if backend["name"] == name
    )


@pytest.mark.parametrize("mode", ["error", "throttle", "truncate", "error_line", "garbage"])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_failure_before_the_first_byte_is_made_up_for_elsewhere(scene: Scene, mode: str, stream: bool) -> None:
    bad, good = await scene.backend(mode=mode, after=0), await scene.backend()
    router = await scene.router(bad, cpus=(good,))
    status, answer = await router.chat("hello", stream=stream, priority="P1", headers={"X-Router-Holdback": "0"})
    assert status == 200
    assert (answer[-1] if stream else answer)["done"] is True
    assert (await good.stats())["finished"] == 1
    assert await router.metric('reruns_total{reason="failover"}') == 1


@pytest.mark.parametrize("mode", ["truncate", "error_line", "stall"])
async def test_an_answer_collected_for_one_body_is_made_up_for_even_at_its_end(scene: Scene, mode: str) -> None:
    bad, good = await scene.backend(mode=mode, after=5), await scene.backend()

    async def made_up_for(silence: float) -> None:
        router = await scene.router(bad, cpus=(good,), idle_timeout=f"{silence}s")
        status, answer = await router.chat("hello", priority="P1")
        assert status == 200
        assert answer["message"]["content"] == "echo hello w0 w1 w2 w3 w4 w5 w6"

    await at_any_pace(made_up_for)


@pytest.mark.parametrize("mode", ["truncate", "stall"])
async def test_a_stream_that_breaks_after_its_first_byte_says_so_and_is_not_repeated(scene: Scene, mode: str) -> None:
    bad, good = await scene.backend(mode=mode, after=3, token=0.01), await scene.backend()

    async def broken_off(silence: float) -> None:
        before = (await good.stats())["started"]
        router = await scene.router(bad, cpus=(good,), idle_timeout=f"{silence}s")
        status, lines = await router.chat("hello", priority="P1", stream=True)
        assert status == 200
        assert [line["message"]["content"] for line in lines[:-1]] == ["echo hello", " w0", " w1"]
        assert "error" in lines[-1]
        assert not any(line.get("done") for line in lines)
        assert (await good.stats())["started"] == before

    await at_any_pace(broken_off)


async def test_nothing_is_kept_of_a_stream_that_broke(scene: Scene) -> None:
    router = await scene.router(await scene.backend(mode="truncate", after=3, token=0.01))
    await router.chat("hello", priority="P1", stream=True)
    assert router.scheduler is not None
    assert not router.scheduler._refusals


async def test_header_and_idle_timeouts_are_counted_apart(scene: Scene) -> None:
    bad, good = await scene.backend(mode="hang"), await scene.backend()

    async def counted(silence: float) -> None:
        limits = {f"{kind}_timeout": f"{silence}s" for kind in ("header", "idle", "load")}
        router = await scene.router(bad, cpus=(good,), **limits)
        await bad.behave(mode="ok")
        assert (await router.chat("warm", priority="P1"))[0] == 200
        await bad.behave(mode="hang")
        assert (await router.chat("a", priority="P1"))[0] == 200
        await bad.behave(mode="stall", after=1)
        assert (await router.chat("b", priority="P1"))[0] == 200
        failures = (await router.status())["backends"][0]["breaker"]["failures"]
        assert failures == {"header_timeout": 1, "idle_timeout": 1}

    await at_any_pace(counted)


async def test_a_breaker_opens_lets_one_try_and_closes(scene: Scene) -> None:
    gpu, cpu = await scene.backend(parallel=8), await scene.backend(parallel=8)

    async def opens_and_closes(cooldown: float) -> None:
        router = await scene.router(gpu, cpus=(cpu,), breaker_cooldown=f"{cooldown}s")
        await router.chat("warm", priority="P1")
        before = (await cpu.stats())["started"]
        await gpu.behave(mode="error")
        for number in range(12):
            assert (await router.chat(f"n{number}", priority="P1"))[0] == 200
        state, started = await breaker(router, "gpu0"), (await cpu.stats())["started"]
        await gpu.behave(mode="ok")
        assert state == "open"
        assert started == before + 12
        await until(lambda: closes(router))
        assert await router.metric('breaker_state{backend="gpu0"}') == 0

    await at_any_pace(opens_and_closes)


async def closes(router: Router) -> bool:
    assert (await router.chat("try", priority="P1"))[0] == 200
    return await breaker(router, "gpu0") == "closed"


async def test_a_killed_backend_is_noticed_and_taken_back_when_it_returns(scene: Scene) -> None:
    gpu, cpu = await scene.backend(), await scene.backend()
    router = await scene.router(gpu, cpus=(cpu,), breaker_cooldown="200ms")
    assert (await router.chat("a", priority="P1"))[0] == 200
    await gpu.kill()
    assert (await router.chat("b", priority="P1"))[0] == 200
    await until(lambda: is_open(router))
    await gpu.restart()
    await until(lambda: serves(router, gpu))


async def is_open(router: Router) -> bool:
    return await breaker(router, "gpu0") == "open"


async def serves(router: Router, gpu: Fake) -> bool:
    assert (await router.chat("again", priority="P1"))[0] == 200
    return (await gpu.stats())["finished"] > 0


async def test_the_backends_own_error_reaches_a_client_whom_nobody_else_can_serve(scene: Scene) -> None:
    router = await scene.router(await scene.backend(mode="error"))
    status, answer = await router.chat("hello", priority="P1")
    assert status == 500
    assert "unexpectedly stopped" in answer["error"]


async def test_a_refusal_of_the_request_itself_is_passed_on_and_nobody_is_blamed(scene: Scene) -> None:
    gpu, cpu = await scene.backend(), await scene.backend()
    router = await scene.router(gpu, cpus=(cpu,))
    status, answer = await router.chat("hello", model="my-embedding:8b")
    assert status == 400
    assert "does not support generate" in answer["error"]
    assert await breaker(router, "gpu0") == "closed"
    assert (await router.status())["backends"][0]["breaker"]["failures"] == {}


async def test_a_model_that_vanished_from_one_backend_is_found_on_another(scene: Scene) -> None:
    gpu, cpu = await scene.backend(), await scene.backend()
    router = await scene.router(gpu, cpus=(cpu,), probe="60s")
    await router.chat("warm", priority="P1")
    await gpu.behave(models={"orch:30b": 1})
    assert (await router.chat("hello", priority="P1"))[0] == 200
    assert (await cpu.stats())["finished"] == 1


async def test_models_a_backend_lost_are_loaded_again(scene: Scene) -> None:
    gpu = await scene.backend()
    router = await scene.router(gpu)
    await router.chat("a")
    await gpu.forget_models()
    await until(lambda: forgotten(router))
    assert (await router.chat("b"))[0] == 200
    assert (await gpu.stats())["loads"] == ["bg:7b", "bg:7b"]


async def forgotten(router: Router) -> bool:
    return (await router.status())["backends"][0]["loaded"] == []


async def test_full_queues_and_missed_deadlines_are_503_with_retry_after(scene: Scene) -> None:
    gpu = await scene.backend(parallel=1, token=0.02)

    async def refused(deadline: float) -> None:
        router = await scene.router(gpu, queue_limit=1, deadline_p3=f"{deadline}s")
        first = asyncio.create_task(router.chat("first", options={"num_predict": int(200 * deadline)}))
        await until(lambda: begun_or_ended(router, first))
        body = {"model": "bg:7b", "messages": [{"role": "user", "content": "x"}], "stream": False}
        async with (
            router.http.post(f"{router.url}/api/chat", json=body) as late,
            router.http.post(f"{router.url}/v1/chat/completions", json=body) as second,
        ):
            answers = [
                (late.status, await late.json(), late.headers),
                (second.status, await second.json(), second.headers),
            ]
        assert (await first)[0] == 200
        assert [status for status, _, _ in answers] == [503, 503]
        assert all(int(headers["Retry-After"]) >= 1 for _, _, headers in answers)
        assert isinstance(answers[0][1]["error"], str)
        assert answers[1][1]["error"]["type"] == "server_error"

    await at_any_pace(refused)


async def begun_or_ended(router: Router, request: "asyncio.Task[Any]") -> bool:
    return request.done() or await router.has_running(1)


async def test_an_openai_stream_that_breaks_ends_with_an_error_event(scene: Scene) -> None:
    router = await scene.router(
        {
            "name": "a",
            "kind": "openai",
            "url": (await scene.backend(mode="truncate", after=2, token=0.01)).url,
        }
    )
    body = {"model": "plain", "messages": [{"role": "user", "content": "x"}], "stream": True}
    async with router.http.post(f"{router.url}/v1/chat/completions", json=body) as answer:
        events = [line async for line in answer.content if line.startswith(b"data:")]
    assert "error" in json.loads(events[-1][5:])
    assert b"[DONE]" not in b"".join(events)


async def test_with_no_ollama_running_clients_are_told_what_to_do_and_the_log_says_where_and_why(
    scene: Scene, capfd: pytest.CaptureFixture[str]
) -> None:
    port = free_port()
    spec = {"name": "local", "url": f"http://user:SECRET@127.0.0.1:{port}"}
    router = await scene.router(spec, probe="20ms")
    status, answer = await router.chat("x")
    assert status == 503
    assert answer["error"] == (
        "the router gets no answer from its backends (local: it cannot be reached (Connection refused)):"
        " start Ollama there (ollama serve), or correct router.gpu_backends in the router's settings"
    )
    await asyncio.sleep(0.2)
    logged = "".join(capfd.readouterr())
    assert logged.count("backend does not answer") == 1
    assert f"http://127.0.0.1:{port}" in logged
    assert "Connection refused" in logged
    assert "SECRET" not in logged


async def test_a_request_that_found_no_place_in_time_is_told_why(scene: Scene) -> None:
    gpu = await scene.backend(parallel=1, token=0.05)
    router = await scene.router(gpu, deadline_p1="100ms")
    running = asyncio.create_task(router.chat("a", priority="P1", options={"num_predict": 40}))
    await until(lambda: router.has_running(1))
    status, answer = await router.chat("b", priority="P1")
    assert (status, answer["error"]) == (503, "no place in time: all 1 slots are taken")
    running.cancel()
