"""Requests from one API to the other: Ollama's and OpenAI's."""

import base64
from collections.abc import Iterator
from typing import Any

import orjson

from gristmill.router.wire import (
    CHAT,
    EMBED,
    EMBEDDINGS,
    GENERATE,
    V1_CHAT,
    V1_COMPLETIONS,
    V1_EMBEDDINGS,
    BadRequest,
    ModelCall,
    as_list,
    as_object,
    prompts_of,
)

Json = dict[str, Any]

# options that both know, under Ollama's and OpenAI's name
SHARED_OPTIONS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "seed": "seed",
    "stop": "stop",
    "num_predict": "max_tokens",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
}
LLAMA_OPTIONS = {
    "top_k": "top_k",
    "min_p": "min_p",
    "typical_p": "typical_p",
    "repeat_penalty": "repeat_penalty",
    "repeat_last_n": "repeat_last_n",
}


# ── Ollama → OpenAI ─────────────────────────────────────────────────────────


def to_openai(call: ModelCall, body: Json, *, extras: bool) -> tuple[ModelCall, Json]:
    """An Ollama request as an OpenAI one."""
    if call is EMBED:
        return V1_EMBEDDINGS, _only(
            {"model": body["model"], "input": body.get("input", []), "dimensions": body.get("dimensions")}
        )
    if call is EMBEDDINGS:
        return V1_EMBEDDINGS, {"model": body["model"], "input": [body.get("prompt", "")]}
    sent = _only(
        {
            "model": body["model"],
            "response_format": _response_format(body.get("format")),
            "logprobs": body.get("logprobs") or None,
            "top_logprobs": body.get("top_logprobs"),
            **_options_out(body.get("options"), extras),
        }
    )
    if isinstance(think := body.get("think"), str):
        sent["reasoning_effort"] = think
    elif think is not None and extras:
        sent["chat_template_kwargs"] = {"enable_thinking": bool(think)}
    if call is GENERATE and (body.get("raw") or body.get("suffix")):
        tops = sent.pop("top_logprobs", 0)
        return V1_COMPLETIONS, {
            **sent,
            "prompt": body.get("prompt", ""),
            **_only({"suffix": body.get("suffix"), "logprobs": tops if sent.get("logprobs") else None}),
        }
    messages = (
        list(_prompt_as_messages(body))
        if call is GENERATE
        else list(_messages_out(_require_list(body.get("messages"), "messages")))
    )
    return V1_CHAT, {**sent, "messages": messages, **_only({"tools": body.get("tools")})}


def _prompt_as_messages(body: Json) -> Iterator[Json]:
    if body.get("system"):
        yield {"role": "system", "content": body["system"]}
    yield {"role": "user", "content": _content_out(body.get("prompt", ""), body.get("images"))}


def _messages_out(messages: list[Any]) -> Iterator[Json]:
    """Ollama's messages as OpenAI's: tool calls get ids, and the answers that follow refer to them."""
    asked: list[tuple[str, str]] = []
    for index, message in enumerate(messages):
        turn = _turn(message)
        role, content = turn.get("role", "user"), turn.get("content") or ""
        if role == "tool":
            yield {
                "role": "tool",
                "content": content,
                "tool_call_id": turn.get("tool_call_id") or _find_call_id(asked, turn.get("tool_name")),
            }
            continue
        sent: Json = {"role": role, "content": _content_out(content, turn.get("images"))}
        if turn.get("thinking"):
            sent["reasoning_content"] = turn["thinking"]
        if calls := turn.get("tool_calls"):
            rows = enumerate(_require_list(calls, "tool_calls"))
            sent["tool_calls"] = [_call_out(call, f"call_{index}_{number}") for number, call in rows]
            asked = [(call["function"]["name"], call["id"]) for call in sent["tool_calls"]]
        yield sent


def _find_call_id(asked: list[tuple[str, str]], name: str | None) -> str:
    """The id of the call that a tool message answers: the first of that name, else the first."""
    found = next((item for item in asked if item[0] == name), asked[0] if asked else ("", "call_0"))
    if found in asked:
        asked.remove(found)
    return found[1]


def _call_out(call: Any, fallback: str) -> Json:
    asked = as_object(call) or {}
    function = as_object(asked.get("function"))
    if function is None or "name" not in function:
        raise BadRequest("a tool call needs a function with a name")
    arguments: Any = function.get("arguments") or {}
    text = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
    return {
        "id": asked.get("id") or fallback,
        "type": "function",
        "function": {"name": function["name"], "arguments": text},
    }


def _content_out(text: str, images: Any) -> Any:
    if not images:
        return text
    parts = [
        {"type": "image_url", "image_url": {"url": f"data:{_image_type(image)};base64,{image}"}}
        for image in _require_list(images, "images")
    ]
    return [{"type": "text", "text": text}, *parts]


def _image_type(image: str) -> str:
    """The media type, from the first bytes: Ollama's images carry none."""
    start = base64.b64decode(image[:16] + "=" * (-len(image[:16]) % 4))
    return (
        "image/jpeg"
        if start.startswith(b"\xff\xd8")
        else "image/webp"
        if start[:4] == b"RIFF"
        else "image/gif"
        if start[:4] == b"GIF8"
        else "image/png"
    )


def _response_format(wanted: Any) -> Json | None:
    if not wanted:
        return None
    if wanted == "json":
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": wanted, "strict": True}}


def _options_out(options: Any, extras: bool) -> Json:
    asked = as_object(options)
    if asked is None:
        return {}
    known = {**SHARED_OPTIONS, **LLAMA_OPTIONS} if extras else SHARED_OPTIONS
    sent: Json = {known[name]: value for name, value in asked.items() if name in known and value is not None}
    if sent.get("max_tokens", 0) < 0:  # Ollama's -1: no limit, which OpenAI says by leaving it out
        del sent["max_tokens"]
    return sent


# ── OpenAI → Ollama ─────────────────────────────────────────────────────────


def to_ollama(call: ModelCall, body: Json) -> tuple[ModelCall, list[Json]]:
    """An OpenAI request as Ollama ones: one for each choice, because Ollama gives one at a time."""
    if call is V1_EMBEDDINGS:
        wanted = {"model": body["model"], "input": _texts_to_embed(body), "dimensions": body.get("dimensions")}
        return EMBED, [_only(wanted)]
    sent = _only(
        {
            "model": body["model"],
            "format": _format_in(body.get("response_format")),
            "options": _options_in(body),
            **_logprobs_in(call, body),
        }
    )
    if effort := body.get("reasoning_effort"):
        sent["think"] = False if effort == "none" else effort
    if call is V1_COMPLETIONS:
        suffix = _only({"suffix": body.get("suffix")})
        prompts = [{**sent, "prompt": _text_prompt(prompt), **suffix} for prompt in prompts_of(body.get("prompt"))]
        return GENERATE, [again for one in prompts for again in _repeat(one, body)]
    names: dict[str, str] = {}
    messages = [_message_in(message, names) for message in _require_list(body.get("messages"), "messages")]
    return CHAT, _repeat({**sent, "messages": messages, **_only({"tools": choose_tools(body)})}, body)


def _repeat(sent: Json, body: Json) -> list[Json]:
    """The request once for each choice; with a seed, each gets one of its own, or all would be the same."""
    choices = body.get("n") or 1
    options = as_object(sent.get("options")) or {}
    if choices == 1 or "seed" not in options:
        return [sent] * choices
    return [{**sent, "options": {**options, "seed": options["seed"] + number}} for number in range(choices)]


def _texts_to_embed(body: Json) -> Any:
    wanted: Any = body.get("input", [])
    if any(not isinstance(one, str) for one in as_list(wanted) or ()):
        raise BadRequest("input must be text: this backend takes no tokens")
    return wanted


def _logprobs_in(call: ModelCall, body: Json) -> Json:
    """A chat says whether and how many; a text completion says only how many, 0 being a number, too."""
    asked = body.get("logprobs")
    if call is V1_CHAT:
        return {"logprobs": asked or None, "top_logprobs": body.get("top_logprobs")}
    return {} if asked is None or asked is False else {"logprobs": True, "top_logprobs": asked or None}


def choose_tools(body: Json) -> Any:
    """The tools that `tool_choice` leaves: Ollama cannot be made to call one, but it can be offered only that one."""
    tools, choice = body.get("tools"), body.get("tool_choice")
    if not tools or choice == "none":
        return None
    wanted = as_object(choice)
    if wanted is None:  # auto or required: Ollama knows only the first
        return tools
    allowed = as_object(wanted.get("allowed_tools"))
    rows = [wanted] if allowed is None else _require_list(allowed.get("tools"), "tools")
    names = {(as_object(row.get("function")) or {}).get("name") for row in rows}
    kept = [tool for tool in _require_list(tools, "tools") if tool["function"]["name"] in names]
    if not kept:
        raise BadRequest("tool_choice names a tool that is not among the tools")
    return kept


def _message_in(message: Any, names: dict[str, str]) -> Json:
    turn = _turn(message)
    text, images = _content_in(turn.get("content"))
    role = turn.get("role", "user")
    sent: Json = {
        "role": "system" if role == "developer" else role,
        "content": text,
        **_only({"images": images or None}),
    }
    if thought := turn.get("reasoning_content") or turn.get("reasoning"):
        sent["thinking"] = thought
    if calls := turn.get("tool_calls"):
        sent["tool_calls"] = [_call_in(call, names) for call in _require_list(calls, "tool_calls")]
    if role == "tool":
        identity = turn.get("tool_call_id", "")
        sent |= {"tool_call_id": identity, "tool_name": turn.get("name") or names.get(identity, "")}
    return sent


def _call_in(call: Any, names: dict[str, str]) -> Json:
    function: Json = call["function"]
    names[call.get("id", "")] = function["name"]
    try:
        arguments = orjson.loads(function.get("arguments") or "{}")
    except orjson.JSONDecodeError:
        raise BadRequest("the arguments of a tool call must be JSON") from None
    return {"id": call.get("id", ""), "function": {"name": function["name"], "arguments": arguments}}


def _content_in(content: Any) -> tuple[str, list[str]]:
    if content is None or isinstance(content, str):
        return content or "", []
    texts, images = list[str](), list[str]()
    for part in _require_list(content, "content"):
        if part.get("type") == "text":
            texts.append(part["text"])
        elif part.get("type") == "image_url":
            images.append(_inline_image(part["image_url"]))
        else:
            raise BadRequest(f"content of the type {part.get('type')!r} is not supported by this backend")
    return "\n".join(texts), images


def _inline_image(image: Any) -> str:
    url: str = image if isinstance(image, str) else image.get("url", "")
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:"):
        raise BadRequest("an image must be inline, as a data: URL")
    return data


def _format_in(wanted: Any) -> Any:
    asked = as_object(wanted)
    if asked is None:
        return None
    if asked.get("type") == "json_schema":
        return asked.get("json_schema", {}).get("schema")
    return "json" if asked.get("type") == "json_object" else None


def _options_in(body: Json) -> Json | None:
    options: Json = {
        ours: body[theirs]
        for ours, theirs in {**SHARED_OPTIONS, **LLAMA_OPTIONS}.items()
        if body.get(theirs) is not None
    }
    if body.get("max_completion_tokens") is not None:
        options["num_predict"] = body["max_completion_tokens"]
    if isinstance(options.get("stop"), str):
        options["stop"] = [options["stop"]]
    return options or None


def _text_prompt(prompt: Any) -> str:
    if not isinstance(prompt, str):
        raise BadRequest("prompt must be text: this backend takes no tokens")
    return prompt


def _require_list(value: Any, name: str) -> list[Any]:
    found = as_list(value)
    if found is None:
        raise BadRequest(f"{name} must be a list")
    return found


def _turn(message: Any) -> Json:
    turn = as_object(message)
    if turn is None:
        raise BadRequest("every message must be an object")
    return turn


def _only(body: Json) -> Json:
    """A body without its empty fields."""
    return {name: value for name, value in body.items() if value is not None}
