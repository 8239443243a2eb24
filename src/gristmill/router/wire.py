"""The wire: calls and bodies, headers that may pass, errors in the style of each API."""

import time
from collections.abc import Iterable
from typing import Any, NamedTuple, cast

import msgspec
import orjson

Fields = dict[str, msgspec.Raw]
MOST_CHOICES = 128  # of one request, as OpenAI has it
MODEL_NOT_FOUND = "model_not_found"

HOP_BY_HOP = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)
# the router sets these itself, or keeps them from the other side
NOT_FORWARDED = HOP_BY_HOP | {
    b"accept",
    b"accept-encoding",
    b"authorization",
    b"content-encoding",
    b"content-length",
    b"content-type",
    b"cookie",
    b"expect",
    b"forwarded",
    b"host",
    b"origin",
    b"referer",
    b"x-forwarded-for",
    b"x-router-backend",
    b"x-ollama-priority",
    b"x-router-holdback",
    b"x-router-session",
}
NOT_RETURNED = HOP_BY_HOP | {
    b"content-length",
    b"content-encoding",
    b"content-type",
    b"date",
    b"server",
    b"set-cookie",
}


class ModelCall(NamedTuple):
    """One of the calls that reach a model."""

    path: str
    api: str
    shape: str  # chat, text or vectors
    streams: bool  # by default, when the body does not say


CHAT = ModelCall("/api/chat", "ollama", "chat", streams=True)
GENERATE = ModelCall("/api/generate", "ollama", "text", streams=True)
EMBED = ModelCall("/api/embed", "ollama", "vectors", streams=False)
EMBEDDINGS = ModelCall("/api/embeddings", "ollama", "vectors", streams=False)
V1_CHAT = ModelCall("/v1/chat/completions", "openai", "chat", streams=False)
V1_COMPLETIONS = ModelCall("/v1/completions", "openai", "text", streams=False)
V1_EMBEDDINGS = ModelCall("/v1/embeddings", "openai", "vectors", streams=False)
V1_RESPONSES = ModelCall("/v1/responses", "openai", "chat", streams=False)
OLLAMA_CALLS = (CHAT, GENERATE, EMBED, EMBEDDINGS)
OPENAI_CALLS = (V1_CHAT, V1_COMPLETIONS, V1_EMBEDDINGS, V1_RESPONSES)
CALLS = {call.path: call for call in (*OLLAMA_CALLS, *OPENAI_CALLS)}


def as_object(value: Any) -> dict[str, Any] | None:
    """A JSON object, if it is one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def as_list(value: Any) -> list[Any] | None:
    """A JSON list, if it is one."""
    return cast("list[Any]", value) if isinstance(value, list) else None


class BadRequest(Exception):
    """The client's request is wrong; the text says how, and the code says it to a program."""

    def __init__(self, message: str, status: int = 400, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code = status, code


def model_missing(model: str, available: Iterable[str]) -> BadRequest:
    """The refusal of a request for a model that no backend serves."""
    names = ", ".join(sorted(available)) or "none"
    text = f"model {model.removesuffix(':latest')[:200]!r} not found; available: {names}"
    return BadRequest(text, 404, MODEL_NOT_FOUND)


class ModelRequest(msgspec.Struct, eq=False):
    """A request as far as the router reads it: the rest of the body stays as it came."""

    call: ModelCall
    fields: Fields
    model: str
    stream: bool
    sees: bool
    full_model: str
    embeds: bool
    extra: bytes = b""

    def decode(self) -> dict[str, Any]:
        """The whole body, for a translation."""
        return {name: orjson.loads(bytes(raw)) for name, raw in self.fields.items()}


_fields = msgspec.json.Decoder(Fields)
_text = msgspec.json.Decoder(str)
_flag = msgspec.json.Decoder(bool | None)


def read_question(call: ModelCall, body: bytes) -> ModelRequest:
    """Read a body; raises BadRequest with a sentence about its fault."""
    try:
        if not body.isascii():
            body.decode()  # fields that pass as they are get no other check
        fields = _fields.decode(body)
    except msgspec.ValidationError:
        raise BadRequest("the body must be a JSON object") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise BadRequest(f"the body is not valid JSON: {wrong}") from None
    try:
        model = _text.decode(fields["model"]) if "model" in fields else ""
    except msgspec.DecodeError:
        raise BadRequest("model must be a string") from None
    if not model:
        raise BadRequest("model is required")
    return ModelRequest(
        call,
        fields,
        model,
        _wants_stream(call, fields),
        b'"images"' in body or b'"image_url"' in body or b'"input_image"' in body,
        canonical(model),
        call.shape == "vectors",
    )


EMPTY = (b'""', b"[]", b"null")


def asks_nothing(question: ModelRequest) -> bool:
    """Whether an Ollama client only wants a model in or out of memory: it says nothing that could be answered."""
    call, fields = question.call, question.fields
    if call is CHAT:
        return _is_empty(fields.get("messages"))
    return call is GENERATE and _is_empty(fields.get("prompt")) and "images" not in fields


def _is_empty(raw: msgspec.Raw | None) -> bool:
    # the length first: a field may have many megabytes, which are not copied for this
    return raw is None or (len(raw) <= 4 and bytes(raw) in EMPTY)


def unloads(question: ModelRequest) -> bool:
    """Whether a request that asks nothing wants the model gone: `ollama stop` sends this."""
    return bytes(question.fields.get("keep_alive", b"")) in (b"0", b'"0"', b'"0s"', b"0.0")


def nothing_said(question: ModelRequest, reason: str) -> bytes:
    """Ollama's answer when it only loads or unloads."""
    said = {"message": {"role": "assistant", "content": ""}} if question.call is CHAT else {"response": ""}
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return orjson.dumps({"model": question.model, "created_at": stamp, **said, "done": True, "done_reason": reason})


def choices_asked(question: ModelRequest) -> int:
    """How many choices a question asks for: `n` for each of its prompts."""
    if "n" not in question.fields and question.call is not V1_COMPLETIONS:
        return 1
    asked: Any = orjson.loads(bytes(question.fields.get("n", b"null"))) if "n" in question.fields else None
    count = 1 if asked is None else asked
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST_CHOICES:
        raise BadRequest(f"n must be a whole number from 1 to {MOST_CHOICES}")
    if question.call is not V1_COMPLETIONS:
        return count
    return count * len(prompts_of(orjson.loads(bytes(question.fields.get("prompt", b'""')))))


def prompts_of(prompt: Any) -> list[Any]:
    """A text completion's prompts: one text or a list of them, as text or as lists of tokens."""
    several = as_list(prompt)
    if several is None or (several and isinstance(several[0], int)):
        return [prompt]
    if not 1 <= len(several) <= MOST_CHOICES:
        raise BadRequest(f"prompt must be one text or a list of 1 to {MOST_CHOICES} texts")
    return several


def read_object(body: bytes) -> dict[str, Any]:
    """A whole body that must be a JSON object."""
    try:
        found = as_object(orjson.loads(body))
    except orjson.JSONDecodeError:
        raise BadRequest("the body is not valid JSON") from None
    if found is None:
        raise BadRequest("the body must be a JSON object")
    return found


def _wants_stream(call: ModelCall, fields: Fields) -> bool:
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


def api_of(path: str) -> str:
    """Whose style an answer to this path follows."""
    return "openai" if path.startswith("/v1/") else "ollama"


def error_body(api: str, status: int, message: str, code: str | None = None) -> bytes:
    """An error as clients of that API expect it."""
    if api == "ollama":
        return orjson.dumps({"error": message})
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


def error_line(call: ModelCall, message: str) -> bytes:
    """An error within a stream that has begun: an explicit line, never a false end."""
    if call is V1_RESPONSES:
        event = {"type": "error", "code": "server_error", "message": message, "param": None, "sequence_number": 0}
        return b"event: error\ndata: " + orjson.dumps(event) + b"\n\n"
    body = error_body(call.api, 500, message)
    return body + b"\n" if call.api == "ollama" else b"data: " + body + b"\n\n"


def error_text(body: bytes) -> str:
    """The sentence inside an error body of either API, else the body itself."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body[:500].decode("utf-8", "replace").strip()
    error = (as_object(found) or {}).get("error", found)
    text = (as_object(error) or {}).get("message", error)
    return text if isinstance(text, str) else orjson.dumps(text).decode()


# ── headers ─────────────────────────────────────────────────────────────────


def headers_to_backend(headers: list[tuple[bytes, bytes]]) -> bytes:
    """The client's headers that go on to a backend, ready to be written; their names are in small letters."""
    passing = [item for item in headers if item[0] not in NOT_FORWARDED]
    if not passing:
        return b""
    hidden = _hop_by_hop_names(headers)
    return b"".join([b"%b: %b\r\n" % item for item in passing if item[0] not in hidden])


def headers_to_client(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """A backend's headers that go on to the client; their names are in small letters."""
    passing = [item for item in headers if item[0] not in NOT_RETURNED]
    if not passing:
        return passing
    hidden = _hop_by_hop_names(headers)
    return [item for item in passing if item[0] not in hidden]


def _hop_by_hop_names(headers: list[tuple[bytes, bytes]]) -> set[bytes]:
    """Headers that a Connection header declares to be hop-by-hop."""
    listed = [value for name, value in headers if name == b"connection"]
    return {name.strip().lower() for value in listed for name in value.split(b",")}


def header(headers: list[tuple[bytes, bytes]], wanted: bytes) -> str | None:
    return next((value.decode("latin-1") for name, value in headers if name == wanted), None)
