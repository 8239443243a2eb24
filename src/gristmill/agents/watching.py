"""Watches a run for its listeners: what is new since the last look, until the run is over."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from gristmill.agents.checkpoints import CheckpointSize, measure_checkpoints
from gristmill.agents.effects import EffectLine, EffectRow, list_effect_lines, list_effects
from gristmill.agents.runs import Question, Run, StepLine, feel_pulse, list_questions, list_step_lines, load_run
from gristmill.db import Tx
from gristmill.errors import Unknown
from gristmill.ids import EffectId, RunId, StepId

Reading = Callable[[], AbstractAsyncContextManager[Tx]]
Seen = tuple[bool, str | None]  # of a step: whether it is over, and what it waits for
BRISK, QUIET = 0.25, 1.0  # seconds between looks: while something happens, and while nothing does


@dataclass(frozen=True)
class RunNews:
    """What is new of a run. `id` names this moment: a listener that names it later gets what came after."""

    id: str
    run: Run
    steps: Sequence[StepLine]  # that began or ended
    effects: Sequence[EffectLine]  # that moved
    questions: Sequence[Question]  # all that wait for a person

    @property
    def is_last(self) -> bool:
        return self.run.has_ended

    @property
    def has_paused(self) -> bool:
        """Whether nothing goes on by itself: it is over, or waits for a person."""
        return self.is_last or (self.run.state == "waiting_for_user" and bool(self.questions))


@dataclass(frozen=True)
class RunView:
    """A run and all that was done for it."""

    run: Run
    steps: Sequence[StepLine]
    effects: Sequence[EffectRow]
    questions: Sequence[Question]  # also those that need no answer any more, the newest first
    size: CheckpointSize


async def load_view(tx: Tx, id_: RunId) -> RunView:
    """For the operator: checkpoints are no client's to read."""
    run = await load_run(tx, id_)
    steps, effects = await list_step_lines(tx, id_), await list_effects(tx, id_)
    questions = await list_questions(tx, run=id_, is_open=False, limit=1_000)
    return RunView(run, steps, effects, questions, await measure_checkpoints(tx, id_))


@dataclass
class Told:
    """What a listener knows already."""

    settled: int = 0  # this step and all before it are over
    pulse: str = ""
    steps: dict[StepId, Seen] = field(default_factory=dict[StepId, Seen])  # later ones
    effects: dict[EffectId, EffectLine] = field(default_factory=dict[EffectId, EffectLine])

    @property
    def id(self) -> str:
        return f"{self.settled}-{self.pulse}"

    def sort_out(self, steps: Sequence[StepLine]) -> list[StepLine]:
        """Those of the steps behind the settled ones that are new, have ended since, or wait for something else."""
        now = {one.id: (one.finished_at is not None, one.note) for one in steps}
        fresh = [one for one in steps if self.steps.get(one.id) != now[one.id]]
        self.steps = now
        for one in steps:
            if one.finished_at is None:
                break
            self.settled = one.id
            del self.steps[one.id]
        return fresh


def read_moment(id_: str | None) -> Told:
    """What a listener knows who names this moment; one that cannot be read is that of a new listener."""
    settled, _, pulse = (id_ or "").partition("-")
    if not (settled.isascii() and settled.isdecimal() and int(settled) < 2**63):
        return Told()
    return Told(int(settled), pulse)


async def watch_run(read: Reading, run: RunId, last_id: str | None = None) -> AsyncGenerator[RunNews]:
    """What is new of a run after the moment `last_id`, as it comes, until the run is over or gone.

    A step that was told as begun and has not ended may be told again after a break; none is left out.
    """
    told = read_moment(last_id)
    pause = BRISK
    while True:
        try:
            async with read() as tx:
                news = await _look(tx, run, told)
        except Unknown:  # it was removed
            return
        if news is not None:
            yield news
            if news.is_last:
                return
        pause = BRISK if news is not None else min(QUIET, pause * 1.5)
        await asyncio.sleep(pause)


async def _look(tx: Tx, id_: RunId, told: Told) -> RunNews | None:
    pulse = await feel_pulse(tx, id_)
    if pulse == told.pulse:
        return None
    run = await load_run(tx, id_)
    steps = told.sort_out(await list_step_lines(tx, id_, after=told.settled))
    effects = [one for one in await list_effect_lines(tx, id_) if told.effects.get(one.id) != one]
    told.effects.update({one.id: one for one in effects})
    told.pulse = pulse
    return RunNews(told.id, run, steps, effects, await list_questions(tx, run=id_))


async def has_heard_all(tx: Tx, run: Run, last_id: str | None) -> bool:
    """Whether this run is over, and a listener that names this moment knows it."""
    return run.has_ended and last_id is not None and await feel_pulse(tx, run.id) == read_moment(last_id).pulse
