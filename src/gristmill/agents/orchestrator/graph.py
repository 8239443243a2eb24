"""Builds the standard graph, and carries a run through it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from langgraph.graph import END, START, StateGraph

from gristmill.agents.orchestrator.evaluate import evaluate
from gristmill.agents.orchestrator.evidence_pack import evidence_pack
from gristmill.agents.orchestrator.execute_step import execute_step
from gristmill.agents.orchestrator.finalize import finalize
from gristmill.agents.orchestrator.git_operations import git_operations
from gristmill.agents.orchestrator.goals import advance_goal, advance_step, plan_steps, select_goal
from gristmill.agents.orchestrator.intake import intake
from gristmill.agents.orchestrator.plan import design, plan, plan_epic
from gristmill.agents.orchestrator.respond import respond
from gristmill.agents.orchestrator.routing import ROUTES
from gristmill.agents.orchestrator.state import OrchestratorState, Update, find_goal, find_step, name_place
from gristmill.agents.run_handle import RunHandle
from gristmill.agents.runs import Stepping
from gristmill.agents.walking import AnyGraph, walk

Node = Callable[[OrchestratorState, RunHandle, Stepping], Awaitable[Update]]
NODES: Mapping[str, Node] = {
    "intake": intake,
    "evidence_pack": evidence_pack,
    "respond": respond,
    "plan": plan,
    "plan_epic": plan_epic,
    "design": design,
    "select_goal": select_goal,
    "plan_steps": plan_steps,
    "execute_step": execute_step,
    "evaluate": evaluate,
    "advance_step": advance_step,
    "advance_goal": advance_goal,
    "git_operations": git_operations,
    "finalize": finalize,
}
OF_A_STEP = frozenset(("execute_step", "evaluate", "advance_step"))
OF_A_GOAL = frozenset(("plan_steps", "advance_goal"))


async def carry(handle: RunHandle) -> str:
    """Carry a run through the standard graph; its report."""
    start = {"most": handle.settings.agents.max_iterations, "iterations": 0}
    state = await walk(build_graph(handle), handle, start)
    return state["report"]


def build_graph(handle: RunHandle) -> AnyGraph:
    graph: Any = StateGraph(OrchestratorState)
    for name, node in NODES.items():
        graph.add_node(name, _visit(handle, name, node))
    graph.add_edge(START, "intake")
    for name, way in ROUTES.items():
        graph.add_conditional_edges(name, way.route, list(way.targets))
    graph.add_edge("finalize", END)
    return graph


def _visit(handle: RunHandle, name: str, node: Node) -> Callable[[OrchestratorState], Awaitable[Update]]:
    """A node with its row in `agent_step`, one for each visit."""

    async def visit(state: OrchestratorState) -> Update:
        if model := state.get("model"):
            handle.thinker.use(model)
        async with handle.step(
            name, title=make_title(name, handle, state), input=show_input(name, handle, state)
        ) as step:
            update = await node(state, handle, step)
            step.output = update if step.output is None else step.output
        return update | {"iterations": 1}

    return visit


def make_title(name: str, handle: RunHandle, state: OrchestratorState) -> str:
    """One line for the list of steps."""
    if name in OF_A_STEP:
        return f"{name_place(state)} {find_step(state)['task']}"
    if name in OF_A_GOAL:
        return f"{state.get('current')}. {find_goal(state)['title']}"
    return state.get("goal") or handle.run.title


def show_input(name: str, handle: RunHandle, state: OrchestratorState) -> dict[str, Any]:
    """What a node goes by, without what the nodes before have shown already."""
    if name == "intake":
        return {"request": handle.run.request, "asked_by": handle.run.asked_by}
    if name in OF_A_STEP:
        return {"goal": find_goal(state), "step": find_step(state), "tries": state.get("tries", 0)}
    if name in OF_A_GOAL:
        return {"goal": find_goal(state)}
    return {"category": state.get("category"), "goal": state.get("goal")}
