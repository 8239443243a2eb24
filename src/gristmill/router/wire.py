"""What goes over the wire: calls and bodies, headers that may pass, errors in the style of each API."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, cast

import msgspec
import orjson

Fields = dict[str, msgspec.Raw]

HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
# ours to set, or nobody's business on the other side
NOT_FORWARDED = HOP_BY_HOP | {
    "accept", "accept-encoding", "authorization", "content-encoding", "content-length", "content-type",
    "cookie", "expect", "forwarded", "host", "origin", "referer", "x-forwarded-for",
    "x-ollama-priority", "x-router-holdback", "x-router-session",
}  # fmt: skip
NOT_RETURNED = HOP_BY_HOP | {
    "content-length",
    "content-encoding",
    "content-type",
    "date",
    "server",
    "set-cookie",
}


class Call(NamedTuple):
    """One of the calls that reach a model."""

    path: str
    api: str
    shape: str  # chat, text or vectors
    streams: bool  # by default, when the body does not say


CHAT = Call("/api/chat", "ollama", "chat", streams=True)
GENERATE = Call("/api/generate", "ollama", "text", streams=True)
EMBED = Call("/api/embed", "ollama", "vectors", streams=False)
EMBEDDINGS = Call("/api/embeddings", "ollama", "vectors", streams=False)
V1_CHAT = Call("/v1/chat/completions", "openai", "chat", streams=False)
V1_COMPLETIONS = Call("/v1/completions", "openai", "text", streams=False)
V1_EMBEDDINGS = Call("/v1/embeddings", "openai", "vectors", streams=False)
CALLS = {call.path: call for call in (CHAT, GENERATE, EMBED, EMBEDDINGS, V1_CHAT, V1_COMPLETIONS, V1_EMBEDDINGS)}


def as_object(value: Any) -> dict[str, Any] | None:
    """A JSON object, if it is one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def as_list(value: Any) -> list[Any] | None:
    """A JSON list, if it is one."""
    return cast("list[Any]", value) if isinstance(value, list) else None


class BadRequest(Exception):
    """The client's request is wrong; the text says how."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass(slots=True)
class Question:
    """A request as far as the router reads it: the rest of the body stays as it came."""

    call: Call
    fields: Fields
    model: str
    stream: bool
    sees: bool
    size: int
    full_model: str = ""
    extra: bytes = b""

    @property
    def embeds(self) -> bool:
        return self.call.shape == "vectors"

    def decoded(self) -> dict[str, Any]:
        """The whole body, for a translation."""
        return {name: orjson.loads(bytes(raw)) for name, raw in self.fields.items()}


_fields = msgspec.json.Decoder(Fields)
_text = msgspec.json.Decoder(str)
_flag = msgspec.json.Decoder(bool | None)


def read_question(call: Call, body: bytes) -> Question:
    """What a body asks, or a sentence about what is wrong with it."""
    try:
        fields = _fields.decode(body)
    except msgspec.ValidationError:
        raise BadRequest("the body must be a JSON object") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as wrong:
        raise BadRequest(f"the body is not valid JSON: {wrong}") from None
    try:
        model = _text.decode(fields["model"]) if "model" in fields else ""
    except msgspec.DecodeError:
        raise BadRequest("model must be a string") from None
    if not model:
        raise BadRequest("model is required")
    return Question(
        call,
        fields,
        model,
        _wants_stream(call, fields),
        b'"images"' in body or b'"image_url"' in body,
        len(body),
        canonical(model),
    )


def _wants_stream(call: Call, fields: Fields) -> bool:
    if call.shape == "vectors" or "stream" not in fields:
        return call.streams
    try:
        asked = _flag.decode(fields["stream"])
    except msgspec.DecodeError:
        raise BadRequest("stream must be true or false") from None
    return call.streams if asked is None else asked


def canonical(model: str) -> str:
    """Ollama's full name of a model: a tag is always there."""
    return model if ":" in model.rpartition("/")[2] else f"{model}:latest"


# ── errors ──────────────────────────────────────────────────────────────────

OPENAI_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "invalid_request_error",
    413: "invalid_request_error",
    429: "rate_limit_error",
}


def error_body(api: str, status: int, message: str) -> bytes:
    """An error as clients of that API expect it."""
    if api == "ollama":
        return orjson.dumps({"error": message})
    code = "model_not_found" if status == 404 else None
    return orjson.dumps(
        {
            "error": {
                "message": message,
                "type": OPENAI_TYPES.get(status, "server_error"),
                "param": None,
                "code": code,
            }
        }
    )


def error_line(api: str, message: str) -> bytes:
    """An error within a stream that has begun: an explicit line, never a false end."""
    body = error_body(api, 500, message)
    return body + b"\n" if api == "ollama" else b"data: " + body + b"\n\n"


def error_text(body: bytes) -> str:
    """The sentence inside an error body of either API, or what there is of it."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body[:500].decode("utf-8", "replace").strip()
    error = (as_object(found) or {}).get("error", found)
    text = (as_object(error) or {}).get("message", error)
    return text if isinstance(text, str) else orjson.dumps(text).decode()


# ── headers ─────────────────────────────────────────────────────────────────


def forwarded(headers: Iterable[tuple[str, str]], connection: str = "") -> bytes:
    """The client's headers that go on to a backend, ready to be written."""
    hidden = _nominated(connection) if connection else frozenset[str]()
    passing = [(name, value) for name, value in headers if _goes_on(name) and name.lower() not in hidden]
    return "".join([f"{name}: {value}\r\n" for name, value in passing]).encode("latin-1", "replace")


def returned(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    """A backend's headers that go on to the client."""
    passing = [(name, value) for raw, value in headers if (name := _comes_back(raw))]
    if not passing:
        return []
    hidden = _nominated(next((value.decode("latin-1") for name, value in headers if name.lower() == b"connection"), ""))
    return [(name, value.decode("latin-1")) for name, value in passing if name.lower() not in hidden]


# names repeat with every request: whether one passes is worked out once
@lru_cache(maxsize=1024)
def _goes_on(name: str) -> bool:
    return name.lower() not in NOT_FORWARDED


@lru_cache(maxsize=1024)
def _comes_back(name: bytes) -> str:
    text = name.decode("latin-1")
    return "" if text.lower() in NOT_RETURNED else text


def _nominated(connection: str) -> frozenset[str]:
    """Headers that a Connection header declares to be hop-by-hop."""
    return frozenset(name.strip().lower() for name in connection.split(",")) if connection else frozenset()


def header(headers: list[tuple[bytes, bytes]], wanted: bytes) -> str | None:
    return next((value.decode("latin-1") for name, value in headers if name.lower() == wanted), None)
