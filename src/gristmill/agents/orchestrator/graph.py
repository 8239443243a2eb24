"""Builds the standard graph, and carries a run through it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from langgraph.graph import END, START, StateGraph

from gristmill.agents.desk import Desk
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
from gristmill.agents.orchestrator.state import State, Update, find_goal, find_step, name_place
from gristmill.agents.runs import Stepping
from gristmill.agents.walking import AnyGraph, walk

Node = Callable[[State, Desk, Stepping], Awaitable[Update]]
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


async def carry(desk: Desk) -> str:
    """Carry a run through the standard graph; its report."""
    start = {"most": desk.settings.agents.max_iterations, "iterations": 0}
    state = await walk(build_graph(desk), desk, start)
    return state["report"]


def build_graph(desk: Desk) -> AnyGraph:
    graph: Any = StateGraph(State)
    for name, node in NODES.items():
        graph.add_node(name, _visit(desk, name, node))
    graph.add_edge(START, "intake")
    for name, way in ROUTES.items():
        graph.add_conditional_edges(name, way.route, list(way.targets))
    graph.add_edge("finalize", END)
    return graph


def _visit(desk: Desk, name: str, node: Node) -> Callable[[State], Awaitable[Update]]:
    """A node with its row in `agent_step`, one for each visit."""

    async def visit(state: State) -> Update:
        if model := state.get("model"):
            desk.thinker.use(model)
        async with desk.step(name, title=make_title(name, desk, state), input=show_input(name, desk, state)) as step:
            update = await node(state, desk, step)
            step.output = update if step.output is None else step.output
        return update | {"iterations": 1}

    return visit


def make_title(name: str, desk: Desk, state: State) -> str:
    """One line for the list of steps."""
    if name in OF_A_STEP:
        return f"{name_place(state)} {find_step(state)['task']}"
    if name in OF_A_GOAL:
        return f"{state.get('current')}. {find_goal(state)['title']}"
    return state.get("goal") or desk.run.title


def show_input(name: str, desk: Desk, state: State) -> dict[str, Any]:
    """What a node goes by, without what the nodes before have shown already."""
    if name == "intake":
        return {"request": desk.run.request, "asked_by": desk.run.asked_by}
    if name in OF_A_STEP:
        return {"goal": find_goal(state), "step": find_step(state), "tries": state.get("tries", 0)}
    if name in OF_A_GOAL:
        return {"goal": find_goal(state)}
    return {"category": state.get("category"), "goal": state.get("goal")}
