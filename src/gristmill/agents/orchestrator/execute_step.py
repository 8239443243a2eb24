"""The node that does a step: a model with the tools of its kind; a stronger model only if a person agrees."""

from gristmill.agents.acting import Brief, act, is_refused, narrow_tools
from gristmill.agents.orchestrator.prompts import (
    WORKING,
    load_said,
    share_room,
    show_contexts,
    show_evidence,
    show_plan,
    show_request,
)
from gristmill.agents.orchestrator.state import (
    OrchestratorState,
    StepKind,
    StepWork,
    Update,
    find_goal,
    find_step,
    name_place,
)
from gristmill.agents.run_handle import RunHandle
from gristmill.agents.runs import QuestionToAsk, Stepping

FILES = ("list_files", "read_file", "search_files")
READING = ("search_knowledge", "read_document", *FILES)
TOOLS_OF: dict[StepKind, tuple[str, ...]] = {
    "research": (*READING, "fetch_page", "git_log"),
    "code": (*FILES, "write_file", "patch_file", "git_status", "git_diff", "run_tests"),
    "write": (*READING, "write_document", "write_file"),
    "communicate": ("search_knowledge", "read_document", "draft_mail", "send_mail", "draft_event", "add_event"),
    "track": (
        "search_knowledge",
        "read_document",
        "create_issue",
        "comment_on_issue",
        "move_issue",
        "create_page",
        "update_page",
    ),
}
ROLE = """You are an agent that works for a person, one step at a time. You work with real tools on real things.
Do exactly this step, no more. Look before you change. Say plainly what you could not do."""
USE, STAY = "use", "stay"
ASKED_AT = 2  # tries by the usual model, before a stronger one is asked for


async def execute_step(state: OrchestratorState, handle: RunHandle, step: Stepping) -> Update:
    model = await choose_model(state, handle)
    brief = await make_brief(state, handle)
    acted = await act(handle, brief, step)
    step.output = acted.describe()
    calls = [
        {
            "tool": one.tool,
            "is_error": one.result.is_error,
            "is_refused": is_refused(one),
            "data": dict(one.result.data),
        }
        for one in acted.calls
    ]
    update: Update = {
        "work": StepWork(text=acted.text, is_complete=acted.is_complete, calls=calls),
        "tries": state.get("tries", 0) + 1,
        "changed_files": sorted({*state.get("changed_files", []), *acted.changed_files}),
        "artifacts": list(dict.fromkeys([*state.get("artifacts", []), *acted.artifacts])),
    }
    return update | ({"model": model} if model else {})


async def choose_model(state: OrchestratorState, handle: RunHandle) -> str:
    """The stronger model of the settings, if the usual one has failed at this step and a person agrees; else none."""
    stronger = handle.settings.agents.cloud_model
    if not stronger or state.get("model") or state.get("tries", 0) < ASKED_AT:
        return ""
    sentence = (
        f"Step {name_place(state)} failed {state.get('tries', 0)} times with {handle.thinker.model}: "
        f"{find_step(state)['task']} May the model {stronger} be asked from now on? It sees what this run has read."
    )
    (answer,) = await handle.ask(
        QuestionToAsk("cloud_model", "cloud_model", sentence, (USE, STAY), {"model": stronger})
    )
    if answer.choice != USE:
        return ""
    handle.thinker.use(stronger)
    return stronger


async def make_brief(state: OrchestratorState, handle: RunHandle) -> Brief:
    goal, planned = find_goal(state), find_step(state)
    contexts = await handle.load_contexts()
    task = f"{planned['task']}\n\nIt is a step towards: {goal['title']} (done when: {goal['done_when']})."
    verdict = state.get("verdict")
    if state.get("tries", 0) and verdict is not None:
        task += f"\n\nIt was tried before, and was not done: {verdict['reason']}"
    budget, said = handle.budget(WORKING), await load_said(handle)
    known = [
        show_request(handle, said),  # a goal in a model's own words has lost half of what was said
        show_plan(state) if len(state.get("goals", [])) > 1 or state.get("design") else "",
        show_contexts(contexts, goal["number"]),
        show_evidence(state),
    ]
    wanted = [planned["task"], handle.run.request, *(one.answer for one in said)]
    context = "\n\n".join(share_room([one for one in known if one], budget // 2))
    return Brief(
        place=f"goal {name_place(state)}",
        role=ROLE,
        task=task,
        context=context,
        tools=narrow_tools(TOOLS_OF[planned["kind"]], "\n".join(wanted)),
        budget=budget,
        rounds=handle.settings.agents.max_rounds,
        coding=planned["kind"] == "code",
        expects_change=planned["kind"] != "research",
        earlier=state.get("tries", 0),
    )
