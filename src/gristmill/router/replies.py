"""Replies on their way to the client: passed on, translated, or collected into one body."""

import array
import base64
import sys
from typing import Any, Protocol, TypeVar, cast

import msgspec
import orjson
from typing_extensions import override

from gristmill.router.breaker import BackendFailure
from gristmill.router.dialects import (
    Json,
    LineSplitter,
    OllamaReader,
    OllamaWriter,
    OpenAIReader,
    OpenAIWriter,
    Writer,
    read_piece,
    reader,
)
from gristmill.router.requests import JSON_TYPE
from gristmill.router.responses import ResponsesWriter
from gristmill.router.upstream import AttemptFailed
from gristmill.router.wire import (
    CHAT,
    EMBEDDINGS,
    V1_CHAT,
    V1_RESPONSES,
    ModelCall,
    ModelRequest,
    as_object,
    error_text,
)


class TokenCounter(msgspec.Struct, frozen=True):
    """Tokens, also of answers that never ended: a line is a token until the backend says better."""

    prompt: int = 0
    completion: int = 0


class Sink(Protocol):
    """Takes a backend's bytes and gives the client's."""

    content_type: str

    def feed(self, data: bytes) -> bytes:
        """The bytes for the client that follow from these."""
        ...

    def close(self) -> bytes:
        """The last bytes for the client; fails when the backend stopped before its answer was complete."""
        ...

    def tally(self) -> TokenCounter: ...


def _make_unfinished_error() -> AttemptFailed:
    return AttemptFailed(BackendFailure.BROKEN, "the backend's answer ended before it was done")


class _Peek(msgspec.Struct):
    """The part of a line that is always looked at."""

    done: bool = False
    error: Any = None
    prompt_eval_count: int = 0
    eval_count: int = 0


T = TypeVar("T", bound=_Peek)
_peek = msgspec.json.Decoder(_Peek)


def _read(decoder: "msgspec.json.Decoder[T]", line: bytes) -> T:
    """A line of the backend's; one that tells of an error, or is none, ends the attempt."""
    try:
        said = decoder.decode(line)
    except msgspec.DecodeError:
        raise AttemptFailed(BackendFailure.BROKEN, "the backend's answer is not JSON") from None
    if said.error:
        raise AttemptFailed(BackendFailure.STATUS, error_text(line), body=line)
    return said


class NdjsonRelay:
    """Ollama to Ollama, streaming: whole lines pass as they are, and only the unusual ones are read."""

    __slots__ = ("_done", "_parts", "_prompt", "_tokens")
    content_type = "application/x-ndjson"

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # of a line that has not ended: put together once, however long it is
        self._done, self._tokens, self._prompt = False, 0, 0

    def feed(self, data: bytes) -> bytes:
        end = data.rfind(b"\n") + 1
        if not end:
            self._parts.append(data)
            return b""
        data, rest = (data[:end], data[end:]) if end < len(data) else (data, b"")
        if self._parts:
            data = b"".join([*self._parts, data])
            self._parts = []
        if rest:
            self._parts = [rest]
        lines = data.count(b"\n")
        # inside a JSON string a quote is escaped, so these bytes can only be keys; a tool's arguments have keys too
        if data.count(b'"done":false') == lines and b'"done":true' not in data and b'"error"' not in data:
            self._tokens += lines
        else:
            for line in data.splitlines():
                self._look(line)
        return data

    def _look(self, line: bytes) -> None:
        if not line.strip():
            return
        seen = _read(_peek, line)
        if seen.done:
            self._done, self._prompt = True, seen.prompt_eval_count
            self._tokens = seen.eval_count or self._tokens
        else:
            self._tokens += 1

    def close(self) -> bytes:
        last = self.feed(b"\n") if any(part.strip() for part in self._parts) else b""
        if not self._done:
            raise _make_unfinished_error()
        return last

    def tally(self) -> TokenCounter:
        return TokenCounter(self._prompt, self._tokens)


class EventSplitter:
    """Whole server-sent events out of whatever pieces the network delivers; a long one is put together once."""

    __slots__ = ("_parts", "_tail")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._tail = b""  # the last bytes of the parts: a blank line may be cut in two

    def split(self, data: bytes) -> bytes:
        """Everything up to the last blank line; without its own, an event would swallow the next one."""
        seen = self._tail + data if self._tail else data
        end = _end_of_events(seen)
        if end < 0:
            self._parts.append(data)
            self._tail = seen[-3:]
            return b""
        cut = end - len(self._tail)
        events, rest = (data[:cut], data[cut:]) if cut < len(data) else (data, b"")
        if self._parts:
            events = b"".join([*self._parts, events])
        self._parts, self._tail = ([rest], rest[-3:]) if rest else ([], b"")
        return events

    @property
    def has_rest(self) -> bool:
        return any(part.strip() for part in self._parts)


def _end_of_events(data: bytes) -> int:
    """Where the last blank line ends, or -1."""
    if (end := data.rfind(b"\n\n")) >= 0:
        return end + 2
    end = data.rfind(b"\n\r\n")
    return end + 3 if end >= 0 else -1


class SseRelay:
    """OpenAI to OpenAI, streaming: events pass as they are, but for the usage that only we asked for."""

    content_type = "text/event-stream"

    def __init__(self, usage: bool, choices: int = 1) -> None:
        self._usage, self._choices = usage, choices
        self._events = EventSplitter()
        self._done, self._finished = False, 0
        self._prompt, self._completion = 0, 0

    def feed(self, data: bytes) -> bytes:
        data = self._events.split(data)
        events = data.count(b"data:")
        if (
            data.count(b'"finish_reason":null') == events
            and b'"usage"' not in data
            and b'"error"' not in data
            and b"[DONE]" not in data
        ):
            self._completion += events
            return data
        return b"".join([self._look(line) for line in data.splitlines() if line.startswith(b"data:")])

    def _look(self, line: bytes) -> bytes:
        """Read an unusual event; the bytes of it that the client gets."""
        event = line[5:].strip()
        if event == b"[DONE]":
            self._done = True
            return b"data: [DONE]\n\n"
        said = read_piece(event)
        choices, usage = said.get("choices"), said.get("usage")
        self._finished += sum(bool(choice.get("finish_reason")) for choice in choices or ())
        self._done = self._done or self._finished >= self._choices
        if usage:
            self._prompt, self._completion = usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0
        elif choices:
            self._completion += 1
        return b"" if usage and not choices and not self._usage else b"data: " + event + b"\n\n"

    def close(self) -> bytes:
        last = self.feed(b"\n\n") if self._events.has_rest else b""
        if not self._done:
            raise _make_unfinished_error()
        return last

    def tally(self) -> TokenCounter:
        return TokenCounter(self._prompt, self._completion)


class ResponsesRelay:
    """A backend that has /v1/responses itself, streaming: its events pass as they are."""

    content_type = "text/event-stream"

    def __init__(self) -> None:
        self._events = EventSplitter()
        self._tokens = 0
        self.response: Json | None = None  # complete, once it is

    def feed(self, data: bytes) -> bytes:
        events = self._events.split(data)
        for line in events.splitlines():
            if line.startswith(b"data:") and (event := line[5:].strip()) != b"[DONE]":
                self._look(read_piece(event))
        return events

    def _look(self, said: Json) -> None:
        kind = said.get("type")
        if kind == "error":
            raise AttemptFailed(BackendFailure.STATUS, str(said.get("message") or "it told of an error"))
        if kind in ("response.completed", "response.incomplete", "response.failed"):
            self.response = said["response"]
        elif kind == "response.output_text.delta":
            self._tokens += 1

    def close(self) -> bytes:
        last = self.feed(b"\n\n") if self._events.has_rest else b""
        if self.response is None:
            raise _make_unfinished_error()
        return last

    def tally(self) -> TokenCounter:
        usage = as_object((self.response or {}).get("usage")) or {}
        return TokenCounter(usage.get("input_tokens") or 0, usage.get("output_tokens") or self._tokens)


class CollectedResponse(ResponsesRelay):
    """The same in one body: the last event holds everything."""

    content_type = JSON_TYPE

    @override
    def feed(self, data: bytes) -> bytes:
        super().feed(data)
        return b""

    @override
    def close(self) -> bytes:
        super().close()
        return orjson.dumps(self.response)


class Translated:
    """One API to the other, streaming."""

    def __init__(self, reader: OllamaReader | OpenAIReader, writer: Writer) -> None:
        self._reader, self._writer = reader, writer
        self._parts = 0
        self.content_type = writer.stream_type

    def feed(self, data: bytes) -> bytes:
        return b"".join([self._writer.write_piece(delta) for delta in self._reader.feed(data)])

    def end_part(self) -> bytes:
        """The bytes for the client that are left of one of several choices; fails when it was cut short."""
        out = self.feed(b"\n")
        self._parts += 1
        if self._reader.reply.count_finished() < self._parts:
            raise _make_unfinished_error()
        return out

    def close(self) -> bytes:
        last = self.feed(b"\n")
        if not self._reader.reply.done:
            raise _make_unfinished_error()
        return last + self._writer.write_end(self._reader.reply)

    def tally(self) -> TokenCounter:
        reply = self._reader.reply
        return TokenCounter(reply.prompt, reply.completion or reply.pieces)


class CollectedReply(Translated):
    """One body for the client: the backend streams all the same, so it can be run anew to its end."""

    def __init__(self, reader: OllamaReader | OpenAIReader, writer: Writer) -> None:
        super().__init__(reader, writer)
        self.content_type = JSON_TYPE

    @override
    def feed(self, data: bytes) -> bytes:
        self._reader.feed(data)
        return b""

    @override
    def close(self) -> bytes:
        self._reader.feed(b"\n")
        if not self._reader.reply.done:
            raise _make_unfinished_error()
        return self._writer.write_whole(self._reader.reply)


class CollectedEvents:
    """OpenAI to OpenAI in one body: events are put together field by field, so that none is lost."""

    content_type = JSON_TYPE

    def __init__(self, question: ModelRequest, choices: int) -> None:
        self._chat, self._model, self._expected = question.call is V1_CHAT, question.model, choices
        self._lines = LineSplitter()
        self._whole: Json = {}
        self._choices: dict[int, Json] = {}
        self._done = False
        self._pieces = 0

    def feed(self, data: bytes) -> bytes:
        for line in self._lines.split(data):
            if line.startswith(b"data:") and (event := line[5:].strip()):
                self._take(event)
        return b""

    def _take(self, event: bytes) -> None:
        if event == b"[DONE]":
            self._done = True
            return
        said = read_piece(event)
        self._whole |= {name: value for name, value in said.items() if value is not None and name != "choices"}
        for choice in said.get("choices") or ():
            self._pieces += 1
            combine(self._choices.setdefault(choice.get("index") or 0, {}), choice)
        finished = sum(bool(choice.get("finish_reason")) for choice in self._choices.values())
        self._done = self._done or finished >= self._expected

    def close(self) -> bytes:
        self.feed(b"\n")
        if not self._done:
            raise _make_unfinished_error()
        self._whole |= {
            "object": "chat.completion" if self._chat else "text_completion",
            "model": self._model,
            "choices": [self._choice(index, said) for index, said in sorted(self._choices.items())],
        }
        self._whole.setdefault("usage", {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0})
        return orjson.dumps(self._whole)

    def _choice(self, index: int, said: Json) -> Json:
        whole: Json = {"logprobs": None, **said, "index": index, "finish_reason": said.get("finish_reason") or "stop"}
        if not self._chat:
            return {"text": "", **whole}
        message: Json = {"role": "assistant", "content": None, **whole.pop("delta", {})}
        if calls := message.get("tool_calls"):
            message["tool_calls"] = [{name: call[name] for name in call if name != "index"} for call in calls]
            message["content"] = message["content"] or None
        else:
            message["content"] = message["content"] or ""
        return {**whole, "message": message}

    def tally(self) -> TokenCounter:
        usage = as_object(self._whole.get("usage")) or {}
        return TokenCounter(usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or self._pieces)


SAID_ONCE = frozenset(("index", "role", "id", "type", "finish_reason"))


def combine(whole: Json, piece: Json) -> None:
    """Add a piece of a stream to the earlier ones: texts and lists grow, other values are replaced."""
    for name, value in piece.items():
        before = whole.get(name)
        if before is None or name in SAID_ONCE:
            whole[name] = value if value is not None else before
        elif isinstance(value, str):
            whole[name] = before + value
        elif isinstance(value, dict):
            combine(before, cast("Json", value))
        elif isinstance(value, list):
            _combine_rows(before, cast("list[Any]", value))
        elif value is not None:
            whole[name] = value


def _combine_rows(whole: list[Any], pieces: list[Any]) -> None:
    """Rows with an index, like tool calls, are added to the row of that index; others are new."""
    for piece in pieces:
        index = (as_object(piece) or {}).get("index")
        same = next((row for row in whole if index is not None and row.get("index") == index), None)
        if same is None:
            whole.append(piece)
        else:
            combine(same, piece)


class _Said(msgspec.Struct):
    content: str = ""
    thinking: str | None = None
    tool_calls: Any = None


class _ChatLine(_Peek):
    message: _Said | None = None
    logprobs: Any = None


_chat_line = msgspec.json.Decoder(_ChatLine)


class CollectedChat:
    """The commonest case, /api/chat to /api/chat in one body: lines are read only as far as they must be."""

    content_type = JSON_TYPE

    def __init__(self, question: ModelRequest) -> None:
        self._question = question
        self._lines = LineSplitter()
        self._texts: list[str] = []
        self._plain = True  # nothing but text so far
        self._raw: list[bytes] = []
        self._last = b""
        self._end: _ChatLine | None = None

    def feed(self, data: bytes) -> bytes:
        for line in self._lines.split(data):
            if line:
                self._take(line)
        return b""

    def _take(self, line: bytes) -> None:
        said = _read(_chat_line, line)
        self._raw.append(line)
        message = said.message
        if message is not None:
            self._plain = self._plain and not (message.thinking or message.tool_calls or said.logprobs)
            if message.content:
                self._texts.append(message.content)
        if said.done:
            self._last, self._end = line, said

    def close(self) -> bytes:
        if self._lines.has_rest:
            self.feed(b"\n")
        if not self._last:
            raise _make_unfinished_error()
        if len(self._raw) == 1:
            return self._last
        if not self._plain:  # thinking and tool calls are put together by the general way
            general = CollectedReply(reader(CHAT, 1), OllamaWriter(self._question))
            general.feed(b"\n".join(self._raw))
            return general.close()
        whole: Json = orjson.loads(self._last)
        whole["message"] = {"role": "assistant", "content": "".join(self._texts)}
        return orjson.dumps(whole)

    def tally(self) -> TokenCounter:
        end = self._end
        return TokenCounter(0, len(self._raw)) if end is None else TokenCounter(end.prompt_eval_count, end.eval_count)


class Vectors:
    """Embeddings: one body in, one body out."""

    content_type = JSON_TYPE

    def __init__(self, question: ModelRequest, backend: ModelCall) -> None:
        self._question, self._backend = question, backend
        self._parts: list[bytes] = []
        self._tokens = 0

    def feed(self, data: bytes) -> bytes:
        self._parts.append(data)
        return b""

    def close(self) -> bytes:
        body = b"".join(self._parts)
        try:
            said: Json = orjson.loads(body)
            vectors, tokens = _read_vectors(self._backend, said)
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
            raise AttemptFailed(BackendFailure.BROKEN, "the backend's answer holds no embeddings") from None
        self._tokens = tokens
        call = self._question.call
        return body if call is self._backend else _render_vectors(call, self._question, vectors, tokens)

    def tally(self) -> TokenCounter:
        return TokenCounter(self._tokens, 0)


def _read_vectors(call: ModelCall, said: Json) -> tuple[list[Any], int]:
    if call is EMBEDDINGS:
        return [said["embedding"]], 0
    if call.api == "ollama":
        return said["embeddings"], said.get("prompt_eval_count") or 0
    rows = sorted(said["data"], key=lambda row: row["index"])
    return [row["embedding"] for row in rows], (as_object(said.get("usage")) or {}).get("prompt_tokens") or 0


def _render_vectors(call: ModelCall, question: ModelRequest, vectors: list[Any], tokens: int) -> bytes:
    if call is EMBEDDINGS:
        return orjson.dumps({"embedding": vectors[0] if vectors else []})
    if call.api == "ollama":
        return orjson.dumps(
            {
                "model": question.model,
                "embeddings": vectors,
                "total_duration": 0,
                "load_duration": 0,
                "prompt_eval_count": tokens,
            }
        )
    packed = bytes(question.fields.get("encoding_format", b"")) == b'"base64"'
    rows = [
        {"object": "embedding", "index": index, "embedding": _pack(vector) if packed else vector}
        for index, vector in enumerate(vectors)
    ]
    return orjson.dumps(
        {
            "object": "list",
            "data": rows,
            "model": question.model,
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }
    )


def _pack(vector: list[float]) -> str:
    floats = array.array("f", vector)
    if sys.byteorder == "big":
        floats.byteswap()
    return base64.b64encode(floats.tobytes()).decode()


def sink(question: ModelRequest, backend: ModelCall, usage: bool, choices: int) -> Sink:
    """The sink that turns a backend's reply to its call into the answer to the client's call."""
    call = question.call
    if call.shape == "vectors":
        return Vectors(question, backend)
    if call is not backend:
        kind = Translated if question.stream else CollectedReply
        return kind(reader(backend, choices), _writer(question, usage))
    if call.api == "ollama":
        if question.stream:
            return NdjsonRelay()
        return CollectedChat(question) if call is CHAT else CollectedReply(reader(call, 1), OllamaWriter(question))
    if call is V1_RESPONSES:
        return ResponsesRelay() if question.stream else CollectedResponse()
    return SseRelay(usage, choices) if question.stream else CollectedEvents(question, choices)


def end_part(into: Sink) -> bytes:
    """End one of several parts; only a translation has parts."""
    assert isinstance(into, Translated)
    return into.end_part()


def _writer(question: ModelRequest, usage: bool) -> Writer:
    if question.call.api == "ollama":
        return OllamaWriter(question)
    return ResponsesWriter(question) if question.call is V1_RESPONSES else OpenAIWriter(question, usage)
