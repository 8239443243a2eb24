"""The node that ends a run: its report, by the model where it helps, and by a template where no model answers."""

from collections.abc import Sequence

from gristmill.agents.ask.phrases import name_language
from gristmill.agents.orchestrator.prompts import PLANNING, load_said, make_prompt, show_request, write_said
from gristmill.agents.orchestrator.reports import count_failures, describe_work, name_unreached, write_report
from gristmill.agents.orchestrator.state import OrchestratorState, Update
from gristmill.agents.orchestrator.summary import check_summary
from gristmill.agents.remembering import list_done_steps, note_end
from gristmill.agents.run_handle import RunHandle
from gristmill.agents.runs import Stepping, UserAnswer
from gristmill.errors import Transient, Unreachable
from gristmill.models import Message, fence_text

MOST_NAMED = 20  # artifacts that are remembered
ANSWERED_TYPES = ("email", "bugtracker")  # somebody waits for a reply
REPLY = (
    """Draft a reply to it, in its language: polite, short, about what was done and what is open. Promise nothing."""
)
TASK = """Say in two to five sentences, in {language}, what came of the request: what was done or found, what is open.
Write for the person who asked. Say nothing that the report of the work does not say."""


async def finalize(state: OrchestratorState, handle: RunHandle, step: Stepping) -> Update:
    ended = state.get("ended") or explain_limit(state)
    closing = state.copy()
    closing["ended"] = ended
    said = await load_said(handle)
    summary = await summarise(closing, handle, step, said) if handle.thinker.is_there else ""
    report = write_report(handle.run, closing, summary)
    step.output = {
        "summary": summary or state.get("answer") or state.get("goal", ""),
        "reply": await draft_reply(closing, handle, step, said),
        "citations": state.get("citations", []),
        "artifacts": state.get("artifacts", []),
        "ended": ended,
        "unreached": name_unreached(closing),
    }
    await remember_end(closing, handle, summary)
    return {"report": report, "ended": ended}


async def remember_end(state: OrchestratorState, handle: RunHandle, summary: str) -> None:
    """What came of it in a sentence; a run whose goals were all reached teaches how such requests are done."""
    goals = state.get("goals", [])
    succeeded = all(one["state"] == "done" for one in goals) and not state.get("ended") if goals else None
    said = summary or state.get("answer") or state.get("ended") or count_failures(state) or "No model worked on it."
    details = {"category": state.get("category"), "artifacts": state.get("artifacts", [])[:MOST_NAMED]}
    steps = await list_done_steps(handle) if succeeded else []
    await note_end(handle, f"{handle.run.title}: {said}", details, steps, succeeded=succeeded)


def explain_limit(state: OrchestratorState) -> str:
    if state.get("iterations", 0) < state.get("most", 1):
        return ""
    return describe_limit(state.get("most", 1))


def describe_limit(most: int) -> str:
    return f"It ended at its limit of {most} steps (setting agents.max_iterations)."


async def draft_reply(state: OrchestratorState, handle: RunHandle, step: Stepping, said: Sequence[UserAnswer]) -> str:
    """A draft for the sender of the item that the run was about; nothing is sent."""
    if handle.run.item_type == "user_input":
        return state.get("answer", "") or state.get("ended", "")
    if handle.run.item_type not in ANSWERED_TYPES or not handle.thinker.is_there:
        return ""
    done = fence_text(describe_work(state) or state.get("answer", ""), "report of the work")
    return await write_or_leave(handle, step, make_prompt(state, REPLY, show_request(handle, said), done))


async def write_or_leave(handle: RunHandle, step: Stepping, prompt: list[Message]) -> str:
    """What the model writes; nothing if it does not: the work is done, and the template tells it."""
    try:
        return (await handle.thinker.write(prompt, step=step, budget=handle.budget(PLANNING))).strip()
    except Unreachable:
        raise
    except Transient:
        return ""


async def summarise(state: OrchestratorState, handle: RunHandle, step: Stepping, said: Sequence[UserAnswer]) -> str:
    """By the model, as far as work and evidence bear it out; the answer to a question is its own summary.

    Where no goal was reached, the report by rule says all that is certain.
    """
    goals = state.get("goals", [])
    if state.get("answer") or all(one["state"] != "done" for one in goals):
        return ""
    task = TASK.format(language=name_language(state.get("language", "en")))
    known = (show_request(handle, said), fence_text(describe_work(state), "report of the work"))
    written = await write_or_leave(handle, step, make_prompt(state, task, *known))
    return check_summary(written, state, (handle.run.request, write_said(said), describe_work(state)))
