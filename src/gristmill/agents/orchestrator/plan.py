"""The nodes that plan: goals of a task or an epic, or a design with its goals; a person agrees to the large ones."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from gristmill.agents.orchestrator.prompts import (
    CLARIFYING,
    PLANNING,
    list_goals,
    load_said,
    make_prompt,
    show_evidence,
    show_request,
)
from gristmill.agents.orchestrator.shapes import Design, GoalDraft, GoalPlan
from gristmill.agents.orchestrator.state import Goal, OrchestratorState, Update
from gristmill.agents.run_handle import RunHandle
from gristmill.agents.runs import QuestionKind, QuestionToAsk, Stepping, UserAnswer
from gristmill.errors import BadAnswer

APPROVE, CHANGE, STOP = "approve", "change", "stop"
MOST_CHANGES = 5  # of a plan, before a person must agree or stop
SINGLE = (
    "Plan the task: {goal}\nName one goal. Only if several different things are to be made, name one for each of them."
)
EPIC = "Plan the epic: {goal}\nName its goals in the order in which they are reached, each by itself checkable."
DESIGN = """Design what is asked for: {goal}
Describe what it consists of and how it works, then name the goals that lead there, each by itself checkable."""
Draft = dict[str, Any]  # design and goals, as a question shows them
MakeDraft = Callable[[Sequence[UserAnswer]], Awaitable[Draft]]


async def plan(state: OrchestratorState, handle: RunHandle, step: Stepping) -> Update:
    draft = await draft_plan(SINGLE, state, handle, step, await load_said(handle))
    return {"goals": number_goals(draft["goals"])}


async def plan_epic(state: OrchestratorState, handle: RunHandle, step: Stepping) -> Update:
    said = await load_said(handle, CLARIFYING)

    async def make(answers: Sequence[UserAnswer]) -> Draft:
        return await draft_plan(EPIC, state, handle, step, [*said, *answers])

    return await agree(handle, "epic_plan", "Shall this plan be carried out?", make)


async def design(state: OrchestratorState, handle: RunHandle, step: Stepping) -> Update:
    said = await load_said(handle, CLARIFYING)

    async def make(answers: Sequence[UserAnswer]) -> Draft:
        return await draft_design(state, handle, step, [*said, *answers])

    return await agree(handle, "generative_design", "Shall it be made by this design?", make)


# --- what the model proposes


async def draft_plan(
    task: str, state: OrchestratorState, handle: RunHandle, step: Stepping, answers: Sequence[UserAnswer]
) -> Draft:
    prompt = make_prompt(
        state, task.format(goal=state.get("goal", "")), show_request(handle, answers), show_evidence(state)
    )
    try:
        found = await handle.thinker.ask(prompt, GoalPlan, step=step, budget=handle.budget(PLANNING))
    except BadAnswer as error:
        return plan_by_rule(state, step, error)
    return {"goals": [describe_goal(one) for one in found.goals]}


async def draft_design(
    state: OrchestratorState, handle: RunHandle, step: Stepping, answers: Sequence[UserAnswer]
) -> Draft:
    task = DESIGN.format(goal=state.get("goal", ""))
    prompt = make_prompt(state, task, show_request(handle, answers), show_evidence(state))
    try:
        found = await handle.thinker.ask(prompt, Design, step=step, budget=handle.budget(PLANNING))
    except BadAnswer as error:
        return plan_by_rule(state, step, error) | {"design": ""}
    return {"design": found.design, "goals": [describe_goal(one) for one in found.goals]}


def plan_by_rule(state: OrchestratorState, step: Stepping, error: BadAnswer) -> Draft:
    """A model that cannot plan may still be able to work: the request is the only goal."""
    step.output = {"note": f"The plan was made by rule: {error}"}
    return {"goals": [{"title": state.get("goal", ""), "done_when": "What was asked for is there."}]}


def describe_goal(one: GoalDraft) -> dict[str, str]:
    return {"title": one.title.strip(), "done_when": one.done_when.strip()}


def number_goals(goals: Sequence[dict[str, str]]) -> list[Goal]:
    return [
        Goal(number=n, title=one["title"], done_when=one["done_when"], state="open", summary="")
        for n, one in enumerate(goals, 1)
    ]


# --- what a person says


async def agree(handle: RunHandle, kind: QuestionKind, sentence: str, make: MakeDraft) -> Update:
    """Ask a person about a draft, and make another one by what is said.

    What a person agreed to is what the question showed: after a restart it is read from there, and not made again.
    """
    answers: list[UserAnswer] = []
    while True:
        key = f"{kind} {len(answers) + 1}"
        known = await handle.recall(key)
        draft: Draft = dict(known.details) if known is not None else await make(answers)
        choices = (APPROVE, CHANGE, STOP) if len(answers) < MOST_CHANGES else (APPROVE, STOP)
        (answer,) = await handle.ask(QuestionToAsk(key, kind, describe_draft(sentence, draft), choices, draft))
        if answer.choice == APPROVE:
            return {"design": draft.get("design", ""), "goals": number_goals(draft["goals"])}
        if answer.choice == STOP:
            said = f": {answer.answer}" if answer.answer else "."
            return {"ended": f"{answer.by} stopped it at the plan{said}"}
        answers.append(answer)


def describe_draft(sentence: str, draft: Draft) -> str:
    parts = [sentence, draft.get("design", ""), list_goals(number_goals(draft["goals"]))]
    return "\n\n".join(part for part in parts if part)
