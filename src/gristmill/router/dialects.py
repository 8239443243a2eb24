"""How the two APIs write replies piece by piece: readers take lines apart, writers put them together."""

import secrets
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from gristmill.router.breaker import BackendFailure
from gristmill.router.rows import TokenLogprob
from gristmill.router.upstream import AttemptFailed
from gristmill.router.wire import CHAT, V1_CHAT, ModelCall, ModelRequest, as_object, error_text

Json = dict[str, Any]


@dataclass(slots=True)
class ToolCall:
    """A tool call, its arguments as JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(slots=True)
class Delta:
    """One piece of one choice."""

    choice: int = 0
    text: str = ""
    thinking: str = ""
    tools: list[ToolCall] = field(default_factory=list[ToolCall])
    logprobs: list[TokenLogprob] = field(default_factory=list[TokenLogprob])


@dataclass(slots=True)
class Choice:
    """One choice as far as it has come; without `n` or several prompts there is only one."""

    texts: list[str] = field(default_factory=list[str])
    thinking: list[str] = field(default_factory=list[str])
    tools: dict[int, ToolCall] = field(default_factory=dict[int, ToolCall])
    logprobs: list[TokenLogprob] = field(default_factory=list[TokenLogprob])
    finish: str | None = None


@dataclass(slots=True)
class BackendReply:
    """A backend's reply as far as it has come."""

    choices: dict[int, Choice] = field(default_factory=lambda: defaultdict(Choice))
    prompt: int = 0
    completion: int = 0
    pieces: int = 0
    done: bool = False
    last: Json = field(default_factory=dict[str, Any])  # the last line of an Ollama backend, with its figures

    def gather(self, delta: Delta) -> None:
        choice = self.choices[delta.choice]
        self.pieces += 1
        if delta.text:
            choice.texts.append(delta.text)
        if delta.thinking:
            choice.thinking.append(delta.thinking)
        if delta.logprobs:
            choice.logprobs.extend(delta.logprobs)

    def count_finished(self) -> int:
        return sum(choice.finish is not None for choice in self.choices.values())


# ── readers ─────────────────────────────────────────────────────────────────


class LineSplitter:
    """Whole lines out of whatever pieces the network delivers; a long line is put together once, at its end."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def split(self, data: bytes) -> list[bytes]:
        if b"\n" not in data:
            self._parts.append(data)
            return []
        if self._parts:
            data = b"".join([*self._parts, data])
        lines = data.split(b"\n")
        rest = lines.pop()
        self._parts = [rest] if rest else []
        return lines

    @property
    def has_rest(self) -> bool:
        return bool(self._parts)


class OllamaReader:
    """Reads Ollama's NDJSON; several choices are as many streams, one after the other."""

    def __init__(self, call: ModelCall, choices: int) -> None:
        self.reply = BackendReply()
        self._lines = LineSplitter()
        self._chat, self._choices = call is CHAT, choices
        self._part = 0

    def feed(self, data: bytes) -> list[Delta]:
        return [self._piece(line) for line in self._lines.split(data) if line.strip()]

    def _piece(self, line: bytes) -> Delta:
        said = read_piece(line)
        part = min(self._part, self._choices - 1)  # a line after the last is no choice of its own
        reply, choice = self.reply, self.reply.choices[part]
        message: Json = (said.get("message") or {}) if self._chat else said
        delta = Delta(
            part,
            message.get("content" if self._chat else "response") or "",
            message.get("thinking") or "",
            logprobs=said.get("logprobs") or [],
        )
        for call in message.get("tool_calls") or ():
            arguments: Any = call["function"].get("arguments") or {}
            identity = call.get("id") or f"call_{secrets.token_hex(8)}"
            tool = ToolCall(identity, call["function"]["name"], orjson.dumps(arguments).decode())
            choice.tools[len(choice.tools)] = tool
            delta.tools.append(tool)
        reply.gather(delta)
        if said.get("done"):
            choice.finish = said.get("done_reason") or "stop"
            self._part += 1
            reply.done, reply.last = self._part >= self._choices, said
            reply.prompt += said.get("prompt_eval_count") or 0
            reply.completion += said.get("eval_count") or 0
        return delta


class OpenAIReader:
    """Reads OpenAI's server-sent events."""

    def __init__(self, call: ModelCall, choices: int) -> None:
        self.reply = BackendReply()
        self._lines = LineSplitter()
        self._chat, self._choices = call is V1_CHAT, choices

    def feed(self, data: bytes) -> list[Delta]:
        events = (line[5:].strip() for line in self._lines.split(data) if line.startswith(b"data:"))
        return [delta for event in events if event and not self._ends(event) for delta in self._pieces(event)]

    def _ends(self, event: bytes) -> bool:
        if event == b"[DONE]":
            self.reply.done = True
            return True
        return False

    def _pieces(self, event: bytes) -> list[Delta]:
        said, reply = read_piece(event), self.reply
        if usage := said.get("usage"):
            reply.prompt, reply.completion = usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0
        return [self._piece(choice) for choice in said.get("choices") or ()]

    def _piece(self, said: Json) -> Delta:
        piece: Json = (said.get("delta") or {}) if self._chat else said
        delta = Delta(
            said.get("index") or 0,
            piece.get("content" if self._chat else "text") or "",
            piece.get("reasoning_content") or piece.get("reasoning") or "",
            logprobs=_read_logprobs(said.get("logprobs")),
        )
        choice = self.reply.choices[delta.choice]
        for call in piece.get("tool_calls") or ():
            _add_to_tool_call(choice, call)
        self.reply.gather(delta)
        if said.get("finish_reason"):
            choice.finish = said["finish_reason"]
            self.reply.done = self.reply.done or self.reply.count_finished() >= self._choices
        return delta


def _add_to_tool_call(choice: Choice, call: Json) -> None:
    """OpenAI sends a call in pieces: they are put together until the reply is complete."""
    function: Json = call.get("function") or {}
    tool = choice.tools.setdefault(call.get("index", 0), ToolCall("", "", ""))
    tool.id = call.get("id") or tool.id
    tool.name += function.get("name") or ""
    tool.arguments += function.get("arguments") or ""


def _read_logprobs(said: Any) -> list[TokenLogprob]:
    """The logprobs of a chat, or those of a text completion in the same shape."""
    found = as_object(said)
    if found is None:
        return []
    if "tokens" not in found:
        return found.get("content") or []
    tokens: list[str] = found["tokens"]
    tops: list[Json | None] = found.get("top_logprobs") or [None] * len(tokens)
    return [
        {
            "token": token,
            "logprob": logprob,
            "top_logprobs": [{"token": other, "logprob": value} for other, value in (top or {}).items()],
        }
        for token, logprob, top in zip(tokens, found["token_logprobs"], tops, strict=True)
    ]


def read_piece(line: bytes) -> Json:
    """A piece of a backend's reply; one that tells of an error, or is none, ends the attempt."""
    try:
        said = as_object(orjson.loads(line))
    except orjson.JSONDecodeError:
        raise AttemptFailed(BackendFailure.BROKEN, "the backend's answer is not JSON") from None
    if said is None:
        raise AttemptFailed(BackendFailure.BROKEN, "the backend's answer is not a JSON object")
    if said.get("error"):
        raise AttemptFailed(BackendFailure.STATUS, error_text(line), body=line)
    return said


def reader(call: ModelCall, choices: int) -> OllamaReader | OpenAIReader:
    """A reader for a backend's reply to this call."""
    return OllamaReader(call, choices) if call.api == "ollama" else OpenAIReader(call, choices)


# ── writers ─────────────────────────────────────────────────────────────────


class Writer(Protocol):
    """Writes a reply in the words of the API that the client called."""

    stream_type: str

    def write_piece(self, delta: Delta) -> bytes:
        """A piece of a stream."""
        ...

    def write_end(self, reply: BackendReply) -> bytes:
        """The end of a stream."""
        ...

    def write_whole(self, reply: BackendReply) -> bytes:
        """Everything in one body."""
        ...


class OllamaWriter:
    """Writes Ollama's lines for /api/chat or /api/generate."""

    stream_type = "application/x-ndjson"

    def __init__(self, question: ModelRequest) -> None:
        self._chat, self._model = question.call is CHAT, question.model
        self._began = time.monotonic_ns()

    def write_piece(self, delta: Delta) -> bytes:
        if not (delta.text or delta.thinking or delta.logprobs):
            return b""
        return orjson.dumps(self._line(delta.text, delta.thinking, (), delta.logprobs, done=False)) + b"\n"

    def write_end(self, reply: BackendReply) -> bytes:
        tools = reply.choices[0].tools.values()
        calls = orjson.dumps(self._line("", "", tools, [], done=False)) + b"\n" if tools else b""
        return calls + orjson.dumps({**self._line("", "", (), [], done=True), **self._figures(reply)}) + b"\n"

    def write_whole(self, reply: BackendReply) -> bytes:
        choice = reply.choices[0]
        texts, thinking, tools = "".join(choice.texts), "".join(choice.thinking), choice.tools.values()
        line = self._line(texts, thinking, tools, choice.logprobs, done=True)
        # a backend that speaks Ollama too has better figures than ours
        theirs = {name: value for name, value in reply.last.items() if name not in PIECEWISE}
        return orjson.dumps({**line, **(theirs or self._figures(reply))})

    def _line(
        self, text: str, thinking: str, tools: Iterable[ToolCall], logprobs: list[TokenLogprob], *, done: bool
    ) -> Json:
        head = {"model": self._model, "created_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        more = {"logprobs": logprobs} if logprobs else {}
        if not self._chat:
            return {**head, "response": text, **({"thinking": thinking} if thinking else {}), **more, "done": done}
        message: Json = {"role": "assistant", "content": text}
        if thinking:
            message["thinking"] = thinking
        if tools:
            message["tool_calls"] = [
                {"id": tool.id, "function": {"name": tool.name, "arguments": _arguments(tool)}} for tool in tools
            ]
        return {**head, "message": message, **more, "done": done}

    def _figures(self, reply: BackendReply) -> Json:
        reason = "length" if reply.choices[0].finish == "length" else "stop"
        total = time.monotonic_ns() - self._began
        return {
            "done_reason": reason,
            "total_duration": total,
            "load_duration": 0,
            "prompt_eval_count": reply.prompt,
            "prompt_eval_duration": 0,
            "eval_count": reply.completion,
            "eval_duration": total,
        }


PIECEWISE = ("message", "response", "thinking", "logprobs")  # fields that each line of a stream holds a part of


def _arguments(tool: ToolCall) -> Any:
    try:
        return orjson.loads(tool.arguments or "{}")
    except orjson.JSONDecodeError:
        raise AttemptFailed(BackendFailure.BROKEN, "the backend's tool call has arguments that are not JSON") from None


class OpenAIWriter:
    """Writes OpenAI's chunks for chat or text completions."""

    stream_type = "text/event-stream"

    def __init__(self, question: ModelRequest, usage: bool) -> None:
        self._chat, self._model, self._usage = question.call is V1_CHAT, question.model, usage
        self._head: Json = {
            "id": f"{'chatcmpl' if self._chat else 'cmpl'}-{secrets.token_hex(12)}",
            "created": int(time.time()),
        }
        self._begun: set[int] = set()
        self._calls: defaultdict[int, int] = defaultdict(int)
        self._offsets: defaultdict[int, int] = defaultdict(int)

    def write_piece(self, delta: Delta) -> bytes:
        if not (delta.text or delta.thinking or delta.tools or delta.logprobs):
            return b""
        said = self._chat_piece(delta) if self._chat else self._text_piece(delta)
        return self._event([{"index": delta.choice, **said, "finish_reason": None}])

    def _text_piece(self, delta: Delta) -> Json:
        offset = self._offsets[delta.choice]
        self._offsets[delta.choice] += len(delta.text)
        return {"text": delta.text, "logprobs": _legacy_logprobs(delta.logprobs, offset)}

    def _chat_piece(self, delta: Delta) -> Json:
        said: Json = {**self._role(delta.choice), "content": delta.text}
        if delta.thinking:
            said |= _reasoning(delta.thinking)
        if delta.tools:
            first = self._calls[delta.choice]
            self._calls[delta.choice] += len(delta.tools)
            said["tool_calls"] = [{"index": first + n, **as_openai_call(tool)} for n, tool in enumerate(delta.tools)]
        return {"delta": said, "logprobs": _chat_logprobs(delta.logprobs)}

    def _role(self, choice: int) -> Json:
        """Said once, with the first piece of a choice."""
        if choice in self._begun:
            return {}
        self._begun.add(choice)
        return {"role": "assistant"}

    def write_end(self, reply: BackendReply) -> bytes:
        out = b""
        for index, choice in sorted(reply.choices.items()):
            last: Json = {"delta": self._role(index)} if self._chat else {"text": "", "logprobs": None}
            out += self._event([{"index": index, **last, "finish_reason": finish_reason(choice)}])
        if self._usage:
            out += self._event([], usage=_usage(reply))
        return out + b"data: [DONE]\n\n"

    def _event(self, choices: list[Json], **more: Any) -> bytes:
        kind = "chat.completion.chunk" if self._chat else "text_completion"
        event = {**self._head, "object": kind, "model": self._model, "choices": choices, **more}
        return b"data: " + orjson.dumps(event) + b"\n\n"

    def write_whole(self, reply: BackendReply) -> bytes:
        said = {
            **self._head,
            "object": "chat.completion" if self._chat else "text_completion",
            "model": self._model,
            "choices": [
                {
                    "index": index,
                    **(_whole_message(choice) if self._chat else _whole_text(choice)),
                    "finish_reason": finish_reason(choice),
                }
                for index, choice in sorted(reply.choices.items())
            ],
            "usage": _usage(reply),
        }
        return orjson.dumps(said)


def _whole_message(choice: Choice) -> Json:
    text = "".join(choice.texts)
    message: Json = {"role": "assistant", "content": text if text or not choice.tools else None}
    if choice.thinking:
        message |= _reasoning("".join(choice.thinking))
    if choice.tools:
        message["tool_calls"] = [as_openai_call(tool) for tool in choice.tools.values()]
    return {"message": message, "logprobs": _chat_logprobs(choice.logprobs)}


def _whole_text(choice: Choice) -> Json:
    return {"text": "".join(choice.texts), "logprobs": _legacy_logprobs(choice.logprobs, 0)}


def _reasoning(text: str) -> Json:
    """Servers use two names for it: Ollama says `reasoning`, vLLM and DeepSeek say `reasoning_content`."""
    return {"reasoning": text, "reasoning_content": text}


def chat_logprobs(tokens: list[TokenLogprob]) -> list[TokenLogprob]:
    """Ollama leaves out bytes and empty lists, which OpenAI's clients take for granted."""
    return [
        {**_with_bytes(token), "top_logprobs": [_with_bytes(other) for other in token.get("top_logprobs") or ()]}
        for token in tokens
    ]


def _chat_logprobs(tokens: list[TokenLogprob]) -> Json | None:
    return {"content": chat_logprobs(tokens), "refusal": None} if tokens else None


def _with_bytes(token: TokenLogprob) -> TokenLogprob:
    return {"bytes": list(token["token"].encode()), **token}


def _legacy_logprobs(tokens: list[TokenLogprob], offset: int) -> Json | None:
    """As text completions write them: four lists side by side."""
    if not tokens:
        return None
    offsets = list[int]()
    for token in tokens:
        offsets.append(offset)
        offset += len(token["token"])
    return {
        "tokens": [token["token"] for token in tokens],
        "token_logprobs": [token["logprob"] for token in tokens],
        "top_logprobs": [
            {other["token"]: other["logprob"] for other in token.get("top_logprobs") or ()} for token in tokens
        ],
        "text_offset": offsets,
    }


def as_openai_call(tool: ToolCall) -> Json:
    return {
        "id": tool.id or f"call_{secrets.token_hex(8)}",
        "type": "function",
        "function": {"name": tool.name, "arguments": tool.arguments or "{}"},
    }


def finish_reason(choice: Choice) -> str:
    if choice.tools and choice.finish != "length":
        return "tool_calls"
    return choice.finish if choice.finish in ("length", "content_filter") else "stop"


def _usage(reply: BackendReply) -> Json:
    return {
        "prompt_tokens": reply.prompt,
        "completion_tokens": reply.completion,
        "total_tokens": reply.prompt + reply.completion,
    }
