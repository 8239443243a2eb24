"""The rows that both APIs and the router's own calls write, as types."""

from typing import NotRequired, TypedDict


class ModelDetails(TypedDict):
    """Ollama's facts about a model file."""

    parent_model: str
    format: str
    family: str
    families: list[str]
    parameter_size: str
    quantization_level: str


class ModelRow(TypedDict):
    """A model as /api/tags lists it; an OpenAI backend lists only its id."""

    name: str
    model: NotRequired[str]
    modified_at: NotRequired[str]
    size: NotRequired[int]
    digest: NotRequired[str]
    details: NotRequired[ModelDetails]


class LoadedRow(ModelRow):
    """A model in memory as /api/ps lists it."""

    size_vram: NotRequired[int]
    expires_at: NotRequired[str]
    backend: NotRequired[str]  # ours: where it is


class OpenAIModelRow(TypedDict):
    """A model as /v1/models lists it."""

    id: str
    object: str
    created: int
    owned_by: str


class TokenLogprob(TypedDict):
    """How probable a token was, as both APIs write it for a chat."""

    token: str
    logprob: float
    bytes: NotRequired[list[int] | None]
    top_logprobs: NotRequired[list["TokenLogprob"]]


class LoadedStatus(TypedDict):
    """A model in a backend's memory, in /router/status."""

    model: str
    vram: int
    age: float
    idle: float


class BreakerStatus(TypedDict):
    """Whether a backend is trusted, in /router/status."""

    state: str
    tries_in: float
    failures: dict[str, int]


class ReservationStatus(TypedDict):
    """A P0 session that holds a GPU, in /router/status."""

    session: str
    age: float
    idle: float


class BackendStatus(TypedDict):
    """A backend in /router/status."""

    name: str
    kind: str
    gpu: bool
    role: str | None
    slots: int
    slots_taken: int
    draining: bool
    vram: int | None
    vram_used: int
    loaded: list[LoadedStatus]
    loading: str | None
    breaker: BreakerStatus
    reservations: list[ReservationStatus]


class RunningStatus(TypedDict):
    """A request that has a place, in /router/status."""

    id: int
    backend: str
    phase: str
    priority: str
    model: str
    age: float
    running_for: float
    begun: bool
    preemptions: int


class WaitingStatus(TypedDict):
    """A request that waits, in /router/status."""

    id: int
    priority: str
    model: str
    age: float
    deadline_in: float
    preemptions: int
    why: str


class RouterStatusRow(TypedDict):
    """The answer to /router/status."""

    draining: bool
    backends: list[BackendStatus]
    running: list[RunningStatus]
    queues: dict[str, int]
    waiting: list[WaitingStatus]
