"""docs/cli.md: what it shows is what the program says. `make docs` writes it anew."""

import os
import subprocess
import sys
from pathlib import Path

import manual
import pytest
from desk import MILL, within

from gristmill.app import ROOMS
from gristmill.db import Tx
from gristmill.db.embedded import Embedded
from gristmill.queue import Envelope, add_schedule, open_group, seal, send_many, set_queue
from mill import Convert, Extract, Fetch, ReadPage, Render

REWRITE = os.environ.get("REWRITE_DOCS") == "1"
WIDTH = 120
PATIENCE = 300.0  # seconds
POISON_ON_PAGE = "15"
AS_PROCESS = (["worker"], ["db", "psql"])  # commands that start or become another program


@pytest.fixture
def mill(speak, embedded: Embedded, monkeypatch: pytest.MonkeyPatch) -> Embedded:
    """A database with some tasks, most of them done, seen from the root of the repository."""
    for name in ("GRISTMILL_DATABASE_URL", "GRISTMILL_APP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GRISTMILL_DATA", str(embedded.data))
    monkeypatch.setenv("GRISTMILL_LOG_LEVEL", "error")
    monkeypatch.setenv("GRISTMILL_DOCUMENTS_PROCESSES", "1")  # a second child would load each model again
    monkeypatch.setenv("PYTHONPATH", f"{manual.ROOT / 'src'}")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    for screen in ("out", "err"):
        monkeypatch.setattr(f"gristmill.cli.output.{screen}.width", WIDTH)
    monkeypatch.chdir(manual.ROOT)
    speak("db", "migrate")
    within(embedded.url(), rest_schedules)
    for send in (send_tasks, send_poison):  # the poison by itself: how many ran beside it would differ
        within(embedded.url(), send)
        run_as_process("worker", "--app", MILL, "--once")
    return embedded


async def send_tasks(tx: Tx) -> None:
    await set_queue(tx, "demo-pages", concurrency=6)
    await set_queue(tx, "demo-extract", rate="5/2s")
    await set_queue(tx, "demo-flaky", retry_base="100ms")
    await set_queue(tx, "demo-poison", max_attempts=2, retry_base="200ms")
    book = await open_group(tx, label="a book of 6 pages", owner="the manual")
    await send_many(tx, [Envelope(ReadPage(n), parent=book) for n in range(1, 7)])
    await seal(tx, book)
    await send_many(tx, [Extract(1), Extract(2), Fetch(1), Convert(0), Convert(1), Convert(2), Render(1)])


async def rest_schedules(tx: Tx) -> None:
    """Whether the time of a schedule comes during the run would differ."""
    for one in (one for room in ROOMS for one in room.schedules):
        await add_schedule(tx, one.name, one.letter, cron=one.cron, patient=True)
    await tx.execute("UPDATE schedule SET next_at = clock() + interval '1 day'")


async def send_poison(tx: Tx) -> None:
    await send_many(tx, [Render(2, poisoned=True)])


async def find_poison(tx: Tx) -> int:
    return await tx.value("SELECT max(id) FROM tasks WHERE kind = 'demo-poison.render'")


def run_as_process(*words: str) -> str:
    command = [sys.executable, "-m", "gristmill", *words]
    said = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    return said.stdout + said.stderr


def run_words(words: list[str], speak) -> str:
    if any(words[: len(start)] == start for start in AS_PROCESS):
        return run_as_process(*words)
    said = speak(*words)
    return said.out + said.err


def run_examples(examples: list[manual.Example], folder: Path, speak, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What each says, with the ids of tasks as the page has them."""
    ids, said = manual.TaskIds(), list[str]()
    ids.add(POISON_ON_PAGE, str(within(Embedded(folder).url(), find_poison)))
    for example in examples:
        with monkeypatch.context() as shell:
            for name, value in example.variables.items():
                shell.setenv(name, value)
            output = run_words(ids.as_run(example.words), speak)
        ids.learn(example.output, output)
        said.append(manual.tidy_output(ids.as_shown(output), folder))
    return said


def test_every_example_says_what_the_page_shows(speak, mill, monkeypatch):
    page = manual.PAGE.read_text()
    examples = list(manual.read_examples(page))
    said = run_examples(examples, mill.data, speak, monkeypatch)
    if REWRITE:
        manual.PAGE.write_text(manual.write_examples(page, said))
        return
    for one, output in zip(examples, said, strict=True):
        assert manual.make_comparable(output) == manual.make_comparable(one.output), one.commands[-1]


def test_every_command_and_option_is_on_the_page():
    page = manual.PAGE.read_text()
    if REWRITE:
        manual.PAGE.write_text(manual.replace_options(page))
    else:
        assert manual.replace_options(page) == page
