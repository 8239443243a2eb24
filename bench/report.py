"""Figures as they come in, and what becomes of them: a table to watch, one to keep, and JSON."""

import json
import os
import platform
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from bench.stage import NotMeasuredError
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table

# what every run must say, in this order; further figures follow
PROMISED = (
    "jobs_per_s",
    "pgqueuer_jobs_per_s",
    "procrastinate_jobs_per_s",
    "pickup_p50_ms",
    "pickup_p99_ms",
    "backlog_ratio",
    "held_snapshot_ratio",
    "enqueue_per_s",
    "writing_jobs_per_s",
    "group_ratio",
)
PEERS = {
    "gristmill": "",
    "PgQueuer": "pgqueuer_",
    "graphile-worker": "graphile_",
    "procrastinate": "procrastinate_",
    "bare SQL": "bare_",
}
COMPARED = {
    "jobs per second": ("jobs_per_s", "≥ 40,000, 1.3 × the next"),
    "pick-up p50, ms from commit to start": ("pickup_p50_ms", "≤ 2"),
    "pick-up p99, ms": ("pickup_p99_ms", "≤ 8"),
    "send and pick-up p50, ms": ("send_to_start_p50_ms", ""),
}
OWN = {
    "1,000,000 pending ÷ 1,000 pending": ("backlog_ratio", "≥ 0.85"),
    "last 10 s of a snapshot held for 60 s ÷ free": ("held_snapshot_ratio", "≥ 0.70"),
    "bulk enqueue per second": ("enqueue_per_s", "≥ 100,000"),
    "jobs that write a row of their own per second": ("writing_jobs_per_s", "≥ 10,000"),
    "10,000 children of one group ÷ ungrouped": ("group_ratio", "≥ 0.70"),
}
BEGIN, END = "<!-- queue:begin -->", "<!-- queue:end -->"


class Figures:
    """What was measured; what could not be is None, with the reason on stderr."""

    def __init__(self) -> None:
        self._values: dict[str, float | None] = {}
        self.reasons: dict[str, str] = {}

    def get(self, name: str) -> float | None:
        return self._values.get(name)

    def set(self, name: str, value: float) -> None:
        self._values[name] = value

    @contextmanager
    def attempt(self, *names: str) -> Iterator[None]:
        """Measure these; a failure leaves them unmeasured and the rest of the run goes on."""
        try:
            yield
        except NotMeasuredError as reason:
            for name in names:
                self._values[name] = None  # also what earlier rounds gave: a median of fewer would look like any other
                self.reasons[name] = str(reason)
            print(f"{', '.join(names)} not measured: {reason}", file=sys.stderr, flush=True)

    def shown(self, name: str) -> str:
        value = self.get(name)
        if value is None:
            return "–"
        return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"

    def json(self) -> str:
        names = [*PROMISED, *(name for name in self._values if name not in PROMISED)]
        return json.dumps({name: _rounded(self.get(name)) for name in names})


def _rounded(value: float | None) -> float | None:
    if value is None:
        return None
    return round(value) if value >= 100 else round(value, 3)


class Show:
    """Says what is being measured, and what is known so far; on stderr, so that stdout is the JSON."""

    def __init__(self, figures: Figures) -> None:
        self._figures = figures
        self._console = Console(stderr=True)
        self._begin = time.monotonic()
        self._step = ""
        self._live = Live(console=self._console, refresh_per_second=2, get_renderable=self._table)

    @contextmanager
    def running(self) -> Iterator[None]:
        if not self._console.is_terminal:
            yield
            self._console.print(self._table())
            return
        with self._live:
            yield
            self._step = ""

    def step(self, text: str) -> None:
        self._step = text
        if not self._console.is_terminal:
            print(f"{time.monotonic() - self._begin:5.0f} s  {text}", file=sys.stderr, flush=True)

    def _table(self) -> Group:
        compared = Table("", *PEERS)
        for label, (name, _) in COMPARED.items():
            compared.add_row(label, *(self._figures.shown(prefix + name) for prefix in PEERS.values()))
        own = Table("gristmill", "", "to reach")
        for label, (name, goal) in (COMPARED | OWN).items():
            own.add_row(label, self._figures.shown(name), goal)
        return Group(compared, own, f"{time.monotonic() - self._begin:.0f} s  {self._step}")


def write_page(page: Path, figures: Figures, note: str) -> None:
    """Put the tables between the markers of the page and leave everything else as it is."""
    body = f"{BEGIN}\n{_markdown(figures, note)}\n{END}"
    text = page.read_text()
    if BEGIN not in text:
        raise SystemExit(f"{page.name} has no {BEGIN}: put the markers where the tables belong.")
    page.write_text(re.sub(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: body, text, flags=re.DOTALL))


def _markdown(figures: Figures, note: str) -> str:
    lines = [f"*{note}*", "", f"| | {' | '.join(PEERS)} | to reach |", "|---|" + "--:|" * len(PEERS) + "---|"]
    for label, (name, goal) in COMPARED.items():
        cells = " | ".join(figures.shown(prefix + name) for prefix in PEERS.values())
        lines.append(f"| {label} | {cells} | {goal} |")
    lines += ["", "| gristmill alone | | to reach |", "|---|--:|---|"]
    lines += [f"| {label} | {figures.shown(name)} | {goal} |" for label, (name, goal) in OWN.items()]
    if figures.reasons:
        lines += ["", *(f"- `{name}` was not measured: {reason}" for name, reason in figures.reasons.items())]
    return "\n".join([*lines, "", "![Jobs per second and pick-up latency](img/bench-queue.svg)"])


def machine() -> str:
    """Where and when the figures were made."""
    memory = psutil.virtual_memory().total / 2**30
    return (
        f"{time.strftime('%Y-%m-%d', time.gmtime())}, {os.cpu_count()} cores, {memory:.0f} GB, "
        f"{platform.system()}, Python {platform.python_version()}, PostgreSQL 18 embedded, fsync on, "
        "two worker processes"
    )
