"""Answers as programs read them: the same fields over HTTP, in the terminal's JSON, and for other agents."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from gristmill.agents.ask.conversations import Conversation, StoredMessage
from gristmill.agents.ask.model import (
    AnswerEnded,
    CheckedAnswer,
    Draft,
    Event,
    Kind,
    PassagesFound,
    SentenceSaid,
    Verdict,
    Waits,
)


class Shape(BaseModel):
    """Made of the fields of an object that has the same names."""

    model_config = ConfigDict(from_attributes=True)


class CitationShape(Shape):
    """A place: `quote` is exactly what the text of the page has from `start` to `stop`."""

    number: int = Field(description="Of the passage in this answer.")
    document: int
    page: int
    start: int
    stop: int
    quote: str | None = Field(description="None if the page was removed or replaced since.")
    name: str
    title: str | None = None
    record: int | None = None


class SentenceShape(Shape):
    text: str
    verdict: Verdict
    reason: str = Field(default="", description="Why it is not supported.")
    citations: list[CitationShape] = []


class PassageShape(Shape):
    """A passage of the evidence, best first."""

    number: int
    document: int
    name: str
    title: str | None = None
    page: int
    start: int
    stop: int
    text: str | None = None
    heading: str = ""
    score: float = 0.0
    via: str | None = Field(default=None, description="The name that led here, if the question does not have it.")
    record: int | None = None


class AnswerShape(Shape):
    """The whole answer; `text` has the sentences that are shown, with the numbers of their passages."""

    kind: Kind = Field(
        description="`unknown`: I don't know; `passages`: no model is configured, or it failed: these fit best."
    )
    text: str
    question: str = ""
    asked: str = Field(default="", description="The question as it was searched.")
    language: str = "en"
    sentences: list[SentenceShape] = []
    passages: list[PassageShape] = []
    note: str | None = None
    model: str = ""
    prepared_ms: float = Field(default=0.0, description="From the question until the model was asked.")
    conversation: int | None = None
    message: int | None = None
    state: Literal["writing", "done", "stopped", "failed"] = "done"
    error: str | None = None


class ConversationShape(Shape):
    id: int
    client: str
    project: str
    title: str
    language: str | None
    created_at: datetime
    changed_at: datetime
    is_writing: bool = Field(description="Whether an answer is being written.")


class MessageShape(Shape):
    id: int
    role: Literal["user", "assistant"]
    state: Literal["waiting", "answered", "writing", "done", "stopped", "failed"]
    text: str
    at: datetime
    answer: AnswerShape | None = None


def shape_answer(answer: CheckedAnswer) -> AnswerShape:
    return AnswerShape.model_validate(answer)


def shape_conversation(one: Conversation) -> ConversationShape:
    return ConversationShape.model_validate(one)


def shape_message(one: StoredMessage, conversation: int | None = None) -> MessageShape:
    answer = shape_stored(one, conversation) if one.role == "assistant" else None
    return MessageShape(id=one.id, role=one.role, state=one.state, text=one.text, at=one.at, answer=answer)


def shape_stored(one: StoredMessage, conversation: int | None = None) -> AnswerShape:
    """An answer as it was kept, with the quotations that its pages have today."""
    kept: Mapping[str, Any] = one.answer or {}
    passages = [{**place, "text": place.get("quote")} for place in kept.get("passages", ())]
    return AnswerShape.model_validate(
        {
            "kind": kept.get("kind", "answer"),
            "text": one.text,
            "asked": kept.get("asked", ""),
            "language": kept.get("language", "en"),
            "sentences": kept.get("sentences", []),
            "passages": passages,
            "note": kept.get("note"),
            "model": kept.get("model", ""),
            "conversation": conversation,
            "message": one.id,
            "state": one.state,
            "error": kept.get("error"),
        }
    )


def describe_event(event: Event) -> tuple[str, dict[str, Any]]:
    """The name of an event and its fields: `found`, `waits`, `draft`, `sentence`, then `answer`."""
    match event:
        case PassagesFound(passages, asked):
            return "found", {"asked": asked, "passages": describe_passages(passages)}
        case Waits(text):
            return "waits", {"text": text}
        case Draft(text):
            return "draft", {"text": text}
        case SentenceSaid(sentence, shown):
            return "sentence", {**SentenceShape.model_validate(sentence).model_dump(mode="json"), "shown": shown}
        case AnswerEnded(answer):
            return "answer", shape_answer(answer).model_dump(mode="json")


def describe_passages(passages: Sequence[Any]) -> list[dict[str, Any]]:
    return [PassageShape.model_validate(one).model_dump(mode="json") for one in passages]
