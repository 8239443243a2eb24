"""Knowledge over HTTP: search with its reasons, nodes, neighbours, paths, evidence, and merges that can be undone."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request

from gristmill.documents import find_in_documents
from gristmill.ids import ChunkId, DocumentId
from gristmill.knowledge import graph, merging
from gristmill.scopes import Scope
from gristmill.serving import Caller, Listing, Manager, Problem, Viewer, services_of
from gristmill.web.api.documents import load_document
from gristmill.web.api.knowledge_answers import (
    EvidenceAnswer,
    ExcerptAnswer,
    HitsAnswer,
    MergeAnswer,
    MergedAnswer,
    MergeWish,
    NeighbourAnswer,
    NeighboursAnswer,
    NodeAnswer,
    NodeDetail,
    NodeStored,
    NodeWish,
    PathAnswer,
    PathStep,
    RelationshipStored,
    RelationshipWish,
    SearchWish,
    StepAnswer,
    describe_hit,
)

ROUTES = APIRouter(prefix="/kb", tags=["knowledge"])
Client = Annotated[str | None, Query(max_length=100, description="The client; without it only what is everybody's.")]
Project = Annotated[str | None, Query(max_length=100)]
Key = Annotated[str, Query(min_length=1, max_length=500, description="A key, an alias, or a name that one node has.")]
Limit = Annotated[int, Query(ge=1, le=200)]


@ROUTES.post("/search", summary="Search by words and meaning")
async def search(request: Request, caller: Viewer, wish: SearchWish) -> HitsAnswer:
    """`searchHybrid`: the best chunks, spread over sources, each with the parts of its score.

    Without a client, a key that is bound to none searches everything; with the client GLOBAL what is everybody's.
    """
    services = services_of(request)
    hits = await find_in_documents(
        services.db,
        services.finder,
        wish.query,
        caller.choose_view(wish.client, wish.project),
        type=[one.casefold() for one in wish.knowledge_types] if wish.knowledge_types else None,
        alpha=wish.alpha,
        limit=wish.max_results,
        after=wish.after,
        columns=wish.columns,
        expand=wish.expand,
    )
    return HitsAnswer(items=[describe_hit(hit) for hit in hits], note=hits.note)


# --- the graph


@ROUTES.get("/nodes", summary="Nodes by name; without one, those that the newest documents name most")
async def find_nodes(
    request: Request,
    caller: Viewer,
    name: Annotated[str, Query(max_length=500)] = "",
    client: Client = None,
    project: Project = None,
    limit: Limit = 20,
) -> Listing[NodeAnswer]:
    scope = caller.choose_scope(client, project)
    async with caller.reading(services_of(request).db) as tx:
        found = await (
            graph.find(tx, scope, name, limit=limit) if name.strip() else graph.recent_nodes(tx, scope, limit=limit)
        )
    return Listing(items=[NodeAnswer.model_validate(one) for one in found])


@ROUTES.get("/node", summary="A node with its strongest edges and the chunks that name it most")
async def get_node(
    request: Request, caller: Viewer, key: Key, client: Client = None, project: Project = None, limit: Limit = 20
) -> NodeDetail:
    async with caller.reading(services_of(request).db) as tx:
        found = await graph.node(tx, caller.choose_scope(client, project), key, limit=limit)
    return NodeDetail.model_validate(found, from_attributes=True)


@ROUTES.get("/neighbours", summary="A node, its strongest edges, and the edges among its neighbours")
async def get_neighbours(
    request: Request, caller: Viewer, key: Key, client: Client = None, project: Project = None, limit: Limit = 50
) -> NeighboursAnswer:
    scope = caller.choose_scope(client, project)
    async with caller.reading(services_of(request).db) as tx:
        around = await graph.surroundings(tx, scope, key, limit=limit)
        keys = [around.node.key, *(one.key for one in around.edges)]
        edges = await graph.edges_between(tx, scope, list(dict.fromkeys(keys)))
    return NeighboursAnswer(
        node=NodeAnswer.model_validate(around.node),
        neighbours=[NeighbourAnswer.model_validate(one) for one in around.edges],
        edges=[StepAnswer.model_validate(one) for one in edges],
        total=around.total,
    )


@ROUTES.get("/paths", summary="The shortest way between two nodes, with the evidence of each step")
async def find_path(
    request: Request,
    caller: Viewer,
    source: Key,
    target: Key,
    hops: Annotated[int, Query(ge=1, le=8)] = 6,
    client: Client = None,
    project: Project = None,
) -> PathAnswer:
    scope = caller.choose_scope(client, project)
    async with caller.reading(services_of(request).db) as tx:
        steps = await graph.path(tx, scope, source, target, hops=hops)
        shown = [await graph.edge_evidence(tx, scope, step, limit=3) for step in steps or ()]
    if steps is None:
        return PathAnswer(steps=None)
    return PathAnswer.model_validate(
        {"steps": [_step(step, chunks) for step, chunks in zip(steps, shown, strict=True)]}
    )


def _step(step: graph.PathEdge, shown: list[graph.Evidence]) -> PathStep:
    evidence = [EvidenceAnswer.model_validate(one) for one in shown]
    return PathStep(source=step.source, type=step.type, target=step.target, evidence=step.evidence, shown_by=evidence)


@ROUTES.get("/evidence", summary="The chunks that show an edge, with the places where they name its source")
async def get_evidence(
    request: Request,
    caller: Viewer,
    source: Annotated[str, Query(min_length=1, max_length=500)],
    type: Annotated[str, Query(min_length=1, max_length=200)],
    target: Annotated[str, Query(min_length=1, max_length=500)],
    client: Client = None,
    project: Project = None,
    limit: Limit = 20,
) -> Listing[EvidenceAnswer]:
    """Only for edges: the chunks that name a node are in the answer of `/node`."""
    edge = graph.PathEdge(source, type, target, 0)
    async with caller.reading(services_of(request).db) as tx:
        found = await graph.edge_evidence(tx, caller.choose_scope(client, project), edge, limit=limit)
    return Listing(items=[EvidenceAnswer.model_validate(one) for one in found])


@ROUTES.get("/documents/{id}/graph", summary="What one document adds to the graph")
async def get_excerpt(
    request: Request, caller: Viewer, id: Annotated[int, Path(ge=1, le=2**63 - 1)], limit: Limit = 60
) -> ExcerptAnswer:
    async with caller.reading(services_of(request).db) as tx:
        document = await load_document(tx, id)
        scope = caller.bound_to or Scope(document.client, document.project)
        found = await graph.document_excerpt(tx, scope, DocumentId(id), limit=limit)
    return ExcerptAnswer(
        nodes=[NodeAnswer.model_validate(one) for one in found.nodes],
        edges=[StepAnswer.model_validate(one) for one in found.edges],
        total=found.total,
    )


@ROUTES.post("/nodes", status_code=201, summary="State a node, or more of a known one, and link it with chunks")
async def state_node(request: Request, caller: Manager, wish: NodeWish) -> NodeStored:
    services = services_of(request)
    scope = caller.choose_scope(wish.client, wish.project)
    async with caller.transaction(services.db) as tx:
        chunks = [ChunkId(one) for one in wish.rag_chunk_ids]
        key = await graph.create_node_with_rag_links(tx, scope, wish.node_key, wish.node_type, wish.properties, chunks)
        await services.record(tx, caller, "state", f"node {key}", chunks=len(chunks))
    return NodeStored(key=key)


@ROUTES.post("/relationships", status_code=201, summary="State an edge between two nodes, which these chunks show")
async def state_relationship(request: Request, caller: Manager, wish: RelationshipWish) -> RelationshipStored:
    services = services_of(request)
    scope = caller.choose_scope(wish.client, wish.project)
    async with caller.transaction(services.db) as tx:
        source, type_, target = await graph.create_relationship(
            tx,
            scope,
            wish.from_key,
            wish.to_key,
            wish.edge_type,
            wish.properties,
            evidence=[ChunkId(one) for one in wish.evidence],
        )
        await services.record(tx, caller, "state", f"edge {source} {type_} {target}")
    return RelationshipStored(source=source, type=type_, target=target)


# --- merges


@ROUTES.get("/merges", summary="Merges that can be undone, the newest first")
async def list_merges(
    request: Request, caller: Viewer, client: Client = None, limit: Limit = 50
) -> Listing[MergeAnswer]:
    async with caller.reading(services_of(request).db) as tx:
        found = await merging.list_merges(tx, caller.choose_scope(client, None).client, limit=limit)
    return Listing(items=[MergeAnswer.model_validate(one) for one in found])


@ROUTES.post("/merges", status_code=201, summary="Let two nodes be one, now and in documents to come")
async def merge_nodes(request: Request, caller: Manager, wish: MergeWish) -> MergedAnswer:
    services = services_of(request)
    client = choose_client(caller, wish.client)
    async with caller.transaction(services.db) as tx:
        done = await merging.merge_nodes(tx, client, wish.alias, wish.key)
        subject = f"node {done.merge.alias} into {done.merge.key}"
        await services.record(tx, caller, "merge", subject, merge=done.merge.id)
    return MergedAnswer(**vars(done.merge), mentions=done.mentions, relations=done.relations)


@ROUTES.delete("/merges/{merge}", summary="Undo a merge: the two nodes are as they were")
async def undo_merge(
    request: Request, caller: Manager, merge: Annotated[int, Path(ge=1, le=2**63 - 1)], client: Client = None
) -> MergeAnswer:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        undone = await merging.undo_merge(tx, choose_client(caller, client), merge)
        await services.record(tx, caller, "unmerge", f"node {undone.alias} from {undone.key}", merge=merge)
    return MergeAnswer.model_validate(undone)


def choose_client(caller: Caller, client: str | None) -> str:
    """Names of nodes are those of a whole client: a key that is bound to one project may not change them."""
    if caller.bound_to and caller.bound_to.project:
        raise Problem(403, f"Nodes are merged for a whole client; your key is bound to {caller.bound_to}.")
    return caller.choose_scope(client, None).client
