"""The command line as tests use it: `cli("task", "list")` runs in this process, on a database of its own."""

import asyncio
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from desk import EXAMPLES, MILL, Cli, Said, within

from gristmill.cli import main
from gristmill.cli.handlers import open_handlers
from gristmill.db import Database
from gristmill.db.embedded import Embedded
from gristmill.queue import Letter, Worker, send_many
from gristmill.settings import Settings

sys.path.insert(0, str(EXAMPLES))  # its letters are ours


@pytest.fixture
def speak(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Cli:
    """Run a command, wherever its database may be."""
    monkeypatch.chdir(tmp_path)
    # the logger keeps the stream it was set up with, and this one ends with the test
    monkeypatch.setattr("gristmill.cli.session.set_up_logs", lambda _: None)
    monkeypatch.setattr("gristmill.cli.doctor.set_up_logs", lambda _: None)

    def run(*words: object) -> Said:
        capsys.readouterr()
        monkeypatch.setattr("gristmill.cli.output._warned", set())  # a process prints a warning once; this is a new one
        code = main([str(word) for word in words])
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return run


@pytest.fixture
def cli(speak: Cli, url: str, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run a command on a fresh database."""
    monkeypatch.setenv("GRISTMILL_DATABASE_URL", url)
    return speak


@pytest.fixture
def sent(url: str) -> Callable[..., list[int]]:
    """Send letters."""

    def send(*letters: Letter) -> list[int]:
        return [int(task) for task in within(url, lambda tx: send_many(tx, letters))]

    return send


@pytest.fixture
def ground(url: str) -> Callable[[], None]:
    """Let a worker answer everything that waits."""

    async def work() -> None:
        async with Database(url) as db, open_handlers(MILL, db, Settings()) as handlers:
            await Worker(db, handlers, until_idle=True, maintenance=False).run()

    return lambda: asyncio.run(work())


@pytest.fixture
def embedded() -> Iterator[Embedded]:
    """A database of its own, which commands start; in a folder that every user may enter, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="gm-"))
    folder.chmod(0o755)
    database = Embedded(folder / "data")
    yield database
    database.stop("immediate")
    shutil.rmtree(database.socket_folder, ignore_errors=True)
    shutil.rmtree(folder)
