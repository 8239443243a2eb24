"""The node that judges a step: by rule what its tools have shown, and by the model in addition."""

from gristmill.agents.orchestrator.prompts import WORKING, load_said, make_prompt, show_request
from gristmill.agents.orchestrator.routing import MOST_TRIES
from gristmill.agents.orchestrator.shapes import Opinion
from gristmill.agents.orchestrator.state import (
    OrchestratorState,
    PlannedStep,
    StepVerdict,
    StepWork,
    Update,
    find_goal,
    find_step,
)
from gristmill.agents.run_handle import RunHandle
from gristmill.agents.runs import Stepping
from gristmill.errors import BadAnswer
from gristmill.models import fence_text

CHANGING = frozenset(
    (
        "write_file",
        "patch_file",
        "write_document",
        "draft_mail",
        "send_mail",
        "draft_event",
        "add_event",
        "create_issue",
        "comment_on_issue",
        "move_issue",
        "create_page",
        "update_page",
    )
)
TASK = """Judge whether this step was done: {task}
A step that found out that something cannot be done, and says why, is done. Say your reason first."""


async def evaluate(state: OrchestratorState, handle: RunHandle, step: Stepping) -> Update:
    planned, work = find_step(state), state.get("work") or StepWork(text="", is_complete=False, calls=[])
    verdict = judge_by_rule(planned, work)
    # the model alone may repeat a step once; after that, only if tools were needed and none did anything
    is_empty = planned["kind"] != "research" and not has_shown(work)
    if verdict["is_done"] and (state.get("tries", 0) < 2 or is_empty):
        verdict = await judge_by_model(state, handle, step, planned, work)
    if not verdict["is_done"] and any(call.get("is_refused") for call in work["calls"]):
        return {"verdict": verdict, "tries": MOST_TRIES}  # a person said no: another try would only ask again
    return {"verdict": verdict}


def judge_by_rule(planned: PlannedStep, work: StepWork) -> StepVerdict:
    """What the tools have shown counts more than what the model says of itself."""
    if not work["is_complete"]:
        return StepVerdict(is_done=False, reason="The rounds ran out before the step was done.", by="rule")
    tests = [call for call in work["calls"] if call["tool"] == "run_tests"]
    if tests and (tests[-1]["is_error"] or tests[-1]["data"].get("code") != 0):
        return StepVerdict(is_done=False, reason="The tests do not pass.", by="rule")
    changes = [call for call in work["calls"] if call["tool"] in CHANGING]
    if changes and all(call["is_error"] for call in changes):
        said = "was refused by a person" if changes[-1].get("is_refused") else "failed"
        return StepVerdict(is_done=False, reason=f"{changes[-1]['tool']} {said}.", by="rule")
    if work["calls"] and planned["kind"] != "research" and not has_shown(work):
        return StepVerdict(
            is_done=False, reason=f"{work['calls'][-1]['tool']} failed, as all of its calls did.", by="rule"
        )
    reason = "Its tools succeeded." if has_shown(work) else "It called no tool, and says that it is done."
    return StepVerdict(is_done=True, reason=reason, by="rule")


def has_shown(work: StepWork) -> bool:
    """Whether a tool did anything: else there are only the words of the model."""
    return any(not call["is_error"] for call in work["calls"])


async def judge_by_model(
    state: OrchestratorState, handle: RunHandle, step: Stepping, planned: PlannedStep, work: StepWork
) -> StepVerdict:
    goal = find_goal(state)
    said = fence_text(work["text"], "report of the agent")
    calls = ", ".join(f"{one['tool']}{' (failed)' if one['is_error'] else ''}" for one in work["calls"]) or "none"
    known = (
        show_request(handle, await load_said(handle)),
        f"The goal: {goal['title']} (done when: {goal['done_when']})",
        f"The tools that it called: {calls}",
        said,
    )
    prompt = make_prompt(state, TASK.format(task=planned["task"]), *known, budget=WORKING)
    try:
        found = await handle.thinker.ask(prompt, Opinion, step=step, budget=handle.budget(WORKING))
    except BadAnswer as error:
        step.output = {"note": f"It was judged by rule alone: {error}"}
        return judge_by_rule(planned, work)
    return StepVerdict(is_done=found.is_done, reason=found.reason, by="model")
