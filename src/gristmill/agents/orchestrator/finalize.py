"""The node that ends a run: its report, by the model where it helps, and by a template where no model answers."""

from gristmill.agents.ask.phrases import name_language
from gristmill.agents.desk import Desk
from gristmill.agents.orchestrator.prompts import PLANNING, make_prompt, show_request
from gristmill.agents.orchestrator.reports import describe_work, write_report
from gristmill.agents.orchestrator.state import State, Update
from gristmill.agents.remembering import list_done_steps, note_end
from gristmill.agents.runs import Stepping
from gristmill.errors import Transient, Unreachable
from gristmill.models import Message, fence_text

MOST_NAMED = 20  # artifacts that are remembered
ANSWERED_TYPES = ("email", "bugtracker")  # somebody waits for a reply
REPLY = (
    """Draft a reply to it, in its language: polite, short, about what was done and what is open. Promise nothing."""
)
TASK = """Say in two to five sentences, in {language}, what came of the request: what was done or found, what is open.
Write for the person who asked. Say nothing that the report of the work does not say."""


async def finalize(state: State, desk: Desk, step: Stepping) -> Update:
    ended = state.get("ended") or explain_limit(state)
    closing = state.copy()
    closing["ended"] = ended
    summary = await summarise(closing, desk, step) if desk.thinker.is_there else ""
    report = write_report(desk.run, closing, summary)
    step.output = {
        "summary": summary or state.get("answer") or state.get("goal", ""),
        "reply": await draft_reply(closing, desk, step),
        "citations": state.get("citations", []),
        "artifacts": state.get("artifacts", []),
        "ended": ended,
    }
    await remember_end(closing, desk, summary)
    return {"report": report, "ended": ended}


async def remember_end(state: State, desk: Desk, summary: str) -> None:
    """What came of it in a sentence; a run whose goals were all reached teaches how such requests are done."""
    goals = state.get("goals", [])
    succeeded = bool(goals) and all(one["state"] == "done" for one in goals) and not state.get("ended")
    said = summary or state.get("answer") or state.get("ended") or "No model worked on it."
    details = {"category": state.get("category"), "artifacts": state.get("artifacts", [])[:MOST_NAMED]}
    steps = await list_done_steps(desk) if succeeded else []
    await note_end(desk, f"{desk.run.title}: {said}", details, steps, succeeded=succeeded or not goals)


def explain_limit(state: State) -> str:
    if state.get("iterations", 0) < state.get("most", 1):
        return ""
    return f"It ended at its limit of {state.get('most')} steps (setting agents.max_iterations)."


async def draft_reply(state: State, desk: Desk, step: Stepping) -> str:
    """For whoever wrote what the run was about; nothing is sent."""
    if desk.run.item_type == "user_input":
        return state.get("answer", "") or state.get("ended", "")
    if desk.run.item_type not in ANSWERED_TYPES or not desk.thinker.is_there:
        return ""
    done = fence_text(describe_work(state) or state.get("answer", ""), "report of the work")
    return await write_or_leave(desk, step, make_prompt(state, REPLY, show_request(desk), done))


async def write_or_leave(desk: Desk, step: Stepping, prompt: list[Message]) -> str:
    """What the model writes; nothing if it does not: the work is done, and the template tells it."""
    try:
        return (await desk.thinker.write(prompt, step=step, budget=desk.budget(PLANNING))).strip()
    except Unreachable:
        raise
    except Transient:
        return ""


async def summarise(state: State, desk: Desk, step: Stepping) -> str:
    """By the model; the answer to a question is its own summary."""
    if state.get("answer") or not state.get("goals"):
        return ""
    task = TASK.format(language=name_language(state.get("language", "en")))
    known = (show_request(desk), fence_text(describe_work(state), "report of the work"))
    return await write_or_leave(desk, step, make_prompt(state, task, *known))
