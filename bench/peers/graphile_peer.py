"""graphile-worker on Node: jobs are added by its SQL functions and run by graphile_worker.mjs."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
from bench.peers.peer import Send, main

HERE = Path(__file__).parent
HOME = HERE.parent / "out" / "graphile"
PROGRAM = "graphile_worker.mjs"
AT_ONCE = 10_000
ADD_JOBS = """
SELECT count(*) FROM graphile_worker.add_jobs(
  ARRAY(SELECT json_populate_record(NULL::graphile_worker.job_spec, '{"identifier": "noop", "payload": {}}')
          FROM generate_series(1, %s)))
"""


def provide() -> str | None:
    """Install it by npm unless it is there; the reason if that cannot be."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node or not npm:
        return "node and npm are not installed"
    version = _version(node)
    HOME.mkdir(parents=True, exist_ok=True)
    mark = HOME / f"installed-{version}"
    if not mark.exists():
        (HOME / "package.json").write_text('{"private": true}\n')
        command = [npm, "install", "--no-audit", "--no-fund", "--silent", f"graphile-worker@{version}"]
        try:
            made = subprocess.run(command, cwd=HOME, capture_output=True, text=True, timeout=180, check=False)
        except subprocess.TimeoutExpired:
            return "npm install took more than three minutes"
        if made.returncode:
            return f"npm install failed: {made.stderr.strip().splitlines()[-1:]}"
        mark.touch()
    shutil.copy(HERE / PROGRAM, HOME / PROGRAM)  # Node looks for packages beside the program
    return None


def _version(node: str) -> str:
    """The newest release that this Node can run."""
    said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=20, check=True).stdout
    major, minor = (int(part) for part in said.strip().lstrip("v").split(".")[:2])
    return "0.18.0" if (major, minor) >= (22, 18) else "0.17.3"


async def install(url: str) -> None:
    command = ["node", str(HOME / PROGRAM), "install", url]
    await asyncio.to_thread(subprocess.run, command, check=True, timeout=60)
    # the kind of job must be known before thousands of them are added
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute("SELECT graphile_worker.add_job('noop')")
        await connection.execute("DELETE FROM graphile_worker._private_jobs")


async def load(url: str, count: int) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        for start in range(0, count, AT_ONCE):
            await connection.execute(ADD_JOBS, [min(AT_ONCE, count - start)])


@asynccontextmanager
async def sender(url: str) -> AsyncIterator[Send]:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True, prepare_threshold=0) as connection:

        async def send() -> None:
            await connection.execute("SELECT graphile_worker.add_job('noop', '{}')")

        yield send


if __name__ == "__main__":
    if sys.argv[1] == "work":
        os.execvp("node", ["node", str(HOME / PROGRAM), *sys.argv[1:]])
    main(sys.modules[__name__])
