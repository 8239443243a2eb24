"""The page of the graph: explore from a node, see the evidence, find the way between two, merge what is one."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import APIRouter, Form, Request, Response

from gristmill.db import Tx
from gristmill.errors import Refused
from gristmill.knowledge import graph, keys, merging
from gristmill.scopes import Scope, list_clients
from gristmill.serving import Manager, MenuEntry, Viewer, services_of
from gristmill.web.console.answering import answer_action, stay_here
from gristmill.web.console.graph_picture import GraphPicture, colour_of, draw_around, sign_of, word_of
from gristmill.web.console.graph_view import GraphView, read_view
from gristmill.web.console.seen_scope import read_scope
from gristmill.wording import format_count

PAGES = APIRouter()
MENU = (MenuEntry("/graph", "Graph", "graph", place=24),)
MOST_EVIDENCE = 12
MOST_NEIGHBOURS = 60  # in the list of the side panel
MOST_NAMES = 12
HOPS = 6


@dataclass(frozen=True)
class Panel:
    """What stands beside the picture: a node, or the edges between two nodes, with the passages that show them."""

    node: graph.Node | None = None
    merges: Sequence[merging.Merge] = ()  # that can be undone
    aliases: Sequence[str] = ()  # the other names that it has
    edges: Sequence[tuple[graph.PathEdge, Sequence[graph.Evidence]]] = ()


@dataclass(frozen=True)
class GraphShown:
    """Everything that the page shows; `trouble` says why there is no picture."""

    picture: GraphPicture | None = None
    panel: Panel = field(default_factory=Panel)
    path: Sequence[graph.PathEdge] | None = None
    trouble: str = ""
    beginnings: Sequence[graph.FoundNode] = ()


@PAGES.get("/graph")
async def show_graph(request: Request, caller: Viewer) -> Response:
    services = services_of(request)
    scope = read_scope(request, caller)
    view = read_view(request.query_params, client=scope.client, project=scope.project)
    async with caller.transaction(services.db) as tx:
        shown = await load_shown(tx, scope, view)
        clients = await list_clients(tx) if caller.is_operator else []
    names = {node.key: node.name for node in shown.picture.nodes} if shown.picture else {}
    return services.render(
        request,
        "graph.html",
        view=view,
        shown=shown,
        names=names,
        clients_to_choose=clients,
        most_evidence=MOST_EVIDENCE,
        sign_of=sign_of,
        colour_of=colour_of,
        word_of=word_of,
    )


async def load_shown(tx: Tx, scope: Scope, view: GraphView) -> GraphShown:
    """The picture and its panel; a node or path that cannot be found is told in a sentence, with what there is."""
    try:
        path = await graph.path(tx, scope, view.start, view.goal, hops=HOPS) if view.has_path else []
        if path is None:
            sentence = f"No way leads from “{view.start}” to “{view.goal}” within {HOPS} steps."
            return GraphShown(trouble=sentence, beginnings=await graph.recent_nodes(tx, scope))
        if not path and not view.opened:
            return GraphShown(beginnings=await graph.recent_nodes(tx, scope), path=path)
        picture = await draw_around(tx, scope, view.opened, path)
        return GraphShown(picture, await load_panel(tx, scope, view, picture), path)
    except Refused as refusal:
        return GraphShown(trouble=str(refusal), beginnings=await graph.recent_nodes(tx, scope))


async def load_panel(tx: Tx, scope: Scope, view: GraphView, picture: GraphPicture) -> Panel:
    if view.edge:
        pair = set(view.edge)
        steps = [step for edge in picture.edges for step in edge.steps if {step.source, step.target} == pair]
        return Panel(edges=[(one, await graph.edge_evidence(tx, scope, one, limit=MOST_EVIDENCE)) for one in steps])
    try:
        node = await graph.node(tx, scope, view.node or picture.nodes[0].key, limit=MOST_NEIGHBOURS)
    except Refused:  # it is gone since the link was made
        return Panel()
    merges = [one for one in await merging.list_merges(tx, scope.client) if one.key == node.key]
    undone = {one.alias for one in merges}
    known = await keys.aliases(tx, scope.client)
    return Panel(node, merges, [one.alias for one in known if one.key == node.key and one.alias not in undone])


@PAGES.get("/graph/names")
async def suggest_names(request: Request, caller: Viewer, name: str = "") -> Response:
    """Nodes whose names have this text, for the boxes that ask for a node."""
    services = services_of(request)
    scope = read_scope(request, caller)
    async with caller.transaction(services.db) as tx:
        found = await graph.find(tx, scope, name[:200], limit=MOST_NAMES) if name.strip() else []
    return services.render(request, "graph_names.html", found=found)


# --- two nodes that are one


@PAGES.post("/graph/merge")
async def merge(
    request: Request,
    caller: Manager,
    alias: Annotated[str, Form(max_length=1_000)],
    key: Annotated[str, Form(max_length=1_000)],
    client: Annotated[str, Form()] = "",
    back: Annotated[str, Form()] = "",
) -> Response:
    """Let one node be another name of the other; the panel of the node that is left offers to undo it."""
    services = services_of(request)
    scope = caller.choose_scope(client or None, None)
    async with caller.transaction(services.db) as tx:
        other = await graph.resolve(tx, scope, alias)  # a name is enough, if only one node has it
        done = await merging.merge_nodes(tx, scope.client, other, key)
        await services.record(tx, caller, "merge", f"node {done.merge.key}", alias=done.merge.alias)
    told = f"“{done.merge.alias}” is “{done.merge.key}” now: {format_count(done.mentions, 'mention')} moved."
    place = stay_here(back, "/graph")
    return answer_action(request, told, back=place, go=place)


@PAGES.post("/graph/merges/{id:int}/undo")
async def undo(
    request: Request,
    caller: Manager,
    id: int,
    client: Annotated[str, Form()] = "",
    back: Annotated[str, Form()] = "",
) -> Response:
    services = services_of(request)
    scope = caller.choose_scope(client or None, None)
    async with caller.transaction(services.db) as tx:
        gone = await merging.undo_merge(tx, scope.client, id)
        await services.record(tx, caller, "undo merge", f"node {gone.key}", alias=gone.alias)
    place = stay_here(back, "/graph")
    return answer_action(request, f"“{gone.alias}” and “{gone.key}” are two nodes again.", back=place, go=place)
