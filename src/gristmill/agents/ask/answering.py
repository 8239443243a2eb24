"""Answers a question: retrieves, decides, asks the model, and checks every sentence while the next one is written."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from gristmill.agents.ask.abstaining import Grounds, may_answer, weigh_evidence
from gristmill.agents.ask.checking import Judgement, check_sentence, make_sentence
from gristmill.agents.ask.marks import read_marks
from gristmill.agents.ask.model import (
    AnswerEnded,
    CheckedAnswer,
    CheckedSentence,
    Draft,
    Event,
    Kind,
    Passage,
    PassagesFound,
    SentenceSaid,
    Waits,
)
from gristmill.agents.ask.pack import make_pack
from gristmill.agents.ask.phrases import admits_ignorance, say_model_failed, say_no_model, say_unknown
from gristmill.agents.ask.prompt import make_prompt
from gristmill.agents.ask.question import AskedQuestion, read_question, recognise_language
from gristmill.agents.ask.retrieval import PassageFinder, retrieve
from gristmill.agents.ask.sentences import SentenceStream
from gristmill.agents.patience import Silence, describe_silence, notice_silence
from gristmill.db import Database
from gristmill.documents import load_surroundings
from gristmill.errors import GristmillError, Permanent, Refused, Transient
from gristmill.ids import ChunkId
from gristmill.knowledge import graph, weigh_words
from gristmill.models import Message, StreamingLlm
from gristmill.scopes import Scope
from gristmill.settings import AskSettings
from gristmill.telemetry import log

CLOSE = 0.6  # the cosine from which two sentences say the same in other words
NOTHING_HOLDS = "The model answered, but no passage supports a sentence of it."
LONGEST_QUESTION = 8_000  # characters
MOST_SENTENCES = 40  # of one answer: a model that goes on for ever is stopped


@dataclass(frozen=True)
class Past:
    """What a conversation has said so far: its last messages, a summary of those before, and its language."""

    turns: Sequence[Message] = ()
    summary: str = ""
    language: str | None = None

    @property
    def questions(self) -> list[str]:
        return [one.text for one in self.turns if one.role == "user"]


@dataclass
class AnswerDraft:
    """What is known of an answer while it is made."""

    asked: AskedQuestion
    passages: tuple[Passage, ...] = ()
    note: str | None = None
    prepared_ms: float = 0.0
    sentences: list[CheckedSentence] = field(default_factory=list[CheckedSentence])
    shown: list[str] = field(default_factory=list[str])

    def finish(self, kind: Kind, text: str, model: str = "") -> CheckedAnswer:
        return CheckedAnswer(
            kind=kind,
            question=self.asked.text,
            asked=self.asked.complete,
            language=self.asked.language,
            text=text,
            sentences=tuple(self.sentences),
            passages=self.passages,
            note=self.note,
            model=model,
            prepared_ms=self.prepared_ms,
        )


async def note_nothing() -> None:
    """Does nothing: for a process in which no background work could be in the way."""


class Answerer:
    """Answers questions with a finder whose model stays loaded, and an LLM if one is configured."""

    def __init__(
        self,
        db: Database,
        finder: PassageFinder,
        settings: AskSettings,
        llm: StreamingLlm | None,
        model: str,
        note_request: Callable[[], Awaitable[None]] = note_nothing,
        *,
        where: str = "",
        falls_back: bool = True,
    ) -> None:
        """`note_request` is called for every question: background work gives way to people.

        `where` is the address of the model, for people who wait for it. With `falls_back`, a model that fails leaves
        the passages as the answer; else its error is raised, for a caller that tries again.
        """
        self._db = db
        self._finder = finder
        self._settings = settings
        self._llm = llm if model else None
        self._note_request = note_request
        self._where = where
        self._falls_back = falls_back
        self.model = model

    async def answer(self, question: str, scope: Scope | None, past: Past | None = None) -> AsyncGenerator[Event]:
        """Everything that happens until the answer is complete. Closing the generator ends the call to the model.

        Without a scope, all that is stored is asked: that is for the operator alone.
        """
        began = time.perf_counter()
        past = past or Past()
        check_question(question)
        known = AnswerDraft(read_question(question, past.questions, past.language))
        grounds = await self._prepare(known, scope)
        known.prepared_ms = round(1000 * (time.perf_counter() - began), 1)
        yield PassagesFound(known.passages, known.asked.complete)
        if not known.passages or not may_answer(grounds):
            known.note = " ".join(filter(None, (known.note, grounds.reason if known.passages else None)))
            yield AnswerEnded(known.finish("unknown", say_unknown(known.asked.language)))
        elif self._llm is None:
            yield AnswerEnded(known.finish("passages", say_no_model(known.asked.language)))
        else:
            async with aclosing(self._ask_model(self._llm, known, past)) as events:
                async for event in events:
                    yield event

    async def find(self, question: str, scope: Scope | None, past: Past | None = None) -> tuple[AnswerDraft, Grounds]:
        """The passages for a question, and what speaks for them; no model is asked."""
        check_question(question)
        past = past or Past()
        known = AnswerDraft(read_question(question, past.questions, past.language))
        return known, await self._prepare(known, scope)

    async def _prepare(self, known: AnswerDraft, scope: Scope | None) -> Grounds:
        asked = known.asked
        found, weights, _ = await asyncio.gather(
            retrieve(self._finder, scope, asked, find_leads=partial(self._find_leads, scope)),
            weigh_words(self._db, scope, asked.complete),
            self._note_request(),
        )
        async with self._db.reading(seen_from=scope) as tx:
            around = await load_surroundings(tx, [one.hit.chunk for one in found.hits])
        settings = self._settings
        known.passages = make_pack(found.hits, around, most=settings.passages, budget=settings.evidence_tokens)
        known.note = found.note
        similarity = max((one.hit.similarity or 0.0 for one in found.hits[:5]), default=0.0)
        return weigh_evidence(asked, weights, known.passages, similarity)

    async def _find_leads(self, scope: Scope | None, chunks: Sequence[ChunkId]) -> list[graph.Lead]:
        async with self._db.reading(seen_from=scope) as tx:
            return await graph.find_leads(tx, scope, chunks)

    # --- with a model

    async def _ask_model(self, llm: StreamingLlm, known: AnswerDraft, past: Past) -> AsyncGenerator[Event]:
        prompt = make_prompt(known.asked, known.passages, past.turns, past.summary)
        stream = SentenceStream()
        pieces = llm.stream_text(prompt, model=self.model, priority="P0", max_tokens=self._settings.answer_tokens)
        try:
            async with aclosing(notice_silence(pieces)) as heard:
                async for piece in heard:
                    if isinstance(piece, Silence):
                        yield Waits(describe_silence(self.model, self._where, piece.seconds))
                        continue
                    for text in stream.add(piece):
                        yield await self._check(known, text)
                    if stream.rest:
                        yield Draft(stream.rest)
                    if len(known.sentences) >= MOST_SENTENCES:
                        break
            for text in stream.end():
                yield await self._check(known, text)
        except (Transient, Permanent) as error:
            if not known.shown and not self._falls_back:
                raise
            known.note = " ".join(filter(None, (known.note, str(error))))
            if not known.shown:
                yield AnswerEnded(known.finish("passages", say_model_failed(known.asked.language), self.model))
                return
            # sentences that were complete and checked stay: only the last one is missing
        yield AnswerEnded(self._finish(known))

    async def _check(self, known: AnswerDraft, text: str) -> SentenceSaid:
        """Check one sentence, and decide whether it is shown."""
        marked = read_marks(text, len(known.passages))
        sentence = await self._judge(known, marked.text, marked.numbers)
        known.sentences.append(sentence)
        is_answer = not admits_ignorance(sentence.text, sentence.verdict)
        shown = show_sentence(sentence, self._settings.unsupported) if is_answer else ""
        if shown:
            known.shown.append(shown)
        return SentenceSaid(sentence, shown)

    async def _judge(self, known: AnswerDraft, text: str, numbers: Sequence[int]) -> CheckedSentence:
        language = recognise_language(text) or known.asked.language
        checked, judged = check_sentence(
            text, numbers, known.passages, question=known.asked.complete, language=language
        )
        if judged.is_close and await self._means_the_same(text, judged):
            return make_sentence(text, Judgement("supported", judged.spans))
        return checked

    async def _means_the_same(self, text: str, judged: Judgement) -> bool:
        """Whether the span says the same in other words, by the vectors of both; without a model it does not."""
        try:
            one, other = await self._finder.embedders[0].embed([text, judged.spans[0].text])
        except (GristmillError, TimeoutError) as error:
            log.warning("ask.no_vectors", error=str(error)[:200])
            return False
        return multiply_vectors(one, other) >= CLOSE

    def _finish(self, known: AnswerDraft) -> CheckedAnswer:
        if not known.shown:
            if any(not admits_ignorance(one.text, one.verdict) for one in known.sentences):
                known.note = " ".join(filter(None, (known.note, NOTHING_HOLDS)))
            return known.finish("unknown", say_unknown(known.asked.language), self.model)
        return known.finish("answer", " ".join(known.shown), self.model)


def check_question(question: str) -> None:
    if not question.strip():
        raise Refused("Ask something: the question is empty.")
    if len(question) > LONGEST_QUESTION:
        raise Refused(f"The question has {len(question):,} characters: at most {LONGEST_QUESTION:,} are read.")


def multiply_vectors(one: bytes, other: bytes) -> float:
    """The cosine of two vectors of unit length."""
    import numpy as np  # noqa: PLC0415 it takes a tenth of a second, and few answers need it

    return float(np.dot(np.frombuffer(one, "<f4"), np.frombuffer(other, "<f4")))


def show_sentence(sentence: CheckedSentence, unsupported: Literal["drop", "flag"]) -> str:
    """The sentence with the numbers of its evidence before its full stop; empty if it is left out."""
    if sentence.verdict == "supported":
        return _put_before_stop(sentence.text, f" {_name_numbers(sentence)}")
    if sentence.verdict == "partial":  # also where others are left out: else an answer in another language had none
        return _put_before_stop(sentence.text, f" {_name_numbers(sentence)} [partial]")
    if unsupported == "drop" or (not sentence.citations and sentence.reason.startswith("It says nothing")):
        return ""
    return _put_before_stop(sentence.text, f" [{sentence.verdict}]")


def _name_numbers(sentence: CheckedSentence) -> str:
    return "".join(dict.fromkeys(f"[{cited.number}]" for cited in sentence.citations))


def _put_before_stop(text: str, mark: str) -> str:
    body = text.rstrip(".!?…")
    return f"{body}{mark}{text[len(body) :] or '.'}"
