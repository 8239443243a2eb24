"""How the two APIs write answers piece by piece: readers take lines apart, writers put them together."""

import itertools
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from gristmill.router.breaker import Failure
from gristmill.router.upstream import AttemptFailed
from gristmill.router.wire import CHAT, V1_CHAT, Call, as_object, error_text

Json = dict[str, Any]


@dataclass(slots=True)
class Tool:
    """A tool call, its arguments as JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(slots=True)
class Delta:
    """One piece of an answer."""

    text: str = ""
    thinking: str = ""
    tools: list[Tool] = field(default_factory=list[Tool])
    logprobs: list[Any] | None = None


@dataclass(slots=True)
class Answer:
    """What has come of an answer so far."""

    texts: list[str] = field(default_factory=list[str])
    thinking: list[str] = field(default_factory=list[str])
    tools: dict[int, Tool] = field(default_factory=dict[int, Tool])
    logprobs: list[Any] = field(default_factory=list[Any])
    finish: str | None = None
    prompt: int = 0
    completion: int = 0
    pieces: int = 0
    done: bool = False
    rest: Json = field(default_factory=dict[str, Any])  # what else the backend said, for a client of the same API


# ── readers ─────────────────────────────────────────────────────────────────


class Lines:
    """Whole lines out of whatever pieces the network delivers."""

    __slots__ = ("rest",)

    def __init__(self) -> None:
        self.rest = b""

    def split(self, data: bytes) -> list[bytes]:
        lines = (self.rest + data if self.rest else data).split(b"\n")
        self.rest = lines.pop()
        return lines


class OllamaReader:
    """Reads Ollama's NDJSON."""

    def __init__(self, call: Call) -> None:
        self.answer = Answer()
        self._lines = Lines()
        self._chat = call is CHAT

    def feed(self, data: bytes) -> list[Delta]:
        return [self._piece(line) for line in self._lines.split(data) if line.strip()]

    def _piece(self, line: bytes) -> Delta:
        said = read_piece(line)
        answer = self.answer
        message: Json = (said.get("message") or {}) if self._chat else said
        delta = Delta(message.get("content" if self._chat else "response") or "", message.get("thinking") or "")
        delta.logprobs = said.get("logprobs")
        for call in message.get("tool_calls") or ():
            arguments: Any = call["function"].get("arguments") or {}
            tool = Tool(
                call.get("id") or f"call_{secrets.token_hex(8)}",
                call["function"]["name"],
                orjson.dumps(arguments).decode(),
            )
            answer.tools[len(answer.tools)] = tool
            delta.tools.append(tool)
        _gather(answer, delta)
        if said.get("done"):
            answer.done, answer.rest = True, said
            answer.finish = said.get("done_reason") or "stop"
            answer.prompt, answer.completion = said.get("prompt_eval_count") or 0, said.get("eval_count") or 0
        return delta


class OpenAIReader:
    """Reads OpenAI's server-sent events."""

    def __init__(self, call: Call) -> None:
        self.answer = Answer()
        self._lines = Lines()
        self._chat = call is V1_CHAT

    def feed(self, data: bytes) -> list[Delta]:
        events = (line[5:].strip() for line in self._lines.split(data) if line.startswith(b"data:"))
        return [self._piece(event) for event in events if event and not self._ends(event)]

    def _ends(self, event: bytes) -> bool:
        if event == b"[DONE]":
            self.answer.done = True
            return True
        return False

    def _piece(self, event: bytes) -> Delta:
        said, answer, delta = read_piece(event), self.answer, Delta()
        if not answer.rest:
            answer.rest = {
                name: said[name] for name in ("id", "created", "model", "system_fingerprint") if name in said
            }
        if usage := said.get("usage"):
            answer.prompt, answer.completion = (
                usage.get("prompt_tokens") or 0,
                usage.get("completion_tokens") or 0,
            )
            answer.rest["usage"] = usage
        for choice in said.get("choices") or ():
            self._choice(choice, delta)
        _gather(answer, delta)
        return delta

    def _choice(self, choice: Json, delta: Delta) -> None:
        piece: Json = (choice.get("delta") or {}) if self._chat else choice
        delta.text += piece.get("content" if self._chat else "text") or ""
        delta.thinking += piece.get("reasoning_content") or piece.get("reasoning") or ""
        delta.logprobs = (as_object(choice.get("logprobs")) or {}).get("content") if self._chat else None
        for call in piece.get("tool_calls") or ():
            self._tool(call)
        if choice.get("finish_reason"):
            self.answer.finish, self.answer.done = choice["finish_reason"], True

    def _tool(self, call: Json) -> None:
        """OpenAI sends a call in pieces: they are put together until the answer is complete."""
        function: Json = call.get("function") or {}
        tool = self.answer.tools.setdefault(call.get("index", 0), Tool("", "", ""))
        tool.id = call.get("id") or tool.id
        tool.name += function.get("name") or ""
        tool.arguments += function.get("arguments") or ""


def read_piece(line: bytes) -> Json:
    """A piece of a backend's answer; one that tells of an error, or is none, ends the attempt."""
    try:
        said = as_object(orjson.loads(line))
    except orjson.JSONDecodeError:
        raise AttemptFailed(Failure.BROKEN, "the backend's answer is not JSON") from None
    if said is None:
        raise AttemptFailed(Failure.BROKEN, "the backend's answer is not a JSON object")
    if said.get("error"):
        raise AttemptFailed(Failure.STATUS, error_text(line), body=line)
    return said


def _gather(answer: Answer, delta: Delta) -> None:
    answer.pieces += 1
    if delta.text:
        answer.texts.append(delta.text)
    if delta.thinking:
        answer.thinking.append(delta.thinking)
    if delta.logprobs:
        answer.logprobs.extend(delta.logprobs)


def reader(call: Call) -> OllamaReader | OpenAIReader:
    """A reader for what a backend answers to this call."""
    return OllamaReader(call) if call.api == "ollama" else OpenAIReader(call)


# ── writers ─────────────────────────────────────────────────────────────────


class OllamaWriter:
    """Writes Ollama's lines for /api/chat or /api/generate."""

    stream_type = "application/x-ndjson"

    def __init__(self, call: Call, model: str, usage: bool) -> None:
        del usage  # Ollama's last line always counts
        self._chat, self._model = call is CHAT, model
        self._began = time.monotonic_ns()

    def piece(self, delta: Delta) -> bytes:
        if not (delta.text or delta.thinking):
            return b""
        return orjson.dumps(self._line(delta.text, delta.thinking, (), done=False)) + b"\n"

    def end(self, answer: Answer) -> bytes:
        calls = orjson.dumps(self._line("", "", answer.tools.values(), done=False)) + b"\n" if answer.tools else b""
        return calls + orjson.dumps({**self._line("", "", (), done=True), **self._figures(answer)}) + b"\n"

    def whole(self, answer: Answer) -> bytes:
        line = self._line("".join(answer.texts), "".join(answer.thinking), answer.tools.values(), done=True)
        if answer.logprobs:
            line["logprobs"] = answer.logprobs
        if answer.rest.get("done") is True:  # the backend speaks Ollama too: its figures are better than ours
            return orjson.dumps(
                {
                    **line,
                    **{
                        name: value
                        for name, value in answer.rest.items()
                        if name not in ("message", "response", "thinking")
                    },
                }
            )
        return orjson.dumps({**line, **self._figures(answer)})

    def _line(self, text: str, thinking: str, tools: Any, *, done: bool) -> Json:
        head = {"model": self._model, "created_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        if not self._chat:
            return {**head, "response": text, **({"thinking": thinking} if thinking else {}), "done": done}
        message: Json = {"role": "assistant", "content": text}
        if thinking:
            message["thinking"] = thinking
        if tools:
            message["tool_calls"] = [
                {"id": tool.id, "function": {"name": tool.name, "arguments": _arguments(tool)}} for tool in tools
            ]
        return {**head, "message": message, "done": done}

    def _figures(self, answer: Answer) -> Json:
        reason = "length" if answer.finish == "length" else "stop"
        total = time.monotonic_ns() - self._began
        return {
            "done_reason": reason,
            "total_duration": total,
            "load_duration": 0,
            "prompt_eval_count": answer.prompt,
            "prompt_eval_duration": 0,
            "eval_count": answer.completion,
            "eval_duration": total,
        }


def _arguments(tool: Tool) -> Any:
    try:
        return orjson.loads(tool.arguments or "{}")
    except orjson.JSONDecodeError:
        raise AttemptFailed(Failure.BROKEN, "the backend's tool call has arguments that are not JSON") from None


class OpenAIWriter:
    """Writes OpenAI's chunks for chat or text completions."""

    stream_type = "text/event-stream"

    def __init__(self, call: Call, model: str, usage: bool) -> None:
        self._chat, self._model, self._usage = call is V1_CHAT, model, usage
        self._head: Json = {
            "id": f"{'chatcmpl' if self._chat else 'cmpl'}-{secrets.token_hex(12)}",
            "created": int(time.time()),
        }
        self._role: Json = {"role": "assistant"}
        self._calls = itertools.count()

    def piece(self, delta: Delta) -> bytes:
        if not (delta.text or delta.thinking or delta.tools):
            return b""
        if not self._chat:
            return self._event([{"index": 0, "text": delta.text, "finish_reason": None, "logprobs": None}])
        said: Json = {**self._role, "content": delta.text}
        self._role = {}
        if delta.thinking:
            said["reasoning_content"] = delta.thinking
        if delta.tools:
            said["tool_calls"] = [{"index": next(self._calls), **_called(tool)} for tool in delta.tools]
        return self._event(
            [
                {
                    "index": 0,
                    "delta": said,
                    "finish_reason": None,
                    "logprobs": {"content": delta.logprobs} if delta.logprobs else None,
                }
            ]
        )

    def end(self, answer: Answer) -> bytes:
        last: Json = {"delta": self._role} if self._chat else {"text": "", "logprobs": None}
        out = self._event([{"index": 0, **last, "finish_reason": _finish(answer)}])
        if self._usage:
            out += self._event([], usage=_usage(answer))
        return out + b"data: [DONE]\n\n"

    def _event(self, choices: list[Json], **more: Any) -> bytes:
        kind = "chat.completion.chunk" if self._chat else "text_completion"
        return (
            b"data: "
            + orjson.dumps({**self._head, "object": kind, "model": self._model, "choices": choices, **more})
            + b"\n\n"
        )

    def whole(self, answer: Answer) -> bytes:
        text = "".join(answer.texts)
        if self._chat:
            message: Json = {"role": "assistant", "content": text if text or not answer.tools else None}
            if answer.thinking:
                message["reasoning_content"] = "".join(answer.thinking)
            if answer.tools:
                message["tool_calls"] = [_called(tool) for tool in answer.tools.values()]
            choice: Json = {
                "index": 0,
                "message": message,
                "logprobs": {"content": answer.logprobs} if answer.logprobs else None,
            }
        else:
            choice = {"index": 0, "text": text, "logprobs": None}
        kind = "chat.completion" if self._chat else "text_completion"
        known = {name: answer.rest[name] for name in ("id", "created", "system_fingerprint") if name in answer.rest}
        choice["finish_reason"] = _finish(answer)
        return orjson.dumps(
            {
                **self._head,
                **known,
                "object": kind,
                "model": self._model,
                "choices": [choice],
                "usage": answer.rest.get("usage") or _usage(answer),
            }
        )


def _called(tool: Tool) -> Json:
    return {
        "id": tool.id or f"call_{secrets.token_hex(8)}",
        "type": "function",
        "function": {"name": tool.name, "arguments": tool.arguments or "{}"},
    }


def _finish(answer: Answer) -> str:
    if answer.tools and answer.finish != "length":
        return "tool_calls"
    return answer.finish if answer.finish in ("length", "content_filter") else "stop"


def _usage(answer: Answer) -> Json:
    return {
        "prompt_tokens": answer.prompt,
        "completion_tokens": answer.completion,
        "total_tokens": answer.prompt + answer.completion,
    }


Writer = OllamaWriter | OpenAIWriter
WRITERS: dict[str, Callable[[Call, str, bool], Writer]] = {"ollama": OllamaWriter, "openai": OpenAIWriter}
