"""Documents while they are ground: one line each, a bar per phase, until nothing more happens by itself."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from gristmill.cli.output import COLOURS, err, is_narrow, shorten, to_plain, warn
from gristmill.cli.session import Session
from gristmill.db import explain_full_disk
from gristmill.documents import PhaseProgress, Progress, Tally, follow_documents, has_worker, list_columns
from gristmill.ids import DocumentId
from gristmill.settings import Settings
from gristmill.wording import format_count

SILENCE = 10.0  # seconds after which a document that makes progress gets a line again
REMINDER = 60.0  # seconds after which a note that still holds is printed again
BAR = 12
LONGEST_NAME = 36  # characters on the board
FEWEST_ROWS = 3
NO_WORKER = "No worker is running: nothing works on it until gristmill up or gristmill worker runs."
GRAPH = "graph"  # the phase that asks an LLM


async def follow(
    at: Session, ids: Iterable[DocumentId], *, quiet: bool = False, has_workers: bool = False
) -> Sequence[Progress]:
    """Show these documents, and the documents found in them, until all have ended; how they ended.

    A caller that `has_workers` of its own needs no word about missing ones.
    """
    live = Live(console=err, auto_refresh=False, transient=True) if err.is_terminal and not quiet else None
    lines, loop = _Lines(), asyncio.get_running_loop()
    found: Sequence[Progress] = []
    with live or nullcontext():
        async for look in follow_documents(at.db, ids, warn, has_workers=has_workers):
            found = look.all
            notes = find_notes(at.settings, look.open)
            if live:
                live.update(draw_board(found, rows=err.height - 3 - len(notes), notes=notes), refresh=True)
            elif not quiet:
                lines.print_changes(look.open, notes, loop.time())
            if look.is_unattended and not has_workers:
                warn("No worker is there yet: gristmill up, or gristmill worker, starts one.")
    return found


async def hint_at_workers(at: Session) -> None:
    """Warn if no worker runs for the work that was just sent."""
    async with at.db.transaction() as tx:
        if not await has_worker(tx):
            warn(NO_WORKER)


@dataclass(frozen=True)
class WaitReason:
    """A reason why documents wait that is not an error of a document."""

    about: str
    sentence: str


def find_notes(settings: Settings, found: Sequence[Progress]) -> list[WaitReason]:
    """What these documents wait for: an LLM, or space on the disk."""
    notes: list[WaitReason] = []
    if full := explain_full_disk(settings.data):
        notes.append(WaitReason("disk", full))
    waiting = sum(_count_waiting_for_llm(one) for one in found)
    if settings.llm.model and waiting:
        chunks = format_count(waiting, "chunk")
        notes.append(
            WaitReason("llm", f"Waiting for the LLM {settings.llm.model} at {settings.llm.url}: {chunks} to go.")
        )
    return notes


def _count_waiting_for_llm(one: Progress) -> int:
    phase = one.phase(GRAPH)
    return phase.total - phase.done - phase.failed if phase and phase.status == "processing" else 0


class _Lines:
    """Without a terminal: a line at once when the status of a document changes, and now and then in between."""

    def __init__(self) -> None:
        self._documents: dict[DocumentId, tuple[str, str, float]] = {}
        self._notes: dict[str, float] = {}

    def print_changes(self, found: Sequence[Progress], notes: Sequence[WaitReason], now: float) -> None:
        for one in found:
            status, summary, at = self._documents.get(one.id, ("", "", now))
            moved = one.summary != summary and (one.has_ended or now - at > SILENCE)
            if one.status != status or moved:
                self._documents[one.id] = one.status, one.summary, now
                err.print(f"document {one.id} {one.name}: {one.status}, {one.summary}", soft_wrap=True)
        for note in notes:
            if now - self._notes.get(note.about, -REMINDER) >= REMINDER:
                self._notes[note.about] = now
                err.print(note.sentence, soft_wrap=True)


def as_dict(one: Progress) -> dict[str, Any]:
    return {**to_plain(one), "summary": one.summary}


def draw_board(
    found: Sequence[Progress], *, rows: int, tally: Tally | None = None, notes: Sequence[WaitReason] = ()
) -> RenderableType:
    """Documents that move, then those with errors, then the newest; never more than fits.

    The tally also counts documents that are not in `found`; without a tally, the documents in `found` are counted.
    """
    shown = choose_rows(found, max(rows, FEWEST_ROWS))
    grid = Table(box=None, pad_edge=False, header_style="bold", collapse_padding=is_narrow(err))
    columns = list_columns(shown)
    for column in ("document", *columns.values(), ""):
        grid.add_column(column, no_wrap=True)
    for one in shown:
        grid.add_row(Text(shorten(one.name, LONGEST_NAME)), *_draw_phases(one, columns), _draw_state(one))
    tally = tally or _count_given(found)
    errors = f", {format_count(tally.errors, 'error')}" if tally.errors else ""
    total = Text(f"{tally.completed:,} of {tally.documents:,} documents complete{errors}", style="dim")
    return Group(grid, total, *(Text(note.sentence, style="yellow") for note in notes))


def choose_rows(found: Sequence[Progress], rows: int) -> list[Progress]:
    """Errors have a third of the rows, however many documents move: a count of errors alone helps nobody."""
    newest_first = sorted(found, key=lambda one: one.id, reverse=True)
    moving = [one for one in reversed(newest_first) if one.status == "processing"]
    failed = [one for one in newest_first if one.status == "failed"]
    others = [one for one in newest_first if one.status not in ("processing", "failed")]
    kept = max(rows - min(len(failed), rows // 3), 0)
    return [*moving[:kept], *failed, *others][:rows]


def _count_given(found: Sequence[Progress]) -> Tally:
    completed = sum(one.status == "completed" for one in found)
    errors = sum(max(1, sum(phase.failed for phase in one.phases)) for one in found if one.status == "failed")
    return Tally(len(found), completed, errors)


def _draw_phases(one: Progress, names: Iterable[str]) -> list[RenderableType]:
    """Bars where there is space for them; on a narrow screen the counts alone, so that names keep theirs."""
    draw = draw_counts if is_narrow(err) else draw_bar
    return [draw(one.phase(name)) for name in names]


def _draw_state(one: Progress) -> Text:
    state = one.status if is_narrow(err) else f"{one.status}, {one.summary}"
    return Text(state, style=COLOURS.get(one.status, ""))


def draw_bar(phase: PhaseProgress | None) -> RenderableType:
    if not phase or not phase.total:
        return Text("·", style="dim")
    colour = _colour_of(phase)
    cells = Table.grid(padding=(0, 1))
    cells.add_row(
        ProgressBar(phase.total, phase.done, width=BAR, complete_style=colour, finished_style=colour),
        Text(f"{phase.done}/{phase.total}", style="dim"),
    )
    return cells


def draw_counts(phase: PhaseProgress | None) -> Text:
    """A phase in a few characters, for lists."""
    if not phase or not phase.total:
        return Text("·", style="dim")
    if phase.status == "skipped":
        return Text("skipped", style=COLOURS["skipped"])
    return Text(f"{phase.done}/{phase.total}", style=_colour_of(phase))


def _colour_of(phase: PhaseProgress) -> str:
    return "red" if phase.failed else "green" if phase.done == phase.total else "cyan"
