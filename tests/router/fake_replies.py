"""What the fake backend says, in the words of each API, streamed or whole; written apart from the router's own."""

import array
import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
STAMP = "2026-01-01T00:00:00Z"
CALLED = {"city": "Brno", "days": 3}
HEAD = {"id": "c1", "created": 1, "system_fingerprint": "fp_fake", "service_tier": "default"}


@dataclass
class Said:
    """One choice."""

    words: list[str] = field(default_factory=list)
    thinking: str = ""
    tools: list[str] = field(default_factory=list)


def choices(path: str, body: Json, tokens: int) -> list[Said]:
    """The answer echoes what was asked, so that nobody can get somebody else's."""
    count = body.get("n") or 1
    said = [one(path, body, asked, tokens) for asked in prompts(path, body) for _ in range(count)]
    if len(said) > 1:
        for number, choice in enumerate(said):
            choice.words = [*choice.words, f" #{number}"] if choice.words else []
    return said


def prompts(path: str, body: Json) -> list[str]:
    if path == "/v1/responses":
        given = body["input"]
        return [given if isinstance(given, str) else text_of(given[-1].get("content", given[-1].get("output")))]
    if "prompt" in body:
        return body["prompt"] if isinstance(body["prompt"], list) else [body["prompt"]]
    return [text_of(body["messages"][-1]["content"])]


def text_of(content: Any) -> str:
    if not isinstance(content, list):
        return content or ""
    return "".join(part.get("text", "") for part in content)


def one(path: str, body: Json, asked: str, tokens: int) -> Said:
    thinks = body.get("think") or body.get("reasoning_effort") or (body.get("reasoning") or {}).get("effort")
    said = Said(thinking=f"hm, {asked}" if thinks else "")
    names = tool_names(body)
    if names and not told(path, body):
        said.tools = names
        return said
    formatted = body.get("format") or body.get("response_format") or (body.get("text") or {}).get("format")
    if formatted and formatted != {"type": "text"}:
        said.words = ['{"city":', ' "Brno"', "}"]
        return said
    limits = ((body.get("options") or {}).get("num_predict"), body.get("max_tokens"), body.get("max_output_tokens"))
    count = next((limit for limit in limits if limit), tokens)
    said.words = [f"echo {asked}", *[f" w{number}" for number in range(count - 1)]]
    return said


def tool_names(body: Json) -> list[str]:
    names = [tool.get("function", tool)["name"] for tool in body.get("tools") or ()]
    choice = body.get("tool_choice")
    if choice == "none":
        return []
    named = choice.get("function", choice).get("name") if isinstance(choice, dict) else None
    return [name for name in names if named in (None, name)]


def told(path: str, body: Json) -> bool:
    """Whether a tool has answered."""
    if path == "/v1/responses":
        return isinstance(body["input"], list) and body["input"][-1].get("type") == "function_call_output"
    return body["messages"][-1]["role"] == "tool"


def logprob(body: Json, word: str) -> list[Json]:
    if not body.get("logprobs"):
        return []
    tops = [{"token": word, "logprob": -0.5}, {"token": "?", "logprob": -1.5}][: body.get("top_logprobs") or 0]
    return [{"token": word, "logprob": -0.5, "top_logprobs": tops}]


# ── Ollama ──────────────────────────────────────────────────────────────────


def ollama_line(path: str, body: Json, model: str, word: str, **more: Any) -> Json:
    head = {"model": model, "created_at": STAMP}
    probs = logprob(body, word) if word else []
    tail = {**({"logprobs": probs} if probs else {}), "done": False}
    if path == "/api/chat":
        return {**head, "message": {"role": "assistant", "content": word, **more}, **tail}
    return {**head, "response": word, **more, **tail}


def ollama_pieces(path: str, body: Json, model: str, said: Said) -> Iterator[bytes]:
    if said.thinking:
        yield line(ollama_line(path, body, model, "", thinking=said.thinking))
    for word in said.words:
        yield line(ollama_line(path, body, model, word))


def ollama_last(path: str, body: Json, model: str, said: Said) -> Json:
    calls = [{"function": {"name": name, "arguments": CALLED}} for name in said.tools]
    last = ollama_line(path, body, model, "", **({"tool_calls": calls} if calls else {}))
    figures = {"total_duration": 5, "load_duration": 1, "prompt_eval_count": 7, "prompt_eval_duration": 1}
    context = {"context": [1, 2]} if path == "/api/generate" else {}
    ended = {"done": True, "done_reason": "stop", "eval_count": len(said.words), "eval_duration": 3}
    return {**last, **figures, **ended, **context}


def ollama_whole(path: str, body: Json, model: str, said: Said) -> Json:
    whole = ollama_last(path, body, model, said)
    spoken = whole["message"] if path == "/api/chat" else whole
    spoken["content" if path == "/api/chat" else "response"] = "".join(said.words)
    if said.thinking:
        spoken["thinking"] = said.thinking
    if probs := [entry for word in said.words for entry in logprob(body, word)]:
        whole["logprobs"] = probs
    return whole


def line(said: Json) -> bytes:
    return json.dumps(said, separators=(",", ":")).encode() + b"\n"


# ── OpenAI ──────────────────────────────────────────────────────────────────


def openai_logprobs(chat: bool, body: Json, words: list[str], offset: int = 0) -> Json | None:
    if chat:
        probs = [entry for word in words for entry in logprob(body, word)]
        return {"content": probs, "refusal": None} if probs else None
    if body.get("logprobs") is None:
        return None
    offsets = [offset + sum(map(len, words[:number])) for number in range(len(words))]
    tops = [{word: -0.5} if body["logprobs"] else {} for word in words]
    return {"tokens": words, "token_logprobs": [-0.5] * len(words), "top_logprobs": tops, "text_offset": offsets}


def chunk(path: str, model: str, index: int, delta: Json, finish: str | None, probs: Json | None = None) -> Json:
    chat = path == "/v1/chat/completions"
    choice = {"index": index, **({"delta": delta} if chat else {"text": delta.get("content", "")})}
    choice |= {"finish_reason": finish, **({"logprobs": probs} if probs else {})}
    kind = "chat.completion.chunk" if chat else "text_completion"
    return {**HEAD, "object": kind, "model": model, "choices": [choice]}


def openai_pieces(path: str, body: Json, model: str, index: int, said: Said) -> Iterator[Json]:
    chat = path == "/v1/chat/completions"
    if said.thinking:
        yield chunk(path, model, index, {"reasoning_content": said.thinking}, None)
    offset = 0
    for word in said.words:
        probs = openai_logprobs(chat, body, [word], offset)
        offset += len(word)
        yield chunk(path, model, index, {"content": word}, None, probs)
    for number, name in enumerate(said.tools):
        text = json.dumps(CALLED)
        begun = {"index": number, "id": f"t{number}", "type": "function"}
        first = {**begun, "function": {"name": name, "arguments": text[:5]}}
        yield chunk(path, model, index, {"tool_calls": [first]}, None)
        yield chunk(path, model, index, {"tool_calls": [{"index": number, "function": {"arguments": text[5:]}}]}, None)
    yield chunk(path, model, index, {}, "tool_calls" if said.tools else "stop")


def openai_usage(said: list[Said]) -> Json:
    tokens = sum(len(choice.words) for choice in said)
    return {"prompt_tokens": 7, "completion_tokens": tokens, "total_tokens": 7 + tokens}


def openai_end(body: Json, path: str, model: str, said: list[Said]) -> Iterator[bytes]:
    if (body.get("stream_options") or {}).get("include_usage"):
        yield event({**chunk(path, model, 0, {}, None), "choices": [], "usage": openai_usage(said)})
    yield b"data: [DONE]\n\n"


def openai_whole(path: str, body: Json, model: str, said: list[Said]) -> Json:
    chat = path == "/v1/chat/completions"
    rows = [openai_choice(chat, body, index, choice) for index, choice in enumerate(said)]
    kind = "chat.completion" if chat else "text_completion"
    return {**HEAD, "object": kind, "model": model, "choices": rows, "usage": openai_usage(said)}


def openai_choice(chat: bool, body: Json, index: int, said: Said) -> Json:
    text = "".join(said.words)
    row: Json = {"index": index, "finish_reason": "tool_calls" if said.tools else "stop"}
    row["logprobs"] = openai_logprobs(chat, body, said.words)
    if not chat:
        return {**row, "text": text}
    message: Json = {"role": "assistant", "content": text if not said.tools else None}
    if said.thinking:
        message["reasoning_content"] = said.thinking
    if said.tools:
        called = [{"name": name, "arguments": json.dumps(CALLED)} for name in said.tools]
        message["tool_calls"] = [{"id": f"t{n}", "type": "function", "function": row} for n, row in enumerate(called)]
    return {**row, "message": message}


def event(said: Json, name: str = "") -> bytes:
    kind = f"event: {name}\n".encode() if name else b""
    return kind + b"data: " + json.dumps(said).encode() + b"\n\n"


# ── responses ───────────────────────────────────────────────────────────────


def response(body: Json, model: str, said: Said, status: str) -> Json:
    output: list[Json] = []
    if status == "completed":
        if said.thinking:
            output.append(
                {"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": said.thinking}]}
            )
        if said.words:
            output.append(spoken_item("".join(said.words)))
        output += [called_item(number, name) for number, name in enumerate(said.tools)]
    tokens = len(said.words)
    used = {"input_tokens": 7, "output_tokens": tokens, "total_tokens": 7 + tokens}
    used |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": model,
        "output": output,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": body.get("tools") or [],
        "top_p": 1.0,
        "usage": used if status == "completed" else None,
    }


def spoken_item(text: str) -> Json:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "m1", "status": "completed", "role": "assistant", "content": content}


def called_item(number: int, name: str) -> Json:
    called = {"call_id": f"t{number}", "name": name, "arguments": json.dumps(CALLED), "status": "completed"}
    return {"type": "function_call", "id": f"f{number}", **called}


def response_events(body: Json, model: str, said: Said) -> Iterator[bytes]:
    for number, told_event in enumerate(_response_events(body, model, said)):
        yield event({**told_event, "sequence_number": number}, told_event["type"])


def _response_events(body: Json, model: str, said: Said) -> Iterator[Json]:
    yield {"type": "response.created", "response": response(body, model, said, "in_progress")}
    finished = response(body, model, said, "completed")
    for index, item in enumerate(finished["output"]):
        begun = {**item, "status": "in_progress", **({"content": []} if item["type"] == "message" else {})}
        yield {"type": "response.output_item.added", "output_index": index, "item": begun}
        place = {"item_id": item["id"], "output_index": index}
        if item["type"] == "message":
            part = {"type": "output_text", "text": "", "annotations": []}
            yield {"type": "response.content_part.added", **place, "content_index": 0, "part": part}
            for word in said.words:
                yield {"type": "response.output_text.delta", **place, "content_index": 0, "delta": word, "logprobs": []}
            text = "".join(said.words)
            yield {"type": "response.output_text.done", **place, "content_index": 0, "text": text, "logprobs": []}
            yield {"type": "response.content_part.done", **place, "content_index": 0, "part": item["content"][0]}
        elif item["type"] == "function_call":
            yield {"type": "response.function_call_arguments.delta", **place, "delta": item["arguments"]}
            called = {"name": item["name"], "arguments": item["arguments"]}
            yield {"type": "response.function_call_arguments.done", **place, **called}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": finished}


# ── embeddings ──────────────────────────────────────────────────────────────


def embeddings(path: str, body: Json) -> Json:
    if path == "/api/embeddings":
        return {"embedding": [float(len(body["prompt"])), 0.5]}
    texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
    rows: list[Any] = [[float(len(text)), 0.5, -1.25][: body.get("dimensions") or 3] for text in texts]
    if path == "/api/embed":
        return {"model": body["model"], "embeddings": rows, "prompt_eval_count": len(texts)}
    if body.get("encoding_format") == "base64":
        rows = [base64.b64encode(array.array("f", row).tobytes()).decode() for row in rows]
    data = [{"object": "embedding", "index": number, "embedding": row} for number, row in enumerate(rows)]
    usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
    return {"object": "list", "data": data, "model": body["model"], "usage": usage}
