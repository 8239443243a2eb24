"""OpenAI's Responses API on top of chats: its requests as chats, and replies to chats as its events."""

import itertools
import secrets
import time
from typing import Any

import orjson

from gristmill.router.dialects import BackendReply, Choice, Delta, Json, ToolCall, chat_logprobs
from gristmill.router.rows import TokenLogprob
from gristmill.router.wire import BadRequest, ModelRequest, as_list, as_object

LOGPROBS = "message.output_text.logprobs"  # the word in `include` that asks for them
SAME_NAMES = (
    "model",
    "temperature",
    "top_p",
    "top_logprobs",
    "parallel_tool_calls",
    "user",
    "service_tier",
    "seed",
    "frequency_penalty",
    "presence_penalty",
)
# fields of the request that the response repeats
ECHOED: Json = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "reasoning": {"effort": None, "summary": None},
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
    "truncation": "disabled",
    "user": None,
}


# ── requests ────────────────────────────────────────────────────────────────


def as_chat(body: Json) -> Json:
    """A request to /v1/responses as one to /v1/chat/completions."""
    if body.get("previous_response_id") or body.get("conversation") or body.get("background"):
        raise BadRequest(
            "the router keeps no responses: send the whole conversation as input, without previous_response_id,"
            " conversation and background"
        )
    sent = {name: body[name] for name in SAME_NAMES if body.get(name) is not None}
    if body.get("max_output_tokens") is not None:
        sent["max_tokens"] = body["max_output_tokens"]
    if effort := (as_object(body.get("reasoning")) or {}).get("effort"):
        sent["reasoning_effort"] = effort
    if LOGPROBS in (as_list(body.get("include")) or ()) or body.get("top_logprobs"):
        sent["logprobs"] = True
    if (wanted := _response_format((as_object(body.get("text")) or {}).get("format"))) is not None:
        sent["response_format"] = wanted
    if body.get("tools"):
        sent["tools"] = [_as_chat_tool(tool) for tool in body["tools"]]
        sent["tool_choice"] = _as_chat_choice(body.get("tool_choice"))
    return {**sent, "messages": _messages(body)}


def _response_format(wanted: Any) -> Json | None:
    asked = as_object(wanted)
    if asked is None or asked.get("type") == "text":
        return None
    if asked.get("type") != "json_schema":
        return asked
    return {"type": "json_schema", "json_schema": {name: value for name, value in asked.items() if name != "type"}}


def _as_chat_tool(tool: Json) -> Json:
    if tool.get("type") != "function":
        raise BadRequest(f"tools of the type {tool.get('type')!r} are not supported by this backend")
    kept = ("name", "description", "parameters", "strict")
    return {"type": "function", "function": {name: tool[name] for name in kept if tool.get(name) is not None}}


def _as_chat_choice(choice: Any) -> Any:
    wanted = as_object(choice)
    if wanted is None:
        return choice or "auto"
    if wanted.get("type") == "allowed_tools":
        tools = [{"type": "function", "function": {"name": tool["name"]}} for tool in wanted["tools"]]
        return {"type": "allowed_tools", "allowed_tools": {"mode": wanted.get("mode", "auto"), "tools": tools}}
    return {"type": "function", "function": {"name": wanted["name"]}}


def _messages(body: Json) -> list[Json]:
    messages = list[Json]()
    if body.get("instructions"):
        messages.append({"role": "system", "content": body["instructions"]})
    given: Any = body.get("input")
    if isinstance(given, str):
        return [*messages, {"role": "user", "content": given}]
    items = as_list(given)
    if items is None:
        raise BadRequest("input must be a text or a list")
    for item in items:
        _add_item(messages, item)
    return messages


def _add_item(messages: list[Json], item: Json) -> None:
    """One item of the input; calls of the same turn go into one message, as chats have it."""
    kind = item.get("type", "message")
    if kind == "message":
        messages.append({"role": item["role"], "content": _content(item["content"])})
    elif kind == "function_call":
        called = {"name": item["name"], "arguments": item["arguments"]}
        call = {"id": item["call_id"], "type": "function", "function": called}
        if messages and messages[-1]["role"] == "assistant":
            messages[-1].setdefault("tool_calls", []).append(call)
        else:
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
    elif kind == "function_call_output":
        messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": _content(item["output"])})
    elif kind != "reasoning":  # its own thoughts are nothing that a chat could be given back
        raise BadRequest(f"input of the type {kind!r} is not supported by this backend")


def _content(content: Any) -> Any:
    if isinstance(content, str):
        return content
    parts = [_part(part) for part in content]
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts


def _part(part: Json) -> Json:
    kind = part.get("type")
    if kind in ("input_text", "output_text", "text"):
        return {"type": "text", "text": part["text"]}
    if kind == "refusal":
        return {"type": "text", "text": part["refusal"]}
    if kind == "input_image" and part.get("image_url"):
        detail = {"detail": part["detail"]} if part.get("detail") else {}
        return {"type": "image_url", "image_url": {"url": part["image_url"], **detail}}
    raise BadRequest(f"content of the type {kind!r} is not supported by this backend")


# ── replies ─────────────────────────────────────────────────────────────────


class ResponsesWriter:
    """Writes a reply to a chat as a response: one output item after the other, each with its events."""

    stream_type = "text/event-stream"

    def __init__(self, question: ModelRequest) -> None:
        asked = question.decode()
        echoed = {name: default if asked.get(name) is None else asked[name] for name, default in ECHOED.items()}
        self._response: Json = {
            "id": f"resp_{secrets.token_hex(16)}",
            "object": "response",
            "created_at": int(time.time()),
            "status": "in_progress",
            "background": False,
            "error": None,
            "incomplete_details": None,
            **echoed,
            "model": question.model,
            "output": [],
            "previous_response_id": None,
            "store": False,
            "usage": None,
        }
        self._output: list[Json] = self._response["output"]
        self._numbers = itertools.count()
        self._began = False
        self._open: _Item | None = None

    def write_piece(self, delta: Delta) -> bytes:
        out = self._begin()
        if delta.thinking:
            out += self._switch_to(_Reasoning) + self._tell(self._item.grow(delta.thinking, []))
        if delta.text or delta.logprobs:
            out += self._switch_to(_Message) + self._tell(self._item.grow(delta.text, delta.logprobs))
        return out

    def write_end(self, reply: BackendReply) -> bytes:
        out = self._begin()
        choice = reply.choices[0]
        if not choice.texts and not choice.tools and not isinstance(self._open, _Message):
            out += self._switch_to(_Message)
        out += self._close()
        for tool in choice.tools.values():
            out += self._call(tool)
        self._finish(reply, choice)
        return out + self._tell([{"type": f"response.{self._response['status']}", "response": self._response}])

    def write_whole(self, reply: BackendReply) -> bytes:
        choice = reply.choices[0]
        self.write_piece(Delta(thinking="".join(choice.thinking)))
        self.write_piece(Delta(text="".join(choice.texts), logprobs=choice.logprobs))
        self.write_end(reply)
        return orjson.dumps(self._response)

    @property
    def _item(self) -> "_Item":
        assert self._open is not None
        return self._open

    def _begin(self) -> bytes:
        if self._began:
            return b""
        self._began = True
        kinds = ("response.created", "response.in_progress")
        return self._tell([{"type": kind, "response": self._response} for kind in kinds])

    def _switch_to(self, kind: "type[_Reasoning | _Message]") -> bytes:
        if isinstance(self._open, kind):
            return b""
        out = self._close()
        self._open = kind(len(self._output))
        return out + self._tell(self._open.begin())

    def _close(self) -> bytes:
        if self._open is None:
            return b""
        item, self._open = self._open, None
        events = item.end()
        self._output.append(item.row("completed"))
        return self._tell(events)

    def _call(self, tool: ToolCall) -> bytes:
        """A tool call comes whole: its name and arguments are known at the end of a chat."""
        arguments = tool.arguments or "{}"
        row: Json = {
            "type": "function_call",
            "id": f"fc_{secrets.token_hex(12)}",
            "call_id": tool.id or f"call_{secrets.token_hex(8)}",
            "name": tool.name,
            "arguments": arguments,
            "status": "completed",
        }
        place = {"item_id": row["id"], "output_index": len(self._output)}
        begun = {**row, "arguments": "", "status": "in_progress"}
        self._output.append(row)
        return self._tell(
            [
                {"type": "response.output_item.added", "output_index": place["output_index"], "item": begun},
                {"type": "response.function_call_arguments.delta", **place, "delta": arguments},
                {
                    "type": "response.function_call_arguments.done",
                    **place,
                    "name": tool.name,
                    "arguments": arguments,
                },
                {"type": "response.output_item.done", "output_index": place["output_index"], "item": row},
            ]
        )

    def _finish(self, reply: BackendReply, choice: Choice) -> None:
        cut = choice.finish == "length"
        self._response |= {
            "status": "incomplete" if cut else "completed",
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "usage": {
                "input_tokens": reply.prompt,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": reply.completion,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": reply.prompt + reply.completion,
            },
        }

    def _tell(self, events: list[Json]) -> bytes:
        return b"".join(
            [
                b"event: %b\ndata: %b\n\n"
                % (event["type"].encode(), orjson.dumps({**event, "sequence_number": next(self._numbers)}))
                for event in events
            ]
        )


class _Reasoning:
    """An output item for the thoughts of the model."""

    def __init__(self, index: int) -> None:
        self._id, self._index = f"rs_{secrets.token_hex(12)}", index
        self._texts: list[str] = []

    @property
    def _place(self) -> Json:
        return {"item_id": self._id, "output_index": self._index, "summary_index": 0}

    def row(self, status: str) -> Json:
        return {"type": "reasoning", "id": self._id, "summary": [self._part()] if status == "completed" else []}

    def _part(self) -> Json:
        return {"type": "summary_text", "text": "".join(self._texts)}

    def begin(self) -> list[Json]:
        return [
            {
                "type": "response.output_item.added",
                "output_index": self._index,
                "item": self.row("in_progress"),
            },
            {"type": "response.reasoning_summary_part.added", **self._place, "part": self._part()},
        ]

    def grow(self, text: str, logprobs: list[TokenLogprob]) -> list[Json]:
        del logprobs
        self._texts.append(text)
        return [{"type": "response.reasoning_summary_text.delta", **self._place, "delta": text}]

    def end(self) -> list[Json]:
        part = self._part()
        return [
            {"type": "response.reasoning_summary_text.done", **self._place, "text": part["text"]},
            {"type": "response.reasoning_summary_part.done", **self._place, "part": part},
            {"type": "response.output_item.done", "output_index": self._index, "item": self.row("completed")},
        ]


class _Message:
    """An output item for the words of the model."""

    def __init__(self, index: int) -> None:
        self._id, self._index = f"msg_{secrets.token_hex(12)}", index
        self._texts: list[str] = []
        self._logprobs: list[TokenLogprob] = []

    @property
    def _place(self) -> Json:
        return {"item_id": self._id, "output_index": self._index, "content_index": 0}

    def row(self, status: str) -> Json:
        content = [self._part()] if status == "completed" else []
        return {"type": "message", "id": self._id, "status": status, "role": "assistant", "content": content}

    def _part(self) -> Json:
        return {
            "type": "output_text",
            "text": "".join(self._texts),
            "annotations": [],
            "logprobs": chat_logprobs(self._logprobs),
        }

    def begin(self) -> list[Json]:
        return [
            {"type": "response.output_item.added", "output_index": self._index, "item": self.row("in_progress")},
            {"type": "response.content_part.added", **self._place, "part": self._part()},
        ]

    def grow(self, text: str, logprobs: list[TokenLogprob]) -> list[Json]:
        self._texts.append(text)
        self._logprobs.extend(logprobs)
        told = chat_logprobs(logprobs)
        return [{"type": "response.output_text.delta", **self._place, "delta": text, "logprobs": told}]

    def end(self) -> list[Json]:
        part = self._part()
        told = {"text": part["text"], "logprobs": part["logprobs"]}
        return [
            {"type": "response.output_text.done", **self._place, **told},
            {"type": "response.content_part.done", **self._place, "part": part},
            {"type": "response.output_item.done", "output_index": self._index, "item": self.row("completed")},
        ]


_Item = _Reasoning | _Message
