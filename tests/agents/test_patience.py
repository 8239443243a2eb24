"""What is waited for is said: by an answer that does not begin, and by a step whose model is slow."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web
from script import Script, carry, load_steps, say, understood
from workbench import Workbench

from gristmill.agents import patience
from gristmill.agents.checks import check_model
from gristmill.agents.patience import Silence, notice_silence, wait_aloud
from gristmill.agents.runs import list_step_lines
from gristmill.agents.watching import watch_run
from gristmill.db import Database
from gristmill.errors import Transient
from gristmill.settings import LlmSettings, Settings

SOON = 0.01


class Slow:
    """Pieces that come when the test says so."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.closed = False

    async def stream(self) -> AsyncGenerator[str]:
        try:
            await self.go.wait()
            yield "one"
            yield "two"
        finally:
            self.closed = True


async def test_a_silence_before_the_first_piece_is_noticed_and_no_piece_is_lost() -> None:
    slow = Slow()
    heard: list[Any] = []
    async for piece in notice_silence(slow.stream(), SOON):
        heard.append(piece)
        slow.go.set()
    assert isinstance(heard[0], Silence)
    assert heard[1:] == ["one", "two"]


async def test_who_stops_listening_ends_the_call() -> None:
    slow = Slow()
    async with aclosing(notice_silence(slow.stream(), SOON)) as pieces:
        assert isinstance(await anext(pieces), Silence)
    assert slow.closed


async def test_an_error_of_the_model_reaches_the_listener() -> None:
    async def fail() -> AsyncGenerator[str]:
        yield "one"
        raise Transient("It is away.")

    heard: list[Any] = []

    async def listen() -> None:
        async for piece in notice_silence(fail()):
            heard.append(piece)

    with pytest.raises(Transient, match="away"):
        await listen()
    assert heard == ["one"]


async def test_work_that_takes_long_is_told_of_and_ends_with_its_caller() -> None:
    told, go, was_cancelled = asyncio.Event(), asyncio.Event(), False

    async def work() -> str:
        nonlocal was_cancelled
        try:
            await go.wait()
        except asyncio.CancelledError:
            was_cancelled = True
            raise
        return "done"

    async def tell(seconds: int) -> None:
        del seconds
        told.set()

    waiting = asyncio.create_task(wait_aloud(work(), tell, SOON))
    await told.wait()
    go.set()
    assert await waiting == "done"
    go.clear()
    told.clear()
    waiting = asyncio.create_task(wait_aloud(work(), tell, SOON))
    await told.wait()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert was_cancelled


async def test_whoever_watches_a_run_is_told_that_its_model_is_silent(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience.wait_aloud, "__defaults__", (SOON,))
    script = Script(intake=understood("ADVICE", "Say when."), act=say("done"), respond="I do not know.")
    script.fault_at, script.hangs = 0, True
    await bench.begin("When was the mill built?")
    carrying = asyncio.create_task(carry(bench, script))
    async with aclosing(watch_run(bench.db.reading, bench.run)) as all_news:
        waiting = await anext(step async for news in all_news for step in news.steps if step.note)
    assert waiting.note is not None
    assert waiting.note.startswith("The model small has not answered for")
    script.let_go()
    assert await carrying is not None
    async with bench.db.reading() as tx:
        assert [one.note for one in await list_step_lines(tx, bench.run)] == [None] * len(await load_steps(bench))


# --- the doctor


async def examine(db: Database, url: str, **more: Any) -> tuple[str, str]:
    llm = LlmSettings(url=url, timeout=timedelta(seconds=5), **more)
    async with db.reading() as tx:
        found = await check_model(tx, Settings(llm=llm))
    return found.verdict, f"{found.sentence} {found.advice}"


async def test_the_doctor_says_whether_the_model_is_there(db: Database) -> None:
    async def list_tags(request: web.Request) -> web.Response:
        del request
        return web.json_response({"models": [{"name": "qwen:latest"}]})

    app = web.Application()
    app.router.add_get("/api/tags", list_tags)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        assert (await examine(db, url))[0] == "ok"  # none is configured
        assert await examine(db, url, model="qwen") == ("ok", "The LLM router has qwen. ")
        verdict, said = await examine(db, url, model="gemma")
        assert verdict == "warn"
        assert "no model gemma" in said
        assert "It has qwen:latest" in said
    finally:
        await runner.cleanup()
    verdict, said = await examine(db, "http://127.0.0.1:9", model="qwen")
    assert verdict == "warn"
    assert "nothing listens there" in said
