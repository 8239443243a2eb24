"""Documents while they are ground: one line each, a bar per phase, until nothing more happens by itself."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from gristmill.cli.output import COLOURS, err, plain, short, warn
from gristmill.cli.session import outlast
from gristmill.db import Database
from gristmill.documents import (
    PhaseProgress,
    Progress,
    Tally,
    failures,
    list_columns,
    list_phases,
    progress,
    with_parts,
)
from gristmill.errors import Refused, Unreachable
from gristmill.ids import DocumentId
from gristmill.queue import list_queues

EVERY = 0.3  # seconds between looks …
PATIENCE = 9  # … or so many times as long as a look took
SERVED_SOON = 2.0  # seconds without a worker after which it is told that there is none …
SERVED_WITHIN = 15.0  # … and that nobody will come
SILENCE = 10.0  # seconds after which a document that moves on within its phases has a line again
BAR = 12


async def follow(
    db: Database, ids: Iterable[DocumentId], *, quiet: bool = False, staffed: bool = False
) -> list[Progress]:
    """Show these documents, and what is found in them, until all have ended; how they ended.

    Where it is not `staffed` by the caller itself, it is told that workers are missing.
    """
    open_ = list(ids)
    found: dict[DocumentId, Progress] = {}
    live = Live(console=err, auto_refresh=False, transient=True) if err.is_terminal and not quiet else None
    loop = asyncio.get_running_loop()
    attended, lines = Attended(loop.time()), _Lines()
    with live or nullcontext():
        while True:
            looking = loop.time()
            try:
                async with db.transaction(snapshot=True) as tx:  # one moment, or parts that just came would be missed
                    looked = await progress(tx, await with_parts(tx, open_))
                    served = attended.still(await _anybody_works(tx), loop.time())
            except Unreachable:
                await outlast(db)
                attended = Attended(loop.time())  # the workers need a moment, too
                continue
            found |= {one.id: one for one in looked}
            for id_ in set(open_).difference(one.id for one in looked):
                found.pop(id_, None)  # removed, or a newer version took its place
            if live:
                live.update(board(list(found.values()), rows=err.height - 3), refresh=True)
            elif not quiet:
                lines.tell(looked, loop.time())
            open_ = [one.id for one in looked if not one.ended]
            if not open_:
                return [found[id_] for id_ in sorted(found)]
            if not staffed and attended.lonely(loop.time()):
                warn("No worker is there yet: gristmill up, or gristmill worker, starts one.")
            if not served:
                raise Refused(
                    "Nobody works on these documents: start gristmill up, or gristmill worker, and look again with "
                    "gristmill documents."
                )
            await asyncio.sleep(pause(loop.time() - looking))


class Attended:
    """Remembers when somebody worked last: a worker that dies has a successor in a moment."""

    def __init__(self, now: float) -> None:
        self._last = now
        self._told = False

    def lonely(self, now: float) -> bool:
        """Whether nobody has worked for a moment; once."""
        self._told, before = self._told or now - self._last > SERVED_SOON, self._told
        return self._told and not before

    def still(self, anybody: bool, now: float) -> bool:
        """Whether somebody works, or did a short while ago."""
        if anybody:
            self._last = now
        return now - self._last < SERVED_WITHIN


def pause(took: float) -> float:
    """Until the next look, after one that took so long: whoever looks at thousands must not slow them down."""
    return max(EVERY, PATIENCE * took)


async def _anybody_works(tx: Any) -> bool:
    reports = {report.name: report for report in await list_queues(tx)}
    queues = ["documents", *(phase.queue for phase in await list_phases(tx))]
    return any(reports[name].workers for name in queues if name in reports)


class _Lines:
    """Without a terminal: a line whenever a document moves on, at once to another status, now and then within one."""

    def __init__(self) -> None:
        self._told: dict[DocumentId, tuple[str, str, float]] = {}

    def tell(self, found: Sequence[Progress], now: float) -> None:
        for one in found:
            status, summary, at = self._told.get(one.id, ("", "", now))
            moved = one.summary != summary and (one.ended or now - at > SILENCE)
            if one.status != status or moved:
                self._told[one.id] = one.status, one.summary, now
                err.print(f"document {one.id} {one.name}: {one.status}, {one.summary}", soft_wrap=True)


def as_dict(one: Progress) -> dict[str, Any]:
    return {**plain(one), "summary": one.summary}


def board(found: Sequence[Progress], *, rows: int, of: Tally | None = None) -> RenderableType:
    """What moves first, then what waits, then what ended last; never more than fits. `of` counts those not given."""
    moving = sorted((one for one in found if not one.ended), key=lambda one: (one.status != "processing", one.id))
    ended = sorted((one for one in found if one.ended), key=lambda one: one.id)
    shown = [*moving, *reversed(ended)][: max(rows, 3)]
    grid = Table(box=None, pad_edge=False, header_style="bold")
    columns = list_columns(shown)
    for column in ("document", *columns.values(), ""):
        grid.add_column(column, no_wrap=True)
    for one in shown:
        state = Text(f"{one.status}, {one.summary}", style=COLOURS.get(one.status, ""))
        grid.add_row(Text(short(one.name, 36)), *(bar(one.phase(name)) for name in columns), state)
    whole = sum(one.status == "completed" for one in found)
    of = of or Tally(len(found), whole, sum(one.status == "failed" for one in found))
    errors = f", {of.with_errors:,} with errors" if of.with_errors else ""
    return Group(grid, Text(f"{of.completed:,} of {of.documents:,} documents complete{errors}", style="dim"))


def bar(phase: PhaseProgress | None) -> RenderableType:
    if not phase or not phase.total:
        return Text("·", style="dim")
    colour = "red" if phase.failed else "green" if phase.done == phase.total else "cyan"
    cells = Table.grid(padding=(0, 1))
    cells.add_row(
        ProgressBar(phase.total, phase.done, width=BAR, complete_style=colour, finished_style=colour),
        Text(f"{phase.done}/{phase.total}", style="dim"),
    )
    return cells


def counts(phase: PhaseProgress | None) -> Text:
    """A phase in a few characters, for lists."""
    if not phase or not phase.total:
        return Text("·", style="dim")
    if phase.status == "skipped":
        return Text("skipped", style=COLOURS["skipped"])
    colour = "red" if phase.failed else "green" if phase.done == phase.total else "cyan"
    return Text(f"{phase.done}/{phase.total}", style=colour)


async def errors_of(db: Database, found: Sequence[Progress]) -> list[tuple[Progress, str]]:
    """One sentence for each document that has failed somewhere."""
    told: list[tuple[Progress, str]] = []
    async with db.transaction() as tx:
        for one in found:
            if one.status == "failed":
                told += [(one, where(failure.page, failure.error)) for failure in await failures(tx, one.id, limit=3)]
    return told


def where(page: int | None, error: str) -> str:
    """The error with its page, unless it names that itself."""
    return error if page is None or error.startswith(f"Page {page} ") else f"page {page}: {error}"
