"""All settings, read once from `GRISTMILL_*` and an optional gristmill.toml, and handed on in slices."""

import os
import re
import tomllib
from datetime import timedelta
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    IPvAnyNetwork,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)
from typing_extensions import override

from gristmill.complaints import FILE, broken_json, complaint, names_of, strangers
from gristmill.durations import duration
from gristmill.errors import Refused


def _parsed(value: Any) -> Any:
    return duration(value) if isinstance(value, str) else value


Duration = Annotated[timedelta, BeforeValidator(_parsed)]


def _bytes(value: Any) -> Any:
    """`24GB`, `800 MiB` or a number of bytes; GPU makers and Ollama count a GB as 2³⁰."""
    match = re.fullmatch(r"\s*([\d.]+)\s*([kmgt]?)i?b?\s*", value, re.IGNORECASE) if isinstance(value, str) else None
    return int(float(match[1]) * 1024 ** " kmgt".index(match[2].lower() or " ")) if match else value


Bytes = Annotated[int, BeforeValidator(_bytes)]


def _named(value: Any) -> Any:
    if isinstance(value, str) and not value.strip():
        raise ValueError("it is empty: name a folder, or leave it out")
    return value


def _not_empty(key: SecretStr) -> SecretStr:
    if not key.get_secret_value().strip():
        raise ValueError("it is empty, which would let everybody in: write a key, or leave it out")
    return key


Key = Annotated[SecretStr, AfterValidator(_not_empty)]
Folder = Annotated[Path, BeforeValidator(_named)]
Level = Literal["P0", "P1", "P2", "P3"]


def default_data() -> Path:
    """Where the embedded database lives: the system's place for root, the user's for everybody else."""
    if os.geteuid() == 0:
        return Path("/var/lib/gristmill")
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "gristmill"  # noqa: TID251 this is the place


def environment(**more: str) -> dict[str, str]:
    """The environment for a program we start, with some more in it."""
    return os.environ | more  # noqa: TID251 this is the place


class Slice(BaseModel):
    """A part of the settings that one room is handed."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class QueueSettings(Slice):
    """How workers claim, renew, settle and clean up."""

    heartbeat: Duration = Field(default=timedelta(seconds=30), description="How often a worker says that it lives.")
    lease: Duration = Field(default=timedelta(seconds=120), description="How long a silent worker keeps its tasks.")
    poll: Duration = Field(
        default=timedelta(seconds=1), description="How often a worker looks for tasks nobody told it of."
    )
    rescue: Duration = Field(
        default=timedelta(seconds=15), description="How often the leases of dead workers are taken back."
    )
    stall: Duration = Field(
        default=timedelta(minutes=5),
        description="How long the event loop of a worker may stand still before it ends itself.",
    )
    stop: Duration = Field(
        default=timedelta(seconds=20), description="How long a stopping worker waits for its running tasks."
    )
    batch: int = Field(
        default=500, ge=1, le=900, description="How many tasks are claimed or settled in one transaction at most."
    )
    nice: int = Field(
        default=5, ge=0, le=19, description="How far computing steps back for whoever else needs the processor."
    )
    max_payload: int = Field(
        default=1_000_000,
        ge=1_000,
        description="The largest payload of a task that a worker or a command sends, in bytes of JSON.",
    )
    dead_alert: int = Field(default=10, ge=1, description="How many dead letters raise an alarm.")
    dead_keep_for: Duration = Field(default=timedelta(days=30), description="How long dead letters are kept.")
    dead_keep: int = Field(default=5_000, ge=0, description="How many dead letters are kept at most.")
    keep_for: Duration = Field(default=timedelta(days=7), description="How long finished tasks are kept.")
    keep: int = Field(default=1_000, ge=0, description="How many finished tasks are kept per queue.")

    @model_validator(mode="after")
    def _lasting(self) -> Self:
        if self.lease < 2 * self.heartbeat:
            raise ValueError("a lease must be at least twice as long as a heartbeat, or workers that live lose tasks")
        if min(self.heartbeat, self.poll, self.rescue, self.stall) <= timedelta(0):
            raise ValueError("heartbeat, poll, rescue and stall must be longer than zero")
        return self


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
    def _is_complete(self) -> Self:
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
    def _names_differ(self) -> Self:
        names = [backend.name for backend in (*self.gpu_backends, *self.cpu_backends)]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"two backends are called “{min(twice)}”; every backend needs a name of its own")
        return self

    @model_validator(mode="after")
    def _keys_differ(self) -> Self:
        holders = [(key.key, f"“{key.name}”") for key in self.keys]
        holders += [(self.admin_key, "admin_key")] if self.admin_key is not None else []
        for (key, one), (other, another) in combinations(holders, 2):
            if key == other:
                raise ValueError(f"{one} and {another} have the same key; every holder needs one of its own")
        return self


class DocumentSettings(Slice):
    """How files are taken in and read."""

    max_bytes: Bytes = Field(default=256 * 1024**2, ge=1, description="The largest file that is read.")
    max_pages: int = Field(default=5_000, ge=1, description="The most pages of one document.")
    max_pixels: int = Field(default=100_000_000, ge=10_000, description="The most pixels of one picture.")
    max_unpacked: Bytes = Field(
        default=1024**3, ge=1, description="The most that an office file or the attachments of a PDF unpack to."
    )
    max_parts: int = Field(
        default=100_000, ge=0, description="The most attachments of one mail or PDF, or mails of one mailbox."
    )
    max_depth: int = Field(default=5, ge=0, description="How deep documents may lie within each other.")
    timeout: Duration = Field(
        default=timedelta(seconds=120),
        description="How long opening a file, reading one page or dividing a batch of pages may take.",
    )
    memory: Bytes = Field(default=2 * 1024**3, ge=64 * 1024**2, description="The memory each of that may take.")
    processes: int = Field(
        default=0, ge=0, le=1024, description="How many pages are read at once by a worker; 0 takes one per core."
    )
    spool: Bytes = Field(
        default=2 * 1024**3, ge=1024**2, description="How much room copies of files may take where they are read."
    )


class LlmSettings(Slice):
    """How the house's own LLM client asks."""

    url: str = Field(default="http://127.0.0.1:11430", description="Where the router listens.")
    model: str = Field(default="", description="The model that is asked when a room names none.")
    key: SecretStr | None = Field(default=None, description="The key the router asks for.")
    timeout: Duration = Field(
        default=timedelta(minutes=30), description="How long one answer may take, waiting included."
    )


class EmbeddingSettings(Slice):
    """What turns texts into vectors."""

    kind: Literal["minilm", "ollama", "openai"] = Field(
        default="minilm", description="The model of the house (minilm), or what an endpoint speaks (ollama, openai)."
    )
    url: str = Field(
        default="http://127.0.0.1:11430", description="Where the endpoint listens, up to and without /api or /v1."
    )
    model: str = Field(default="", description="The model that an endpoint is asked for.")
    key: SecretStr | None = Field(default=None, description="The key the endpoint asks for, sent as a bearer token.")
    window: int = Field(
        default=254, ge=16, description="How many tokens an endpoint's model sees; chunks are made to fit."
    )
    floor: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="The cosine below which an endpoint's model finds nothing by meaning alone; ours has 0.2.",
    )
    batch: int = Field(default=64, ge=1, description="How many texts an endpoint gets in one request at most.")
    timeout: Duration = Field(default=timedelta(minutes=5), description="How long one request to an endpoint may take.")


class LogSettings(Slice):
    """How events are written."""

    level: str = Field(
        default="info", pattern="^(debug|info|warning|error)$", description="The least level that is logged."
    )
    json_lines: bool = Field(default=False, description="One JSON object a line instead of text for people.")


class Settings(BaseSettings):
    """Everything that can be set."""

    model_config = SettingsConfigDict(
        env_prefix="GRISTMILL_",
        env_nested_delimiter="_",
        env_nested_max_split=1,
        toml_file=FILE,
        extra="forbid",
        frozen=True,
    )

    database_url: str | None = Field(
        default=None,
        description="A PostgreSQL ≥ 14 with pgvector ≥ 0.8; without it, one is started in the data folder.",
    )
    data: Folder = Field(default_factory=default_data, description="The data folder of the embedded PostgreSQL.")
    app: str = Field(
        default="gristmill.app:handlers",
        description="Where the handlers are that workers run: module:name or file.py:name.",
    )
    queue: QueueSettings = QueueSettings()
    router: RouterSettings = RouterSettings()
    documents: DocumentSettings = DocumentSettings()
    llm: LlmSettings = LlmSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    log: LogSettings = LogSettings()

    @classmethod
    @override
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        if isinstance(env_settings, EnvSettingsSource):  # what sets nothing is told of, and is no reason to stop
            known = {name.lower() for name in names_of(cls)}
            env_settings.env_vars = {name: value for name, value in env_settings.env_vars.items() if name in known}
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)


def load() -> Settings:
    """The settings, or one sentence about the first that is wrong."""
    file = _file()
    try:
        return Settings()
    except SettingsError as wrong:
        raise Refused(_not_json(wrong)) from wrong
    except ValidationError as wrong:
        known = names_of(Settings)
        first = complaint(wrong.errors()[0], environment=environment(), file=file, known=known)
        raise Refused(first) from wrong


def unknown_names() -> list[str]:
    """A sentence for each `GRISTMILL_*` of the environment that sets nothing: a slip of the pen, most often."""
    return strangers(environment(), names_of(Settings))


def _file() -> dict[str, Any]:
    """What stands in gristmill.toml, if there is one."""
    path = Path(FILE)
    if path.exists() and not path.is_file():
        raise Refused(f"{path.resolve()} is not a file: move it away, or write your settings into a file of that name.")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as wrong:
        raise Refused(f"{FILE} cannot be read: {wrong}.") from wrong
    except OSError as wrong:
        raise Refused(f"{path.resolve()} cannot be read ({wrong.strerror}).") from wrong


def _not_json(wrong: SettingsError) -> str:
    """Tables and lists are JSON in the environment."""
    name = broken_json(Settings, environment()) or "of the environment"
    return f"The setting {name} is wrong: it is not JSON ({wrong.__cause__}). See docs/settings.md."
