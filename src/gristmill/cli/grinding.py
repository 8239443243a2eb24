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
from gristmill.db import Database
from gristmill.documents import PhaseProgress, Progress, Tally, follow_documents, list_columns
from gristmill.ids import DocumentId

SILENCE = 10.0  # seconds after which a document that moves on within its phases has a line again
BAR = 12


async def follow(
    db: Database, ids: Iterable[DocumentId], *, quiet: bool = False, has_workers: bool = False
) -> Sequence[Progress]:
    """Show these documents, and the documents found in them, until all have ended; how they ended.

    A caller that `has_workers` of its own needs no word about missing ones.
    """
    live = Live(console=err, auto_refresh=False, transient=True) if err.is_terminal and not quiet else None
    lines, loop = _Lines(), asyncio.get_running_loop()
    found: Sequence[Progress] = []
    with live or nullcontext():
        async for look in follow_documents(db, ids, warn):
            found = look.all
            if live:
                live.update(board(found, rows=err.height - 3), refresh=True)
            elif not quiet:
                lines.tell(look.open, loop.time())
            if look.is_unattended and not has_workers:
                warn("No worker is there yet: gristmill up, or gristmill worker, starts one.")
    return found


class _Lines:
    """Without a terminal: a line whenever a document moves on, at once to another status, now and then within one."""

    def __init__(self) -> None:
        self._told: dict[DocumentId, tuple[str, str, float]] = {}

    def tell(self, found: Sequence[Progress], now: float) -> None:
        for one in found:
            status, summary, at = self._told.get(one.id, ("", "", now))
            moved = one.summary != summary and (one.has_ended or now - at > SILENCE)
            if one.status != status or moved:
                self._told[one.id] = one.status, one.summary, now
                err.print(f"document {one.id} {one.name}: {one.status}, {one.summary}", soft_wrap=True)


def as_dict(one: Progress) -> dict[str, Any]:
    return {**plain(one), "summary": one.summary}


def board(found: Sequence[Progress], *, rows: int, of: Tally | None = None) -> RenderableType:
    """What moves first, then what waits, then what ended last; never more than fits. `of` counts those not given."""
    moving = sorted((one for one in found if not one.has_ended), key=lambda one: (one.status != "processing", one.id))
    ended = sorted((one for one in found if one.has_ended), key=lambda one: one.id)
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
