"""An answer as pairs of a name and fields, the same for the API, the terminal and the service of the same machine."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from gristmill.agents.ask import conversations as store
from gristmill.agents.ask.answering import Answerer, Past, check_question
from gristmill.agents.ask.conversations import ConversationId
from gristmill.agents.ask.shapes import describe_event, shape_message
from gristmill.agents.ask.talking import Speaker, Talker
from gristmill.db import Database
from gristmill.errors import GristmillError
from gristmill.scopes import GLOBAL, Scope

Pair = tuple[str, dict[str, Any]]
WAY_OUT = "leave --client out, or begin a new one with --conversation new"  # commands alone name a scope here


async def stream_answer(
    answerer: Answerer, question: str, scope: Scope | None, past: Past | None = None
) -> AsyncGenerator[Pair]:
    """`found`, `waits`, `draft`, `sentence`, then `answer`, or `error`, where the answer would stand."""
    try:
        async with aclosing(answerer.answer(question, scope, past)) as events:
            async for event in events:
                yield describe_event(event)
    except GristmillError as error:
        yield "error", {"detail": str(error)}


async def stream_conversation(
    talker: Talker, speaker: Speaker, conversation: ConversationId, after: int, *, stops: bool = False
) -> AsyncGenerator[Pair]:
    """Each message behind `after`, whole, whenever it changes; then `ended`. With `stops`, leaving ends the answer."""
    try:
        async with aclosing(talker.follow(speaker, conversation, after=after)) as messages:
            async for message, draft in messages:
                shown = shape_message(message, conversation).model_dump(mode="json")
                yield "message", {**shown, "draft": draft, "waits": bool(draft) and talker.is_waiting(conversation)}
    except (GeneratorExit, asyncio.CancelledError):
        if stops:
            await talker.stop(speaker, conversation)
        raise
    yield "ended", {"conversation": conversation}


async def ask_in_conversation(
    db: Database, talker: Talker, speaker: Speaker, question: str, scope: Scope | None, conversation: int | None
) -> AsyncGenerator[Pair]:
    """Ask in a conversation, or in a new one (None); `conversation` is told first. Leaving stops the answer."""
    check_question(question)
    async with db.transaction(seen_from=speaker.bound_to) as tx:
        if conversation is None:
            chosen = await store.add_conversation(tx, scope or GLOBAL, speaker.owner)
        else:
            found = await store.load_conversation(tx, conversation, speaker.owner)
            store.check_scope(found, scope, WAY_OUT)
            chosen = found.id
    yield "conversation", {"id": chosen}
    asked = await talker.ask(speaker, chosen, question)
    async with aclosing(stream_conversation(talker, speaker, chosen, asked, stops=True)) as pairs:
        async for pair in pairs:
            yield pair
