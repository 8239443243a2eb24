"""The backends themselves: the requests each kind gets, its probes, and its models that come and go."""

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import translate as as_regex
from functools import lru_cache
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec
import orjson

from gristmill.router.breaker import BackendFailure
from gristmill.router.embedded import Child
from gristmill.router.plain import PlainClient
from gristmill.router.responses import as_chat
from gristmill.router.rows import LoadedRow, ModelRow
from gristmill.router.tls import TlsClient
from gristmill.router.translate import to_ollama, to_openai
from gristmill.router.upstream import AttemptFailed, BackendClient, Exchange, Timeouts, read_whole
from gristmill.router.wire import (
    EMBED,
    V1_CHAT,
    V1_RESPONSES,
    BadRequest,
    Fields,
    ModelCall,
    ModelRequest,
    as_object,
    canonical,
    choices_asked,
    error_text,
)
from gristmill.settings import BackendSettings, ModelSettings, RouterSettings

Json = dict[str, Any]
TRUE = msgspec.Raw(b"true")
INCLUDE_USAGE = msgspec.Raw(b'{"include_usage":true}')
MOST_CONTEXT = 1024**2  # tokens: a larger wish is a mistake, and later requests must not inherit it
UNSAID = ModelSettings(num_ctx=None, keep_alive=None, vram=None)


class Outgoing(msgspec.Struct, frozen=True):
    """A request as one backend gets it."""

    call: ModelCall
    body: bytes
    usage: bool  # whether the client wants token counts within a stream
    more: tuple[bytes, ...] = ()  # further requests, when a backend gives one choice at a time
    choices: int = 1


@dataclass(slots=True)
class ProbeFindings:
    """The findings of a probe."""

    models: Mapping[str, ModelRow]
    loaded: dict[str, LoadedRow] = field(default_factory=dict[str, LoadedRow])
    version: str = ""


class Pins:
    """The context and keep_alive of every request for a model, so that no client makes a backend load it anew."""

    def __init__(self, settings: RouterSettings) -> None:
        self._largest: dict[str, int] = {}
        self.of = lru_cache(maxsize=1024)(self._look_up)
        self.keep_alive_raw = lru_cache(maxsize=1024)(self._encode_keep_alive)
        self.configure(settings)

    def configure(self, settings: RouterSettings) -> None:
        """Go by these settings from now on."""
        self._listed = [(re.compile(as_regex(pattern)), pinned) for pattern, pinned in settings.models.items()]
        self._keep_alive = settings.keep_alive
        self.of.cache_clear()
        self.keep_alive_raw.cache_clear()

    def _encode_keep_alive(self, model: str) -> msgspec.Raw:
        return msgspec.Raw(orjson.dumps(self.keep_alive(model)))

    def _look_up(self, model: str) -> ModelSettings:
        return next((pinned for pattern, pinned in self._listed if pattern.match(model)), UNSAID)

    def keep_alive(self, model: str) -> str | int:
        pinned = self.of(model).keep_alive
        return self._keep_alive if pinned is None else pinned

    def concern(self, model: str) -> bool:
        """Whether requests for a model get another context than the one they ask for."""
        return model in self._largest or self.of(model).num_ctx is not None

    def num_ctx(self, model: str, asked: Any = None) -> int | None:
        """The context for a request: the listed one, else the largest that anybody asked for so far."""
        if (pinned := self.of(model).num_ctx) is not None:
            return pinned
        if isinstance(asked, int) and self._largest.get(model, 0) < asked <= MOST_CONTEXT and len(self._largest) < 1024:
            self._largest[model] = asked
        return self._largest.get(model)


class Adapter:
    """One backend: its HTTP client, its models, and the requests as it understands them."""

    def __init__(self, spec: BackendSettings, gpu: bool, settings: RouterSettings, pins: Pins) -> None:
        self.gpu, self._pins = gpu, pins
        self.name = spec.name
        self._client: BackendClient | None = None
        self._control: BackendClient | None = None
        self.configure(spec, settings)
        self.speaks = "ollama" if spec.kind == "ollama" else "openai"
        self.models: Mapping[str, ModelRow] | None = None  # None until it has told
        self.loaded: dict[str, LoadedRow] = {}
        self.version = ""
        self.trouble = ""  # why the last probe failed; empty when it did not
        self.absent: set[str] = set()
        self._child = Child(spec, self.embedded_model) if spec.kind == "embedded" else None
        key = f"Authorization: Bearer {spec.key.get_secret_value()}\r\n" if spec.key is not None else ""
        self._headers = f"Content-Type: application/json\r\nAccept: */*\r\n{key}".encode("latin-1")

    def configure(self, spec: BackendSettings, settings: RouterSettings) -> None:
        """Go by these settings from now on; a backend at another place needs another adapter."""
        self.spec, self._settings = spec, settings
        self._patterns = [re.compile(as_regex(pattern)) for pattern in spec.models]
        if self._client is not None:
            self._client.limit(self._limits())
        if self._control is not None:
            self._control.limit(self._control_limits())

    def is_at(self, spec: BackendSettings, gpu: bool) -> bool:
        """Whether these settings mean the same backend, at the same place."""
        ours = self.spec
        place = (spec.kind, spec.url, spec.key, spec.gguf, gpu)
        child = (spec.context, spec.threads, spec.parallel) if spec.kind == "embedded" else ()
        own = (ours.context, ours.threads, ours.parallel) if ours.kind == "embedded" else ()
        return place == (ours.kind, ours.url, ours.key, ours.gguf, self.gpu) and child == own

    def _limits(self) -> Timeouts:
        settings = self._settings
        return Timeouts(
            settings.connect_timeout.total_seconds(),
            settings.header_timeout.total_seconds(),
            settings.idle_timeout.total_seconds(),
        )

    def _control_limits(self) -> Timeouts:
        load = self._settings.load_timeout.total_seconds()
        return Timeouts(self._settings.connect_timeout.total_seconds(), load, load)

    @property
    def shown_url(self) -> str:
        """Where it is, without a password that its URL may hold."""
        return self.spec.url.replace(f"{urlsplit(self.spec.url).netloc.rpartition('@')[0]}@", "")

    @property
    def embedded_model(self) -> str:
        named = next((name for name in self.spec.models if not set(name) & set("*?[")), None)
        return named or (self.spec.gguf.stem.lower() if self.spec.gguf else self.spec.name)

    def serves(self, model: str) -> bool:
        """Whether it has a model, given by its full name."""
        return model not in self.absent and self.own_name(model) is not None

    def own_name(self, model: str) -> str | None:
        """This backend's own name of a model: OpenAI's ids carry no tag, Ollama's names always do."""
        for name in (model, model.removesuffix(":latest")):
            if (
                any(pattern.match(name) for pattern in self._patterns)
                if self._patterns
                else name in (self.models or ())
            ):
                return name
        return None

    # ── life ────────────────────────────────────────────────────────────────

    async def open(self) -> None:
        if self._child is None:
            self._connect(self.spec.url)

    def _connect(self, url: str) -> None:
        kind: Callable[[str, Timeouts], BackendClient] = TlsClient if url.startswith("https://") else PlainClient
        self._client = kind(url, self._limits())
        self._control = kind(url, self._control_limits())

    async def _disconnect(self) -> None:
        for client in (self._client, self._control):
            if client is not None:
                await client.close()
        self._client = self._control = None

    async def close(self) -> None:
        await self._disconnect()
        if self._child is not None:
            await self._child.stop()

    # ── requests ────────────────────────────────────────────────────────────

    def send_at_once(self, question: ModelRequest, call: ModelCall, body: bytes) -> Exchange | None:
        """Send a request at once, if a connection is open."""
        if self._client is None:
            raise AttemptFailed(BackendFailure.CONNECT, "the backend is not running")
        return self._client.send_at_once("POST", call.path, self._headers + question.extra, body)

    async def send(self, question: ModelRequest, call: ModelCall, body: bytes) -> Exchange:
        if self._client is None:
            raise AttemptFailed(BackendFailure.CONNECT, "the backend is not running")
        return await self._client.send("POST", call.path, self._headers + question.extra, body)

    def prepare(self, question: ModelRequest) -> Outgoing:
        """A client's request in this backend's own words."""
        try:
            return self._for_ollama(question) if self.speaks == "ollama" else self._for_openai(question)
        except (KeyError, TypeError, AttributeError, ValueError):
            raise BadRequest("the body does not have the shape that this call needs") from None

    def _for_ollama(self, question: ModelRequest) -> Outgoing:
        call, model = question.call, question.full_model
        if call.api == "ollama":
            fields: Fields = dict(question.fields)
            options = bytes(fields.get("options", b"null"))
            if self._pins.concern(model) or b'num_ctx"' in options:
                fields["options"] = self._with_context(model, options)
            if call.shape != "vectors":
                fields["stream"] = TRUE
            fields["keep_alive"] = self._pins.keep_alive_raw(model)
            return Outgoing(call, msgspec.json.encode(fields), usage=True)
        choices_asked(question)  # is the number one that can be served?
        body = question.decode()
        usage = bool((as_object(body.get("stream_options")) or {}).get("include_usage"))
        call, sent = to_ollama(V1_CHAT, as_chat(body)) if call is V1_RESPONSES else to_ollama(call, body)
        pinned = self._pins.num_ctx(model)
        for one in sent:
            if pinned is not None:
                one["options"] = {**(as_object(one.get("options")) or {}), "num_ctx": pinned}
            one |= {"keep_alive": self._pins.keep_alive(model), **({} if call is EMBED else {"stream": True})}
        first, *more = map(orjson.dumps, sent)
        return Outgoing(call, first, usage, tuple(more), len(sent))

    def _with_context(self, model: str, options: bytes) -> msgspec.Raw:
        asked = as_object(orjson.loads(options)) or {}
        pinned = self._pins.num_ctx(model, asked.get("num_ctx"))
        return msgspec.Raw(options if pinned is None else orjson.dumps({**asked, "num_ctx": pinned}))

    def _for_openai(self, question: ModelRequest) -> Outgoing:
        call, model = question.call, self.own_name(question.full_model) or question.model
        streams: Json = {} if call.shape == "vectors" else {"stream": True, "stream_options": {"include_usage": True}}
        if call.api == "ollama":
            call, sent = to_openai(call, question.decode(), extras=self.spec.extras or self.spec.kind == "embedded")
            return Outgoing(call, orjson.dumps({**sent, **streams, "model": model}), usage=True)
        if call is V1_RESPONSES:
            return self._responses_for_openai(question, model)
        usage = b'"include_usage":true' in bytes(question.fields.get("stream_options", b"")).replace(b" ", b"")
        fields: Fields = {
            **question.fields,
            **({"stream": TRUE, "stream_options": INCLUDE_USAGE} if streams else {}),
        }
        if model != question.model:
            fields["model"] = msgspec.Raw(orjson.dumps(model))
        return Outgoing(call, msgspec.json.encode(fields), usage, choices=choices_asked(question))

    def _responses_for_openai(self, question: ModelRequest, model: str) -> Outgoing:
        """As they are for a backend that has /v1/responses, else as a chat."""
        if self.spec.responses:
            fields: Fields = {**question.fields, "stream": TRUE, "model": msgspec.Raw(orjson.dumps(model))}
            return Outgoing(question.call, msgspec.json.encode(fields), usage=True)
        streams = {"stream": True, "stream_options": {"include_usage": True}}
        sent = {**as_chat(question.decode()), **streams, "model": model}
        return Outgoing(V1_CHAT, orjson.dumps(sent), usage=True)

    # ── probes and models ───────────────────────────────────────────────────

    async def probe(self) -> ProbeFindings:
        """Ask a backend for its models and the loaded ones; raises AttemptFailed when it does not answer."""
        if self._child is not None and not self._child.runs:
            await self._start_child(self._child)
        async with asyncio.timeout(max(1.0, self._settings.connect_timeout.total_seconds())):
            seen = await (self._probe_ollama() if self.speaks == "ollama" else self._probe_openai())
        self.absent.clear()
        self.models, self.loaded, self.version = seen.models, seen.loaded, seen.version or self.version
        return seen

    async def _start_child(self, child: Child) -> None:
        await self._disconnect()
        try:
            self._connect(await child.start())
        except OSError as error:
            raise AttemptFailed(BackendFailure.PROBE, "the embedded model could not be started") from error

    async def _probe_ollama(self) -> ProbeFindings:
        tags = await self.ask("GET", "/api/tags")
        version = self.version or (await self.ask("GET", "/api/version")).get("version", "")
        return ProbeFindings(_by_name(tags, "models", "name"), await self._in_memory(), version)

    async def _in_memory(self) -> dict[str, LoadedRow]:
        return _by_name(await self.ask("GET", "/api/ps"), "models", "name")

    async def _probe_openai(self) -> ProbeFindings:
        try:
            listed = await self.ask("GET", "/v1/models")
        except AttemptFailed as failure:
            if self._patterns and 400 <= failure.status < 500 and failure.status not in (401, 403, 429):
                return ProbeFindings({})  # it has no list, but it lives, and the settings name its models
            raise
        return ProbeFindings(_by_name(listed, "data", "id"))

    async def load(self, model: str, embeds: bool) -> int:
        """Bring a model into memory; how much of the GPU's it takes."""
        name = canonical(model)
        options = {"options": {"num_ctx": pinned}} if (pinned := self._pins.num_ctx(name)) is not None else {}
        wanted = {"model": model, "keep_alive": self._pins.keep_alive(name), **options}
        if embeds:  # Ollama refuses to load an embedding model by /api/generate
            await self.ask("POST", "/api/embed", {**wanted, "input": []})
        else:
            await self._load_by_generate(wanted)
        self.loaded = await self._in_memory()
        row = self.loaded.get(name)
        return row.get("size_vram", 0) if row is not None else 0

    async def _load_by_generate(self, wanted: Json) -> None:
        try:
            await self.ask("POST", "/api/generate", {**wanted, "stream": False})
        except AttemptFailed as failure:
            if failure.status != 400:
                raise
            await self.ask("POST", "/api/embed", {**wanted, "input": []})

    async def unload(self, model: str) -> bool:
        """Take a model out of memory; true when /api/ps confirms that it is gone."""
        await self.ask("POST", "/api/generate", {"model": model, "keep_alive": 0, "stream": False})
        try:
            async with asyncio.timeout(self._settings.release_wait.total_seconds()):
                while model in (loaded := await self._in_memory()):  # noqa: ASYNC110 only asking tells
                    await asyncio.sleep(0.01)
        except TimeoutError:
            return False
        self.loaded = loaded
        return True

    async def ask(self, method: str, path: str, body: Json | None = None) -> Json:
        """One short question to the backend itself, outside of the lanes."""
        if self._control is None:
            raise AttemptFailed(BackendFailure.CONNECT, "the backend is not running")
        message = (method, path, self._headers, orjson.dumps(body) if body is not None else b"")
        exchange = self._control.send_at_once(*message) or await self._control.send(*message)
        try:
            await exchange.wait_for_headers()
            text = await read_whole(exchange)
        except asyncio.CancelledError:
            await asyncio.shield(exchange.stop(self._settings.release_wait.total_seconds()))
            raise
        if exchange.status != 200:
            raise AttemptFailed(BackendFailure.STATUS, error_text(text), status=exchange.status, body=text)
        try:
            found = orjson.loads(text)
        except orjson.JSONDecodeError:
            raise AttemptFailed(BackendFailure.BROKEN, "the backend's answer is not JSON") from None
        return as_object(found) or {}


def _by_name(listed: Json, rows: str, key: str) -> dict[str, LoadedRow]:
    """The rows of a list by their name; a list of another shape is the backend's failure."""
    try:
        named = {str(row[key]): {"name": str(row[key]), **row} for row in listed.get(rows) or ()}
        return cast("dict[str, LoadedRow]", named)
    except (KeyError, TypeError, ValueError):
        raise AttemptFailed(BackendFailure.PROBE, "the backend's list of models has an unknown shape") from None
