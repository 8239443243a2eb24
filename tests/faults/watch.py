"""Worker processes of a test, ended by their pids whatever happens, and what must be true after any fault."""

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import psutil
from engine import audit
from plant import LEDGER

from gristmill.db import Database

MILL = Path(__file__).with_name("plant.py")
PATIENCE = 6  # times what a machine of two cores needs: others may be busy on it


class Crew:
    """Starts processes and ends them all."""

    def __init__(self, url: str, folder: Path, **options: Any) -> None:
        self.url = url
        self.starts = folder / "starts"
        self.log = folder / "log"
        self._options = options
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, **options: Any) -> subprocess.Popen[bytes]:
        """One process; an option that is True stands for itself."""
        given = {"url": self.url, "starts": self.starts, **self._options, **options}
        words = [f"--{key.replace('_', '-')}" + ("" if value is True else f"={value}") for key, value in given.items()]
        with self.log.open("ab") as log:
            process = subprocess.Popen([sys.executable, str(MILL), *words], stderr=log, stdin=subprocess.DEVNULL)
        self._processes.append(process)
        return process

    def end(self) -> None:
        """Gently first; what has not ended after a few seconds is killed, with all that it started."""
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        deadline = monotonic() + 8
        for process in self._processes:
            try:
                process.wait(max(0.1, deadline - monotonic()))
            except subprocess.TimeoutExpired:
                for child in family(process.pid):
                    os.kill(child, signal.SIGKILL)
                process.kill()
                process.wait()

    def started(self) -> Counter[int]:
        """How often each handler began."""
        if not self.starts.exists():
            return Counter()
        return Counter(int(line.split()[0]) for line in self.starts.read_text().splitlines())

    def interrupted(self) -> dict[int, float]:
        """When each handler was last interrupted, on the clock of `monotonic`."""
        file = self.starts.with_suffix(".interrupted")
        lines = file.read_text().splitlines() if file.exists() else []
        return {int(n): float(when) for n, _, when in map(str.split, lines)}

    def said(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""


def family(pid: int) -> list[int]:
    """All that a process started, and what those started."""
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


@asynccontextmanager
async def crew(url: str, folder: Path, **options: Any) -> AsyncIterator[Crew]:
    """A crew and a ledger; if the test fails, the end of what the processes said is shown."""
    async with Database(url) as db, db.transaction() as tx:
        await tx.execute(LEDGER)
    made = Crew(url, folder, **options)
    try:
        yield made
    except BaseException:
        sys.stderr.write(made.said()[-6000:])
        raise
    finally:
        await asyncio.to_thread(made.end)


async def until(holds: Callable[[], Awaitable[bool]], seconds: float, what: str = "it") -> None:
    """Wait for it, but not for ever."""
    limit = seconds * PATIENCE
    deadline = monotonic() + limit
    while not await holds():
        assert monotonic() < deadline, f"{what} did not come true within {limit:g} s"
        await asyncio.sleep(0.05)


def closed(db: Database) -> Callable[[], Awaitable[bool]]:
    """Whether nothing is open any more."""

    async def nothing_open() -> bool:
        return await ask(db, "SELECT NOT EXISTS (SELECT FROM task WHERE outcome IS NULL)")

    return nothing_open


async def ask(db: Database, query: Any, **params: Any) -> Any:
    async with db.transaction() as tx:
        return await tx.value(query, **params)


async def proven(db: Database, expected: Iterable[int], dead: Iterable[int] = ()) -> None:
    """Nothing lost, nothing twice, no innocent buried, all books in balance."""
    async with db.transaction() as tx:
        counts = {row.n: row.count for row in await tx.all("SELECT n, count FROM ledger")}
        wanted = set(expected)
        assert counts.keys() ^ wanted == set(), f"lost or not asked for: {sorted(counts.keys() ^ wanted)[:10]}"
        assert {n: count for n, count in counts.items() if count != 1} == {}
        buried = await tx.all(
            "SELECT (payload->>'n')::bigint AS n, error FROM task WHERE outcome = 'failed' AND queue IS NOT NULL"
        )
        assert sorted(row.n for row in buried) == sorted(dead), buried[:5]
        await audit(tx)
