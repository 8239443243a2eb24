"""The six tools of the LLM that qualifies items: typed, and each bound to the scope of one item.

The LLM writes nothing itself. Whatever it asks to be kept is collected here and written in the transaction of the
decision: a pass that is broken off leaves nothing behind, and one that is repeated keeps nothing twice.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gristmill.db import Database, Tx
from gristmill.documents import WholeText, prepare_text, take_in
from gristmill.errors import BadAnswer, Permanent, Refused
from gristmill.ids import ChunkId
from gristmill.knowledge import Embedders, graph, keys, search_hybrid
from gristmill.models import fence_text
from gristmill.qualifier.atoms import LARGE, Atom, prepare_atom, put_text
from gristmill.qualifier.model import Urgency, WorkItem
from gristmill.qualifier.moving import make_keepable
from gristmill.scopes import Scope

LONGEST_CHUNK = 4_000  # characters
LONGEST_HIT = 600  # characters of a chunk that is shown to the LLM
MOST_KEPT = 20  # chunks, nodes and edges that one pass may keep
Key = Annotated[str, Field(min_length=4, max_length=300, pattern=r"^[^:\s]+::.+")]
Short = Annotated[str, Field(max_length=200)]


class ToolArguments(BaseModel):
    """The arguments of a tool."""

    model_config = ConfigDict(extra="forbid")
    name: ClassVar[str]


class StoreChunk(ToolArguments):
    """Keep the text that defines an entity, under the key of its node."""

    name: ClassVar[str] = "storeChunk"
    content: Annotated[str, Field(min_length=1, max_length=LONGEST_CHUNK)]
    nodeKey: Key
    entityTypes: Annotated[list[Short], Field(max_length=10)] = []
    graphRefs: Annotated[list[Key], Field(max_length=10)] = []


class SearchHybrid(ToolArguments):
    """Look for what is known already, by words (alpha 0) and meaning (alpha 1)."""

    name: ClassVar[str] = "searchHybrid"
    query: Annotated[str, Field(min_length=1, max_length=500)]
    alpha: Annotated[float, Field(ge=0, le=1)] = 0.5
    maxResults: Annotated[int, Field(ge=1, le=10)] = 5
    knowledgeTypes: Annotated[list[Short], Field(max_length=10)] | None = None


class IndexDocument(ToolArguments):
    """Divide the whole text of the item by its length; only for plain texts of 40,000 characters and more."""

    name: ClassVar[str] = "indexDocument"
    title: Annotated[str, Field(min_length=1, max_length=300)]
    relatedDocs: Annotated[list[Short], Field(max_length=10)] = []


class CreateNodeWithRagLinks(ToolArguments):
    """State a node of the graph, and link it with chunks that were stored or found before."""

    name: ClassVar[str] = "createNodeWithRagLinks"
    nodeKey: Key
    nodeType: Annotated[str, Field(min_length=1, max_length=60)]
    properties: Annotated[dict[str, Short], Field(max_length=20)] = {}
    ragChunkIds: Annotated[list[Short], Field(max_length=20)] = []


class CreateRelationship(ToolArguments):
    """State an edge between two nodes; the chunks that were stored before show it."""

    name: ClassVar[str] = "createRelationship"
    fromKey: Key
    toKey: Key
    edgeType: Annotated[str, Field(min_length=1, max_length=60)]
    properties: Annotated[dict[str, Short], Field(max_length=20)] = {}


class WorkPiece(BaseModel):
    """A piece of work that depends on no other."""

    title: Annotated[str, Field(min_length=3, max_length=120)]
    text: Annotated[str, Field(min_length=3, max_length=1_000)]


class RouteTask(ToolArguments):
    """Say what becomes of the item, and end."""

    name: ClassVar[str] = "routeTask"
    routing: Literal["info_only", "later", "now"]
    reason: Annotated[str, Field(min_length=3, max_length=400)]
    quote: Annotated[str, Field(max_length=300)] = ""
    contextSummary: Annotated[str, Field(max_length=1_200)] = ""
    urgency: Urgency = "low"
    deadline: Annotated[str, Field(max_length=20)] = ""
    into: int | None = None
    children: Annotated[list[WorkPiece], Field(max_length=6)] = []


TOOLS: tuple[type[ToolArguments], ...] = (
    StoreChunk,
    SearchHybrid,
    IndexDocument,
    CreateNodeWithRagLinks,
    CreateRelationship,
    RouteTask,
)


def read_call(answer: dict[str, Any], offered: Sequence[type[ToolArguments]]) -> ToolArguments:
    """The tool that an answer calls, with its arguments checked."""
    tool = next((one for one in offered if one.name == answer.get("tool")), None)
    if tool is None:
        raise BadAnswer(f"The model called {str(answer.get('tool'))[:60]!r}, which is no tool that it was offered.")
    try:
        return tool.model_validate(answer.get("arguments"))
    except ValidationError as wrong:
        first = wrong.errors()[0]
        place = "/".join(map(str, first["loc"])) or "its arguments"
        raise BadAnswer(f"The model called {tool.name} with a wrong {place}: {first['msg']}.") from wrong


@dataclass
class ToolCalls:
    """Answers the calls of one pass, within the scope of one item, and collects what is to be kept."""

    db: Database
    embedders: Embedders
    item: WorkItem
    text: str
    notes: list[tuple[WholeText, StoreChunk]] = field(default_factory=list[tuple[WholeText, StoreChunk]])
    whole: WholeText | None = None
    nodes: list[CreateNodeWithRagLinks] = field(default_factory=list[CreateNodeWithRagLinks])
    edges: list[CreateRelationship] = field(default_factory=list[CreateRelationship])
    seen: set[int] = field(default_factory=set[int])  # chunks that a search of this pass showed

    @property
    def scope(self) -> Scope:
        return Scope(self.item.client, self.item.project)

    async def answer(self, call: ToolArguments) -> str:
        """What the LLM is told; what is wrong with a call is told, too."""
        try:
            match call:
                case SearchHybrid():
                    return await self._search(call)
                case StoreChunk():
                    return await self._store(call)
                case IndexDocument():
                    return await self._index(call)
                case CreateNodeWithRagLinks():
                    return self._state_node(call)
                case CreateRelationship():
                    return self._state_edge(call)
                case _:
                    return "Nothing more is to be done."
        except (Refused, Permanent) as refused:
            return f"Refused: {refused}"

    async def _search(self, call: SearchHybrid) -> str:
        hits = await search_hybrid(
            self.db, self.embedders, call.query, call.alpha, call.maxResults, call.knowledgeTypes, scope=self.scope
        )
        own = [hit for hit in hits if (hit.client, hit.project) == (self.scope.client, self.scope.project)]
        self.seen.update(hit.chunk for hit in own)
        if not hits:
            return "Nothing was found."
        shown = (f"chunk {hit.chunk}, {hit.title or hit.name}: {hit.text[:LONGEST_HIT]}" for hit in hits)
        return fence_text("\n\n".join(shown), "list of chunks")

    async def _store(self, call: StoreChunk) -> str:
        self._count_one()
        key = keys.normalise_key(call.nodeKey)
        atom = Atom(key, _find_type(call), make_keepable(call.content))
        self.notes.append((await prepare_atom(self.db, self.embedders, self.item, atom), call))
        return f"It will be kept as chunk new-{len(self.notes)}."

    async def _index(self, call: IndexDocument) -> str:
        if self.item.document is not None or len(self.text) < LARGE:
            return f"Refused: only plain texts of {LARGE:,} characters and more are divided by length."
        prepared = await prepare_text(self.db, self.embedders, self.text, call.title)
        urn, about = f"item:{self.item.id}", {"related": call.relatedDocs}
        self.whole = WholeText(
            urn, call.title, self.text, prepared, self.scope, self.item.type, self.item.written_at, about
        )
        return f"It will be kept as {len(prepared.pieces)} chunks."

    def _state_node(self, call: CreateNodeWithRagLinks) -> str:
        self._count_one()
        keys.normalise_key(call.nodeKey)
        for id_ in call.ragChunkIds:
            self._check_chunk(id_)
        self.nodes.append(call)
        return "It will be stated."

    def _state_edge(self, call: CreateRelationship) -> str:
        self._count_one()
        if keys.normalise_key(call.fromKey) == keys.normalise_key(call.toKey):
            raise Refused("Both ends are the same node: an edge needs two.")
        if not self.notes:
            raise Refused("An edge needs a chunk that shows it: store one first.")
        self.edges.append(call)
        return "It will be stated."

    def _count_one(self) -> None:
        if len(self.notes) + len(self.nodes) + len(self.edges) >= MOST_KEPT:
            raise Refused(f"At most {MOST_KEPT} things are kept of one item: say now what becomes of it.")

    def _check_chunk(self, id_: str) -> None:
        """A chunk of this pass, or one of the item's own scope that a search showed."""
        new = id_.removeprefix("new-")
        known = new != id_ and new.isdigit() and 1 <= int(new) <= len(self.notes)
        if not known and not (id_.isdigit() and int(id_) in self.seen):
            raise Refused(f"There is no chunk {id_[:40]}: name one that was stored or found here.")

    # --- in the transaction of the decision

    async def write(self, tx: Tx) -> list[ChunkId]:
        """Keep everything that was collected; the new chunks."""
        found = [chunk for text, _ in self.notes for chunk in await put_text(tx, text)]
        if self.whole is not None:
            await take_in(tx, self.whole)
        # in one order: two writers of the same nodes would otherwise wait for each other
        for node in sorted(self._list_nodes(found), key=lambda one: one.key):
            await graph.create_node_with_rag_links(tx, self.scope, node.key, node.type, node.properties, node.chunks)
        for edge in self.edges:
            await graph.create_relationship(
                tx, self.scope, edge.fromKey, edge.toKey, edge.edgeType, edge.properties, evidence=found
            )
        return found

    def _list_nodes(self, found: Sequence[ChunkId]) -> Iterator["_Node"]:
        for chunk, (_, call) in zip(found, self.notes, strict=True):
            yield _Node(call.nodeKey, _find_type(call), {}, [chunk])
            yield from (_Node(key, _namespace(key), {}, [chunk]) for key in call.graphRefs)
        for node in self.nodes:
            linked = [self._find_chunk(one, found) for one in node.ragChunkIds]
            yield _Node(node.nodeKey, node.nodeType, node.properties, linked)

    def _find_chunk(self, id_: str, found: Sequence[ChunkId]) -> ChunkId:
        new = id_.removeprefix("new-")
        return found[int(new) - 1] if new != id_ else ChunkId(int(id_))


def _find_type(call: StoreChunk) -> str:
    return call.entityTypes[0] if call.entityTypes else _namespace(call.nodeKey)


def _namespace(key: str) -> str:
    return key.partition("::")[0]


class _Node(NamedTuple):
    """A node that is to be stated."""

    key: str
    type: str
    properties: Mapping[str, str]
    chunks: Sequence[ChunkId]
