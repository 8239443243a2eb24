"""Executes items by runs: an item becomes a run, its questions become the item's, and its report the item's result."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from gristmill.agents.effects import answer_question
from gristmill.agents.orchestrating import orchestrate
from gristmill.agents.replies import UserReply, answers_by_number, assign_answers, describe_questions, find_shown
from gristmill.agents.running import Course, RunCarrier, end_in_failure, end_with_report, list_hosts
from gristmill.agents.runs import (
    Question,
    Run,
    RunWish,
    WaitingForUser,
    add_run,
    continue_run,
    end_lost_steps,
    find_last_completed,
    find_rival,
    find_run,
    find_run_of,
    has_runs,
    list_questions,
    list_questions_of_item,
    list_steps_of_node,
    load_run,
    note_foreground,
    put_back_run,
    take_over,
    try_to_rest,
)
from gristmill.agents.workspaces import check_host
from gristmill.db import Tx
from gristmill.errors import LeaseLost, Permanent, Refused, Transient
from gristmill.ids import DocumentId, RunId, WorkItemId
from gristmill.qualifier import (
    Checkpoint,
    ExecutorResult,
    ItemMemory,
    ItemMessage,
    ItemQuestion,
    ResultCitation,
    WorkItem,
    load_item_texts,
    load_result,
    was_reopened,
)
from gristmill.rooms import Tools
from gristmill.scopes import Scope
from gristmill.telemetry import log

NAME = "agents"
TURN = 0.5  # seconds between two looks whether another run in the project is over
LONGEST_REQUEST = 90_000  # characters of an item that a run is shown
LONGEST_ECHO = 200  # characters of an answer that is shown again because it was not understood
MOST_QUESTIONS = 10_000  # of one run, that a message may answer
SAID = ("user", "answer")  # messages of persons
DEALT_WITH = "This was asked for before, and was dealt with already. Do not do it again:"


@dataclass(frozen=True)
class AgentExecutor:
    """Works on items with runs of agents. An interrupted run goes on from its last checkpoint."""

    tools: Tools
    course: Course = orchestrate
    _put_back: set["asyncio.Task[None]"] = field(default_factory=set["asyncio.Task[None]"])

    @property
    def name(self) -> str:
        return NAME

    async def check(self) -> None:
        await self.tools.models.llm.check()

    async def run(
        self, item: WorkItem, memory: ItemMemory | None, messages: Sequence[ItemMessage], checkpoint: Checkpoint
    ) -> ExecutorResult | ItemQuestion:
        """Carry the run of an item to its report, or to its next question; the memory is loaded by the run itself."""
        while True:
            run = await self._find_run(item, messages, checkpoint)
            unclear = await self._pass_answers_on(run, messages, checkpoint)
            end = await self._carry_on(run)
            if isinstance(end, ItemQuestion) and unclear:
                return ItemQuestion(f"“{unclear[:LONGEST_ECHO]}” is not clearly an answer. {end.text}")
            if isinstance(end, ItemQuestion) or not checkpoint.data.get("left") or not await self._has_completed(run):
                return end

    async def _has_completed(self, run: RunId) -> bool:
        async with self.tools.db.reading() as tx:
            return (await load_run(tx, run)).state == "completed"

    async def _carry_on(self, run: RunId) -> ExecutorResult | ItemQuestion:
        while True:
            fence = await self._take_turn(run)
            if fence is None:
                if (end := await self._conclude(run)) is not None:
                    return end
                continue
            try:
                await self._carry(run, fence)
            except asyncio.CancelledError:
                self._note_interruption(run, fence)
                raise

    # --- which run

    async def _find_run(self, item: WorkItem, messages: Sequence[ItemMessage], checkpoint: Checkpoint) -> RunId:
        """The run that the checkpoint names, one that is not over, or a new one.

        A new message after the end of a run begins another one: it knows what the one before has reported.
        """
        known = checkpoint.data.get("run")
        async with self.tools.db.transaction() as tx:
            if known is not None:
                over = ("stopped", "failed", "completed") if checkpoint.data.get("left") else ("stopped", "failed")
                kept = await find_run(tx, RunId(known))  # one that was over long ago is removed
                known = None if kept is None or kept.state in over else known
            if known is None and (found := await find_run_of(tx, item.id)):
                known = found.id
            if known is None:
                known = await add_run(tx, await make_request(tx, item, messages))
            await note_foreground(tx, RunId(known), item.foreground)
        if checkpoint.data.get("run") != known:
            await self._keep(checkpoint, known, heard=_last_of(messages))
        return RunId(known)

    async def _keep(self, checkpoint: Checkpoint, run: int, *, heard: int, left: bool = False) -> None:
        """`left`: something was said that answered no question; the next run hears it when this one is over."""
        await checkpoint.save(checkpoint.done + 1, {"run": run, "heard": heard, "left": left})

    async def _pass_answers_on(self, run: RunId, messages: Sequence[ItemMessage], checkpoint: Checkpoint) -> str:
        """What persons have said since the run rested answers its questions, each the one that it names.

        Words are an answer only if they came after the item showed the question: nobody answers a question unseen.
        Earlier words are a request of their own, which the next run hears. The last answer that could not be understood
        is returned: its question is asked again.
        """
        heard = int(checkpoint.data.get("heard", 0))
        said = [one for one in messages if one.id > heard and one.kind in SAID]
        if not said:
            return ""
        unclear = ""
        left = bool(checkpoint.data.get("left"))
        async with self.tools.db.transaction() as tx:
            for message in said:
                all_ = sorted(
                    await list_questions(tx, run=run, is_open=False, limit=MOST_QUESTIONS), key=lambda one: one.id
                )
                open_ = [one for one in all_ if one.state == "open"]
                replies = list(read_message(all_, message, messages))
                for question, choice, words in replies:
                    await answer_question(
                        tx, question.id, choice=choice, answer=words, by=message.by, message=message.id
                    )
                is_answer = bool(replies) or answers_by_number(all_, message.text)
                left = left or (message.kind == "user" and not is_answer)
                unclear = message.text if message.kind == "answer" and open_ and not replies else unclear
        await self._keep(checkpoint, run, heard=_last_of(messages), left=left)
        return unclear

    # --- how it is carried

    async def _take_turn(self, id_: RunId) -> int | None:
        """The fence, when no other run is at work in the project; None if the run waits for a person, or is over."""
        while True:
            async with self.tools.db.transaction() as tx:
                run = await load_run(tx, id_)
                if run.has_ended or run.state == "waiting_for_user":
                    return None
                if run.state == "running":  # its worker is gone; two such runs would wait for each other for ever
                    await put_back_run(tx, id_, run.fence)
                if reason := check_host(run, await list_hosts(tx), self.tools.settings.data):
                    raise Transient(reason)
                if await find_rival(tx, run) is None:
                    fence = await take_over(tx, id_)
                    await end_lost_steps(tx, id_)
                    return fence
            await asyncio.sleep(TURN)

    async def _carry(self, id_: RunId, fence: int) -> None:
        """One stretch of a run: until its end, or until a person is asked."""
        db = self.tools.db
        async with db.reading() as tx:
            run = await load_run(tx, id_)
        carrier = RunCarrier(self.tools, self.course)
        try:
            report = await carrier.course(await carrier.open_handle(run, fence))
        except WaitingForUser:
            async with db.transaction() as tx:
                if not await try_to_rest(tx, id_, fence):
                    await put_back_run(tx, id_, fence)  # the answer came a moment ago: it goes on at once
            return
        except (Permanent, Refused) as error:
            async with db.transaction() as tx:
                await end_in_failure(tx, id_, fence, str(error))
            return
        except LeaseLost:
            async with db.reading() as tx:
                if not (await load_run(tx, id_)).has_ended:
                    raise
            return  # a person stopped it
        async with db.transaction() as tx:
            await end_with_report(tx, id_, fence, report)

    def _note_interruption(self, run: RunId, fence: int) -> None:
        """The slot is free at once; that the run waits is written down beside."""

        async def put_back() -> None:
            async with self.tools.db.transaction() as tx:
                await put_back_run(tx, run, fence)

        task = asyncio.create_task(put_back())
        self._put_back.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: "asyncio.Task[None]") -> None:
        self._put_back.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("run.not_put_back", error=str(error)[:200])  # the next worker takes it over all the same

    # --- what came of it

    async def _conclude(self, id_: RunId) -> ExecutorResult | ItemQuestion | None:
        """None if a person answered a moment ago: the run goes on."""
        async with self.tools.db.transaction() as tx:
            run = await load_run(tx, id_)
            if run.state == "waiting_for_user":
                open_ = sorted(await list_questions(tx, run=id_), key=lambda one: one.id)
                if open_:
                    return ItemQuestion(describe_questions(open_))
                await continue_run(tx, id_)
                return None
            if run.state == "failed":
                raise Permanent(run.error or "Its run failed.")
            return await make_result(tx, run, self.tools.settings.llm.model)


def _last_of(messages: Sequence[ItemMessage]) -> int:
    return max((one.id for one in messages), default=0)


def was_shown(question: Question, message: ItemMessage, messages: Sequence[ItemMessage]) -> bool:
    """Whether the item had shown a question of its run when this was said."""
    return any(one.kind == "question" and one.id < message.id and one.at >= question.asked_at for one in messages)


def read_message(
    questions: Sequence[Question], message: ItemMessage, messages: Sequence[ItemMessage]
) -> Iterator[UserReply]:
    """What a message answers of all questions of a run: open ones that the item had shown before."""
    before = [one for one in messages if one.kind == "question" and one.id < message.id]
    if not before:
        return iter(())
    shown = [one for one in questions if one.state == "open" and was_shown(one, message, messages)]
    # also those that are answered by now: where two were asked at once, an answer without a number may be for either
    asked = find_shown(questions, before[-1].text)
    return assign_answers(shown, message.text, asked=asked, numbers=[int(one.id) for one in questions])


@dataclass(frozen=True)
class DealtWith:
    """How much of what was said to an item is dealt with."""

    at: datetime
    heard: int | None  # the last message

    def has(self, message: ItemMessage) -> bool:
        """By its number: a message may come between those that a run begins with and the run."""
        return message.at <= self.at if self.heard is None else message.id <= self.heard


async def make_request(tx: Tx, item: WorkItem, messages: Sequence[ItemMessage]) -> RunWish:
    """A run as its item asks for it.

    An item that a person added, and what persons say to any item, are a person's words. The text of an item that came
    from outside is not: it says what is to be looked at, never what may be done. A run that only something from outside
    has brought about is nobody's order, whatever a person ordered before.
    """
    dealt_with = await find_dealt_with(tx, item.id)
    said = await find_wishes(tx, item, messages, dealt_with)
    new = [one.text for one in said if dealt_with is None or not dealt_with.has(one)]
    old = [one.text for one in said if dealt_with is not None and dealt_with.has(one)]
    if item.text is not None and item.added_by is not None:
        (new if dealt_with is None else old).insert(0, item.text)
    if old and not new and dealt_with is not None and await was_reopened(tx, item.id, dealt_with.at):
        new, old = old, []  # a person wants all of it again
    by = said[-1].by if said else item.added_by
    if not new:
        new, by = await list_outside_words(tx, item, messages, dealt_with), None
    words = join_words(new, old)[:LONGEST_REQUEST]
    scope = Scope(item.client, item.project)
    given: dict[str, Any] = {
        "item": item.id,
        "item_type": item.type,
        "foreground": item.foreground,
        "heard": _last_of(messages),
    }
    return RunWish(words, by, scope, **given)


async def find_wishes(
    tx: Tx, item: WorkItem, messages: Sequence[ItemMessage], dealt_with: DealtWith | None
) -> list[ItemMessage]:
    """What persons want of an item. What they answered to a question is no wish: “approve” alone would be an order."""
    questions = await list_questions_of_item(tx, item.id)
    answers = {one.message for one in questions}
    # before the first run an answer was given to another executor: it says what the item is about
    kinds = SAID if dealt_with is None and not await has_runs(tx, item.id) else ("user",)
    said = [one for one in messages if one.kind in kinds and one.id not in answers]
    return [one for one in said if not answers_by_number(questions, one.text)]


async def list_outside_words(
    tx: Tx, item: WorkItem, messages: Sequence[ItemMessage], dealt_with: DealtWith | None
) -> list[str]:
    """What came from outside: an item itself and what joined it, or what joined a person's item since it was done."""
    joined = [one for one in messages if one.kind in ("mail", "item")]
    if item.text is not None and item.added_by is not None:
        return [one.text for one in joined if dealt_with is None or not dealt_with.has(one)]
    texts = await load_item_texts(tx, [item.origin if item.origin and item.text is None else item.id])
    if not texts:
        raise Permanent("Its documents were removed.")
    return [texts[0].text or item.title, *(one.text for one in joined)]


async def find_dealt_with(tx: Tx, item: WorkItemId) -> DealtWith | None:
    """The item knows it, too, when its runs are removed."""
    if (run := await find_last_completed(tx, item)) is not None:
        return DealtWith(run.at, run.heard)
    result = await load_result(tx, item)
    return DealtWith(result.at, None) if result is not None else None


def join_words(new: Sequence[str], old: Sequence[str]) -> str:
    """What a run is asked for. What a run has dealt with before is told as such: it is done once."""
    return "\n\n".join([*new, DEALT_WITH, *old] if old else new)


async def make_result(tx: Tx, run: Run, model: str) -> ExecutorResult:
    """The report as the result of an item, with the places that it cites."""
    if run.state == "stopped":
        return ExecutorResult(f"{run.stopped_by} stopped the run.", by=NAME)
    outputs = [one.output for one in await list_steps_of_node(tx, run.id, "finalize") if one.output]
    last: dict[str, Any] = outputs[-1] if outputs else {}
    citations = [
        ResultCitation(DocumentId(one["document"]), one["page"], one["start"], one["stop"], one["words"])
        for one in last.get("citations", [])
    ]
    return ExecutorResult(run.report or "", last.get("reply") or None, citations=citations, by=model or NAME)
