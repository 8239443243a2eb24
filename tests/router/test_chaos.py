"""Kill, hang and slow every backend under mixed load: nothing lost, nothing twice, nothing mixed up."""

import asyncio
import json
import random
from collections import Counter
from typing import Any

from .conftest import Fake, Router, Scene, until

REQUESTS, CLIENTS = 2400, 40
MODELS = {"P0": "orch:30b", "P1": "plain", "P2": "eyes:7b", "P3": "bg:7b"}
TROUBLE: list[dict[str, Any]] = [
    {"mode": "hang"},
    {"mode": "error"},
    {"mode": "truncate", "after": 2},
    {"mode": "throttle"},
    {"token": 0.02},
    {"cancel": 0.1},
    {"mode": "garbage"},
]
SHORT = {
    "breaker_cooldown": "300ms",
    "min_residency": "50ms",
    "finish_grace": "100ms",
    "aging": "500ms",
    "trickle": "100ms",
    "reserve_idle": "1s",
    **{f"deadline_p{level}": "90s" for level in range(4)},
}
CALM = {"mode": "ok", "token": 0.0, "cancel": 0.0}


async def one(router: Router, number: int, dice: random.Random) -> str:
    """One request of any kind; what became of it."""
    priority = dice.choice(("P0", "P1", "P2", "P3", "P3", "P3"))
    stream, openai, leaves = dice.random() < 0.4, dice.random() < 0.4, dice.random() < 0.03
    text = f"request-{number}-end"
    body = {"model": MODELS[priority], "messages": [{"role": "user", "content": text}], "stream": stream}
    path = "/v1/chat/completions" if openai else "/api/chat"
    headers = {
        "X-Ollama-Priority": priority,
        "X-Router-Session": f"s{number % 3}",
        **({"X-Router-Holdback": "0"} if dice.random() < 0.2 else {}),
    }
    try:
        async with (
            asyncio.timeout(0.02 if leaves else 100),
            router.http.post(router.url + path, json=body, headers=headers) as answer,
        ):
            raw = await answer.read()
    except TimeoutError:
        assert leaves, f"{text} ({priority}) was never answered"
        return "left"
    if answer.status != 200:
        assert answer.status in (500, 502, 503, 504, 429), (answer.status, raw)
        assert b"error" in raw
        return "refused"
    return told(raw, text, stream, openai)


def told(raw: bytes, text: str, stream: bool, openai: bool) -> str:
    """Whether an answer is whole, or says that it is not; its text must be this request's, once."""
    if not stream:
        body = json.loads(raw)
        said = body["choices"][0]["message"]["content"] if openai else body["message"]["content"]
        assert said == f"echo {text} w0 w1 w2 w3 w4 w5 w6"
        return "answered"
    lines = [line[5:].strip() if openai else line for line in raw.splitlines() if line.strip()]
    events = [json.loads(line) for line in lines if line != b"[DONE]"]
    if "error" in events[-1]:
        assert lines[-1] != b"[DONE]"
        assert not any(event.get("done") for event in events)
        return "broken off"
    said = "".join(
        (e["choices"][0]["delta"].get("content") or "") if openai else e["message"]["content"]
        for e in events
        if not openai or e["choices"]
    )
    assert said == f"echo {text} w0 w1 w2 w3 w4 w5 w6"
    assert lines[-1] == b"[DONE]" if openai else events[-1]["done"]
    return "answered"


async def troubled(fakes: list[Fake], dice: random.Random, stop: asyncio.Event) -> int:
    """One backend after the other gets into trouble and out of it; the last one never does."""
    rounds = 0
    while not stop.is_set():
        fake = fakes[rounds % (len(fakes) - 1)]
        if rounds % 5 == 4:
            await fake.kill()
            await asyncio.sleep(0.15)
            await fake.restart()
        else:
            await fake.behave(**dice.choice(TROUBLE))
            await asyncio.sleep(0.25)
            await fake.behave(**CALM)
        rounds += 1
        await asyncio.sleep(0.1)
    return rounds


async def test_under_chaos_nothing_is_lost_nothing_comes_twice_and_nothing_is_mixed_up(scene: Scene) -> None:
    """Where the machine is too busy for most answers to come in time, they get more of it."""
    if await chaos(scene, patience=0.6) <= REQUESTS * 0.5:
        assert await chaos(scene, patience=6) > REQUESTS * 0.5


async def chaos(scene: Scene, patience: float) -> int:
    """How many requests were answered."""
    dice = random.Random(4)
    fakes = [
        await scene.backend(parallel=4),
        await scene.backend(parallel=4),
        await scene.backend(parallel=8),
    ]
    gpus = [{"name": f"gpu{n}", "url": fake.url, "parallel": 4, "vram": "24GB"} for n, fake in enumerate(fakes[:2])]
    steady = {"name": "steady", "url": fakes[2].url, "parallel": 8, "vram": "48GB"}
    await fakes[2].behave(vram=48 * 1024**3)
    router = await scene.router(
        *gpus,
        steady,
        process=True,
        orchestrator_models=["orch:30b"],
        background_models=["bg:7b"],
        **{f"{what}_timeout": f"{patience}s" for what in ("header", "idle", "load")},
        release_wait=f"{patience}s",
        **SHORT,
    )
    numbers, ends, stop = iter(range(REQUESTS)), Counter[str](), asyncio.Event()

    async def client() -> None:
        for number in numbers:
            ends[await one(router, number, dice)] += 1

    trouble = asyncio.create_task(troubled(fakes, dice, stop))
    async with asyncio.timeout(240):
        await asyncio.gather(*(client() for _ in range(CLIENTS)))
    stop.set()
    assert await trouble > 2
    assert ends.total() == REQUESTS
    await until(lambda: _at_rest(router))
    counted = await router.metric("requests_total")
    # who left may have done so before the router had read its request
    assert REQUESTS - ends["left"] <= counted <= REQUESTS
    return ends["answered"]


async def _at_rest(router: Router) -> bool:
    status = await router.status()
    return not status["running"] and not status["waiting"]
