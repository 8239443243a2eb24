"""The page of conversations: questions, answers as they are written, and citations that open the page at the words."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Path, Query, Request, Response
from fastapi.responses import RedirectResponse

from gristmill.agents.ask import conversations as store
from gristmill.agents.ask.answering import LONGEST_QUESTION, check_question
from gristmill.agents.ask.api import LONGEST_STREAM, asking_of, speaker_of
from gristmill.agents.ask.conversations import Conversation, ConversationId, StoredMessage
from gristmill.agents.ask.model import KEPT_VERDICTS
from gristmill.agents.ask.shapes import AnswerShape, CitationShape, PassageShape, SentenceShape, shape_stored
from gristmill.agents.ask.talking import Speaker
from gristmill.scopes import list_clients
from gristmill.serving import Services, Viewer, answer_action, answer_events, is_partial, services_of, write_event
from gristmill.settings import AskSettings

PAGES = APIRouter(prefix="/ask")
Id = Annotated[int, Path(ge=1, le=2**63 - 1)]
Asked = Annotated[str, Form(max_length=LONGEST_QUESTION)]
SHOWN = 30  # conversations in the list
SHOWN_PASSAGES = 5  # where no model is configured


@dataclass(frozen=True)
class ShownTurn:
    """A message as the page shows it."""

    message: StoredMessage
    answer: AnswerShape | None
    draft: str = ""
    unsupported: Literal["drop", "flag"] = "drop"  # what becomes of sentences that nothing supports

    @property
    def sentences(self) -> Sequence[SentenceShape]:
        """The sentences of the answer; those that are left out are counted below it."""
        return [one for one in (self.answer.sentences if self.answer else ()) if self._is_shown(one)]

    @property
    def left_out(self) -> Sequence[SentenceShape]:
        return [one for one in (self.answer.sentences if self.answer else ()) if not self._is_shown(one)]

    def _is_shown(self, one: SentenceShape) -> bool:
        says_something = bool(one.citations) or not one.reason.startswith("It says nothing")
        return one.verdict in KEPT_VERDICTS or (self.unsupported == "flag" and says_something)

    @property
    def passages(self) -> Sequence[PassageShape]:
        return self.answer.passages[:SHOWN_PASSAGES] if self.answer and self.answer.kind == "passages" else ()


def show_message(message: StoredMessage, settings: AskSettings, draft: str = "") -> ShownTurn:
    answer = shape_stored(message) if message.role == "assistant" else None
    return ShownTurn(message, answer, draft, settings.unsupported)


def link_place(place: CitationShape | PassageShape) -> str:
    """The page of the document, with the words marked; or the record.

    If the words are not there any more, the documents of this name: a newer version has another number.
    """
    if place.record is not None:
        return f"/records/record/{place.record}"
    if (place.quote if isinstance(place, CitationShape) else place.text) is None:
        return f"/documents?{urlencode({'name': place.name})}"
    return f"/documents/{place.document}?{urlencode({'page': place.page, 'at': f'{place.start}-{place.stop}'})}"


# --- pages


@PAGES.get("")
async def show_asking(request: Request, caller: Viewer) -> Response:
    return await _render(request, caller, None, ())


@PAGES.get("/{id}")
async def show_conversation(request: Request, caller: Viewer, id: Id) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        found = await store.load_conversation(tx, id, caller.identity)
        messages = await store.list_messages(tx, found.id)
    return await _render(request, caller, found, [show_message(one, services.settings.ask) for one in messages])


async def _render(
    request: Request, caller: Viewer, conversation: Conversation | None, messages: Sequence[ShownTurn]
) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        others = await store.list_conversations(tx, caller.identity, limit=SHOWN)
        clients = await list_clients(tx) if caller.is_operator and conversation is None else []
    settings = services.settings
    waits = any(one.message.state in ("waiting", "writing") for one in messages)
    return services.render(
        request,
        "agents/ask.html",
        conversation=conversation,
        messages=messages,
        others=others,
        clients_to_choose=clients,
        has_model=bool(settings.ask.model or settings.llm.model),
        waits=waits,
        link_place=link_place,
        longest=LONGEST_QUESTION,
    )


@PAGES.get("/{id}/events")
async def stream_events(
    request: Request, caller: Viewer, id: Id, after: Annotated[int, Query(ge=0, le=2**63 - 1)] = 0
) -> Response:
    """The messages as pieces of the page, whenever they change; then `ended`."""
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        found = await store.load_conversation(tx, id, caller.identity)
    events = _draw_messages(request, services, speaker_of(caller), found.id, after)
    return answer_events(events, longest=LONGEST_STREAM)


async def _draw_messages(
    request: Request, services: Services, speaker: Speaker, conversation: ConversationId, after: int
) -> AsyncGenerator[str]:
    async with aclosing(asking_of(services).talker.follow(speaker, conversation, after=after)) as messages:
        async for message, draft in messages:
            shown = show_message(message, services.settings.ask, draft)
            page = services.render(request, "agents/message.html", one=shown, link_place=link_place)
            html = bytes(page.body).decode()
            yield write_event("message", {"id": message.id, "state": message.state, "html": html})
    yield write_event("ended", {})


# --- actions


@PAGES.post("")
async def begin_conversation(
    request: Request, caller: Viewer, question: Asked, client: Annotated[str, Form(max_length=100)] = ""
) -> Response:
    services = services_of(request)
    check_question(question)
    scope = caller.choose_scope(client or None, None)
    async with caller.transaction(services.db) as tx:
        conversation = await store.add_conversation(tx, scope, caller.identity)
    await asking_of(services).talker.ask(speaker_of(caller), conversation, question)
    return _go(request, f"/ask/{conversation}")


@PAGES.post("/{id}")
async def continue_conversation(request: Request, caller: Viewer, id: Id, question: Asked) -> Response:
    check_question(question)
    await asking_of(services_of(request)).talker.ask(speaker_of(caller), ConversationId(id), question)
    return Response(status_code=204) if is_partial(request) else RedirectResponse(f"/ask/{id}", status_code=303)


@PAGES.post("/{id}/stop")
async def stop_answer(request: Request, caller: Viewer, id: Id) -> Response:
    is_stopped = await asking_of(services_of(request)).talker.stop(speaker_of(caller), ConversationId(id))
    said = "The answer is stopped." if is_stopped else "No answer is being written."
    return answer_action(request, said, back=f"/ask/{id}")


@PAGES.post("/{id}/remove")
async def drop_conversation(request: Request, caller: Viewer, id: Id) -> Response:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        await store.remove_conversation(tx, id, caller.identity)
        await services.record(tx, caller, "remove", f"conversation {id}")
    return answer_action(request, "The conversation is removed.", back="/ask", go="/ask")


def _go(request: Request, address: str) -> Response:
    if is_partial(request):
        return Response(status_code=204, headers={"HX-Redirect": address})
    return RedirectResponse(address, status_code=303)
