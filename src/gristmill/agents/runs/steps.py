"""The steps of a run: which node was visited, with what, what came of it, and what it cost."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from gristmill.agents.runs.keeping import write_keepable
from gristmill.agents.runs.store import SQL
from gristmill.db import Column, Tx
from gristmill.errors import LeaseLost, Unknown
from gristmill.ids import RunId, StepId


@dataclass(frozen=True)
class AgentStep:
    """A row of `agent_step`."""

    id: StepId
    parent: StepId | None
    node: str
    title: str
    input: Any
    output: Any
    error: str | None
    model: str | None
    calls: int
    tokens_in: int
    tokens_out: int
    started_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True)
class StepLine:
    """A step without what went in and what came out; `waits`: it ended because a person is asked."""

    id: StepId
    parent: StepId | None
    node: str
    title: str
    error: str | None
    waits: bool
    model: str | None
    tokens_in: int
    tokens_out: int
    started_at: datetime
    finished_at: datetime | None
    note: str | None = None  # what it waits for now, in a sentence


@dataclass(frozen=True)
class Cost:
    """What a step used: the model that answered, how often it was asked, and the tokens that it read and wrote."""

    model: str | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    calls: int = 0

    def add(self, model: str, tokens_in: int, tokens_out: int) -> "Cost":
        """With one call more."""
        return Cost(model, self.tokens_in + tokens_in, self.tokens_out + tokens_out, self.calls + 1)


NO_COST = Cost()
WAITS_FOR = "waits_for"  # in the output of a step that ended because a person is asked


async def say_nothing(_: str | None) -> None:
    """Where nobody watches a step."""


@dataclass
class Stepping:
    """A step that is being made; `output` and `cost` are kept when it ends. `say` tells a watcher what the step waits
    for; None: it goes on.
    """

    id: StepId
    output: Any = None
    cost: Cost = field(default_factory=Cost)
    say: Callable[[str | None], Awaitable[None]] = say_nothing


async def begin_step(
    tx: Tx, run: RunId, fence: int, node: str, *, title: str = "", input: Any = None, parent: StepId | None = None
) -> StepId:
    found = await tx.value(
        SQL["begin_step"],
        int,
        run=run,
        fence=fence,
        node=node,
        title=title[:500],
        input=_write_json(input),
        parent=parent,
    )
    if found is None:
        raise LeaseLost(f"Run {run} is not ours any more: another worker has it, or it was stopped.")
    return StepId(found)


async def end_step(tx: Tx, step: StepId, *, output: Any = None, error: str | None = None, cost: Cost = NO_COST) -> None:
    """The step is over; its tokens count for its run, once."""
    counted = {"calls": cost.calls, "tokens_in": cost.tokens_in, "tokens_out": cost.tokens_out}
    run = await tx.value(
        SQL["end_step"], Column[RunId], id=step, output=_write_json(output), error=error, model=cost.model, **counted
    )
    if run is not None:
        await tx.execute(SQL["count_tokens"], id=run, **counted)


async def note_step(tx: Tx, step: StepId, note: str | None) -> None:
    """What a step waits for, as long as it is not over."""
    await tx.execute(SQL["note_step"], id=step, note=note)


async def note_progress(tx: Tx, step: StepId, place: str, progress: Mapping[str, Any]) -> None:
    """How far a visit of a place in the plan is, for the worker that goes on after a kill."""
    await tx.execute(SQL["note_progress"], id=step, progress=_write_json({"place": place, **progress}))


async def find_progress(tx: Tx, run: RunId, place: str) -> dict[str, Any] | None:
    """How far the last visit of a place came."""
    return await tx.value(SQL["find_progress"], Column[dict[str, Any]], run=run, place=place)


async def end_lost_steps(tx: Tx, run: RunId) -> None:
    """The steps of a worker that is gone: their nodes are visited again."""
    await tx.execute(SQL["end_lost_steps"], run=run)


async def list_steps(tx: Tx, run: RunId, *, after: int = 0, limit: int = 1_000) -> list[AgentStep]:
    """The steps in the order in which they began."""
    return await tx.all(SQL["list_steps"], AgentStep, run=run, after=after, limit=limit)


async def list_steps_of_node(tx: Tx, run: RunId, node: str) -> list[AgentStep]:
    """All visits of one node, in their order."""
    return await tx.all(SQL["list_steps_of_node"], AgentStep, run=run, node=node)


async def list_step_lines(tx: Tx, run: RunId, *, after: int = 0, limit: int = 10_000) -> list[StepLine]:
    """The steps in the order in which they began, without what went in and what came out."""
    return await tx.all(SQL["list_step_lines"], StepLine, run=run, after=after, limit=limit)


async def load_step(tx: Tx, run: RunId, id_: StepId) -> AgentStep:
    found = await tx.one(SQL["load_step"], AgentStep, run=run, id=id_)
    if found is None:
        raise Unknown(f"There is no step {id_} of run {run}.")
    return found


def note_waiting(output: Any, sentence: str) -> dict[str, Any]:
    """What is kept of a step that ended because a person is asked."""
    made: dict[str, Any] = cast(dict[str, Any], output) if isinstance(output, dict) else {"output": output}
    return {**{name: value for name, value in made.items() if value is not None}, WAITS_FOR: sentence}


def is_waiting(output: Any) -> bool:
    """Whether this is what is kept of a step that ended because a person is asked."""
    return isinstance(output, dict) and WAITS_FOR in output


def _write_json(value: Any) -> str | None:
    return None if value is None else write_keepable(value)
