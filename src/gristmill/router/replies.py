"""What becomes of an answer on its way to the client: relayed, translated, or collected into one body."""

import array
import base64
import sys
from typing import Any, Protocol, TypeVar

import msgspec
import orjson
from typing_extensions import override

from gristmill.router.breaker import Failure
from gristmill.router.dialects import WRITERS, Answer, Json, Lines, Writer, read_piece, reader
from gristmill.router.requests import JSON_TYPE
from gristmill.router.upstream import AttemptFailed
from gristmill.router.wire import CHAT, EMBEDDINGS, Call, Question, as_object, error_text


class Tally(msgspec.Struct, frozen=True):
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

    def tally(self) -> Tally: ...


def _unfinished() -> AttemptFailed:
    return AttemptFailed(Failure.BROKEN, "the backend's answer ended before it was done")


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
        raise AttemptFailed(Failure.BROKEN, "the backend's answer is not JSON") from None
    if said.error:
        raise AttemptFailed(Failure.STATUS, error_text(line), body=line)
    return said


class NdjsonRelay:
    """Ollama to Ollama, streaming: whole lines pass as they are, and only the unusual ones are read."""

    __slots__ = ("_done", "_prompt", "_rest", "_tokens")
    content_type = "application/x-ndjson"

    def __init__(self) -> None:
        self._rest, self._done, self._tokens, self._prompt = b"", False, 0, 0

    def feed(self, data: bytes) -> bytes:
        if self._rest:
            data = self._rest + data
        end = data.rfind(b"\n") + 1
        if end < len(data):
            data, self._rest = data[:end], data[end:]
        else:
            self._rest = b""
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
        last = self.feed(b"\n") if self._rest.strip() else b""
        if not self._done:
            raise _unfinished()
        return last

    def tally(self) -> Tally:
        return Tally(self._prompt, self._tokens)


class SseRelay:
    """OpenAI to OpenAI, streaming: events pass as they are, but for the usage that only we asked for."""

    content_type = "text/event-stream"

    def __init__(self, usage: bool) -> None:
        self._usage = usage
        self._rest = b""
        self._done = False
        self._prompt, self._completion = 0, 0

    def feed(self, data: bytes) -> bytes:
        data = self._rest + data
        end = _end_of_events(data)
        data, self._rest = data[:end], data[end:]
        events = data.count(b"data:")
        if (
            data.count(b'"finish_reason":null') == events
            and b'"usage"' not in data
            and b'"error"' not in data
            and b"[DONE]" not in data
        ):
            self._completion += events
            return data
        return b"".join(self._passed(line) for line in data.splitlines() if line.startswith(b"data:"))

    def _passed(self, line: bytes) -> bytes:
        event = line[5:].strip()
        if event == b"[DONE]":
            self._done = True
            return b"data: [DONE]\n\n"
        said = read_piece(event)
        choices, usage = said.get("choices"), said.get("usage")
        self._done = self._done or any(choice.get("finish_reason") for choice in choices or ())
        if usage:
            self._prompt, self._completion = usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0
        elif choices:
            self._completion += 1
        return b"" if usage and not choices and not self._usage else b"data: " + event + b"\n\n"

    def close(self) -> bytes:
        last = self.feed(b"\n\n") if self._rest.strip() else b""
        if not self._done:
            raise _unfinished()
        return last

    def tally(self) -> Tally:
        return Tally(self._prompt, self._completion)


def _end_of_events(data: bytes) -> int:
    """Where the last blank line ends: an event passed on without its own would swallow what follows it."""
    if (end := data.rfind(b"\n\n")) >= 0:
        return end + 2
    end = data.rfind(b"\n\r\n")
    return end + 3 if end >= 0 else 0


class Translated:
    """One API to the other, streaming."""

    def __init__(self, backend: Call, writer: Writer) -> None:
        self._reader, self._writer = reader(backend), writer
        self.content_type = writer.stream_type

    def feed(self, data: bytes) -> bytes:
        return b"".join([self._writer.piece(delta) for delta in self._reader.feed(data)])

    def close(self) -> bytes:
        return self._writer.end(self._finished())

    def _finished(self) -> Answer:
        self._reader.feed(b"\n")
        if not self._reader.answer.done:
            raise _unfinished()
        return self._reader.answer

    def tally(self) -> Tally:
        answer = self._reader.answer
        return Tally(answer.prompt, answer.completion or answer.pieces)


class Collected(Translated):
    """One body for the client: the backend streams all the same, so it can be run anew to its end."""

    def __init__(self, backend: Call, writer: Writer) -> None:
        super().__init__(backend, writer)
        self.content_type = JSON_TYPE

    @override
    def feed(self, data: bytes) -> bytes:
        self._reader.feed(data)
        return b""

    @override
    def close(self) -> bytes:
        return self._writer.whole(self._finished())


class _Said(msgspec.Struct):
    content: str = ""
    thinking: str | None = None
    tool_calls: Any = None


class _Line(_Peek):
    message: _Said | None = None
    logprobs: Any = None


_line = msgspec.json.Decoder(_Line)


class CollectedChat:
    """The commonest case, /api/chat to /api/chat in one body: lines are read only as far as they must be."""

    content_type = JSON_TYPE

    def __init__(self) -> None:
        self._lines = Lines()
        self._texts: list[str] = []
        self._plain = True  # nothing but text so far
        self._raw: list[bytes] = []
        self._last = b""
        self._end: _Line | None = None

    def feed(self, data: bytes) -> bytes:
        for line in self._lines.split(data):
            if line:
                self._take(line)
        return b""

    def _take(self, line: bytes) -> None:
        said = _read(_line, line)
        self._raw.append(line)
        message = said.message
        if message is not None:
            self._plain = self._plain and not (message.thinking or message.tool_calls or said.logprobs)
            if message.content:
                self._texts.append(message.content)
        if said.done:
            self._last, self._end = line, said

    def close(self) -> bytes:
        if self._lines.rest:
            self.feed(b"\n")
        if not self._last:
            raise _unfinished()
        if len(self._raw) == 1:
            return self._last
        if not self._plain:  # thinking and tool calls are put together by the general way
            general = Collected(CHAT, WRITERS["ollama"](CHAT, "", True))
            general.feed(b"\n".join(self._raw))
            return general.close()
        whole: Json = orjson.loads(self._last)
        whole["message"] = {"role": "assistant", "content": "".join(self._texts)}
        return orjson.dumps(whole)

    def tally(self) -> Tally:
        end = self._end
        return Tally(0, len(self._raw)) if end is None else Tally(end.prompt_eval_count, end.eval_count)


class Vectors:
    """Embeddings: one body in, one body out."""

    content_type = JSON_TYPE

    def __init__(self, question: Question, backend: Call) -> None:
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
            vectors, tokens = _vectors(self._backend, said)
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
            raise AttemptFailed(Failure.BROKEN, "the backend's answer holds no embeddings") from None
        self._tokens = tokens
        call = self._question.call
        return body if call is self._backend else _rendered(call, self._question, vectors, tokens)

    def tally(self) -> Tally:
        return Tally(self._tokens, 0)


def _vectors(call: Call, said: Json) -> tuple[list[Any], int]:
    if call is EMBEDDINGS:
        return [said["embedding"]], 0
    if call.api == "ollama":
        return said["embeddings"], said.get("prompt_eval_count") or 0
    rows = sorted(said["data"], key=lambda row: row["index"])
    return [row["embedding"] for row in rows], (as_object(said.get("usage")) or {}).get("prompt_tokens") or 0


def _rendered(call: Call, question: Question, vectors: list[Any], tokens: int) -> bytes:
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
        {"object": "embedding", "index": index, "embedding": _packed(vector) if packed else vector}
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


def _packed(vector: list[float]) -> str:
    floats = array.array("f", vector)
    if sys.byteorder == "big":
        floats.byteswap()
    return base64.b64encode(floats.tobytes()).decode()


def sink(question: Question, backend: Call, usage: bool) -> Sink:
    """What a backend's answer to its call becomes for the client who asked."""
    call = question.call
    if call.shape == "vectors":
        return Vectors(question, backend)
    if question.stream and call is backend:
        return NdjsonRelay() if call.api == "ollama" else SseRelay(usage)
    if call is backend is CHAT:
        return CollectedChat()
    writer = WRITERS[call.api](call, question.model, usage)
    return Translated(backend, writer) if question.stream else Collected(backend, writer)
