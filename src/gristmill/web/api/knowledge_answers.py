"""How searches, nodes and edges are asked for over HTTP, and how they look."""

from datetime import datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import AliasChoices, AliasGenerator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from gristmill.knowledge import Hit

T = TypeVar("T")
Key = Annotated[str, Field(min_length=1, max_length=500, examples=["person::jane doe"])]
Client = Annotated[str | None, Field(max_length=100, description="The client; a key bound to one needs none.")]
Text = Annotated[str, Field(min_length=1, max_length=900_000)]
Number = Annotated[int, Field(ge=1, le=2**63 - 1)]


def either_name(name: str) -> AliasChoices:
    """The requirements write `nodeKey`, Python writes `node_key`: both are understood."""
    return AliasChoices(name, to_camel(name))


class KnowledgeWish(BaseModel):
    """What a caller asks for."""

    model_config = ConfigDict(alias_generator=AliasGenerator(validation_alias=either_name), extra="forbid")

    client: Client = None
    project: Client = None


class SearchWish(KnowledgeWish):
    query: Annotated[str, Field(max_length=20_000)]
    alpha: Annotated[float, Field(ge=0, le=1, description="0: words alone (BM25); 1: meaning alone (vectors).")] = 0.5
    max_results: Annotated[int, Field(ge=1, le=200)] = 10
    knowledge_types: Annotated[list[Annotated[str, Field(max_length=100)]] | None, Field(max_length=20)] = None
    after: Annotated[datetime | None, Field(description="Only what was written since; with a time zone.")] = None
    columns: Annotated[
        dict[Annotated[str, Field(max_length=200)], Annotated[str, Field(max_length=1_000)]] | None,
        Field(max_length=20, description="Only records with these values in their columns: rating, 1."),
    ] = None
    expand: Annotated[int, Field(ge=0, le=2, description="Follow the graph from the hits over so many steps.")] = 0


class SnippetAnswer(BaseModel):
    text: str
    highlights: list[tuple[int, int]] = Field(description="The places of the words that matched.")


class HitAnswer(BaseModel):
    """A chunk that answers, and the parts of its score."""

    score: float
    lexical: float = Field(description="BM25 as a share of what a chunk with all the words could reach.")
    bm25: float
    similarity: float | None = Field(description="Cosine; none without a vector.")
    why: str = Field(description="The same in words.")
    chunk: int
    document: int
    name: str
    title: str | None
    type: str | None
    urn: str
    part_of: str | None
    version: int
    client: str
    project: str
    page: int
    start: int
    stop: int
    kind: str
    language: str | None
    heading: str
    text: str
    snippet: SnippetAnswer
    record: int | None = Field(description="The record that this is, if it is one.")
    columns: dict[str, Any] | None = Field(description="Of the record.")
    via: list[str] = Field(description="The nodes that led here, of what the graph added.")


class HitsAnswer(BaseModel):
    items: list[HitAnswer]
    note: str | None = Field(None, description="What was missing.")


def describe_hit(hit: Hit) -> HitAnswer:
    values = {name: getattr(hit, name) for name in HitAnswer.model_fields if name not in ("why", "snippet", "via")}
    snippet = SnippetAnswer(text=hit.snippet.text, highlights=list(hit.snippet.highlights))
    return HitAnswer(**values, why=say_why(hit), snippet=snippet, via=list(hit.via))


def say_why(hit: Hit) -> str:
    """The parts of a score in words."""
    if hit.via:
        return f"the graph leads here from the hits: {', '.join(hit.via[:3])}"
    words = f"its words reach {hit.lexical:.0%} of the best possible" if hit.lexical else "it has none of the words"
    meaning = "its meaning was not compared" if hit.similarity is None else f"its meaning is {hit.similarity:.2f} near"
    return f"{words}; {meaning}"


# --- the graph


class NodeAnswer(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    key: str
    type: str
    name: str
    mentions: int
    chunks: int


class NeighbourAnswer(BaseModel):
    """An edge between a node and another one."""

    model_config = ConfigDict(from_attributes=True)

    key: str
    node_type: str
    name: str
    type: str
    outward: bool
    evidence: int


class EvidenceAnswer(BaseModel):
    """Where a chunk names a node: `start` and `stop` are characters of the page's text."""

    model_config = ConfigDict(from_attributes=True)

    chunk: int
    document: int
    file: str
    title: str | None
    urn: str
    page: int
    start: int
    stop: int
    snippet: str


class NodeDetail(NodeAnswer):
    documents: int
    properties: dict[str, Any]
    neighbours: list[NeighbourAnswer]
    edges: int = Field(description="Of all; `neighbours` are those with most evidence.")
    evidence: list[EvidenceAnswer]


class StepAnswer(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    source: str
    type: str
    target: str
    evidence: int


class NeighboursAnswer(BaseModel):
    """A node, its strongest edges, and the edges among its neighbours."""

    node: NodeAnswer
    neighbours: list[NeighbourAnswer]
    edges: list[StepAnswer]
    total: int = Field(description="Edges that the node has.")


class PathStep(StepAnswer):
    shown_by: list[EvidenceAnswer]


class PathAnswer(BaseModel):
    """The shortest way; `steps` is null if there is no way within so many hops, and empty from a node to itself."""

    steps: list[PathStep] | None


class ExcerptAnswer(BaseModel):
    nodes: list[NodeAnswer]
    edges: list[StepAnswer]
    total: int


class MergeWish(KnowledgeWish):
    alias: Key = Field(description="The node that goes into the other.")
    key: Key = Field(description="The node that stays.")


class MergeAnswer(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    id: int
    alias: str
    key: str
    merged_at: datetime


class MergedAnswer(MergeAnswer):
    mentions: int
    relations: int


# --- what programs write


class ChunkWish(KnowledgeWish):
    """storeChunk."""

    document_id: Annotated[str, Field(min_length=1, max_length=2000, description="The URN of the document.")]
    content: Annotated[str, Field(min_length=1, max_length=100_000)]
    node_key: Key
    entity_types: Annotated[list[Annotated[str, Field(max_length=100)]], Field(max_length=50)] = []
    graph_refs: Annotated[list[Key], Field(max_length=50)] = []
    knowledge_type: Annotated[str, Field(min_length=1, max_length=100)] = "DOCUMENT"


class ChunkStored(BaseModel):
    chunk: int


class NodeWish(KnowledgeWish):
    """createNodeWithRagLinks."""

    node_key: Key
    node_type: Annotated[str, Field(min_length=1, max_length=100)]
    properties: dict[str, Any] = {}
    rag_chunk_ids: Annotated[list[Number], Field(max_length=1000)] = []


class NodeStored(BaseModel):
    key: str


class RelationshipWish(KnowledgeWish):
    """createRelationship, with the chunks that show it."""

    from_key: Key
    to_key: Key
    edge_type: Annotated[str, Field(min_length=1, max_length=100)]
    properties: dict[str, Any] = {}
    evidence: Annotated[list[Number], Field(min_length=1, max_length=1000)]


class RelationshipStored(BaseModel):
    source: str
    type: str
    target: str


class IngestWish(KnowledgeWish):
    """A text with its source; `callback_url` is told when it is done, of an asynchronous call."""

    content: Text
    source_urn: Annotated[str, Field(min_length=1, max_length=2000)]
    title: Annotated[str, Field(max_length=300)] = ""
    knowledge_type: Annotated[str, Field(min_length=1, max_length=100)] = "DOCUMENT"
    written_at: datetime | None = None
    metadata: dict[str, Any] = {}
    callback_url: Annotated[str | None, Field(max_length=2000)] = None


class EntityAnswer(BaseModel):
    key: str
    type: str
    name: str
    count: int


class RelationshipAnswer(BaseModel):
    from_key: str
    edge_type: str
    to_key: str


class EvidenceWords(BaseModel):
    """Words that a hint was taken from: characters of the title or of the content, as the caller gave them."""

    words: str
    where: Literal["title", "content"]
    start: int
    stop: int


class HintAnswer(BaseModel, Generic[T]):
    """A value, and the words that it was taken from; none where a field or a header says it."""

    value: T
    evidence: list[EvidenceWords]


class HintsAnswer(BaseModel):
    """What a text holds. They are neutral: only the qualifier decides where an item goes."""

    hasActionableContent: HintAnswer[bool]
    isAssignedToMe: HintAnswer[bool]
    hasFutureDeadline: HintAnswer[bool]
    suggestedDeadline: HintAnswer[datetime | None]
    urgency: HintAnswer[Literal["low", "normal", "high", "critical"]]


class IngestAnswer(BaseModel):
    """What was made of a text."""

    task: int
    document: int | None = Field(description="None if it was removed or replaced meanwhile.")
    urn: str
    chunks: int
    nodes: int
    edges: int
    summary: str
    entities: list[EntityAnswer]
    relationships: list[RelationshipAnswer]
    hints: HintsAnswer


class TaskStarted(BaseModel):
    """It is being done: `GET /api/tasks/{task}` tells how far it is."""

    task: int
    status: Literal["pending"] = "pending"
