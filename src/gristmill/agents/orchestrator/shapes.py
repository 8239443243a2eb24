"""The shapes in which the model of the standard graph answers."""

from typing import Literal

from pydantic import Field

from gristmill.agents.blanks import WordedModel
from gristmill.agents.orchestrator.state import StepKind

MOST_GOALS = 8
MOST_STEPS = 6


class Understood(WordedModel):
    """What a request asks for."""

    category: Literal["ADVICE", "SINGLE_TASK", "EPIC", "GENERATIVE"] = Field(
        description="ADVICE: a question to answer. SINGLE_TASK: one piece of work. EPIC: work with several goals. "
        "GENERATIVE: something new that needs a design first."
    )
    goal: str = Field(min_length=3, max_length=400, description="The request in one sentence.")
    is_clear: bool = Field(description="Whether one can begin without asking back.")
    question: str = Field(default="", max_length=400, description="Only if it is not clear: what a person must say.")


class GoalDraft(WordedModel):
    """A goal of a plan."""

    title: str = Field(min_length=3, max_length=200, description="What shall be so in the end.")
    done_when: str = Field(min_length=3, max_length=300, description="By what one sees that it is so.")


class GoalPlan(WordedModel):
    """The goals of a request, in the order in which they are reached."""

    goals: list[GoalDraft] = Field(min_length=1, max_length=MOST_GOALS)


class Design(WordedModel):
    """What something new shall be, and the goals that lead there."""

    design: str = Field(min_length=20, description="What it consists of, how it works, what it leaves out.")
    goals: list[GoalDraft] = Field(min_length=1, max_length=MOST_GOALS)


class StepDraft(WordedModel):
    """A step towards a goal."""

    kind: StepKind = Field(
        description="research: read and find out. code: read and change files, run tests. write: write a text or "
        "document. communicate: mails and appointments. track: issues and wiki pages."
    )
    task: str = Field(min_length=3, max_length=400, description="What is to be done in it.")


class Steps(WordedModel):
    """The steps towards one goal."""

    steps: list[StepDraft] = Field(min_length=1, max_length=MOST_STEPS)


class Opinion(WordedModel):
    """Whether a step is done, in the eyes of the model."""

    reason: str = Field(min_length=2, max_length=300)
    is_done: bool
