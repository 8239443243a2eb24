"""Conversations in the database: questions, answers while they are written and when they have ended, and who writes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Literal, NamedTuple, NewType
from uuid import UUID

import msgspec

from gristmill.agents.ask.model import CheckedAnswer, CheckedSentence, Citation, Passage
from gristmill.db import Column, Tx, queries
from gristmill.documents import load_texts
from gristmill.errors import Refused, Unknown
from gristmill.ids import DocumentId, ScopeId
from gristmill.scopes import GLOBAL, Scope, scope_id

SQL = queries("gristmill.agents.ask", "conversations.sql")
ConversationId = NewType("ConversationId", int)
MessageId = NewType("MessageId", int)
State = Literal["waiting", "answered", "writing", "done", "stopped", "failed"]
Ending = Literal["done", "stopped", "failed"]
PATIENCE = timedelta(seconds=20)  # a writer says every second that it lives
LONGEST_TITLE = 80
MOST_MESSAGES = 200  # that are shown of one conversation
CUT_OFF = "The server ended while this was written."


@dataclass(frozen=True)
class Conversation:
    """A conversation without its messages."""

    id: ConversationId
    client: str
    project: str
    owner: str
    title: str
    language: str | None
    summary: str
    summarised: MessageId
    created_at: datetime
    changed_at: datetime
    is_writing: bool

    @property
    def scope(self) -> Scope:
        return Scope(self.client, self.project)


@dataclass(frozen=True)
class StoredMessage:
    """A question, or an answer as far as it is written; quotations are read from the pages, as long as these exist."""

    id: MessageId
    role: Literal["user", "assistant"]
    state: State
    text: str
    answer: dict[str, Any] | None
    at: datetime

    @property
    def error(self) -> str | None:
        return (self.answer or {}).get("error")


class WaitingQuestion(NamedTuple):
    """A question that waits."""

    id: MessageId
    text: str


class Life(NamedTuple):
    """What a writer hears when it says that it lives."""

    stop_asked: bool
    has_news: bool  # a question that the answer at hand does not take into account


# --- people


async def add_conversation(tx: Tx, scope: Scope, owner: str, title: str = "") -> ConversationId:
    return ConversationId(
        await tx.only_value(
            SQL["add_conversation"], int, scope=await scope_id(tx, scope), owner=owner, title=shorten_title(title)
        )
    )


def shorten_title(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_TITLE else line[: LONGEST_TITLE - 1] + "…"


async def load_conversation(tx: Tx, conversation: int, owner: str) -> Conversation:
    """A conversation of this owner; that of another one is answered like one that does not exist."""
    found = await tx.one(
        SQL["load_conversation"], Conversation, conversation=conversation, owner=owner, patience=PATIENCE
    )
    if found is None:
        raise Unknown(f"There is no conversation {conversation}.")
    return found


def check_scope(found: Conversation, scope: Scope | None, way_out: str) -> None:
    """Refuse a scope that is not the conversation's own: its answers come from that one alone."""
    if scope is not None and scope != found.scope:
        owner = "no client" if found.scope == GLOBAL else str(found.scope)
        raise Refused(f"Conversation {found.id} belongs to {owner}: {way_out}.")


async def list_conversations(tx: Tx, owner: str, *, before: int | None = None, limit: int = 50) -> list[Conversation]:
    """The conversations of this owner, those that were changed last first."""
    return await tx.all(
        SQL["list_conversations"], Conversation, owner=owner, before=before, limit=limit, patience=PATIENCE
    )


async def remove_conversation(tx: Tx, conversation: int, owner: str) -> None:
    if await tx.value(SQL["remove_conversation"], conversation=conversation, owner=owner) is None:
        raise Unknown(f"There is no conversation {conversation}.")


async def list_messages(
    tx: Tx, conversation: ConversationId, *, after: int = 0, limit: int = MOST_MESSAGES
) -> list[StoredMessage]:
    """The last messages behind this one, in their order, with their quotations."""
    found = await tx.all(SQL["list_messages"], StoredMessage, conversation=conversation, after=after, limit=limit)
    return await _add_quotations(tx, found)


async def load_message(tx: Tx, conversation: ConversationId, message: MessageId) -> StoredMessage | None:
    found = await tx.one(SQL["load_message"], StoredMessage, conversation=conversation, message=message)
    return (await _add_quotations(tx, [found]))[0] if found else None


async def add_question(tx: Tx, conversation: ConversationId, text: str) -> MessageId:
    """Keep a question; the writer of this conversation answers it next."""
    scope = await tx.value(
        SQL["touch_conversation"], Column[ScopeId], conversation=conversation, title=shorten_title(text)
    )
    if scope is None:
        raise Refused(f"The conversation {conversation} was removed this very moment: begin another.")
    return MessageId(await tx.only_value(SQL["add_question"], int, conversation=conversation, scope=scope, text=text))


async def ask_to_stop(tx: Tx, conversation: int, owner: str) -> bool:
    """Whether there was an answer to stop."""
    return await tx.value(SQL["ask_to_stop"], conversation=conversation, owner=owner) is not None


# --- the writer


async def claim(tx: Tx, conversation: ConversationId, writer: UUID) -> bool:
    """Become the writer. The unfinished answer of a writer that is gone is ended, and keeps its words."""
    if await tx.value(SQL["claim_conversation"], conversation=conversation, writer=writer, patience=PATIENCE) is None:
        return False
    note = msgspec.json.encode({"error": CUT_OFF}).decode()
    await tx.execute(SQL["end_abandoned"], conversation=conversation, note=note)
    return True


async def list_waiting(tx: Tx, conversation: ConversationId) -> list[WaitingQuestion]:
    return await tx.all(SQL["waiting_questions"], WaitingQuestion, conversation=conversation)


async def begin_answer(tx: Tx, conversation: ConversationId, writer: UUID) -> MessageId | None:
    """The row of the answer; None if another one writes by now."""
    found = await tx.value(SQL["begin_answer"], int, conversation=conversation, writer=writer)
    return None if found is None else MessageId(found)


async def note_life(tx: Tx, conversation: ConversationId, writer: UUID, taken: Sequence[MessageId]) -> Life | None:
    """None if another one writes by now, or the conversation is gone."""
    return await tx.one(SQL["note_life"], Life, conversation=conversation, writer=writer, taken=list(taken))


async def save_answer(tx: Tx, message: MessageId, text: str, answer: Mapping[str, Any]) -> None:
    await tx.execute(SQL["save_answer"], message=message, text=text, answer=msgspec.json.encode(answer).decode())


async def end_answer(
    tx: Tx,
    conversation: ConversationId,
    message: MessageId,
    questions: Sequence[MessageId],
    state: Ending,
    text: str,
    answer: Mapping[str, Any],
) -> None:
    """The answer and the questions that it answers, together."""
    written = msgspec.json.encode(answer).decode()
    if await tx.value(SQL["end_answer"], message=message, state=state, text=text, answer=written) is not None:
        await tx.execute(SQL["mark_answered"], conversation=conversation, questions=list(questions))
    if language := answer.get("language"):
        await tx.execute(SQL["keep_language"], conversation=conversation, language=language)


async def drop_answer(tx: Tx, message: MessageId) -> None:
    await tx.execute(SQL["drop_answer"], message=message)


async def release(tx: Tx, conversation: ConversationId, writer: UUID) -> bool:
    """Whether nobody writes now; False if a question came meanwhile."""
    return await tx.value(SQL["release_conversation"], conversation=conversation, writer=writer) is not None


async def leave(tx: Tx, conversation: ConversationId, writer: UUID) -> None:
    """Write no more, although a question may wait: somebody else answers it."""
    await tx.execute(SQL["leave_conversation"], conversation=conversation, writer=writer)


async def unstop(tx: Tx, conversation: ConversationId, writer: UUID) -> None:
    """The wish to stop was for one answer."""
    await tx.execute(SQL["unstop"], conversation=conversation, writer=writer)


async def keep_summary(tx: Tx, conversation: ConversationId, summary: str, last: MessageId) -> None:
    await tx.execute(SQL["keep_summary"], conversation=conversation, summary=summary, last=last)


# --- answers as rows


def describe_answer(answer: CheckedAnswer) -> dict[str, Any]:
    """An answer as it is stored: places instead of texts, so that what is removed is not kept here."""
    return {
        "kind": answer.kind,
        "asked": answer.asked,
        "language": answer.language,
        "note": answer.note,
        "model": answer.model,
        "sentences": describe_sentences(answer.sentences),
        "passages": [describe_place(one) for one in answer.passages],
    }


def describe_sentences(sentences: Iterable[CheckedSentence]) -> list[dict[str, Any]]:
    return [
        {
            "text": one.text,
            "verdict": one.verdict,
            "reason": one.reason,
            "citations": [describe_place(cited) for cited in one.citations],
        }
        for one in sentences
    ]


def describe_place(one: Citation | Passage) -> dict[str, Any]:
    return {
        "number": one.number,
        "document": one.document,
        "page": one.page,
        "start": one.start,
        "stop": one.stop,
        "digest": digest_quote(one.text if isinstance(one, Passage) else one.quote),
        "name": one.name,
        "title": one.title,
        "record": one.record,
    }


def digest_quote(text: str) -> str:
    """Tells whether a page still has the words that were cited; the words themselves are kept with the page alone."""
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


async def _add_quotations(tx: Tx, messages: Sequence[StoredMessage]) -> list[StoredMessage]:
    """Put the quotation of each place beside it; of a page that is gone, or changed, there is none."""
    cited = [place for one in messages for place in _list_places(one)]
    pages = {(DocumentId(place["document"]), int(place["page"])) for place in cited}
    texts = await load_texts(tx, sorted(pages)) if pages else {}
    for place in cited:
        text = texts.get((place["document"], place["page"]))
        quote = text[place["start"] : place["stop"]] if text is not None else None
        is_same = quote is not None and digest_quote(quote) == place.get("digest", digest_quote(quote))
        place["quote"] = quote if is_same else None
    return [replace(one) for one in messages]


def _list_places(message: StoredMessage) -> list[dict[str, Any]]:
    answer = message.answer or {}
    return [place for one in answer.get("sentences", ()) for place in one["citations"]] + answer.get("passages", [])
