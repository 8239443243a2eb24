"""Decides what becomes of an effect: pure functions of its state, of the verdict of the policy, and of an error."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Literal, assert_never

from gristmill.agents.effects.model import EffectRow, EffectState
from gristmill.errors import Overloaded, Permanent, Refused, Unsent

REPEATED = "An earlier run for this item has reached the same target, on {}."
MOST_REPEATED = 3  # effects of earlier runs that a question names
LONGEST_REPEATED = 300  # characters of each
MOST_ATTEMPTS = 5  # of an effect whose other side is not reached, or is busy


@dataclass(frozen=True)
class Allow:
    """The policy lets it happen."""


@dataclass(frozen=True)
class Ask:
    """A person must agree, for these reasons."""

    reasons: Sequence[str]
    repeated: str = ""  # that it was done before, and when


@dataclass(frozen=True)
class RefuseEffect:
    """It never happens, for this reason."""

    reason: str


Verdict = Allow | Ask | RefuseEffect
Move = Literal["approve", "start", "ask", "refuse", "replay", "wait", "doubt"]


def choose_move(state: EffectState, *, repeatable: bool, verdict: Verdict, by_policy: bool = False) -> Move:
    """What is to be done with an effect that a run comes to, new or after a restart.

    The present policy counts: what it forbids does not begin, even if a person had approved it. A person is asked about
    an effect that only an older policy had allowed (`by_policy`).
    """
    match state:
        case "done" | "failed":
            return "replay"
        case "approved":
            return "refuse" if isinstance(verdict, RefuseEffect) else "ask" if by_policy and _asks(verdict) else "start"
        case "executing":  # by a worker that is gone: the run is ours
            return "start" if repeatable and not isinstance(verdict, RefuseEffect) else "doubt"
        case "unknown":
            return "wait"
        case "intended":
            return _apply(verdict)
        case _:
            assert_never(state)


def judge_again(verdict: Verdict, repeated: Sequence[EffectRow]) -> Verdict:
    """The verdict, where an earlier run for the same item has reached the same target: only a person lets it happen."""
    if not repeated or isinstance(verdict, RefuseEffect):
        return verdict
    reasons = [*(verdict.reasons if isinstance(verdict, Ask) else ())]
    if len(repeated) > MOST_REPEATED:
        reasons.append(f"Earlier runs for this item did this {len(repeated)} times; the last {MOST_REPEATED} were:")
    return Ask(
        (*reasons, *(_say_when(one) for one in repeated[-MOST_REPEATED:])), REPEATED.format(_find_time(repeated[-1]))
    )


def _say_when(row: EffectRow) -> str:
    """In one line: a summary has words of a model."""
    summary = " ".join(row.summary.split())
    shown = summary if len(summary) <= LONGEST_REPEATED else f"{summary[:LONGEST_REPEATED]} …"
    did = "did this before" if row.state == "done" else "may have done this before, nobody knows"
    return f"Run {row.run} for the same item {did}, on {_find_time(row)}: {shown}"


def _find_time(row: EffectRow) -> str:
    at = row.started_at or row.intended_at
    return f"{at.astimezone(UTC):%Y-%m-%d at %H:%M} UTC"


def _asks(verdict: Verdict) -> bool:
    return isinstance(verdict, Ask)


def _apply(verdict: Verdict) -> Move:
    match verdict:
        case Allow():
            return "approve"
        case Ask():
            return "ask"
        case RefuseEffect():
            return "refuse"
        case _:
            assert_never(verdict)


Ending = Literal["failed", "again", "repeat", "doubt"]


def judge_error(error: Exception, *, repeatable: bool, attempt: int) -> Ending:
    """How an attempt ended that raised this.

    `failed`: nothing was changed, and nothing would be by another attempt. `again`: nothing was changed yet. `repeat`:
    nobody knows, but the other side can be asked again. `doubt`: nobody knows.
    """
    if isinstance(error, Permanent | Refused):
        return "failed"
    if isinstance(error, Unsent | Overloaded):
        return "again" if attempt < MOST_ATTEMPTS else "failed"
    return "repeat" if repeatable else "doubt"
