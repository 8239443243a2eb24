"""Writes the answers of conversations in the background: one at a time in each, stopped at once, followed by anybody.

A question is stored before anything else happens. A process that finds no writer becomes the writer, answers all
questions that wait, and leaves when none is left. The rows say everything: another process may follow or stop.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from gristmill.agents.ask import conversations as store
from gristmill.agents.ask.answering import Answerer
from gristmill.agents.ask.conversations import (
    Conversation,
    ConversationId,
    Ending,
    MessageId,
    StoredMessage,
    WaitingQuestion,
    describe_answer,
    describe_sentences,
)
from gristmill.agents.ask.memory import recall, select_forgotten, sum_up
from gristmill.agents.ask.model import (
    AnswerEnded,
    CheckedAnswer,
    CheckedSentence,
    Draft,
    PassagesFound,
    SentenceSaid,
    Waits,
)
from gristmill.agents.memory import remember_in
from gristmill.db import Database
from gristmill.errors import GristmillError
from gristmill.models import Llm
from gristmill.scopes import GLOBAL, Scope
from gristmill.telemetry import log

BEAT = 1.0  # seconds between two signs of life; another process that wants to stop an answer waits so long at most
LOOK = 0.5  # seconds after which a follower looks at the rows again, if nobody in this process told it anything


@dataclass(frozen=True)
class Speaker:
    """Who talks: the identity that owns its conversations, and the scope that it is bound to (None: the operator)."""

    owner: str
    bound_to: Scope | None = None
    name: str = "operator"  # by which its runs are asked for


@dataclass
class Telling:
    """What followers in this process are told at once: that something changed, and the sentence at hand."""

    draft: str = ""
    waits: bool = False  # the draft says what is waited for: the model has said nothing yet
    stored: int = 0  # how often rows have changed: a draft is in none
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    asked: asyncio.Event = field(default_factory=asyncio.Event)  # a question came

    def tell(self, draft: str = "", *, waits: bool = False) -> None:
        """Rows have changed."""
        self.stored += 1
        self.tell_draft(draft, waits=waits)

    def tell_draft(self, draft: str, *, waits: bool = False) -> None:
        """Only the sentence at hand has changed; this happens with every word of a model."""
        self.draft, self.waits = draft, waits
        self.changed.set()
        self.changed = asyncio.Event()  # followers that wait have the old event


@dataclass
class Writing:
    """An answer that is being written."""

    conversation: Conversation
    message: MessageId
    questions: Sequence[WaitingQuestion]
    sentences: list[CheckedSentence] = field(default_factory=list[CheckedSentence])
    shown: list[str] = field(default_factory=list[str])
    found: PassagesFound = field(default_factory=PassagesFound)
    answer: CheckedAnswer | None = None

    @property
    def question_ids(self) -> list[MessageId]:
        return [one.id for one in self.questions]

    @property
    def text(self) -> str:
        return self.answer.text if self.answer else " ".join(self.shown)

    def describe(self, **more: Any) -> dict[str, Any]:
        known = describe_answer(self.answer) if self.answer else {"kind": "answer", **self._describe_progress()}
        return {**known, **more}

    def _describe_progress(self) -> dict[str, Any]:
        passages = [store.describe_place(one) for one in self.found.passages]
        return {"sentences": describe_sentences(self.sentences), "passages": passages, "asked": self.found.asked}


class Superseded(Exception):
    """A question came before anything was said: it is answered together with the one before."""


class AnswerStopped(Exception):
    """Somebody wants the answer to end."""


class Talker:
    """All conversations that this process writes; `async with` ends them, and what they had written stays."""

    def __init__(self, db: Database, answerer: Answerer, llm: Llm | None, *, turns: int) -> None:
        self._db = db
        self._answerer = answerer
        self._llm = llm
        self._turns = turns
        self._writers: dict[ConversationId, asyncio.Task[None]] = {}
        self._answers: dict[ConversationId, asyncio.Task[Ending]] = {}
        self._summaries: dict[ConversationId, asyncio.Task[None]] = {}
        self._tellings: dict[ConversationId, Telling] = {}
        self._is_closing = False

    async def close(self) -> None:
        self._is_closing = True
        tasks = [*self._writers.values(), *self._summaries.values()]
        for one in tasks:
            one.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def ask(self, speaker: Speaker, conversation: ConversationId, text: str) -> MessageId:
        """Store a question and see to it that it is answered."""
        async with self._db.transaction(seen_from=speaker.bound_to) as tx:
            await store.load_conversation(tx, conversation, speaker.owner)
            question = await store.add_question(tx, conversation, text)
        self._telling(conversation).tell(self._telling(conversation).draft)
        self._telling(conversation).asked.set()
        await self.wake(speaker, conversation)
        return question

    async def wake(self, speaker: Speaker, conversation: ConversationId) -> None:
        """Write if a question waits and nobody writes: a process that died may have left it."""
        running = self._writers.get(conversation)
        if self._is_closing or (running is not None and not running.done()):
            return
        writer = uuid4()
        async with self._db.transaction(seen_from=speaker.bound_to) as tx:
            if not await store.list_waiting(tx, conversation) or not await store.claim(tx, conversation, writer):
                return
        task = asyncio.create_task(self._write_all(speaker, conversation, writer))
        self._writers[conversation] = task

    async def stop(self, speaker: Speaker, conversation: ConversationId) -> bool:
        """End the answer at hand, wherever it is written; whether there was one."""
        async with self._db.transaction(seen_from=speaker.bound_to) as tx:
            await store.load_conversation(tx, conversation, speaker.owner)
            is_asked = await store.ask_to_stop(tx, conversation, speaker.owner)
        if (answer := self._answers.get(conversation)) is not None:
            answer.cancel()
        return is_asked

    async def follow(
        self, speaker: Speaker, conversation: ConversationId, *, after: int = 0
    ) -> AsyncGenerator[tuple[StoredMessage, str]]:
        """Each message behind `after` whenever it changes, with the draft at hand; ends when nobody writes."""
        known: dict[MessageId, tuple[Any, ...]] = {}
        while True:
            telling = self._telling(conversation)
            changed, stored = telling.changed, telling.stored
            async with self._db.reading(seen_from=speaker.bound_to) as tx:
                now = await store.load_conversation(tx, conversation, speaker.owner)
                messages = await store.list_messages(tx, conversation, after=after)
            for one in messages:
                draft = telling.draft if one.state == "writing" else ""
                state = (one.state, one.text, len((one.answer or {}).get("sentences", ())), draft)
                if known.get(one.id) != state:
                    known[one.id] = state
                    yield one, draft
            if not now.is_writing and not any(one.state == "waiting" for one in messages):
                return
            if not now.is_writing:
                await self.wake(speaker, conversation)
            writing = next((one for one in messages if one.state == "writing"), None)
            async with aclosing(_follow_drafts(telling, changed, stored)) as drafts:
                async for draft in drafts:
                    if writing is not None:
                        known[writing.id] = (*known[writing.id][:3], draft)
                        yield writing, draft

    def is_waiting(self, conversation: ConversationId) -> bool:
        """Whether the draft at hand says what is waited for."""
        return conversation in self._tellings and self._tellings[conversation].waits

    def _telling(self, conversation: ConversationId) -> Telling:
        return self._tellings.setdefault(conversation, Telling())

    # --- writing

    async def _write_all(self, speaker: Speaker, conversation: ConversationId, writer: UUID) -> None:
        """Answer all questions that wait, until none is left."""
        has_failed = True
        try:
            while (writing := await self._begin(speaker, conversation, writer)) is not None:
                await self._write_one(speaker, writing, writer)
                async with self._db.transaction(seen_from=speaker.bound_to) as tx:
                    if await store.release(tx, conversation, writer):
                        break
            has_failed = False
        except GristmillError as error:
            log.warning("ask.writer_ended", conversation=conversation, error=str(error)[:200])
        finally:
            await self._leave(speaker, conversation, writer)
            self._writers.pop(conversation, None)
            self._telling(conversation).tell()
            if not self._is_closing:
                self._tellings.pop(conversation, None)
        if not has_failed:
            self._begin_summary(speaker, conversation)
            with suppress(GristmillError):
                await self.wake(speaker, conversation)  # a question that came after the last look found a writer

    async def _leave(self, speaker: Speaker, conversation: ConversationId, writer: UUID) -> None:
        with suppress(GristmillError, asyncio.CancelledError):
            async with self._db.transaction(seen_from=speaker.bound_to) as tx:
                await store.leave(tx, conversation, writer)

    async def _begin(self, speaker: Speaker, conversation: ConversationId, writer: UUID) -> Writing | None:
        async with self._db.transaction(seen_from=speaker.bound_to) as tx:
            questions = await store.list_waiting(tx, conversation)
            if not questions or (message := await store.begin_answer(tx, conversation, writer)) is None:
                return None
            return Writing(await store.load_conversation(tx, conversation, speaker.owner), message, questions)

    async def _write_one(self, speaker: Speaker, writing: Writing, writer: UUID) -> None:
        """Write an answer while another task says that we live, and listens whether anybody wants something else."""
        conversation = writing.conversation.id
        self._telling(conversation).tell()
        answer = asyncio.create_task(self._answer(speaker, writing))
        self._answers[conversation] = answer
        watch = asyncio.create_task(self._watch(speaker, writing, writer))
        try:
            await asyncio.wait([answer, watch], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._answers.pop(conversation, None)
            for one in (answer, watch):
                one.cancel()
            ended = await asyncio.gather(answer, watch, return_exceptions=True)
            await asyncio.shield(self._end(speaker, writing, writer, *ended))

    async def _answer(self, speaker: Speaker, writing: Writing) -> Ending:
        question = "\n".join(one.text for one in writing.questions)
        async with self._db.reading(seen_from=speaker.bound_to) as tx:
            messages = await store.list_messages(tx, writing.conversation.id)
        past = recall(writing.conversation, messages, self._turns)
        telling = self._telling(writing.conversation.id)
        async with aclosing(self._answerer.answer(question, self._choose_view(speaker, writing), past)) as events:
            async for event in events:
                match event:
                    case PassagesFound():
                        writing.found = event
                    case Draft(text) | Waits(text):
                        telling.tell_draft(text, waits=isinstance(event, Waits))
                        continue
                    case SentenceSaid(sentence, shown):
                        writing.sentences.append(sentence)
                        writing.shown += [shown] if shown else []
                    case AnswerEnded(answer):
                        writing.answer = answer
                        return "done"
                await self._save(speaker, writing)
                telling.tell()
        return "done"

    def _choose_view(self, speaker: Speaker, writing: Writing) -> Scope | None:
        """An operator who named no client asks everything."""
        scope = writing.conversation.scope
        return None if scope == GLOBAL and speaker.bound_to is None else scope

    async def _save(self, speaker: Speaker, writing: Writing) -> None:
        async with self._db.transaction(seen_from=speaker.bound_to) as tx:
            await store.save_answer(tx, writing.message, writing.text, writing.describe())

    async def _watch(self, speaker: Speaker, writing: Writing, writer: UUID) -> None:
        """Say every second that we live; ends when the answer should."""
        telling = self._telling(writing.conversation.id)
        while True:
            telling.asked.clear()
            async with self._db.transaction(seen_from=speaker.bound_to) as tx:
                life = await store.note_life(tx, writing.conversation.id, writer, writing.question_ids)
            if life is None or life.stop_asked:
                raise AnswerStopped
            if life.has_news and not writing.sentences:
                raise Superseded
            with suppress(TimeoutError):
                async with asyncio.timeout(BEAT):
                    await telling.asked.wait()

    async def _end(
        self,
        speaker: Speaker,
        writing: Writing,
        writer: UUID,
        answer: Ending | BaseException,
        watch: BaseException | None,
    ) -> None:
        """Settle what was written: complete, stopped, failed, or taken back because a newer question came first."""
        async with self._db.transaction(seen_from=speaker.bound_to) as tx:
            if isinstance(watch, Superseded) and answer != "done":
                await store.drop_answer(tx, writing.message)
                return
            state, more = _judge_end(answer, watch, is_closing=self._is_closing)
            taken = writing.question_ids if state is not None else []
            described = writing.describe(**more)
            await store.end_answer(
                tx, writing.conversation.id, writing.message, taken, state or "stopped", writing.text, described
            )
            await store.unstop(tx, writing.conversation.id, writer)
        self._telling(writing.conversation.id).tell()
        if state == "done" and writing.answer is not None and writing.answer.kind == "answer":
            await self._note_in_session(speaker, writing, writing.answer)

    async def _note_in_session(self, speaker: Speaker, writing: Writing, answer: CheckedAnswer) -> None:
        """Agents that work for the same person later know what was asked; only the program may write there."""
        said = f"{writing.questions[-1].text} – {answer.text}"
        try:
            async with self._db.transaction() as tx:
                details = {"conversation": writing.conversation.id}
                await remember_in(tx, writing.conversation.scope, speaker.name, "chat", said, details)
        except GristmillError as error:  # the answer is kept, whatever becomes of this
            log.warning("ask.not_remembered", conversation=writing.conversation.id, error=str(error)[:200])

    # --- remembering

    def _begin_summary(self, speaker: Speaker, conversation: ConversationId) -> None:
        """Sum up in a task of its own: the next question does not wait for it."""
        if self._is_closing or conversation in self._summaries:
            return
        task = asyncio.create_task(self._remember(speaker, conversation))
        self._summaries[conversation] = task
        task.add_done_callback(lambda _: self._summaries.pop(conversation, None))

    async def _remember(self, speaker: Speaker, conversation: ConversationId) -> None:
        """Sum up what the model will not see any more."""
        try:
            async with self._db.reading(seen_from=speaker.bound_to) as tx:
                now = await store.load_conversation(tx, conversation, speaker.owner)
                forgotten = select_forgotten(now, await store.list_messages(tx, conversation), self._turns)
            if forgotten:
                summary = await sum_up(now.summary, forgotten, self._llm, self._answerer.model)
                async with self._db.transaction(seen_from=speaker.bound_to) as tx:
                    await store.keep_summary(tx, conversation, summary, forgotten[-1].id)
        except GristmillError as error:  # what no summary has is summed up after the next answer
            log.warning("ask.not_summed_up", conversation=conversation, error=str(error)[:200])


async def _follow_drafts(telling: Telling, changed: asyncio.Event, stored: int) -> AsyncGenerator[str]:
    """The drafts that are told until a row changes, or until it is time to look at the rows again."""
    until = asyncio.get_running_loop().time() + LOOK
    with suppress(TimeoutError):
        while True:
            async with asyncio.timeout_at(until):
                await changed.wait()
            if telling.stored != stored:
                return
            changed = telling.changed
            yield telling.draft


def _judge_end(
    answer: Ending | BaseException, watch: BaseException | None, *, is_closing: bool
) -> tuple[Ending | None, dict[str, Any]]:
    """What became of an answer; None if its questions should be answered by another process."""
    match answer:
        case "done" | "stopped" | "failed":
            return answer, {}
        case asyncio.CancelledError() if is_closing:
            return None, {"error": store.CUT_OFF}
        case asyncio.CancelledError() if watch is None or isinstance(watch, (asyncio.CancelledError, AnswerStopped)):
            return "stopped", {}
        case asyncio.CancelledError():  # nobody asked for it: the watch broke, and the answer ended with it
            return "failed", {"error": _describe_failure(watch)}
        case _:
            return "failed", {"error": _describe_failure(answer)}


def _describe_failure(error: BaseException | None) -> str:
    if isinstance(error, GristmillError):
        return str(error)
    log.error("ask.failed", exc_info=error)
    return "Something unexpected went wrong; the log of the server has it."
