"""Explains a decision: its sentences, and the text of the item with the words marked that the rules went by."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from gristmill.db import Tx
from gristmill.ids import WorkItemId
from gristmill.qualifier.decisions import Decision, PastDecision, find_documents_read, list_decisions, load_decision
from gristmill.qualifier.model import WorkItem
from gristmill.qualifier.reasons import DecisionStep
from gristmill.qualifier.store import get_item
from gristmill.qualifier.texts import load_item_texts
from gristmill.queue import why as explain_task

AROUND = 120  # characters that are shown around marked words
NEAR = 60  # characters between two marks that are shown as one excerpt


@dataclass(frozen=True)
class ExplainedPiece:
    """A piece of a text; the numbers of the steps that went by it, if any did."""

    text: str
    steps: tuple[int, ...] = ()


@dataclass(frozen=True)
class MarkedExcerpt:
    """A part of the text with marked words in it."""

    start: int
    pieces: tuple[ExplainedPiece, ...]
    is_cut_before: bool
    is_cut_after: bool


@dataclass(frozen=True)
class Explanation:
    """Why an item is where it is."""

    item: WorkItem
    decision: Decision | None
    steps: Sequence[DecisionStep]
    excerpts: Sequence[MarkedExcerpt]
    waits: str | None  # what its task waits for, as long as it is not decided or not done
    history: Sequence[PastDecision]

    @property
    def sentence(self) -> str:
        if self.decision is None:
            return self.waits or f"It is {self.item.state.replace('_', ' ')}, and nothing was decided yet."
        return " ".join(step.sentence for step in self.steps)

    @property
    def warning(self) -> str | None:
        """The warning on the item, unless a step of its decision says the same."""
        return None if self.item.warning in [step.sentence for step in self.steps] else self.item.warning


async def explain_item(tx: Tx, id_: WorkItemId) -> Explanation:
    """The last decision about an item, with its words; and what it waits for, if it waits.

    A copy that waits for its time is explained by the decision that made it.
    """
    item = await get_item(tx, id_)
    decided = id_
    decision = await load_decision(tx, id_)
    if decision is None and item.origin is not None:
        decided = item.origin
        decision = await load_decision(tx, decided)
    steps = decision.steps if decision else []
    texts = await load_item_texts(tx, [decided], find_documents_read([decision])) if decision else []
    text = texts[0].text if texts else ""
    return Explanation(
        item,
        decision,
        steps,
        mark_text(text, steps),
        await _find_wait(tx, item),
        await list_decisions(tx, decided),
    )


async def _find_wait(tx: Tx, item: WorkItem) -> str | None:
    if item.task is None or not item.is_open or item.state in ("scheduled", "waiting_for_user"):
        return None
    return (await explain_task(tx, item.task)).sentence


def mark_text(text: str, steps: Sequence[DecisionStep]) -> list[MarkedExcerpt]:
    """The parts of the text around the words of these steps, each word marked with the number of its steps."""
    marks = _list_marks(text, steps)
    return [_make_excerpt(text, marks, start, stop) for start, stop in _choose_windows(text, marks)]


def _list_marks(text: str, steps: Sequence[DecisionStep]) -> list[tuple[int, int, int]]:
    """Start, stop and number of the step; words that do not stand there any more are left out."""
    return sorted(
        (one.start, one.stop, number)
        for number, step in enumerate(steps, 1)
        for one in step.words
        if one.start is not None and one.stop is not None and text[one.start : one.stop] == one.words
    )


def _choose_windows(text: str, marks: Sequence[tuple[int, int, int]]) -> list[tuple[int, int]]:
    windows: list[tuple[int, int]] = []
    for start, stop, _ in marks:
        first, last = max(0, start - AROUND), min(len(text), stop + AROUND)
        if windows and first <= windows[-1][1] + NEAR:
            windows[-1] = windows[-1][0], max(windows[-1][1], last)
        else:
            windows.append((first, last))
    return windows


def _make_excerpt(text: str, marks: Sequence[tuple[int, int, int]], start: int, stop: int) -> MarkedExcerpt:
    inside = [one for one in marks if start <= one[0] and one[1] <= stop]
    edges = sorted({start, stop, *(edge for one in inside for edge in one[:2])})
    parts = [
        (text[a:b], tuple(sorted({number for first, last, number in inside if first <= a and b <= last})))
        for a, b in itertools.pairwise(edges)
    ]
    # neighbours that the same steps went by are one piece
    joined = itertools.groupby(parts, key=lambda part: part[1])
    pieces = tuple(ExplainedPiece("".join(words for words, _ in some), steps) for steps, some in joined)
    return MarkedExcerpt(start, tuple(one for one in pieces if one.text), start > 0, stop < len(text))
