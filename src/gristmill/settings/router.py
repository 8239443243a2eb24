"""Where the LLM router listens, which backends it has, and how it decides."""

import re
from datetime import timedelta
from itertools import combinations
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, IPvAnyNetwork, SecretStr, model_validator

from gristmill.settings.values import Bytes, Duration, Key, Level, Slice


class BackendSettings(Slice):
    """One server that answers requests for the router."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", description="How status, logs and metrics call it.")
    kind: Literal["ollama", "openai", "embedded"] = Field(
        default="ollama", description="What it speaks; embedded serves a GGUF file in a child process."
    )
    url: str = Field(
        default="",
        description="Where it listens, for example http://127.0.0.1:11434; for openai up to and without /v1.",
    )
    key: SecretStr | None = Field(default=None, description="The key it asks for, sent as a bearer token.")
    parallel: int = Field(
        default=2, ge=1, le=4096, description="How many requests it runs at once (OLLAMA_NUM_PARALLEL)."
    )
    vram: Bytes | None = Field(
        default=None, ge=1, description="The memory for models, for example 24GB; unknown without it."
    )
    models: tuple[str, ...] = Field(
        default=(), description="Patterns of the models it serves; without any, it is asked."
    )
    role: Literal["orchestrator", "background"] | None = Field(
        default=None, description="Which model set lives here; by itself with two GPUs or more."
    )
    extras: bool = Field(
        default=False,
        description="Whether an openai backend takes llama.cpp's parameters (top_k, min_p, repeat_penalty).",
    )
    responses: bool = Field(
        default=False,
        description="Whether an openai backend has /v1/responses; without it, these requests are put as chats.",
    )
    gguf: Path | None = Field(default=None, description="The model file of an embedded backend.")
    context: int = Field(
        default=4096, ge=256, description="The context of one request on an embedded backend, in tokens."
    )
    threads: int = Field(default=0, ge=0, description="Threads of an embedded backend; 0 takes one per core.")

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        if self.kind == "embedded" and self.gguf is None:
            raise ValueError(f"the embedded backend “{self.name}” needs gguf, the path of its model file")
        if self.kind != "embedded" and not re.match(r"https?://[^/]+", self.url):
            raise ValueError(f"the backend “{self.name}” needs a url that begins with http:// or https://")
        return self


class ModelSettings(Slice):
    """What is pinned for one model, so that no client makes a backend load it anew."""

    num_ctx: int | None = Field(
        default=None,
        ge=1,
        description="The context every request for it gets; without it, the largest that was asked for.",
    )
    keep_alive: str | int | None = Field(
        default=None, description="How long a backend keeps it after its last request; -1 for ever."
    )
    vram: Bytes | None = Field(
        default=None, ge=1, description="The memory it needs, until /api/ps says how much it really takes."
    )


class KeySettings(Slice):
    """A key that clients may present."""

    name: str = Field(description="Who holds it, for status and metrics.")
    key: Key = Field(description="The key itself, presented as a bearer token.")
    max_priority: Level = Field(default="P0", description="The highest priority its holder may ask for.")
    admin: bool = Field(default=False, description="Whether its holder may use /router/*.")


class NetworkSettings(Slice):
    """A network that clients come from."""

    network: IPvAnyNetwork = Field(description="For example 10.0.0.0/8.")
    max_priority: Level = Field(description="The highest priority somebody from there may ask for.")


LOCAL_OLLAMA = BackendSettings(name="local", url="http://127.0.0.1:11434")


class RouterSettings(Slice):
    """Where the LLM router listens, what it spreads work over, and how it decides."""

    host: str = Field(default="127.0.0.1", description="The address the router listens on.")
    port: int = Field(
        default=11430, ge=0, le=65535, description="The port the router listens on; 0 takes any free one."
    )
    gpu_backends: tuple[BackendSettings, ...] = Field(
        default=(LOCAL_OLLAMA,), description="The backends with a GPU, as JSON or in gristmill.toml."
    )
    cpu_backends: tuple[BackendSettings, ...] = Field(
        default=(), description="The backends that background work falls back to."
    )
    orchestrator_models: tuple[str, ...] = Field(default=(), description="The models of P0 work.")
    background_models: tuple[str, ...] = Field(
        default=(), description="The models that are loaded when no P0 session holds the GPU."
    )
    models: dict[str, ModelSettings] = Field(default={}, description="Model pattern → what is pinned for it.")
    keep_alive: str | int = Field(
        default="30m", description="How long backends keep a model that has no keep_alive of its own."
    )
    priorities: dict[str, Level] = Field(
        default={"qwen3-coder-tool:*": "P0", "qwen2.5:*": "P3", "*embedding*": "P3"},
        description="Model pattern → priority of requests that name none; the first match counts.",
    )
    keys: tuple[KeySettings, ...] = Field(
        default=(), description="Keys of clients and the highest priority each may ask for."
    )
    networks: tuple[NetworkSettings, ...] = Field(
        default=(), description="Networks and the highest priority of clients in them."
    )
    anonymous_max_priority: Level = Field(
        default="P0", description="The highest priority of a client without a key, in no listed network."
    )
    admin_key: Key | None = Field(
        default=None, description="The key for /router/*, needed unless it listens on loopback and no key is admin."
    )
    origins: tuple[str, ...] = Field(
        default=(),
        description="Web pages that may call the router, besides this machine's: https://*.example.org.",
    )
    hosts: tuple[str, ...] = Field(
        default=(),
        description="Names to call the router by, besides this machine's and bare addresses: *.example.org.",
    )
    reserve_for: Duration = Field(
        default=timedelta(minutes=30), description="How long a P0 session may hold a GPU at most."
    )
    reserve_idle: Duration = Field(
        default=timedelta(minutes=5), description="How long a P0 session without requests keeps its GPU."
    )
    min_residency: Duration = Field(
        default=timedelta(seconds=10),
        description="How long a model stays before anything but P0 may replace it.",
    )
    aging: Duration = Field(
        default=timedelta(seconds=30),
        description="After how long a waiting request moves up one priority (never to P0).",
    )
    trickle: Duration = Field(
        default=timedelta(seconds=10),
        description="How often at least one background request gets the next free place.",
    )
    patience: Duration = Field(
        default=timedelta(seconds=30),
        description="How long a P1 request waits for a GPU before a CPU will do.",
    )
    finish_grace: Duration = Field(
        default=timedelta(seconds=2), description="How long a preempted stream that has begun may go on."
    )
    release_wait: Duration = Field(
        default=timedelta(seconds=10), description="How long a backend may take to confirm that it stopped."
    )
    max_preemptions: int = Field(default=3, ge=0, description="How often one request is preempted and run anew.")
    max_attempts: int = Field(
        default=3, ge=1, description="How many backends are tried for one request when they fail."
    )
    connect_timeout: Duration = Field(
        default=timedelta(seconds=5), description="How long connecting to a backend may take."
    )
    client_timeout: Duration = Field(
        default=timedelta(minutes=2),
        description="How long a client may take to send the rest of a request, or to take what it was sent.",
    )
    header_timeout: Duration = Field(
        default=timedelta(seconds=300), description="How long a backend may take before its answer begins."
    )
    idle_timeout: Duration = Field(
        default=timedelta(seconds=300), description="How long a backend may be silent within an answer."
    )
    load_timeout: Duration = Field(default=timedelta(seconds=600), description="How long loading a model may take.")
    probe: Duration = Field(
        default=timedelta(seconds=5),
        description="How often every backend is asked whether it lives and what is loaded.",
    )
    breaker_failures: int = Field(
        default=3, ge=1, description="How many failures of one kind in a row open a backend's breaker."
    )
    breaker_cooldown: Duration = Field(
        default=timedelta(seconds=10),
        description="How long an open breaker waits before its first trial; doubles up to 5min.",
    )
    deadline_p0: Duration = Field(
        default=timedelta(minutes=5), description="How long critical requests wait for a place."
    )
    deadline_p1: Duration = Field(
        default=timedelta(minutes=10), description="How long coding requests wait for a place."
    )
    deadline_p2: Duration = Field(
        default=timedelta(minutes=15), description="How long vision requests wait for a place."
    )
    deadline_p3: Duration = Field(
        default=timedelta(minutes=15), description="How long background requests wait for a place."
    )
    queue_limit: int = Field(
        default=1_000, ge=0, description="How many requests of one priority may wait; more get a 503."
    )
    body_limit: Bytes = Field(default=64 * 1024**2, ge=1024, description="The largest body of one request.")
    holdback_limit: Bytes = Field(
        default=8 * 1024**2,
        ge=1024,
        description="How much of a held-back answer is kept before it is sent after all.",
    )
    stop: Duration = Field(
        default=timedelta(seconds=20), description="How long a stopping router waits for running requests."
    )

    @model_validator(mode="after")
    def _check_names_differ(self) -> Self:
        names = [backend.name for backend in (*self.gpu_backends, *self.cpu_backends)]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"two backends are called “{min(twice)}”; every backend needs a name of its own")
        return self

    @model_validator(mode="after")
    def _check_keys_differ(self) -> Self:
        holders = [(key.key, f"“{key.name}”") for key in self.keys]
        holders += [(self.admin_key, "admin_key")] if self.admin_key is not None else []
        for (key, one), (other, another) in combinations(holders, 2):
            if key == other:
                raise ValueError(f"{one} and {another} have the same key; every holder needs one of its own")
        return self
