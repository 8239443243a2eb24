"""Where a run goes next: pure functions of its state."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from gristmill.agents.orchestrator.state import OrchestratorState

MOST_TRIES = 3  # of one step
Route = Callable[[OrchestratorState], str]


def is_over(state: OrchestratorState) -> bool:
    """Whether it must end now, with what it has: somebody said so, or it has visited as many nodes as it may."""
    return bool(state.get("ended")) or state.get("iterations", 0) >= state.get("most", 1)


def route_category(state: OrchestratorState) -> str:
    if is_over(state) or not state.get("has_model"):
        return "finalize"
    match state.get("category", "SINGLE_TASK"):
        case "ADVICE":
            return "respond"
        case "SINGLE_TASK":
            return "plan"
        case "EPIC":
            return "plan_epic"
        case "GENERATIVE":
            return "design"


def route_goal(state: OrchestratorState) -> str:
    if is_over(state):
        return "finalize"
    return "plan_steps" if state.get("current") else "git_operations"


def route_verdict(state: OrchestratorState) -> str:
    """A step that is not done is tried again; one that cannot be done ends its goal."""
    if is_over(state):
        return "finalize"
    verdict = state.get("verdict")
    if verdict is not None and verdict["is_done"]:
        return "advance_step"
    return "execute_step" if state.get("tries", 0) < MOST_TRIES else "advance_goal"


def route_step(state: OrchestratorState) -> str:
    if is_over(state):
        return "finalize"
    return "execute_step" if state.get("at", 0) < len(state.get("steps", [])) else "advance_goal"


def go_to(node: str) -> Route:
    """There, unless it must end."""

    def route(state: OrchestratorState) -> str:
        return "finalize" if is_over(state) else node

    return route


class Way(NamedTuple):
    """How it is decided where a node leads, and where it may."""

    route: Route
    targets: Sequence[str]


ROUTES: Mapping[str, Way] = {
    "intake": Way(go_to("evidence_pack"), ("evidence_pack", "finalize")),
    "evidence_pack": Way(route_category, ("respond", "plan", "plan_epic", "design", "finalize")),
    "respond": Way(go_to("finalize"), ("finalize",)),
    "plan": Way(go_to("select_goal"), ("select_goal", "finalize")),
    "plan_epic": Way(go_to("select_goal"), ("select_goal", "finalize")),
    "design": Way(go_to("select_goal"), ("select_goal", "finalize")),
    "select_goal": Way(route_goal, ("plan_steps", "git_operations", "finalize")),
    "plan_steps": Way(go_to("execute_step"), ("execute_step", "finalize")),
    "execute_step": Way(go_to("evaluate"), ("evaluate", "finalize")),
    "evaluate": Way(route_verdict, ("advance_step", "execute_step", "advance_goal", "finalize")),
    "advance_step": Way(route_step, ("execute_step", "advance_goal", "finalize")),
    "advance_goal": Way(go_to("select_goal"), ("select_goal", "finalize")),
    "git_operations": Way(go_to("finalize"), ("finalize",)),
}
