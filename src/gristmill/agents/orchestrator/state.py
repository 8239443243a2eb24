"""What a run of the standard graph knows: plain values alone, as a checkpoint keeps them."""

from operator import add
from typing import Annotated, Any, Literal, TypedDict

Category = Literal["ADVICE", "SINGLE_TASK", "EPIC", "GENERATIVE"]
StepKind = Literal["research", "code", "write", "communicate", "track"]
Update = dict[str, Any]


class EvidencePassage(TypedDict):
    """A passage that fits the request, and where it stands."""

    number: int
    document: int
    page: int
    start: int
    stop: int
    title: str
    text: str


class Goal(TypedDict):
    """Something that shall be so in the end."""

    number: int
    title: str
    done_when: str
    state: Literal["open", "done", "failed"]
    summary: str


class PlannedStep(TypedDict):
    """One piece of work towards a goal."""

    number: int
    kind: StepKind
    task: str


class StepVerdict(TypedDict):
    """Whether a step is done, and by what that was judged."""

    is_done: bool
    reason: str
    by: Literal["rule", "model"]


class StepWork(TypedDict):
    """What came of the last step."""

    text: str
    is_complete: bool
    calls: list[dict[str, Any]]


class OrchestratorState(TypedDict, total=False):
    """How far a run is. Every node adds one to `iterations`; `ended` says why it must come to its end early."""

    most: int
    iterations: Annotated[int, add]
    has_model: bool
    model: str  # that is asked from now on, if a person agreed to another one
    language: str
    category: Category
    goal: str
    evidence: list[EvidencePassage]
    known: str  # what the item's memory and the session know
    design: str
    goals: list[Goal]
    current: int  # the number of the goal that is worked on; 0: none is left
    steps: list[PlannedStep]
    at: int  # the place of the step in `steps`
    tries: int  # of this step
    work: StepWork
    verdict: StepVerdict
    changed_files: list[str]
    artifacts: list[str]
    answer: str
    citations: list[dict[str, Any]]
    git: str  # what became of the changes of the workspace
    ended: str
    report: str


def find_goal(state: OrchestratorState) -> Goal:
    """The goal that is worked on."""
    return next(one for one in state.get("goals", []) if one["number"] == state.get("current"))


def find_step(state: OrchestratorState) -> PlannedStep:
    return state.get("steps", [])[state.get("at", 0)]


def name_place(state: OrchestratorState) -> str:
    """The place in the plan: 2.1 is the first step of the second goal."""
    return f"{state.get('current', 0)}.{find_step(state)['number']}"
