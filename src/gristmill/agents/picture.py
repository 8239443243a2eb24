"""The picture of a run: the nodes of its graph where they always stand, how each is, and which ways were gone.

Places are fixed for each graph, so that nothing moves while a run goes on. A course without a drawn graph is a row of
the nodes that it has visited.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Literal, NamedTuple

from gristmill.agents.runs import Run, StepLine

NodeState = Literal["idle", "done", "running", "waiting", "failed", "left"]
WIDTH, HEIGHT = 120, 54  # of a drawn node
ACROSS, DOWN = 138, 78  # from one node to its neighbour
EDGE = 8  # around the picture
COLUMNS = 6
LONGEST_LINE = 11  # characters of a name that fit beside the icon
LONGEST_NAME = 2 * LONGEST_LINE


class Cell(NamedTuple):
    """A place in the grid."""

    column: int
    row: int


class DrawnPoint(NamedTuple):
    x: float
    y: float


@dataclass(frozen=True)
class GraphPlan:
    """A graph as it is drawn: where its nodes stand, and which ways there are."""

    name: str
    cells: Mapping[str, Cell]
    ways: Sequence[tuple[str, str]]
    bends: Mapping[tuple[str, str], Sequence[DrawnPoint]]  # corners of ways that would cross a node


def _corner(column: float, row: float) -> DrawnPoint:
    """A point of the grid in units of the picture; halves are between the nodes."""
    return DrawnPoint(EDGE + column * ACROSS + WIDTH / 2, EDGE + row * DOWN + HEIGHT / 2)


STANDARD = GraphPlan(
    "standard graph",
    {
        "intake": Cell(0, 0),
        "evidence_pack": Cell(1, 0),
        "respond": Cell(2, 0),
        "plan": Cell(2, 1),
        "plan_epic": Cell(2, 2),
        "design": Cell(2, 3),
        "select_goal": Cell(3, 1),
        "plan_steps": Cell(4, 1),
        "execute_step": Cell(5, 1),
        "evaluate": Cell(5, 2),
        "advance_step": Cell(4, 2),
        "advance_goal": Cell(3, 2),
        "git_operations": Cell(4, 3),
        "finalize": Cell(5, 3),
    },
    [
        ("intake", "evidence_pack"),
        ("evidence_pack", "respond"),
        ("evidence_pack", "plan"),
        ("evidence_pack", "plan_epic"),
        ("evidence_pack", "design"),
        ("respond", "finalize"),
        ("plan", "select_goal"),
        ("plan_epic", "select_goal"),
        ("design", "select_goal"),
        ("select_goal", "plan_steps"),
        ("plan_steps", "execute_step"),
        ("execute_step", "evaluate"),
        ("evaluate", "advance_step"),
        ("evaluate", "advance_goal"),
        ("advance_step", "execute_step"),
        ("advance_step", "advance_goal"),
        ("advance_goal", "select_goal"),
        ("select_goal", "git_operations"),
        ("git_operations", "finalize"),
    ],
    {
        ("evidence_pack", "plan"): [_corner(1.5, 0), _corner(1.5, 1)],
        ("evidence_pack", "plan_epic"): [_corner(1.5, 0), _corner(1.5, 2)],
        ("evidence_pack", "design"): [_corner(1.5, 0), _corner(1.5, 3)],
        ("plan_epic", "select_goal"): [_corner(2.5, 2), _corner(2.5, 1)],
        ("design", "select_goal"): [_corner(2.5, 3), _corner(2.5, 1)],
        ("advance_step", "execute_step"): [_corner(4.5, 2), _corner(4.5, 1)],
        ("respond", "finalize"): [_corner(5.5, 0), _corner(5.5, 3)],
        ("select_goal", "git_operations"): [_corner(3.5, 1), _corner(3.5, 3)],
        ("evaluate", "advance_goal"): [_corner(5, 2.5), _corner(3, 2.5)],
    },
)
CHAIN = ("intake", "evidence_pack", "plan_delegations", "execute_delegation", "synthesize", "finalize")
DELEGATION = GraphPlan(
    "delegation graph", {node: Cell(at, 0) for at, node in enumerate(CHAIN)}, list(pairwise(CHAIN)), {}
)
LAST = "finalize"
ONLY_DELEGATION = frozenset(CHAIN) - frozenset(STANDARD.cells)


@dataclass(frozen=True)
class DrawnRunNode:
    """A node, and how it is."""

    name: str
    place: DrawnPoint  # its upper left corner
    state: NodeState
    visits: int
    tokens: int
    time: timedelta | None  # that its finished visits took

    @property
    def lines(self) -> Sequence[str]:
        """Its name in one line, or in two."""
        words = self.name.replace("_", " ")
        words = words if len(words) <= LONGEST_NAME else words[: LONGEST_NAME - 1] + "…"
        if len(words) <= LONGEST_LINE:
            return (words,)
        head, _, rest = words.partition(" ")
        return (head, rest) if rest and len(head) <= LONGEST_LINE else (words[:LONGEST_LINE], words[LONGEST_LINE:])


@dataclass(frozen=True)
class DrawnWay:
    """A way from a node to another; `is_gone`: the run went it."""

    source: str
    target: str
    path: str  # of SVG
    is_gone: bool


@dataclass(frozen=True)
class RunPicture:
    """A drawn run."""

    name: str
    width: float
    height: float
    nodes: Sequence[DrawnRunNode]
    ways: Sequence[DrawnWay]

    @property
    def visited(self) -> Sequence[DrawnRunNode]:
        return [node for node in self.nodes if node.visits]

    @property
    def sentence(self) -> str:
        """The picture in words."""
        now = [f"{node.name} {WORDS[node.state]}" for node in self.nodes if node.state in ("running", "waiting")]
        tail = f": {', '.join(now)}" if now else ""
        return f"The {self.name}, {len(self.visited)} of {len(self.nodes)} nodes visited{tail}"


WORDS: Mapping[NodeState, str] = {
    "idle": "not visited",
    "done": "done",
    "running": "running",
    "waiting": "waits",
    "failed": "failed",
    "left": "left",  # the worker was killed, or the run was stopped, in the middle of it
}


def draw_run(run: Run, steps: Sequence[StepLine]) -> RunPicture | None:
    """The picture of a run that has begun."""
    visits = [one for one in steps if one.parent is None]
    if not visits:
        return None
    plan = choose_plan([one.node for one in visits])
    gone = set(pairwise(one.node for one in visits))
    plan = _add_early_ends(plan, gone)
    nodes = [_draw_node(name, cell, run, visits) for name, cell in plan.cells.items()]
    ways = [
        DrawnWay(*way, draw_way(plan.cells[way[0]], plan.cells[way[1]], plan.bends.get(way, ())), way in gone)
        for way in plan.ways
    ]
    ways.sort(key=lambda way: way.is_gone)  # those that were gone lie above the others
    rightmost = max(cell.column for cell in plan.cells.values())
    lowest = max(cell.row for cell in plan.cells.values())
    width = 2 * EDGE + rightmost * ACROSS + WIDTH + (ACROSS - WIDTH) / 2
    height = 2 * EDGE + lowest * DOWN + HEIGHT + (DOWN - HEIGHT) / 2
    return RunPicture(plan.name, width, height, nodes, ways)


def choose_plan(visited: Sequence[str]) -> GraphPlan:
    """The graph that these visits belong to; nodes that it does not have are drawn below it."""
    seen = list(dict.fromkeys(visited))
    if ONLY_DELEGATION.intersection(seen):
        return _add_strangers(DELEGATION, seen)
    if any(node in STANDARD.cells for node in seen):
        return _add_strangers(STANDARD, seen)
    row = GraphPlan("course", {}, list(pairwise(seen)), {})
    return _add_strangers(row, seen)


def _add_strangers(plan: GraphPlan, seen: Sequence[str]) -> GraphPlan:
    strangers = [node for node in seen if node not in plan.cells]
    first = max((cell.row for cell in plan.cells.values()), default=-1) + 1
    places = {node: Cell(at % COLUMNS, first + at // COLUMNS) for at, node in enumerate(strangers)}
    cells = {**plan.cells, **places}
    # a way to the next line would cross the nodes between: the numbers in the list of steps tell the order
    ways = [way for way in plan.ways if way[0] not in places or cells[way[0]].row == cells[way[1]].row]
    return GraphPlan(plan.name, cells, ways, plan.bends)


def _add_early_ends(plan: GraphPlan, gone: set[tuple[str, str]]) -> GraphPlan:
    """Every node may lead to the end: such a way is drawn only if it was gone, below all nodes."""
    if LAST not in plan.cells:
        return plan
    end = plan.cells[LAST]
    early = [way for way in sorted(gone) if way[1] == LAST and way not in plan.ways and way[0] in plan.cells]
    bends = {way: _go_below(plan.cells[way[0]], end) for way in early}
    return GraphPlan(plan.name, plan.cells, [*plan.ways, *early], {**plan.bends, **bends})


def _go_below(start: Cell, end: Cell) -> Sequence[DrawnPoint]:
    if start.column == end.column:
        return (
            ()
            if start.row == end.row - 1
            else (_corner(end.column + 0.5, start.row), _corner(end.column + 0.5, end.row))
        )
    aside, below = start.column + 0.5, end.row + 0.5
    return (_corner(aside, start.row), _corner(aside, below), _corner(end.column, below))


def _draw_node(name: str, cell: Cell, run: Run, visits: Sequence[StepLine]) -> DrawnRunNode:
    own = [one for one in visits if one.node == name]
    times = [one.finished_at - one.started_at for one in own if one.finished_at is not None]
    return DrawnRunNode(
        name,
        DrawnPoint(EDGE + cell.column * ACROSS, EDGE + cell.row * DOWN),
        judge_step(own[-1], run) if own else "idle",
        len(own),
        sum(one.tokens_in + one.tokens_out for one in own),
        sum(times, timedelta()) if times else None,
    )


def judge_step(step: StepLine, run: Run) -> NodeState:
    """How a step is; one that nobody ended runs, or was left when its worker died or its run was stopped."""
    if step.finished_at is None:
        return "running" if run.state == "running" else "left"
    if step.waits:
        return "waiting" if run.state == "waiting_for_user" else "done"
    return "failed" if step.error is not None else "done"


def draw_way(source: Cell, target: Cell, bends: Sequence[DrawnPoint]) -> str:
    """From the side of a node to the side of another, over the bends."""
    start, end = _corner(*source), _corner(*target)
    ahead, behind = bends[0] if bends else end, bends[-1] if bends else start
    points = [_leave(start, ahead), *bends, _leave(end, behind)]
    return "M" + " L".join(f"{point.x:g} {point.y:g}" for point in points)


def _leave(middle: DrawnPoint, other: DrawnPoint) -> DrawnPoint:
    """The middle of the side of a node that looks to another point."""
    if other.y == middle.y or abs(other.x - middle.x) > WIDTH / 2:
        return DrawnPoint(middle.x + (WIDTH / 2 if other.x > middle.x else -WIDTH / 2), middle.y)
    return DrawnPoint(middle.x, middle.y + (HEIGHT / 2 if other.y > middle.y else -HEIGHT / 2))
