"""Ask over HTTP: one question, or conversations; the answer as a whole or as server-sent events."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, Field

from gristmill.agents.ask import conversations as store
from gristmill.agents.ask.answering import LONGEST_QUESTION, Answerer, Past
from gristmill.agents.ask.conversations import ConversationId
from gristmill.agents.ask.model import AnswerEnded, CheckedAnswer
from gristmill.agents.ask.service import AskService
from gristmill.agents.ask.shapes import (
    AnswerShape,
    ConversationShape,
    MessageShape,
    shape_answer,
    shape_conversation,
    shape_message,
    shape_stored,
)
from gristmill.agents.ask.streams import Pair, stream_answer, stream_conversation
from gristmill.agents.ask.talking import Speaker
from gristmill.scopes import Scope
from gristmill.serving import (
    Caller,
    Cursor,
    Listing,
    Problem,
    Services,
    Viewer,
    answer_events,
    read_cursor,
    services_of,
    write_cursor,
    write_event,
)

ROUTES = APIRouter(tags=["ask"])
Id = Annotated[int, Path(ge=1, le=2**63 - 1, description="The id of a conversation.")]
Name = Annotated[str | None, Field(max_length=100)]
LONGEST_STREAM = 1_800.0  # seconds; a client that wants more comes back
WAY_OUT = "leave client and project out, or begin a new conversation"
GLANCE = 0.5  # seconds between two looks whether anybody still waits for an answer
T = TypeVar("T")


class AskWish(BaseModel):
    """A question."""

    question: Annotated[str, Field(min_length=1, max_length=LONGEST_QUESTION)]
    client: Name = None
    project: Name = None
    conversation: Annotated[int | None, Field(ge=1, le=2**63 - 1)] = Field(
        default=None, description="Continues this conversation; none: the question stands alone."
    )
    stream: bool = Field(
        default=False, description="Server-sent events: `found`, `draft`, `sentence`, then `answer` or `error`."
    )


class NewConversation(BaseModel):
    client: Name = None
    project: Name = None


class ConversationDetail(ConversationShape):
    messages: list[MessageShape]


class StoppedAnswer(BaseModel):
    """Whether there was an answer to stop."""

    stopped: bool


def asking_of(services: Services) -> AskService:
    return services.keep(AskService, lambda given: AskService(given.db, given.settings, given.finder))


def speaker_of(caller: Caller) -> Speaker:
    return Speaker(caller.identity, caller.bound_to, caller.name)


# --- one question


@ROUTES.post(
    "/ask",
    summary="Ask a question; every sentence of the answer names the passages that it stands on",
    response_model=AnswerShape,
    responses={200: {"content": {"text/event-stream": {}}}},
)
async def ask(request: Request, caller: Viewer, wish: AskWish) -> Response | AnswerShape:
    """Closing the connection stops the answer, down to the model; an answer in a conversation goes on."""
    asking = asking_of(services_of(request))
    if wish.conversation is not None:
        return await _ask_in_conversation(request, asking, caller, wish, ConversationId(wish.conversation))
    scope = caller.choose_view(wish.client, wish.project)
    if wish.stream:
        pairs = stream_answer(asking.answerer, wish.question, scope)
        return answer_events(write_events(pairs), longest=LONGEST_STREAM)
    return shape_answer(await wait_while_connected(request, answer_whole(asking.answerer, wish.question, scope)))


async def write_events(pairs: AsyncGenerator[Pair]) -> AsyncGenerator[str]:
    async with aclosing(pairs):
        async for pair in pairs:
            yield write_event(*pair)


async def answer_whole(
    answerer: Answerer, question: str, scope: Scope | None, past: Past | None = None
) -> CheckedAnswer:
    async with aclosing(answerer.answer(question, scope, past)) as events:
        async for event in events:
            if isinstance(event, AnswerEnded):
                return event.answer
    raise Problem(503, "The answer ended before it was complete: ask again.")


async def wait_while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result; if the client leaves meanwhile, the work is cancelled."""
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            await asyncio.wait([task], timeout=GLANCE)
            if not task.done() and await request.is_disconnected():
                break
        if not task.done():
            raise Problem(503, "Nobody waits for the answer any more.")
        return task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


# --- conversations


async def _ask_in_conversation(
    request: Request, asking: AskService, caller: Caller, wish: AskWish, conversation: ConversationId
) -> Response | AnswerShape:
    speaker = speaker_of(caller)
    if wish.client is not None or wish.project is not None:
        async with caller.reading(services_of(request).db) as tx:
            found = await store.load_conversation(tx, conversation, speaker.owner)
        store.check_scope(found, caller.choose_view(wish.client, wish.project), WAY_OUT)
    question = await asking.talker.ask(speaker, conversation, wish.question)
    if wish.stream:
        pairs = stream_conversation(asking.talker, speaker, conversation, question)
        return answer_events(write_events(pairs), longest=LONGEST_STREAM)
    answer: AnswerShape | None = None
    async for message, _ in asking.talker.follow(speaker, conversation, after=question):
        if message.role == "assistant":
            answer = shape_stored(message, conversation)
    if answer is None:
        raise Problem(503, "The answer was not begun: ask again.")
    if answer.state == "failed":
        raise Problem(503, answer.error or "The answer failed: ask again.")
    return answer


@ROUTES.get("/conversations", summary="Your conversations, the last one first")
async def get_conversations(
    request: Request, caller: Viewer, cursor: Cursor = None, limit: Annotated[int, Query(ge=1, le=200)] = 50
) -> Listing[ConversationShape]:
    before = read_cursor(cursor, int)
    async with caller.reading(services_of(request).db) as tx:
        found = await store.list_conversations(
            tx, caller.identity, before=int(before[0]) if before else None, limit=limit + 1
        )
    more = write_cursor(found[limit - 1].id) if len(found) > limit else None
    return Listing(items=[shape_conversation(one) for one in found[:limit]], next=more)


@ROUTES.post("/conversations", summary="Begin a conversation", status_code=201)
async def post_conversation(request: Request, caller: Viewer, wish: NewConversation) -> ConversationShape:
    scope = caller.choose_scope(wish.client, wish.project)
    async with caller.transaction(services_of(request).db) as tx:
        id = await store.add_conversation(tx, scope, caller.identity)
        return shape_conversation(await store.load_conversation(tx, id, caller.identity))


@ROUTES.get("/conversations/{id}", summary="A conversation with its messages")
async def get_conversation(request: Request, caller: Viewer, id: Id) -> ConversationDetail:
    async with caller.reading(services_of(request).db) as tx:
        found = await store.load_conversation(tx, id, caller.identity)
        messages = await store.list_messages(tx, found.id)
    shown = [shape_message(one, id) for one in messages]
    return ConversationDetail(**shape_conversation(found).model_dump(), messages=shown)


@ROUTES.get(
    "/conversations/{id}/events",
    summary="The messages of a conversation as they are written, as server-sent events, until nobody writes",
    response_class=Response,
    responses={200: {"content": {"text/event-stream": {}}}},
)
async def get_events(
    request: Request,
    caller: Viewer,
    id: Id,
    after: Annotated[int, Query(ge=0, le=2**63 - 1, description="Only messages behind this one.")] = 0,
) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        found = await store.load_conversation(tx, id, caller.identity)
    pairs = stream_conversation(asking_of(services).talker, speaker_of(caller), found.id, after)
    return answer_events(write_events(pairs), longest=LONGEST_STREAM)


@ROUTES.post("/conversations/{id}/stop", summary="Stop the answer that is being written, down to the model")
async def post_stop(request: Request, caller: Viewer, id: Id) -> StoppedAnswer:
    talker = asking_of(services_of(request)).talker
    return StoppedAnswer(stopped=await talker.stop(speaker_of(caller), ConversationId(id)))


@ROUTES.delete("/conversations/{id}", summary="Remove a conversation", status_code=204)
async def delete_conversation(request: Request, caller: Viewer, id: Id) -> Response:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        await store.remove_conversation(tx, id, caller.identity)
        await services.record(tx, caller, "remove", f"conversation {id}")
    return Response(status_code=204)
