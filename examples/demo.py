"""The demonstration behind `make run`: sends work to six queues, starts workers, shows what they do, sums it up.

`--once` ends when everything is done; without it the workers go on serving until Ctrl-C.
"""

import asyncio
import json
import os
import signal
import sys
import time
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from gristmill.db import Database, Tx, open_database
from gristmill.errors import GristmillError
from gristmill.ids import TaskId
from gristmill.queue import (
    Envelope,
    GroupProgress,
    Letter,
    QueueReport,
    Why,
    dead,
    forget_owners,
    get_task,
    group_progress,
    list_queues,
    open_group,
    resume,
    seal,
    send,
    send_many,
    set_queue,
    why,
)
from gristmill.settings import load
from mill import BindBook, Convert, Extract, Fetch, ReadPage, Render

APP = Path(__file__).with_name("mill.py")
OWNER = "the demonstration"
PAGES = 60
LONGEST = 90.0  # seconds; it takes about 20
QUEUES: Mapping[str, Mapping[str, Any]] = {
    "demo-pages": {"concurrency": 6},
    "demo-extract": {"rate": "5/2s"},
    "demo-flaky": {"retry_base": "500ms", "retry_cap": "2s"},
    "demo-broken": {},
    "demo-poison": {"max_attempts": 2, "retry_base": "200ms"},
}
NOTES = {
    "demo-pages": "60 pages of one book, 6 at once",
    "demo-extract": "5 calls in 2 s, no more",
    "demo-flaky": "fails twice, then works",
    "demo-broken": "can never work: two causes",
    "demo-poison": "one of them kills its worker process",
}
LOOK_AROUND = (
    "gristmill queue list",
    "gristmill queue watch",
    "gristmill dead clusters",
    "gristmill task list --queue demo-poison",
    "gristmill task why {poison}",
    "gristmill task send demo-extract.facts '{{\"item\": 7}}' --foreground --app examples/mill.py:handlers",
    "gristmill doctor",
)
NOBODY = TaskId(0)
console = Console(highlight=False)


def say(line: str) -> None:
    console.print(line, markup=False, soft_wrap=True)


@dataclass
class Show:
    """What was sent and what is known of it so far."""

    began: float = field(default_factory=time.monotonic)
    book: TaskId = NOBODY
    poison: TaskId = NOBODY
    last: TaskId = NOBODY
    waited: Why | None = None
    question: TaskId | None = None
    overtaken: int = 0
    over: bool = False
    asked_at: float = 0.0
    before: dict[str, QueueReport] = field(default_factory=dict)
    queues: list[QueueReport] = field(default_factory=list)
    progress: GroupProgress | None = None
    events: deque[str] = field(default_factory=lambda: deque(maxlen=7))

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def happened(self, sentence: str) -> None:
        line = f"{self.seconds:5.1f} s  {sentence}"
        self.events.append(line)
        if not console.is_terminal:
            say(line)

    def count(self, queue: QueueReport, outcome: str) -> int:
        """How many ended so since we began: the books of a queue go back further."""
        before = self.before.get(queue.name)
        return queue.finished[outcome] - (before.finished[outcome] if before else 0)


async def main(once: bool) -> None:
    settings = load()
    console.print("Opening the database …")
    async with open_database(settings) as db:
        show = Show()
        await tidy(db)
        await fill(db, show)
        async with workers(show):
            await watch(db, show)
            await sum_up(db, show)
            if not once:
                await serve(show)


# --- what is sent


async def tidy(db: Database) -> None:
    """Take away what an earlier demonstration left, and set up the queues."""
    async with db.transaction() as tx:
        await forget_owners(tx, [OWNER])
        for queue, changes in QUEUES.items():
            await set_queue(tx, queue, **changes)
            await resume(tx, queue)


async def fill(db: Database, show: Show) -> None:
    async with db.transaction() as tx:
        show.before = {queue.name: queue for queue in await list_queues(tx)}
        show.book = await open_group(tx, label="a book of 60 pages", owner=OWNER)
        await send_many(tx, [Envelope(ReadPage(page), parent=show.book) for page in range(1, PAGES + 1)])
        await seal(tx, show.book)
        await send(tx, BindBook(PAGES), after=show.book, owner=OWNER)
        show.last = (await send_all(tx, [Extract(item) for item in range(1, 31)]))[-1]
        await send_all(tx, [Fetch(item) for item in range(1, 7)])
        await send_all(tx, [Convert(item) for item in range(1, 8)])
        renders = await send_all(tx, [Render(item, poisoned=item == 2) for item in range(1, 5)])
        show.poison = renders[1]
    console.print(f"Sent {PAGES + 48} tasks to {len(QUEUES)} queues.")


async def send_all(tx: Tx, letters: Sequence[Letter]) -> list[TaskId]:
    """With an owner, they live as long as it does: the next demonstration forgets them."""
    return await send_many(tx, [Envelope(letter, owner=OWNER) for letter in letters])


async def ask(db: Database, show: Show) -> None:
    """A person wants something: it goes before all that waits in the same queue."""
    async with db.transaction() as tx:
        extract = next(queue for queue in await list_queues(tx) if queue.name == "demo-extract")
        show.overtaken = extract.ready.n
        show.waited = await why(tx, show.last)
        show.question = await send(tx, Extract(0, asked_by="a person"), foreground=True, owner=OWNER)
    show.asked_at = show.seconds
    show.happened(f"a person asks: task {show.question} goes before {show.overtaken} that wait")


# --- who does it


@asynccontextmanager
async def workers(show: Show) -> AsyncGenerator[None]:
    """`gristmill worker` with two processes; its log tells us what happens."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "gristmill",
        "worker",
        "--app",
        f"{APP}:handlers",
        "--processes",
        "2",
        "--concurrency",
        "8",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is ours: we tell it to stop
        env={**os.environ, "GRISTMILL_LOG_JSON_LINES": "true", "GRISTMILL_LOG_LEVEL": "info"},  # noqa: TID251 its own
    )
    listening = asyncio.create_task(listen(process, show))
    try:
        yield
    finally:
        show.over = True
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        await process.wait()
        listening.cancel()


async def listen(process: asyncio.subprocess.Process, show: Show) -> None:
    assert process.stderr
    async for line in process.stderr:
        with suppress(ValueError):
            event = json.loads(line)
            if not show.over and isinstance(event, dict) and (sentence := told(event)):
                show.happened(sentence)
    if await process.wait() != 0 and not show.over:
        show.happened("the workers ended early: run gristmill worker --app examples/mill.py:handlers to see why")


def told(event: Mapping[str, Any]) -> str | None:
    """An event of a worker's log in words; most are not worth a line."""
    match event:
        case {"event": "task.retry", "task": task, "attempt": attempt, "error": error}:
            return f"task {task} failed at attempt {attempt} and is tried again: {error}"
        case {"event": "task.bury", "task": task, "error": error}:
            return f"task {task} went to the dead letters: {error}"
        case {"event": "worker.died", "how": how}:
            return f"a worker process died ({how}); another is started"
        case {"event": "worker.rescued", "suspects": suspects, "back": back, "buried": buried}:
            return f"its tasks were taken back: {suspects} suspects, {back} unstarted, {buried} found guilty"
        case {"event": "suspect.killed_its_worker", "how": how}:
            return f"running alone, a suspect killed its process ({how})"
        case {"event": "worker.registered", "worker": worker}:
            return f"worker {worker} is at work"
        case _:
            return None


# --- what one sees


async def watch(db: Database, show: Show) -> None:
    """Until nothing of ours is left to do."""
    live = Live(console=console, refresh_per_second=8, transient=True) if console.is_terminal else None
    spoken = 0.0
    with live or nullcontext():
        while True:
            async with db.transaction() as tx:
                await look(tx, show)
            if live:
                live.update(picture(show))
            elif show.seconds - spoken >= 2:
                spoken = show.seconds
                say(one_line(show))
            if show.question is None and started(show) >= 8:
                await ask(db, show)
            elif finished(show):
                return
            if show.seconds > LONGEST:
                show.happened("this takes longer than it should: run gristmill doctor")
                return
            await asyncio.sleep(0.15)


async def look(tx: Tx, show: Show) -> None:
    show.queues = [queue for queue in await list_queues(tx) if queue.name in QUEUES]
    show.progress = await group_progress(tx, show.book, errors=0)


def started(show: Show) -> int:
    return sum(show.count(queue, "completed") for queue in show.queues if queue.name == "demo-extract")


def finished(show: Show) -> bool:
    return show.question is not None and not any(queue.pending + queue.processing for queue in show.queues)


def picture(show: Show) -> RenderableType:
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("queue", "what it shows"):
        grid.add_column(name)
    for name in ("waiting", "running", "done", "retried", "dead"):
        grid.add_column(name, justify="right")
    for queue in show.queues:
        numbers = (queue.pending, queue.processing, show.count(queue, "completed"), show.count(queue, "retried"))
        lost = Text(str(queue.dead), style="red" if queue.dead else "dim")
        grid.add_row(queue.name, Text(NOTES[queue.name], style="dim"), *map(str, numbers), lost)
    return Group("", grid, "", book(show), "", *(Text(line, style="dim") for line in show.events))


def book(show: Show) -> RenderableType:
    done = show.progress.done if show.progress else 0
    row = Table.grid(padding=(0, 1))
    row.add_row(
        f"group {show.book}", ProgressBar(PAGES, done, width=40), f"{done} of {PAGES} pages", f"{show.seconds:.0f} s"
    )
    return row


def one_line(show: Show) -> str:
    parts = [f"{queue.name.removeprefix('demo-')} {queue.pending}+{queue.processing}" for queue in show.queues]
    done = show.progress.done if show.progress else 0
    return f"{show.seconds:5.1f} s  waiting+running: {', '.join(parts)}; book {done} of {PAGES} pages"


# --- what happened


async def sum_up(db: Database, show: Show) -> None:
    if console.is_terminal:
        console.print(picture(show))
    async with db.transaction() as tx:
        await look(tx, show)
        found = [one for one in await dead.clusters(tx) if set(one.queues) & QUEUES.keys()]
        dead_why = await why(tx, show.poison)
        answer = await get_task(tx, show.question) if show.question else None
    done = sum(show.count(queue, "completed") for queue in show.queues)
    retried = sum(show.count(queue, "retried") for queue in show.queues)
    buried = sum(queue.dead for queue in show.queues)
    console.print(
        f"\n[bold]{done} tasks done in {show.seconds:.1f} s, {retried} retries, {buried} dead letters.[/bold]"
    )
    if show.progress:
        took = (show.progress.finished_at or show.progress.created_at) - show.progress.created_at
        console.print(f"The book of {PAGES} pages was {show.progress.status} after {took.total_seconds():.1f} s.")
    if answer and answer.finished_at:
        waited = (answer.finished_at - answer.created_at).total_seconds()
        console.print(f"The person was answered after {waited:.1f} s, before {show.overtaken} that had waited longer.")
    console.print("\n[bold]The dead letters, by cause[/bold]")
    for one in found:
        say(f"  {one.count} × {one.error}")
    console.print("\n[bold]Why?[/bold]")
    if show.waited:
        say(f"  task {show.last}, {show.asked_at:.0f} s after the start: {show.waited.sentence}")
    say(f"  task {show.poison}, now: {dead_why.sentence}")


async def serve(show: Show) -> None:
    console.print("\nThe workers go on serving until Ctrl-C. Meanwhile, in another terminal:")
    for command in LOOK_AROUND:
        say(f"  .venv/bin/{command.format(poison=show.poison)}")
    ended = asyncio.Event()
    for which in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(which, ended.set)
    await ended.wait()
    console.print("Stopping …")


def start(words: Sequence[str]) -> int:
    try:
        asyncio.run(main("--once" in words))
    except KeyboardInterrupt:
        return 130
    except GristmillError as error:
        console.print(str(error), style="red", markup=False)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(start(sys.argv[1:]))
