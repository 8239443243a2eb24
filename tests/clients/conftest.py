"""A fake backend and routers in front of it, run by the product's own Python for clients of another environment."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PYTHON = os.environ.get("GRISTMILL_PYTHON", str(ROOT / ".venv" / "bin" / "python"))
FAKES = ROOT / "tests" / "router"
GB = 1024**3
MODELS = {"plain:latest": GB, "my-embedding:8b": GB, "text-embedding-3-small:latest": GB}

# the ordinary run has not these clients: its environment is another
collect_ignore_glob = [] if find_spec("instructor") else ["test_*.py"]


@contextmanager
def process(*command: str, **env: str) -> Iterator[int]:
    """A child that tells its port, and ends with the block."""
    child = subprocess.Popen(
        [PYTHON, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **env},
        text=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        yield int(child.stdout.readline())
    finally:
        child.stdin.close()
        child.wait(20)
        child.stdout.close()


@pytest.fixture(scope="session")
def urls() -> Iterator[dict[str, str]]:
    """Where the same fake backend is asked: directly, and through a router that takes it for either kind."""
    with ExitStack() as stack:
        behaviour = json.dumps({"models": MODELS})
        fake = stack.enter_context(process(str(FAKES / "fake_backend.py"), "--behaviour", behaviour))
        found = {"direct": f"http://127.0.0.1:{fake}"}
        for kind in ("ollama", "openai"):
            spec = [{"name": "gpu0", "kind": kind, "url": found["direct"], "parallel": 4}]
            env = {"GRISTMILL_ROUTER_PORT": "0", "GRISTMILL_ROUTER_GPU_BACKENDS": json.dumps(spec)}
            port = stack.enter_context(process(str(FAKES / "router_process.py"), **env))
            found[kind] = f"http://127.0.0.1:{port}"
        yield found
