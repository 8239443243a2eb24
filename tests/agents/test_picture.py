"""The picture of a run: the nodes of the real graph, each where it always stands, with the state of its last visit."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gristmill.agents.orchestrator.graph import NODES
from gristmill.agents.orchestrator.routing import ROUTES
from gristmill.agents.picture import STANDARD, RunPicture, choose_plan, draw_run, judge_step
from gristmill.agents.runs import Run, RunState, StepLine
from gristmill.agents.step_tree import keep_last, keep_node, nest_steps
from gristmill.ids import RunId, ScopeId, StepId

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)
RUN = Run(
    RunId(1), ScopeId(1), "acme", "", "Do it.", "anna", None, None, None, True, "running", 1, None, None, None, None,
    None, 0, 0, 0, NOON, NOON, None,
)  # fmt: skip


def make_step(id_: int, node: str, parent: int | None = None, **more: object) -> StepLine:
    known = {"title": "", "error": None, "waits": False, "model": None, "tokens_in": 5, "tokens_out": 1}
    over = {"started_at": NOON, "finished_at": NOON + timedelta(seconds=2)}
    above = StepId(parent) if parent else None
    return StepLine(id=StepId(id_), parent=above, node=node, **(known | over | more))  # type: ignore[arg-type]


def draw(*nodes: str, run: Run = RUN) -> RunPicture:
    drawn = draw_run(run, [make_step(at, node) for at, node in enumerate(nodes, 1)])
    assert drawn is not None
    return drawn


def test_every_node_of_the_standard_graph_has_its_place_and_every_way_is_one_of_the_graph() -> None:
    assert set(STANDARD.cells) == set(NODES)
    assert len(set(STANDARD.cells.values())) == len(NODES), "no two nodes stand at one place"
    assert [way for way in STANDARD.ways if way[1] not in ROUTES[way[0]].targets] == []


def test_a_run_that_has_not_begun_has_no_picture() -> None:
    assert draw_run(RUN, []) is None


def test_nodes_keep_their_places_whatever_is_visited() -> None:
    first, later = draw("intake"), draw("intake", "evidence_pack", "plan", "select_goal", "a_stranger")
    places = {node.name: node.place for node in later.nodes}
    assert all(places[node.name] == node.place for node in first.nodes)
    assert places["a_stranger"].y > max(node.place.y for node in first.nodes)


def test_visits_time_and_tokens_are_counted_and_gone_ways_are_told() -> None:
    drawn = draw("intake", "evidence_pack", "plan", "select_goal", "plan_steps", "execute_step", "evaluate",
                 "advance_step", "execute_step")  # fmt: skip
    node = next(one for one in drawn.nodes if one.name == "execute_step")
    assert (node.visits, node.tokens, node.time, node.state) == (2, 12, timedelta(seconds=4), "done")
    gone = {(way.source, way.target) for way in drawn.ways if way.is_gone}
    assert ("advance_step", "execute_step") in gone
    assert ("evidence_pack", "respond") not in gone


@pytest.mark.parametrize("node", [node for node in NODES if node != "finalize"])
def test_every_way_to_the_end_can_be_drawn(node: str) -> None:
    drawn = draw(node, "finalize")
    (way,) = [one for one in drawn.ways if one.is_gone]
    assert (way.source, way.target) == (node, "finalize")


def test_the_graph_is_known_by_its_nodes() -> None:
    assert choose_plan(["intake", "plan_delegations"]).name == "delegation graph"
    assert choose_plan(["intake"]).name == "standard graph"
    other = choose_plan([f"node{n}" for n in range(8)])
    assert other.name == "course"
    assert {cell.row for cell in other.cells.values()} == {0, 1}
    assert all(other.cells[a].row == other.cells[b].row for a, b in other.ways)


@pytest.mark.parametrize(
    ("state", "more", "expected"),
    [
        ("running", {"finished_at": None}, "running"),
        ("queued", {"finished_at": None}, "left"),
        ("stopped", {"finished_at": None}, "left"),
        ("running", {}, "done"),
        ("running", {"error": "No."}, "failed"),
        ("waiting_for_user", {"waits": True}, "waiting"),
        ("running", {"waits": True}, "done"),
    ],
)
def test_a_step_is_judged_by_its_end_and_by_its_run(state: RunState, more: dict[str, object], expected: str) -> None:
    assert judge_step(make_step(1, "plan", **more), replace(RUN, state=state)) == expected


def test_steps_are_nested_and_the_last_ones_keep_those_above_them() -> None:
    steps = [
        make_step(1, "intake"),
        make_step(2, "execute_delegation"),
        make_step(3, "legal", 2),
        make_step(4, "research", 3),
    ]
    assert [(twig.number, depth) for twig, depth in nest_steps(RUN, steps)] == [(1, 0), (2, 0), (3, 1), (4, 2)]
    assert [one.id for one in keep_last(steps, 1)] == [2, 3, 4]
    assert [one.id for one in keep_node(steps, "execute_delegation")] == [2, 3, 4]
    assert [one.id for one in keep_node(steps, "legal")] == [], "a node of the graph is meant, not an agent below it"


def test_lines_of_names_fit_into_their_nodes() -> None:
    for node in draw(*NODES).nodes:
        assert all(len(line) <= 11 for line in node.lines), node.name
