"""What passes the router and what does not: headers, sizes, bad input, keys, secrets."""

import asyncio
import json
import logging

import pytest

from .conftest import Scene, until

CHAT = {"model": "plain", "messages": [{"role": "user", "content": "hello"}], "stream": False}


async def test_hop_by_hop_headers_are_stripped_in_both_directions(scene: Scene) -> None:
    gpu = await scene.backend()
    router = await scene.router(gpu)
    sent = {
        "Connection": "keep-alive, X-Private",
        "X-Private": "1",
        "Keep-Alive": "5",
        "TE": "trailers",
        "X-Trace": "abc",
        "Authorization": "Bearer client",
        "Cookie": "a=b",
    }
    async with router.http.post(f"{router.url}/api/chat", json={**CHAT, "stream": True}, headers=sent) as answer:
        await answer.read()
        assert answer.headers["X-Fake"] == "yes"
        assert "X-Hop" not in answer.headers
        assert answer.headers["Content-Type"] == "application/x-ndjson"
    seen = (await gpu.stats())["headers"][-1]
    assert seen["x-trace"] == "abc"
    assert not set(seen) & {"x-private", "keep-alive", "te", "authorization", "cookie", "connection"}


async def test_a_whole_answer_has_its_right_length_and_no_encoding(scene: Scene) -> None:
    router = await scene.router(await scene.backend())
    async with router.http.post(f"{router.url}/api/chat", json=CHAT, headers={"Accept-Encoding": "gzip"}) as answer:
        body = await answer.read()
        assert int(answer.headers["Content-Length"]) == len(body)
        assert "Content-Encoding" not in answer.headers
        assert "Transfer-Encoding" not in answer.headers


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b"{", "not valid JSON"),
        (b"[]", "must be a JSON object"),
        (b"\xff\xfe", "not valid JSON"),
        (b"{}", "model is required"),
        (b'{"model": 3}', "model must be a string"),
        (b'{"model": "plain", "stream": "yes"}', "stream must be true or false"),
    ],
)
async def test_malformed_bodies_are_400_in_the_style_of_the_api(scene: Scene, body: bytes, complaint: str) -> None:
    router = await scene.router(await scene.backend())
    async with router.http.post(f"{router.url}/api/chat", data=body) as answer:
        assert (answer.status, complaint in (await answer.json())["error"]) == (400, True)
    async with router.http.post(f"{router.url}/v1/chat/completions", data=body) as answer:
        error = (await answer.json())["error"]
        assert (answer.status, error["type"], complaint in error["message"]) == (
            400,
            "invalid_request_error",
            True,
        )


@pytest.mark.parametrize(
    "body",
    [
        {"model": "plain", "messages": "hello"},
        {"model": "plain", "messages": [3]},
        {"model": "plain", "messages": [{"role": "user", "content": [{"type": "sound"}]}]},
        {"model": "plain", "messages": [{"role": "assistant", "tool_calls": [{}]}]},
        {
            "model": "plain",
            "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x/y.png"}}]}],
        },
        {"model": "plain", "messages": [], "n": 0},
        {"model": "plain", "messages": [], "n": "two"},
        {"model": "plain", "messages": [], "n": 1000},
    ],
)
async def test_a_body_that_cannot_be_translated_is_400_and_takes_no_slot(scene: Scene, body: dict) -> None:
    router = await scene.router(await scene.backend())
    async with router.http.post(f"{router.url}/v1/chat/completions", json=body) as answer:
        assert answer.status == 400
    assert await router.taken() == 0


async def test_a_body_over_the_limit_is_413(scene: Scene) -> None:
    router = await scene.router(await scene.backend(), body_limit=2048)
    large = {**CHAT, "messages": [{"role": "user", "content": "x" * 4000}]}
    async with router.http.post(f"{router.url}/api/chat", json=large) as answer:
        assert answer.status == 413
        assert "larger than 2048" in (await answer.json())["error"]

    async def pieces():
        yield json.dumps(large).encode()

    async with router.http.post(f"{router.url}/v1/chat/completions", data=pieces()) as answer:
        assert answer.status == 413
        assert "larger than 2048" in (await answer.json())["error"]["message"]


async def test_wrong_methods_and_unknown_paths_are_told_apart(scene: Scene) -> None:
    router = await scene.router(await scene.backend())
    for method, path, status in (
        ("GET", "/api/chat", 405),
        ("GET", "/nothing", 404),
        ("POST", "/v1/nothing", 404),
        ("POST", "/router/nothing", 404),
        ("HEAD", "/", 200),
        ("GET", "/healthz", 200),
        ("GET", "/readyz", 200),
    ):
        async with router.http.request(method, f"{router.url}{path}") as answer:
            assert (path, answer.status) == (path, status)


async def test_an_unknown_path_is_told_in_the_style_of_the_api_and_not_as_a_missing_model(scene: Scene) -> None:
    router = await scene.router(await scene.backend())
    async with router.http.post(f"{router.url}/v1/nothing", json={}) as answer:
        error = (await answer.json())["error"]
    assert error == {
        "message": "there is no call POST /v1/nothing here",
        "type": "invalid_request_error",
        "param": None,
        "code": "unknown_url",
    }
    async with router.http.get(f"{router.url}/api/nothing") as answer:
        assert await answer.json() == {"error": "there is no call GET /api/nothing here"}
    async with router.http.post(f"{router.url}/v1/chat/completions", json={**CHAT, "model": "nope"}) as answer:
        assert (await answer.json())["error"]["code"] == "model_not_found"


@pytest.mark.parametrize("wrong", ["urgent!", "", "0", "3", "10", "49", "101", "1" + "0" * 23, "-1", "9e1", "٦٠"])
async def test_a_priority_that_is_none_is_refused(scene: Scene, wrong: str) -> None:
    router = await scene.router(await scene.backend())
    asked = {"X-Ollama-Priority": wrong}
    async with router.http.post(f"{router.url}/api/chat", json=CHAT, headers=asked) as answer:
        assert (answer.status, (await answer.json())["error"]) == (
            400,
            "X-Ollama-Priority must be P0, P1, P2, P3 or a whole number from 50 to 100",
        )


@pytest.mark.parametrize(
    ("header", "priority"), [("p0", "P0"), ("100", "P0"), ("99", "P1"), ("75", "P1"), ("74", "P2"), ("50", "P3")]
)
async def test_a_priority_may_be_a_number(scene: Scene, header: str, priority: str) -> None:
    router = await scene.router(await scene.backend())
    assert (await router.chat("x", priority=header))[0] == 200
    assert await router.metric(f'requests_total{{api="ollama",priority="{priority}",status="200"}}') == 1


async def test_keys_cap_the_priority_and_strangers_keys_are_refused(scene: Scene) -> None:
    keys = [{"name": "batch", "key": "k-batch", "max_priority": "P3"}, {"name": "boss", "key": "k-boss"}]
    router = await scene.router(await scene.backend(), keys=keys, anonymous_max_priority="P1")
    for key, priority in (("Bearer k-batch", "P3"), ("Bearer k-boss", "P0"), (None, "P1")):
        before = await router.metric(f'requests_total{{api="ollama",priority="{priority}",status="200"}}')
        await router.chat("x", priority="100", headers={"Authorization": key} if key else {})
        assert await router.metric(f'requests_total{{api="ollama",priority="{priority}",status="200"}}') == before + 1
    for wrong in ("Bearer k-other", "Basic k-boss", "Bearer "):
        assert (await router.chat("x", headers={"Authorization": wrong}))[0] == 401


async def test_networks_cap_the_priority(scene: Scene) -> None:
    router = await scene.router(await scene.backend(), networks=[{"network": "127.0.0.0/8", "max_priority": "P2"}])
    await router.chat("x", priority="P0")
    assert await router.metric('requests_total{api="ollama",priority="P2",status="200"}') == 1


async def test_the_routers_own_calls_need_its_admin_key_when_one_is_set(scene: Scene) -> None:
    router = await scene.router(await scene.backend(), admin_key="k-admin", keys=[{"name": "user", "key": "k-user"}])
    for key, status in ((None, 403), ("k-user", 403), ("k-admin", 200), ("k-nobody", 403)):
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        async with router.http.get(f"{router.url}/router/status", headers=headers) as answer:
            assert (key, answer.status) == (key, status)


async def test_a_key_with_admin_rights_closes_the_routers_own_calls_to_everybody_else(scene: Scene) -> None:
    keys = [{"name": "user", "key": "k-user"}, {"name": "chief", "key": "k-chief", "admin": True}]
    router = await scene.router(await scene.backend(), keys=keys)
    for key, status in ((None, 403), ("k-user", 403), ("k-chief", 200), ("k-nobody", 403)):
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        async with router.http.get(f"{router.url}/router/status", headers=headers) as answer:
            assert (key, answer.status) == (key, status)


async def test_the_routers_own_calls_are_closed_to_the_world_without_an_admin_key(scene: Scene) -> None:
    router = await scene.router(await scene.backend(), host="0.0.0.0")
    async with router.http.post(f"{router.url}/router/drain", json={}) as answer:
        assert answer.status == 403


async def test_a_web_page_cannot_command_a_router_on_loopback(scene: Scene) -> None:
    router = await scene.router(await scene.backend())
    async with router.http.post(f"{router.url}/router/drain", headers={"Origin": "http://evil.example"}) as answer:
        assert answer.status == 403


async def test_draining_refuses_new_work_finishes_the_old_and_can_be_resumed(scene: Scene) -> None:
    router = await scene.router(await scene.backend(token=0.03))
    running = asyncio.create_task(router.chat("x", options={"num_predict": 20}))
    await until(lambda: router.has_running(1))
    waiting = asyncio.create_task(router.http.post(f"{router.url}/router/drain", json={"wait": True}))
    await until(lambda: _drains(router))
    assert (await router.chat("y"))[0] == 503
    async with router.http.get(f"{router.url}/readyz") as answer:
        assert answer.status == 503
    assert (await running)[0] == 200
    assert (await (await waiting).json())["status"] == "drained"
    async with router.http.post(f"{router.url}/router/drain", json={"resume": True}) as answer:
        assert (await answer.json())["status"] == "resumed"
    assert (await router.chat("z"))[0] == 200


async def _drains(router) -> bool:
    return (await router.status())["draining"]


async def test_status_says_what_runs_what_waits_and_why(scene: Scene) -> None:
    gpu = await scene.backend(parallel=1, token=0.05)
    router = await scene.router(gpu)
    first = asyncio.create_task(router.chat("a", options={"num_predict": 20}))
    await until(lambda: router.has_running(1))
    second = asyncio.create_task(router.chat("b", options={"num_predict": 1}))
    status = await until(lambda: _with_waiting(router))
    assert status["running"][0].items() >= {"priority": "P3", "model": "bg:7b", "phase": "running"}.items()
    assert status["waiting"][0]["why"] == "all 1 slots are taken"
    assert status["queues"] == {"P0": 0, "P1": 0, "P2": 0, "P3": 1}
    backend = status["backends"][0]
    assert backend["loaded"][0]["vram"] == backend["vram_used"] > 0
    assert backend["breaker"]["state"] == "closed"
    await asyncio.gather(first, second)


async def _with_waiting(router):
    status = await router.status()
    return status if status["waiting"] else None


async def test_nothing_of_a_request_or_key_is_logged_or_shown(
    scene: Scene, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    gpu = await scene.backend(mode="error")
    router = await scene.router(gpu, keys=[{"name": "me", "key": "SECRET-KEY"}])
    headers = {"Authorization": "Bearer SECRET-KEY", "X-Router-Session": "SECRET-SESSION"}
    await router.chat("SECRET-PROMPT", priority="P0", headers=headers)
    await router.chat("SECRET-PROMPT", model="SECRET-MODEL", headers=headers)
    shown = json.dumps(await router.status()) + await router.metrics()
    out, err = capfd.readouterr()
    assert "attempt failed" in out + err
    assert "SECRET" not in out + err + caplog.text + shown


async def test_a_client_cannot_grow_the_metrics(scene: Scene) -> None:
    router = await scene.router({"name": "any", "kind": "openai", "url": (await scene.backend()).url, "models": ["*"]})
    for number in range(100):
        await router.chat("x", model=f"made-up-{number}")
    labels = {
        line.split('model="')[1].split('"')[0] for line in (await router.metrics()).splitlines() if 'model="' in line
    }
    assert len(labels) <= 65


async def test_a_large_body_may_be_announced_with_expect(scene: Scene) -> None:
    router = await scene.router(await scene.backend())
    async with router.http.post(f"{router.url}/api/chat", json=CHAT, expect100=True) as answer:
        assert answer.status == 200
