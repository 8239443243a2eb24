"""The steps of a run as a tree: each below the step that it belongs to, with its state, its time and its tokens."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from gristmill.agents.picture import NodeState, judge_step
from gristmill.agents.runs import Run, StepLine
from gristmill.ids import StepId


@dataclass(frozen=True)
class Twig:
    """A step and the steps below it."""

    step: StepLine
    number: int  # of the step among all of its run
    state: NodeState
    below: list["Twig"] = field(default_factory=list["Twig"])

    @property
    def time(self) -> timedelta | None:
        return self.step.finished_at - self.step.started_at if self.step.finished_at else None

    @property
    def tokens(self) -> int:
        return self.step.tokens_in + self.step.tokens_out


def grow_tree(run: Run, steps: Sequence[StepLine], numbers: Mapping[StepId, int]) -> list[Twig]:
    """The steps that stand by themselves, in the order in which they began, each with those below it."""
    twigs: dict[StepId, Twig] = {}
    roots: list[Twig] = []
    for step in steps:
        twig = twigs[step.id] = Twig(step, numbers[step.id], judge_step(step, run))
        above = twigs.get(step.parent) if step.parent is not None else None
        (above.below if above is not None else roots).append(twig)
    return roots


def keep_last(steps: Sequence[StepLine], most: int) -> list[StepLine]:
    """The last steps, so many, and those above them."""
    kept = {one.id for one in steps[-most:]}
    for one in reversed(steps):  # a step begins after the one above it
        if one.id in kept and one.parent is not None:
            kept.add(one.parent)
    return [one for one in steps if one.id in kept]


def keep_node(steps: Sequence[StepLine], node: str) -> list[StepLine]:
    """The visits of one node, and the steps below them."""
    kept: set[StepId] = set()
    for one in steps:
        if one.parent in kept or (one.parent is None and one.node == node):
            kept.add(one.id)
    return [one for one in steps if one.id in kept]


def walk(roots: Sequence[Twig], depth: int = 0) -> Iterator[tuple[Twig, int]]:
    """Every twig with its depth, in the order of reading."""
    for root in roots:
        yield root, depth
        yield from walk(root.below, depth + 1)


def nest_steps(run: Run, steps: Sequence[StepLine]) -> Iterator[tuple[Twig, int]]:
    """All steps of a run with their depths, each below the step that it belongs to."""
    return walk(grow_tree(run, steps, {one.id: number for number, one in enumerate(steps, 1)}))
