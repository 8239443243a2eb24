"""The OpenAI-compatible endpoint: any chat client can be pointed at what is stored, as the model `gristmill`.

Citations are annotations of the message, and footnotes in its text for clients that show no annotations.
"""

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from secrets import token_hex
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

import msgspec
from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from gristmill.agents.ask.answering import LONGEST_QUESTION, Answerer, Past
from gristmill.agents.ask.api import answer_whole, asking_of, wait_while_connected
from gristmill.agents.ask.model import AnswerEnded, CheckedAnswer, Citation, Passage, SentenceSaid
from gristmill.errors import GristmillError
from gristmill.models import Message, tokens
from gristmill.scopes import Scope
from gristmill.serving import Problem, Viewer, answer_events, services_of

ROUTES = APIRouter(prefix="/v1")
MODEL = "gristmill"
SINCE = 1_767_225_600  # when this model was made, for clients that sort by it: 2026-01-01
SHOWN = 5  # passages that are shown where no model is configured
LONGEST_QUOTE = 200  # characters of a quotation in a footnote
MOST_MESSAGES = 500


class MessagePart(BaseModel):
    """A part of a message; texts are read, everything else is left out."""

    model_config = ConfigDict(extra="ignore")
    type: str = "text"
    text: str = ""


class ChatTurn(BaseModel):
    model_config = ConfigDict(extra="ignore")
    role: str
    content: str | list[MessagePart] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, str) or self.content is None:
            return self.content or ""
        return "\n".join(part.text for part in self.content if part.type in ("text", "input_text", "output_text"))


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="ignore")
    include_usage: bool = False


class ChatWish(BaseModel):
    """What a chat client sends; settings of sampling are left to the model behind."""

    model_config = ConfigDict(extra="ignore")
    model: Annotated[str, Field(max_length=200)] = MODEL
    messages: Annotated[list[ChatTurn], Field(min_length=1, max_length=MOST_MESSAGES)]
    stream: bool = False
    stream_options: StreamOptions | None = None
    client: Annotated[str | None, Field(max_length=100)] = None
    project: Annotated[str | None, Field(max_length=100)] = None


@ROUTES.get("/models")
async def list_models(request: Request, caller: Viewer) -> dict[str, Any]:
    return {"object": "list", "data": [describe_model()]}


@ROUTES.get("/models/{model}")
async def get_model(request: Request, caller: Viewer, model: str) -> dict[str, Any]:
    if model != MODEL:
        raise Problem(404, f"There is no model of this name here: the only one is {MODEL}.")
    return describe_model()


def describe_model() -> dict[str, Any]:
    return {"id": MODEL, "object": "model", "created": SINCE, "owned_by": MODEL}


@ROUTES.post("/chat/completions")
async def complete_chat(request: Request, caller: Viewer, wish: ChatWish) -> Response:
    """The last message of the user is the question; those before it are the conversation."""
    question, past = read_chat(wish)
    scope = caller.choose_view(wish.client, wish.project)
    answerer = asking_of(services_of(request)).answerer
    about = Completion(str(request.base_url).rstrip("/"), wish)
    if wish.stream:
        return answer_events(about.stream(answerer, question, scope, past))
    answer = await wait_while_connected(request, answer_whole(answerer, question, scope, past))
    return JSONResponse(about.describe(answer))


def read_chat(wish: ChatWish) -> tuple[str, Past]:
    if wish.model != MODEL:
        raise Problem(404, f"There is no model of this name here: the only one is {MODEL}.")
    said = [turn for turn in wish.messages if turn.role in ("user", "assistant") and turn.text.strip()]
    if not said or said[-1].role != "user":
        raise Problem(422, "The last message must be a question of the user.")
    if len(said[-1].text) > LONGEST_QUESTION:
        raise Problem(422, f"The question has more than {LONGEST_QUESTION:,} characters.")
    turns = [Message("user" if turn.role == "user" else "assistant", strip_footnotes(turn.text)) for turn in said[:-1]]
    return said[-1].text, Past(turns[-20:])


def write_data(value: dict[str, Any]) -> str:
    return f"data: {msgspec.json.encode(value).decode()}\n\n"


FOOTNOTES = "\n\n---\n"


def strip_footnotes(text: str) -> str:
    return text.partition(FOOTNOTES)[0]


class Completion:
    """One answer in the shapes of a chat completion."""

    def __init__(self, address: str, wish: ChatWish) -> None:
        self._address = address
        self._wish = wish
        self._id = f"chatcmpl-{token_hex(12)}"
        self._created = int(time.time())

    def describe(self, answer: CheckedAnswer) -> dict[str, Any]:
        body = write_body(answer)
        content = body + self.write_footnotes(answer)
        message = {
            "role": "assistant",
            "content": content,
            "refusal": None,
            "annotations": self.annotate(answer, body),
        }
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return {**self._head("chat.completion"), "choices": [choice], "usage": self._count(content)}

    async def stream(self, answerer: Answerer, question: str, scope: Scope | None, past: Past) -> AsyncGenerator[str]:
        """Sentences as soon as each is checked, then footnotes with the annotations."""
        yield self._chunk({"role": "assistant", "content": ""})
        said = ""
        try:
            async with aclosing(answerer.answer(question, scope, past)) as events:
                async for event in events:
                    if isinstance(event, SentenceSaid) and event.shown:
                        piece = f"{' ' if said else ''}{event.shown}"
                        said += piece
                        yield self._chunk({"content": piece})
                    elif isinstance(event, AnswerEnded):
                        for chunk in self._end(event.answer, said):
                            yield chunk
        except GristmillError as error:
            yield write_data({"error": {"message": str(error), "type": "server_error"}})
        yield "data: [DONE]\n\n"

    def _end(self, answer: CheckedAnswer, said: str) -> list[str]:
        body = write_body(answer)
        rest = body.removeprefix(said) if said else body
        notes = self.write_footnotes(answer)
        last = {"content": rest + notes, "annotations": self.annotate(answer, body)}
        chunks = [self._chunk(last), self._chunk({}, finish="stop")]
        if self._wish.stream_options and self._wish.stream_options.include_usage:
            counted = {"choices": (), "usage": self._count(body + notes)}
            chunks.append(write_data({**self._head("chat.completion.chunk"), **counted}))
        return chunks

    def _chunk(self, delta: dict[str, Any], finish: Literal["stop"] | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return write_data({**self._head("chat.completion.chunk"), "choices": [choice]})

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self._id, "object": kind, "created": self._created, "model": MODEL}

    def _count(self, content: str) -> dict[str, int]:
        asked = sum(tokens.count(turn.text) for turn in self._wish.messages)
        written = tokens.count(content)
        return {"prompt_tokens": asked, "completion_tokens": written, "total_tokens": asked + written}

    # --- citations

    def annotate(self, answer: CheckedAnswer, body: str) -> list[dict[str, Any]]:
        """A citation for each mark in the text, at the place of the mark."""
        found: list[dict[str, Any]] = []
        at = 0
        for place in list_places(answer):
            mark = f"[{place.number}]"
            start = body.find(mark, at)
            if start < 0:
                start = body.find(mark)
            at = max(at, start)
            found.append(
                {
                    "type": "url_citation",
                    "url_citation": {
                        "start_index": max(start, 0),
                        "end_index": max(start, 0) + (len(mark) if start >= 0 else 0),
                        "url": self.link(place),
                        "title": place.title or place.name,
                        "document": place.document,
                        "page": place.page,
                        "start": place.start,
                        "stop": place.stop,
                        "quote": place.quote if isinstance(place, Citation) else place.text,
                    },
                }
            )
        return found

    def write_footnotes(self, answer: CheckedAnswer) -> str:
        lines: dict[int, str] = {}
        for place in list_places(answer):
            quote = " ".join((place.quote if isinstance(place, Citation) else place.text).split())
            shown = quote if len(quote) <= LONGEST_QUOTE else quote[: LONGEST_QUOTE - 1] + "…"
            origin = f"{place.title or place.name}, page {place.page}"
            lines.setdefault(place.number, f"[{place.number}] {origin}: “{shown}” {self.link(place)}")
        return FOOTNOTES + "\n".join(lines.values()) if lines else ""

    def link(self, place: Citation | Passage) -> str:
        if place.record is not None:
            return f"{self._address}/records/record/{place.record}"
        where = urlencode({"page": place.page, "at": f"{place.start}-{place.stop}"})
        return f"{self._address}/documents/{place.document}?{where}"


def list_places(answer: CheckedAnswer) -> Sequence[Citation | Passage]:
    """What the text names: citations, or the first passages where no model is configured."""
    return answer.passages[:SHOWN] if answer.kind == "passages" else answer.citations


def write_body(answer: CheckedAnswer) -> str:
    if answer.kind != "passages":
        return answer.text
    return "\n\n".join([answer.text, *(f"[{one.number}] {one.text}" for one in answer.passages[:SHOWN])])
