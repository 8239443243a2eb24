"""A run in the terminal: its steps as they happen, its effects, and its questions, asked right there."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from types import TracebackType
from typing import Self

import typer
from rich.status import Status
from rich.text import Text

from gristmill.agents import EffectLine, Question, Run, RunNews, StepLine, list_facts
from gristmill.cli.output import err, shorten
from gristmill.ids import StepId
from gristmill.wording import format_count, format_span, show_unseen

LONGEST_TITLE = 80  # characters of a step's title in a line
SIGNS = {"done": ("✓", "green"), "failed": ("✗", "red"), "waits": ("?", "yellow")}
EFFECT_SIGNS = {"done": ("✓", "green"), "failed": ("✗", "red"), "unknown": ("?", "yellow")}


def can_ask() -> bool:
    """Whether a person is there who can answer."""
    return bool(sys.stdin and sys.stdin.isatty() and err.is_terminal)


@dataclass
class RunTeller:
    """Prints every step and effect once, when it is over; what runs now stands in the last line of a terminal."""

    quiet: bool = False
    depths: dict[StepId, int] = field(default_factory=dict[StepId, int])
    open: dict[StepId, StepLine] = field(default_factory=dict[StepId, StepLine])
    effects: dict[int, str] = field(default_factory=dict[int, str])
    status: Status | None = None

    def __enter__(self) -> Self:
        if err.is_terminal and not self.quiet:
            self.status = err.status("It waits for a worker …")
            self.status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.status is not None:
            self.status.stop()
            self.status = None

    def tell(self, news: RunNews) -> None:
        for step in news.steps:
            self._note_step(step)
        for effect in news.effects:
            self._note_effect(effect)
        if self.status is not None:
            self.status.update(shorten(describe_now(news.run, list(self.open.values())), max(20, err.width - 6)))

    def _note_step(self, step: StepLine) -> None:
        depth = self.depths[step.id] = 0 if step.parent is None else self.depths.get(step.parent, 0) + 1
        if step.finished_at is None:
            self.open[step.id] = step
            if step.note is not None and not self.quiet:
                err.print(Text(f"  {step.node}: {step.note}", style="dim"), soft_wrap=True)
            return
        self.open.pop(step.id, None)
        if not self.quiet:
            err.print(draw_step(step, depth), soft_wrap=True)

    def _note_effect(self, effect: EffectLine) -> None:
        known = self.effects.get(effect.id)
        self.effects[effect.id] = effect.state
        if not self.quiet and effect.state in EFFECT_SIGNS and known != effect.state:
            sign, style = EFFECT_SIGNS[effect.state]
            tail = f": {shorten(effect.error, 200)}" if effect.error else ""
            err.print(Text.assemble((f"  {sign} ", style), f"{effect.tool}  {effect.summary}{tail}"), soft_wrap=True)


def describe_now(run: Run, open_steps: Sequence[StepLine]) -> str:
    """What a run does at this moment."""
    if run.state == "running" and open_steps:
        newest = open_steps[-1]
        return f"{newest.node} {newest.title} …"
    words: Mapping[str, str] = {
        "queued": "It waits for a worker …",
        "waiting_for_user": "It waits for a person …",
        "running": "It runs …",
    }
    return words.get(run.state, "It is over.")


def draw_step(step: StepLine, depth: int) -> Text:
    """One line of a step that is over."""
    sign, style = SIGNS["failed" if step.error is not None else "waits" if step.waits else "done"]
    took = format_span(step.finished_at - step.started_at) if step.finished_at else "–"
    tokens = step.tokens_in + step.tokens_out
    told = Text.assemble(
        (f"{'  ' * depth}{sign} ", style),
        (step.node, "bold"),
        f"  {shorten(step.title, LONGEST_TITLE)}" if step.title else "",
        (f"  {took}", "dim"),
        (f"  {format_count(tokens, 'token')}" if tokens else "", "dim"),
    )
    if step.error is not None:
        told.append(f"  {shorten(step.error, 200)}", style="red")
    return told


def draw_question(question: Question) -> list[Text]:
    """A question with all that a person must know to answer it."""
    first = Text.assemble((f"Question {question.id}: ", "bold yellow"), show_unseen(question.sentence))
    return [first, *(Text(f"  {show_unseen(line)}") for line in list_facts(question))]


def ask_person(question: Question) -> tuple[str | None, str]:
    """The choice and the words of the person at the terminal."""
    for line in draw_question(question):
        err.print(line, soft_wrap=True)
    if not question.choices:
        words = ""
        while not words.strip():
            words = typer.prompt("Your answer", err=True)
        return None, words
    return _choose(question.choices), ""


def _choose(choices: Sequence[str]) -> str:
    """One of the choices, by its name, its beginning or its number."""
    shown = ", ".join(f"{number} {choice}" for number, choice in enumerate(choices, 1))
    while True:
        given = typer.prompt(f"Answer ({shown})", err=True).strip().casefold()
        fits = [one for number, one in enumerate(choices, 1) if given == str(number) or one.startswith(given)]
        exact = [one for one in choices if one == given] or fits
        if given and len(exact) == 1:
            return exact[0]
        err.print(Text(f"Write one of {', '.join(choices)}, or its number.", style="yellow"))


def describe_time(run: Run, last: timedelta | None = None) -> str | None:
    """How long a run took, as far as it is over."""
    if run.finished_at is not None and run.started_at is not None:
        return format_span(run.finished_at - run.started_at)
    return format_span(last) if last is not None else None
