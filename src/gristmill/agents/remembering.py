"""What a graph does with memory: it recalls when a run begins its work, and notes down how it ended."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from gristmill.agents.memory import (
    ProcedureNode,
    ProcedureStep,
    SessionSource,
    find_procedures,
    grasp,
    learn,
    note_use,
    recall,
    remember,
    write_procedure,
    write_session,
)
from gristmill.agents.run_handle import RunHandle
from gristmill.agents.runs import AgentStep, ReadText, list_steps_of_node
from gristmill.models import fence_text

MOST_ENTRIES = 10
REMEMBERED = "what is remembered"
STATED = "People have stated how such requests are done here. Follow it, as far as it fits:"
# who does a step of the standard graph, by its kind
AGENTS = {
    "research": "research",
    "code": "coding",
    "write": "documentation",
    "communicate": "communication",
    "track": "issue_tracker",
}


async def recall_for(handle: RunHandle) -> str:
    """What is remembered that may help: what happened lately in the project, and procedures that fit the request.

    Only what a person stated is told as advice. All the rest is material: its words are nobody's orders.
    """
    procedures = await find_fitting(handle)
    async with handle.db.reading() as tx:
        entries = await recall(tx, handle.run.place, handle.run.asked_by, MOST_ENTRIES)
    stated = [write_procedure(one) for one in procedures if one.source == "user_defined"]
    material = [write_procedure(one) for one in procedures if one.source == "learned"]
    material += [f"Lately:\n{write_session(entries)}"] if entries else []
    parts = ["\n".join([STATED, *stated])] if stated else []
    if material:
        text = "\n\n".join(material)
        await handle.toolbox.read(ReadText(REMEMBERED, text))
        parts.append(fence_text(text, "memory of the project"))
    return "\n\n".join(parts)


async def find_fitting(handle: RunHandle) -> Sequence[ProcedureNode]:
    """The procedures that fit the request; none without `use_procedural_memory`, or for a run that nobody asked for."""
    if not handle.settings.agents.use_procedural_memory or handle.run.asked_by is None:
        return []
    meaning = await grasp(handle.toolbox.context.embedders, handle.run.request)
    async with handle.db.reading() as tx:
        return await find_procedures(tx, handle.run.place, handle.run.request, meaning=meaning)


async def note_end(
    handle: RunHandle,
    summary: str,
    details: Mapping[str, Any],
    steps: Sequence[ProcedureStep],
    *,
    succeeded: bool | None,
) -> None:
    """Remember how a run ended. With `use_procedural_memory`, the procedure that it followed is counted, or a new one
    is learned from its steps. A run that had no goals has used none (`succeeded` is None): it answered a question, or
    a person stopped it at its plan. All of this may be said again after a kill.
    """
    run = handle.run
    source: SessionSource = "chat" if run.foreground and run.asked_by is not None else "background"
    fitting = await find_fitting(handle)
    teaches = handle.settings.agents.use_procedural_memory and succeeded and not fitting
    meaning = await grasp(handle.toolbox.context.embedders, run.request) if teaches else None
    async with handle.db.transaction() as tx:
        await remember(tx, run, source, summary or run.title, details)
        if fitting and succeeded is not None:
            await note_use(tx, fitting[0].id, run, succeeded=succeeded)
        elif teaches:
            await learn(tx, run, steps, meaning=meaning)


async def list_done_steps(handle: RunHandle) -> list[ProcedureStep]:
    """The steps of the standard graph that a run has made, each with the agent whose work it is."""
    async with handle.db.reading() as tx:
        made = await list_steps_of_node(tx, handle.run.id, "execute_step")
    tasks = [_read_step(one) for one in made if one.error is None]
    return list({(step.agent, step.action): step for step in tasks if step is not None}.values())


def _read_step(one: AgentStep) -> ProcedureStep | None:
    given = cast(Mapping[str, Any], one.input or {})
    planned = cast(Mapping[str, Any], given.get("step") or {})
    if not planned.get("task"):
        return None
    return ProcedureStep(AGENTS.get(str(planned.get("kind")), "general"), str(planned["task"]))
