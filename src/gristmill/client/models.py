"""What the API answers, with types; fields that a newer server adds are passed over."""

from datetime import datetime
from typing import Any, Generic, TypeVar

import msgspec

T = TypeVar("T")


class Model(msgspec.Struct, frozen=True):
    """An answer of the API."""


class Portion(msgspec.Struct, Generic[T], frozen=True):
    """A part of a list; `next` is where it goes on, None at its end."""

    items: list[T]
    next: str | None = None


class Phase(Model, frozen=True):
    """How many of a phase's units are done."""

    name: str
    label: str
    unit: str
    status: str
    done: int
    failed: int
    total: int


class Document(Model, frozen=True):
    """One version of one source, and how far it is."""

    id: int
    name: str
    client: str
    project: str
    urn: str
    version: int
    type: str | None
    title: str | None
    container: int | None
    part_of: str | None
    added_at: datetime
    completed_at: datetime | None
    status: str
    summary: str
    pages: int | None
    chunks: int
    phases: list[Phase]

    @property
    def has_ended(self) -> bool:
        return self.status in ("completed", "failed", "cancelled")


class Failure(Model, frozen=True):
    task: int
    kind: str
    page: int | None
    ordinal: int | None
    error: str
    attempts: int


class Skipped(Model, frozen=True):
    phase: str
    units: int
    reason: str


class DocumentDetail(Document, frozen=True):
    """All that is known of a document itself."""

    size: int
    hash: str
    metadata: dict[str, Any]
    has_picture: bool
    failures: list[Failure]
    setbacks: list[Failure]
    skipped: list[Skipped]


class DocumentEvent(Model, frozen=True):
    """The state of a document at one moment: `what` is progress, ended or gone."""

    id: str
    what: str
    document: Document | None


class Taken(Model, frozen=True):
    """What became of a file."""

    name: str
    urn: str
    status: str
    document: int | None
    reason: str | None = None


class TakenAll(Model, frozen=True):
    items: list[Taken]


class Impact(Model, frozen=True):
    """What a removal takes."""

    documents: int
    pages: int
    chunks: int
    tasks: int
    nodes: int
    edges: int
    nodes_weaker: int
    edges_weaker: int


class Refusal(Model, frozen=True):
    id: int
    reason: str


class Retried(Model, frozen=True):
    """The tasks that are pending again, and those that are not and why."""

    tasks: list[int]
    refused: list[Refusal] = []


class Reindexed(Model, frozen=True):
    document: int


class PagePhase(Model, frozen=True):
    name: str
    label: str
    status: str
    error: str | None
    started_at: datetime | None
    finished_at: datetime | None
    retries: int


class PageStatus(Model, frozen=True):
    """How far a page is in each phase."""

    number: int
    method: str | None
    chunks: int
    phases: list[PagePhase]


class PageText(Model, frozen=True):
    number: int
    method: str
    text: str


class Chunk(Model, frozen=True):
    """A chunk: `start` and `stop` are characters of the text of its page."""

    id: int
    page: int
    ordinal: int
    start: int
    stop: int
    kind: str
    language: str | None
    heading: str
    text: str


class Snippet(Model, frozen=True):
    text: str
    highlights: list[tuple[int, int]]


class Hit(Model, frozen=True):
    """A chunk that answers a query, and the parts of its score."""

    score: float
    lexical: float
    bm25: float
    similarity: float | None
    why: str
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
    snippet: Snippet
    via: list[str]
    record: int | None = None
    columns: dict[str, Any] | None = None


class Hits(Model, frozen=True):
    items: list[Hit]
    note: str | None = None


class Citation(Model, frozen=True):
    """A place; `quote` is exactly what the text of the page has from `start` to `stop`."""

    number: int
    document: int
    page: int
    start: int
    stop: int
    quote: str | None
    name: str
    title: str | None = None
    record: int | None = None


class Sentence(Model, frozen=True):
    text: str
    verdict: str
    reason: str = ""
    citations: list[Citation] = []


class Passage(Model, frozen=True):
    number: int
    document: int
    name: str
    page: int
    start: int
    stop: int
    text: str | None = None
    title: str | None = None
    heading: str = ""
    score: float = 0.0
    via: str | None = None
    record: int | None = None


class Answer(Model, frozen=True):
    """An answer; `kind` is answer, unknown (I don't know) or passages (no model is configured)."""

    kind: str
    text: str
    question: str = ""
    asked: str = ""
    language: str = "en"
    sentences: list[Sentence] = []
    passages: list[Passage] = []
    note: str | None = None
    model: str = ""
    prepared_ms: float = 0.0
    conversation: int | None = None
    message: int | None = None
    state: str = "done"
    error: str | None = None


class AnswerEvent(Model, frozen=True):
    """Something that happened while an answer was made: found, draft, sentence, answer, message, ended or error."""

    what: str
    fields: dict[str, Any]


class Conversation(Model, frozen=True):
    id: int
    client: str
    project: str
    title: str
    language: str | None
    created_at: datetime
    changed_at: datetime
    is_writing: bool


class Stopped(Model, frozen=True):
    stopped: bool


class Node(Model, frozen=True):
    key: str
    type: str
    name: str
    mentions: int
    chunks: int


class Neighbour(Model, frozen=True):
    key: str
    node_type: str
    name: str
    type: str
    outward: bool
    evidence: int


class Evidence(Model, frozen=True):
    chunk: int
    document: int
    file: str
    title: str | None
    urn: str
    page: int
    start: int
    stop: int
    snippet: str


class NodeDetail(Node, frozen=True):
    documents: int
    properties: dict[str, Any]
    neighbours: list[Neighbour]
    edges: int
    evidence: list[Evidence]


class Step(Model, frozen=True):
    """One edge of a path, and chunks that show it."""

    source: str
    type: str
    target: str
    evidence: int
    shown_by: list[Evidence] = []


class Path(Model, frozen=True):
    steps: list[Step] | None


class Merge(Model, frozen=True):
    id: int
    alias: str
    key: str
    merged_at: datetime


class Ingested(Model, frozen=True):
    """What was made of a text; of an asynchronous call the task alone."""

    task: int
    document: int | None = None
    urn: str = ""
    chunks: int = 0
    nodes: int = 0
    edges: int = 0
    summary: str = ""
    entities: list[dict[str, Any]] = []
    relationships: list[dict[str, Any]] = []
    hints: dict[str, Any] = {}


class Queue(Model, frozen=True):
    """How many tasks a queue holds of each status."""

    queue: str
    pending: int
    processing: int
    completed: int
    failed: int
    skipped: int
    cancelled: int


class Task(Model, frozen=True):
    id: int
    queue: str | None
    kind: str
    status: str
    priority: int
    foreground: bool
    position: int | None
    created_at: datetime
    run_at: datetime | None
    wait: str | None
    started_at: datetime | None
    finished_at: datetime | None
    attempts: int
    max_attempts: int | None
    parent: int | None
    after: int | None
    owner: str | None
    payload: Any
    result: Any
    error: str | None
    cluster: str | None


class TaskEvent(Model, frozen=True):
    at: datetime
    what: str
    attempt: int | None
    text: str | None


class TaskDetail(Task, frozen=True):
    why: str
    history: list[TaskEvent]


class Why(Model, frozen=True):
    id: int
    state: str
    sentence: str


class Cancelled(Model, frozen=True):
    cancelled: list[int]
    asked: list[int]


class Run(Model, frozen=True):
    """What agents were asked for, and how far they are."""

    id: int
    client: str
    project: str
    request: str
    asked_by: str | None
    item: int | None
    item_type: str | None
    repository: str | None
    foreground: bool
    state: str
    task: int | None
    host: str | None
    report: str | None
    error: str | None
    stopped_by: str | None
    calls: int
    tokens_in: int
    tokens_out: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    unreached: str | None = None

    @property
    def has_ended(self) -> bool:
        return self.state in ("completed", "failed", "stopped")


class RunDetail(Run, frozen=True, kw_only=True):
    """A run, and what its checkpoints take in the database."""

    checkpoints: int
    checkpoint_bytes: int


class RunLine(Model, frozen=True):
    """A step of a run without what went in and what came out; `waits`: it ended because a person is asked."""

    id: int
    parent: int | None
    node: str
    title: str
    error: str | None
    waits: bool
    model: str | None
    tokens_in: int
    tokens_out: int
    started_at: datetime
    finished_at: datetime | None
    note: str | None = None


class RunStep(Model, frozen=True):
    """A step of a run, with what went in and what came out."""

    id: int
    parent: int | None
    node: str
    title: str
    input: Any
    output: Any
    error: str | None
    model: str | None
    calls: int
    tokens_in: int
    tokens_out: int
    started_at: datetime
    finished_at: datetime | None


class EffectLine(Model, frozen=True):
    """An effect of a run without its arguments and its result."""

    id: int
    key: str
    tool: str
    summary: str
    changes: str
    state: str
    attempt: int
    approved_by: str | None
    error: str | None
    intended_at: datetime
    settled_at: datetime | None


class Effect(EffectLine, frozen=True, kw_only=True):
    """Something that a run changed, or wants to change."""

    run: int
    arguments: dict[str, Any]
    prepared: dict[str, Any]
    repeatable: bool
    files: list[str]
    origins: list[dict[str, Any]]
    reasons: list[str]
    result: dict[str, Any] | None
    approved_at: datetime | None
    started_at: datetime | None


class Question(Model, frozen=True):
    """Something that only a person can say; without choices it is answered in words."""

    id: int
    run: int
    client: str
    project: str
    kind: str
    sentence: str
    details: dict[str, Any]
    choices: list[str]
    effect: int | None
    state: str
    asked_at: datetime
    answered_at: datetime | None
    answered_by: str | None
    choice: str | None
    answer: str


class RunNews(Model, frozen=True):
    """What is new of a run: steps that began or ended, effects that moved, and all questions that wait."""

    run: Run
    steps: list[RunLine]
    effects: list[EffectLine]
    questions: list[Question]


class RunEvent(Model, frozen=True):
    """progress or ended; `id` is where a stream goes on."""

    id: str
    what: str
    news: RunNews
