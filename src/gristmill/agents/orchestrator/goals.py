"""The nodes that go from goal to goal: which one is next, which steps lead there, and what is known when it is over."""

import re
from collections.abc import Sequence

from gristmill.agents.orchestrator.intake import is_order
from gristmill.agents.orchestrator.prompts import (
    PLANNING,
    load_said,
    make_prompt,
    show_contexts,
    show_evidence,
    show_plan,
    show_request,
)
from gristmill.agents.orchestrator.shapes import Steps
from gristmill.agents.orchestrator.state import (
    Goal,
    OrchestratorState,
    PlannedStep,
    StepKind,
    Update,
    find_goal,
    find_step,
    name_place,
)
from gristmill.agents.run_handle import RunHandle
from gristmill.agents.runs import Stepping
from gristmill.errors import BadAnswer

KINDS: Sequence[tuple[StepKind, re.Pattern[str]]] = (
    (
        "communicate",
        re.compile(r"\b(?:e-?mails?|mails?|repl(?:y|ies)|appointments?|invit\w+|antwort\w*)\b", re.IGNORECASE),
    ),
    ("track", re.compile(r"\b(?:issues?|tickets?|wiki|comment(?:s|ed)? on)\b", re.IGNORECASE)),
    (
        "code",
        re.compile(r"\b\w+\.(?:py|js|ts|go|rs|c|h|java|sh|sql)\b|\b(?:fix|mend|refactor|implement)\b", re.IGNORECASE),
    ),
    (
        "write",
        re.compile(
            r"\b[\w-]+\.(?:md|txt|csv|html?|rst|toml|json|ya?ml)\b"
            r"|\b(?:writes?|written|notes?|documents?|file|schreib\w*|napiš)\b",
            re.IGNORECASE,
        ),
    ),
)
LONGEST_SUMMARY = 400  # characters of a step, for the goal above it
LONGEST_GOAL_SUMMARY = 1_200  # characters of a goal, for the epic above it
STEPS = """Name the steps that lead to goal {number}: {title} (done when: {done_when})
Few steps, in their order. Each is one piece of work for one agent with tools. Plan no step that commits or pushes."""


async def select_goal(state: OrchestratorState, handle: RunHandle, step: Stepping) -> Update:
    """The first goal that is open."""
    goal = next((one for one in state.get("goals", []) if one["state"] == "open"), None)
    step.output = {"goal": goal["title"] if goal else None}
    return {"current": goal["number"] if goal else 0, "steps": [], "at": 0, "tries": 0}


async def plan_steps(state: OrchestratorState, handle: RunHandle, step: Stepping) -> Update:
    goal = find_goal(state)
    contexts = await handle.load_contexts()
    task = STEPS.format(number=goal["number"], title=goal["title"], done_when=goal["done_when"])
    known = (show_plan(state), show_evidence(state), show_contexts(contexts, goal["number"]))
    prompt = make_prompt(state, task, show_request(handle, await load_said(handle)), *known)
    try:
        found = await handle.thinker.ask(prompt, Steps, step=step, budget=handle.budget(PLANNING))
        planned = [PlannedStep(number=n, kind=one.kind, task=one.task.strip()) for n, one in enumerate(found.steps, 1)]
        steps = correct_steps(planned, goal["title"], handle.run.request)
    except BadAnswer as error:
        steps = [PlannedStep(number=1, kind=guess_kind(goal["title"]), task=goal["title"])]
        step.output = {"note": f"The step was planned by rule: {error}", "steps": steps}
    return {"steps": steps, "at": 0, "tries": 0}


def correct_steps(steps: list[PlannedStep], goal: str, request: str) -> list[PlannedStep]:
    """Small models plan to read and never to write: where something is ordered, the last step is the one that does it.

    The tools of a step follow from its kind; a step of the wrong kind could not do its work however often it is tried.
    """
    wanted = guess_kind(f"{goal}\n{request}" if is_order(request) else goal)
    if wanted == "research" or any(one["kind"] != "research" for one in steps):
        return steps
    return [*steps[:-1], PlannedStep(number=steps[-1]["number"], kind=wanted, task=steps[-1]["task"])]


def guess_kind(text: str) -> StepKind:
    """By its words: what a step towards something has to work with."""
    for kind, words in KINDS:
        if words.search(text):
            return kind
    return "research"


async def advance_step(state: OrchestratorState, handle: RunHandle, step: Stepping) -> Update:
    """What the step found out goes into the context of its goal."""
    work = state.get("work")
    text = work["text"] if work else ""
    done = find_step(state)
    await handle.keep_context("step", name_place(state), shorten(f"{done['task']} → {text}", LONGEST_SUMMARY), text)
    return {"at": state.get("at", 0) + 1, "tries": 0}


async def advance_goal(state: OrchestratorState, handle: RunHandle, step: Stepping) -> Update:
    """What came of the steps goes up: into the summary of the goal, and from there into that of the whole."""
    goal = find_goal(state)
    is_done = state.get("at", 0) >= len(state.get("steps", []))
    summary = shorten(await summarise_goal(state, handle, goal, is_done=is_done), LONGEST_GOAL_SUMMARY)
    await handle.keep_context("goal", str(goal["number"]), summary)
    ended = goal.copy()
    ended["state"], ended["summary"] = "done" if is_done else "failed", summary
    goals = [ended if one["number"] == goal["number"] else one for one in state.get("goals", [])]
    whole = "\n".join(f"{one['number']}. {one['title']}: {one['state']}. {one['summary']}".strip() for one in goals)
    await handle.keep_context("epic", "1", shorten(state.get("goal", ""), LONGEST_SUMMARY), whole)
    step.output = {"goal": goal["title"], "state": ended["state"], "summary": summary}
    return {"goals": goals}


async def summarise_goal(state: OrchestratorState, handle: RunHandle, goal: Goal, *, is_done: bool) -> str:
    contexts = [one for one in await handle.load_contexts() if one.level == "step"]
    own = [one.summary for one in contexts if one.place.split(".")[0] == str(goal["number"])]
    verdict = state.get("verdict")
    if not is_done and verdict is not None:
        own.append(f"It was given up: {verdict['reason']}")
    return " ".join(own) or "Nothing was done for it."


def shorten(text: str, longest: int) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= longest else plain[: longest - 1] + "…"
