"""Conversations: nothing that is said is lost, whoever stops, restarts, or speaks in between."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from evidence import store_page

from gristmill.agents import Answerer, Speaker, Talker
from gristmill.agents.ask import conversations as store
from gristmill.agents.ask import talking
from gristmill.agents.ask.conversations import ConversationId, StoredMessage
from gristmill.agents.ask.memory import sum_up, sum_up_by_rule
from gristmill.agents.ask.pages import ShownTurn
from gristmill.agents.ask.shapes import AnswerShape, SentenceShape
from gristmill.agents.memory import list_entries
from gristmill.db import Database
from gristmill.errors import Transient, Unknown, Unreachable
from gristmill.knowledge import Finder
from gristmill.models import FakeEmbedder, FakeLlm, Message
from gristmill.scopes import GLOBAL, Scope
from gristmill.settings import AskSettings, Settings

OPERATOR = Speaker("operator")
QUESTION = "What is the price of the copper kettle?"
REPLY = "The price of the copper kettle is EUR 5,000.00 [1]."


class Script:
    """A model that waits between its sentences until the test lets it go on; `closed` counts calls that were ended."""

    def __init__(self, sentences: Sequence[str]) -> None:
        self.sentences = sentences
        self.asked: list[str] = []
        self.closed = 0
        self.begun = asyncio.Event()
        self.gate = asyncio.Semaphore(0)

    async def stream_text(self, question: str | Sequence[Message], **_: Any) -> AsyncGenerator[str]:
        self.asked.append(question if isinstance(question, str) else "\n".join(turn.text for turn in question))
        self.begun.set()
        try:
            for sentence in self.sentences:
                await self.gate.acquire()
                yield f"{sentence} "
        finally:
            self.closed += 1


@pytest.fixture
async def finder(db: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> AsyncIterator[Finder]:
    async with Finder(db, Settings(data=tmp_path)) as opened:
        monkeypatch.setattr(type(opened), "embedders", [FakeEmbedder()])
        await store_page(
            db, "The price of the copper kettle is EUR 5,000.00. It was made in 1868 in Brno.", embedder=FakeEmbedder()
        )
        yield opened


MakeTalker = Callable[..., Talker]


@pytest.fixture
async def make_talker(db: Database, finder: Finder) -> AsyncIterator[MakeTalker]:
    made: list[Talker] = []

    def make(llm: Any, turns: int = 20) -> Talker:
        answerer = Answerer(db, finder, AskSettings(), llm, "scripted")
        made.append(Talker(db, answerer, None, turns=turns))
        return made[-1]

    yield make
    for one in made:
        await one.close()


async def begin(db: Database, scope: Scope = GLOBAL, owner: str = "operator") -> ConversationId:
    async with db.transaction() as tx:
        return await store.add_conversation(tx, scope, owner)


async def load(db: Database, conversation: ConversationId) -> store.Conversation:
    async with db.transaction() as tx:
        return await store.load_conversation(tx, conversation, "operator")


async def read(db: Database, conversation: ConversationId) -> list[StoredMessage]:
    async with db.transaction() as tx:
        return await store.list_messages(tx, conversation)


async def wait_for_end(talker: Talker, conversation: ConversationId, speaker: Speaker = OPERATOR) -> None:
    async for _ in talker.follow(speaker, conversation):
        pass


def outline(messages: Sequence[StoredMessage]) -> list[tuple[str, str, str]]:
    return [(one.role, one.state, one.text) for one in messages]


async def test_a_question_is_stored_and_answered(db: Database, make_talker: MakeTalker) -> None:
    talker, conversation = make_talker(FakeLlm([REPLY])), await begin(db)
    await talker.ask(OPERATOR, conversation, QUESTION)
    await wait_for_end(talker, conversation)
    messages = await read(db, conversation)
    assert [(one.role, one.state) for one in messages] == [("user", "answered"), ("assistant", "done")]
    (sentence,) = (messages[1].answer or {})["sentences"]
    assert sentence["citations"][0]["quote"] == "The price of the copper kettle is EUR 5,000.00."
    async with db.transaction() as tx:
        assert (await store.load_conversation(tx, conversation, "operator")).title == QUESTION
        (entry,) = await list_entries(tx)  # agents that work there later know of it
    assert entry.source == "chat"
    assert QUESTION in entry.summary
    assert "EUR 5,000.00" in entry.summary


async def test_stop_ends_the_call_at_once_and_keeps_what_was_said(db: Database, make_talker: MakeTalker) -> None:
    script = Script([REPLY, "It was made in 1868 in Brno [1].", "It is never said."])
    talker, conversation = make_talker(script), await begin(db)
    await talker.ask(OPERATOR, conversation, QUESTION)
    await script.begun.wait()
    script.gate.release()
    script.gate.release()
    async for message, _ in talker.follow(OPERATOR, conversation):
        if message.role == "assistant" and message.text:
            break
    assert await talker.stop(OPERATOR, conversation)
    await wait_for_end(talker, conversation)
    assert script.closed == 1
    assert outline(await read(db, conversation))[1:] == [
        ("assistant", "stopped", "The price of the copper kettle is EUR 5,000.00 [1].")
    ]
    assert not await talker.stop(OPERATOR, conversation)


async def test_a_message_before_the_first_word_is_answered_with_the_one_before(
    db: Database, make_talker: MakeTalker
) -> None:
    script = Script([REPLY])
    talker, conversation = make_talker(script), await begin(db)
    await talker.ask(OPERATOR, conversation, QUESTION)
    await script.begun.wait()
    script.begun.clear()
    await talker.ask(OPERATOR, conversation, "And in which year was the copper kettle made?")
    await script.begun.wait()
    for _ in range(3):
        script.gate.release()
    await wait_for_end(talker, conversation)
    assert script.closed == 2
    assert QUESTION in script.asked[1]
    assert "in which year" in script.asked[1]
    messages = await read(db, conversation)
    assert [(one.role, one.state) for one in messages] == [
        ("user", "answered"),
        ("user", "answered"),
        ("assistant", "done"),
    ]


async def test_a_message_while_an_answer_is_written_waits_for_its_turn(db: Database, make_talker: MakeTalker) -> None:
    script = Script([REPLY, "It was made in 1868 in Brno [1]."])
    talker, conversation = make_talker(script), await begin(db)
    await talker.ask(OPERATOR, conversation, QUESTION)
    await script.begun.wait()
    script.gate.release()
    script.gate.release()  # the first sentence is certain when the second has begun
    async for message, _ in talker.follow(OPERATOR, conversation):
        if message.role == "assistant" and message.text:
            break
    await talker.ask(OPERATOR, conversation, "Where was the copper kettle made?")
    for _ in range(4):
        script.gate.release()
    await wait_for_end(talker, conversation)
    assert len(script.asked) == 2
    assert "EUR 5,000.00" in script.asked[1]  # the next answer sees the one before
    states = [(one.role, one.state) for one in await read(db, conversation)]
    assert states.count(("assistant", "done")) == 2
    assert states.count(("user", "answered")) == 2


async def test_a_process_that_ends_leaves_the_question_to_the_next(db: Database, make_talker: MakeTalker) -> None:
    script = Script([REPLY])
    talker, conversation = make_talker(script), await begin(db)
    await talker.ask(OPERATOR, conversation, QUESTION)
    await script.begun.wait()
    await talker.close()
    assert script.closed == 1
    assert [(one.role, one.state) for one in await read(db, conversation)] == [
        ("user", "waiting"),
        ("assistant", "stopped"),
    ]
    other = make_talker(FakeLlm([REPLY]))
    await wait_for_end(other, conversation)  # whoever looks at the conversation sees to it that it is answered
    assert [(one.role, one.state) for one in await read(db, conversation)] == [
        ("user", "answered"),
        ("assistant", "stopped"),
        ("assistant", "done"),
    ]


async def test_what_a_killed_process_was_writing_is_ended_by_the_next(db: Database, make_talker: MakeTalker) -> None:
    conversation = await begin(db)
    async with db.transaction() as tx:
        await store.add_question(tx, conversation, QUESTION)
        await tx.execute(
            """UPDATE conversation SET writer = gen_random_uuid(), alive_at = clock() - interval '1 min'
                WHERE id = %(id)s""",
            id=conversation,
        )
        await tx.execute(
            """INSERT INTO conversation_message (conversation, scope, role, state, text, answer)
               VALUES (%(id)s, 1, 'assistant', 'writing', 'Half an', '{"sentences": []}')""",
            id=conversation,
        )
    await wait_for_end(make_talker(FakeLlm([REPLY])), conversation)
    messages = await read(db, conversation)
    assert [(one.role, one.state) for one in messages] == [
        ("user", "answered"),
        ("assistant", "stopped"),
        ("assistant", "done"),
    ]
    assert (messages[1].text, messages[1].error) == ("Half an", store.CUT_OFF)


async def test_a_failing_model_is_told_and_the_conversation_goes_on(db: Database, make_talker: MakeTalker) -> None:
    talker, conversation = make_talker(FakeLlm([Transient("The router is away."), REPLY])), await begin(db)
    for _ in range(2):
        await talker.ask(OPERATOR, conversation, QUESTION)
        await wait_for_end(talker, conversation)
    messages = await read(db, conversation)
    assert [one.state for one in messages if one.role == "assistant"] == ["done", "done"]
    kept = messages[1].answer or {}
    assert (kept["kind"], kept["note"]) == ("passages", "The router is away.")
    assert kept["passages"]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Unreachable("The database does not answer."), "The database does not answer."),
        (ValueError("surprise"), "Something unexpected went wrong; the log of the server has it."),
    ],
)
async def test_an_answer_that_ends_because_its_watch_broke_has_failed_and_was_not_stopped(
    db: Database, make_talker: MakeTalker, monkeypatch: pytest.MonkeyPatch, error: Exception, told: str
) -> None:
    script = Script([REPLY])
    talker, conversation = make_talker(script), await begin(db)

    async def break_off(*_: Any) -> None:
        await script.begun.wait()
        raise error

    monkeypatch.setattr(store, "note_life", break_off)
    await talker.ask(OPERATOR, conversation, QUESTION)
    await wait_for_end(talker, conversation)
    messages = await read(db, conversation)
    assert [one.state for one in messages] == ["answered", "failed"]
    assert messages[1].error == told


async def test_nobody_sees_the_conversation_of_another(db: Database, make_talker: MakeTalker) -> None:
    talker = make_talker(FakeLlm([REPLY]))
    acme, globex = Speaker("key 1", Scope("acme")), Speaker("key 2", Scope("globex"))
    conversation = await begin(db, Scope("acme"), "key 1")
    for other in (globex, Speaker("key 3", Scope("acme")), Speaker("key 1", Scope("globex"))):
        with pytest.raises(Unknown):
            await talker.ask(other, conversation, QUESTION)
        with pytest.raises(Unknown):
            await talker.stop(other, conversation)
    async with db.transaction(seen_from=Scope("globex")) as tx:
        assert await store.list_conversations(tx, "key 1") == []
    await talker.ask(acme, conversation, QUESTION)
    await wait_for_end(talker, conversation, acme)
    assert len(await read(db, conversation)) == 2


async def test_what_the_operator_asks_is_seen_by_no_client(db: Database) -> None:
    await begin(db)
    async with db.transaction(seen_from=Scope("acme")) as tx:
        assert await store.list_conversations(tx, "operator") == []


async def test_old_messages_are_summed_up_and_the_last_ones_stay_as_they_are(
    db: Database, make_talker: MakeTalker
) -> None:
    llm = FakeLlm(lambda _: REPLY)
    talker, conversation = make_talker(llm, turns=4), await begin(db)
    for n in range(5):
        await talker.ask(OPERATOR, conversation, f"What is the price of the copper kettle number {n}?")
        await wait_for_end(talker, conversation)
    async with db.transaction() as tx:
        found = await store.load_conversation(tx, conversation, "operator")
    assert "kettle number 0" in found.summary
    assert "kettle number 4" not in found.summary
    assert "Asked: What is the price of the copper kettle number 0?" in llm.questions[-1]


class SlowSummary:
    """A model that sums up only when it is let to."""

    def __init__(self) -> None:
        self.begun, self.gate = asyncio.Event(), asyncio.Event()

    async def ask_text(self, *_: Any, **__: Any) -> str:
        self.begun.set()
        await self.gate.wait()
        return "It was about a kettle."


@pytest.mark.parametrize("is_followed", [True, False])
async def test_a_question_does_not_wait_for_the_summary_of_what_was_said(
    db: Database, finder: Finder, is_followed: bool
) -> None:
    slow, llm = SlowSummary(), FakeLlm(lambda _: REPLY)
    talker = Talker(db, Answerer(db, finder, AskSettings(), llm, "scripted"), slow, turns=2)  # pyright: ignore[reportArgumentType]
    conversation = await begin(db)
    try:
        for n in range(2):
            await talker.ask(OPERATOR, conversation, f"What is the price of the copper kettle number {n}?")
            await wait_for_end(talker, conversation)
        await slow.begun.wait()
        await talker.ask(OPERATOR, conversation, "What is the price of the copper kettle?")
        if is_followed:
            await wait_for_end(talker, conversation)
        else:
            while (await read(db, conversation))[-1].state != "done":  # noqa: ASYNC110 the writer's work
                await asyncio.sleep(0.01)
        assert "kettle number 0" in llm.questions[-1], "what no summary has yet is told as it is"
        slow.gate.set()
        while not (found := await load(db, conversation)).summary:  # noqa: ASYNC110 another task's work
            await asyncio.sleep(0.01)
        assert found.summary == "It was about a kettle."
    finally:
        await talker.close()


async def test_a_question_that_comes_while_a_writer_ends_is_answered_although_nobody_looks(
    db: Database, make_talker: MakeTalker, monkeypatch: pytest.MonkeyPatch
) -> None:
    talker, conversation = make_talker(FakeLlm(lambda _: REPLY)), await begin(db)
    leave, late = talker._leave, ["And the price of the copper kettle in EUR?"]  # pyright: ignore[reportPrivateUsage]

    async def leave_and_ask(*given: Any) -> None:
        await leave(*given)
        if late:
            await talker.ask(OPERATOR, conversation, late.pop())

    monkeypatch.setattr(talker, "_leave", leave_and_ask)
    await talker.ask(OPERATOR, conversation, QUESTION)
    while [one.state for one in await read(db, conversation)] != ["answered", "done"] * 2:  # noqa: ASYNC110 the writer's
        await asyncio.sleep(0.01)


def make_message(n: int, role: Any, text: str) -> StoredMessage:
    at: Any = None
    return StoredMessage(store.MessageId(n), role, "answered", text, None, at)


async def test_the_end_of_a_long_question_and_the_answer_behind_it_are_summed_up_as_well() -> None:
    long = make_message(1, "user", f"The beginning. {'x' * 7_900} The end.")
    llm = FakeLlm(["First part.", "All of it."])
    summary = await sum_up("", [long, make_message(2, "assistant", "It costs EUR 5.")], llm, "scripted")
    assert summary == "All of it."
    first, second = llm.questions
    assert "The beginning." in first
    assert "Summary so far: First part." in second
    assert second.index("The end.") < second.index("assistant: It costs EUR 5.")


async def test_where_the_model_fails_the_rest_is_summed_up_by_rule() -> None:
    messages = [make_message(n, "user", f"question {n} {'x' * 4_000}") for n in range(3)]
    summary = await sum_up("", messages, FakeLlm(["They asked a question.", Transient("away")]), "scripted")
    assert summary.startswith("They asked a question.\nAsked: question 1 x")
    assert "Asked: question 2 x" in summary


def test_a_summary_by_rule_keeps_the_newest_when_it_becomes_too_long() -> None:
    messages = [make_message(n, "user", f"question {n} " + "x" * 150) for n in range(30)]
    summary = sum_up_by_rule("", messages)
    assert len(summary) <= 1_500
    assert "question 29" in summary
    assert "question 0 " not in summary


async def test_a_removed_document_takes_its_quotation_along(db: Database, make_talker: MakeTalker) -> None:
    talker, conversation = make_talker(FakeLlm([REPLY])), await begin(db)
    await talker.ask(OPERATOR, conversation, QUESTION)
    await wait_for_end(talker, conversation)
    async with db.transaction() as tx:
        await tx.execute("DELETE FROM document")
    (sentence,) = ((await read(db, conversation))[1].answer or {})["sentences"]
    assert sentence["citations"][0]["quote"] is None


async def test_words_that_changed_on_their_page_are_shown_as_no_quotation(
    db: Database, make_talker: MakeTalker
) -> None:
    talker, conversation = make_talker(FakeLlm([REPLY])), await begin(db)
    await talker.ask(OPERATOR, conversation, QUESTION)
    await wait_for_end(talker, conversation)
    async with db.transaction() as tx:
        await tx.execute("UPDATE page SET text = 'Beware: ' || text")
    (sentence,) = ((await read(db, conversation))[1].answer or {})["sentences"]
    assert sentence["citations"][0]["quote"] is None


async def test_the_words_of_a_draft_are_told_without_the_database(
    db: Database, make_talker: MakeTalker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model says hundreds of words in a row: neither followers nor the sign of life may write or read for each."""
    monkeypatch.setattr(talking, "BEAT", 60.0)
    monkeypatch.setattr(talking, "LOOK", 60.0)
    looks: list[str] = []
    for name in ("note_life", "list_messages"):
        monkeypatch.setattr(store, name, count_calls(name, getattr(store, name), looks))
    model = Chatterbox()
    talker, conversation = make_talker(model), await begin(db)
    await talker.ask(OPERATOR, conversation, QUESTION)
    drafts: list[str] = []
    async for _, draft in talker.follow(OPERATOR, conversation):
        model.is_heard.set()
        drafts += [draft] if draft else []
    assert len(drafts) > 20
    assert len(looks) < 20, looks


class Chatterbox:
    """A model that says many words and never ends its sentence; it begins when somebody listens."""

    def __init__(self) -> None:
        self.is_heard = asyncio.Event()

    async def stream_text(self, question: str | Sequence[Message], **_: Any) -> AsyncGenerator[str]:
        await self.is_heard.wait()
        for n in range(200):
            yield f"word{n} "
            for _turn in range(10):
                await asyncio.sleep(0)  # followers have their turn


def count_calls(name: str, function: Callable[..., Any], calls: list[str]) -> Callable[..., Any]:
    def call(*given: Any, **more: Any) -> Any:
        calls.append(name)
        return function(*given, **more)

    return call


@pytest.mark.parametrize(
    ("setting", "shown"),
    [("drop", ["It turns.", "Es ist alt."]), ("flag", ["It turns.", "Es ist alt.", "It is blue."])],
)
def test_the_page_shows_what_nothing_supports_only_where_the_settings_say_so(setting: Any, shown: list[str]) -> None:
    sentences = [
        SentenceShape(text="It turns.", verdict="supported"),
        SentenceShape(text="Es ist alt.", verdict="partial", reason="Only names and figures were compared."),
        SentenceShape(text="It is blue.", verdict="unsupported", reason="No passage speaks of it."),
        SentenceShape(text="Well.", verdict="unsupported", reason="It says nothing that can be checked."),
    ]
    message: Any = None
    one = ShownTurn(message, AnswerShape(kind="answer", text="", sentences=sentences), unsupported=setting)
    assert [sentence.text for sentence in one.sentences] == shown
    assert len(one.left_out) == 4 - len(shown)
