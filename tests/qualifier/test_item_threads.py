"""Mails of one thread that come together: each is read as itself, and the draft answers the newest that asks."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from workroom import PATIENCE, Puppet, Workroom, move_clock

from gristmill.ids import DocumentId
from gristmill.qualifier import explain_item
from gristmill.qualifier.builtin import BuiltInExecutor
from gristmill.qualifier.executor import Checkpoint
from gristmill.qualifier.memory import load_memory
from gristmill.qualifier.model import ItemMessage, ItemText, WorkItem
from gristmill.qualifier.qualification import qualify_many
from gristmill.qualifier.store import ItemResult, load_result
from gristmill.rooms import Tools
from gristmill.settings import Settings

OFFERED = datetime(2026, 11, 16, 9, tzinfo=UTC)
ASKED = OFFERED + timedelta(days=1)
THANKED = ASKED + timedelta(hours=1)
NOW = OFFERED + timedelta(days=2)
ANNA, BOB = "Anna Mill <anna@acme.example>", "Bob Wheel <bob@wheel.example>"
OFFER = (
    "Hello Bob,\n\nour offer for the French burr millstone is EUR 4,820.00 net.\n"
    "Please confirm by Friday, 20 November 2026.\n\nAnna\n"
)
QUESTION = "Hello Anna,\n\nthe price is fine. Can you deliver on 30 November?\n\nBob\n"
ORDERS = [("m1", "m2"), ("m2", "m1")]  # the ids decide which of two mails in one batch is noted first


@pytest.fixture
async def thread(room: Workroom) -> AsyncIterator[Workroom]:
    """A room with the real rules and the built-in executor, shortly after the mails were written."""
    async with move_clock(room.db, NOW - datetime.now(UTC)) as db:
        found = Workroom(db, cast(Any, BuiltInExecutor(db)))
        found.qualify = partial(qualify_many, Tools(db, Settings(), cast(Any, SimpleNamespace(llm=None))))
        yield found


async def offer(room: Workroom, id_: str = "m1") -> DocumentId:
    return await room.mail(OFFER, id_, sender=ANNA, to=[BOB], subject="Offer", written_at=OFFERED)


async def ask(room: Workroom, id_: str = "m2", answers: str = "m1") -> DocumentId:
    return await room.mail(
        QUESTION, id_, answers=[answers], sender=BOB, to=[ANNA], subject="Re: Offer", written_at=ASKED
    )


async def check_answered(room: Workroom) -> None:
    """The draft goes to Bob, answers his question, and says nothing of Anna's."""
    item = await room.item()
    assert item.state == "completed"
    result: ItemResult = await room.do(load_result, item.id)
    assert [one["words"] for one in result.asked] == ["Can you deliver on 30 November?"]
    reply = result.reply or ""
    assert reply.startswith("Dear Bob Wheel,")
    assert "17/11/2026" in reply
    assert "- Can you deliver on 30 November?" in reply
    assert "confirm" not in reply
    assert "4,820" not in reply
    assert "20/11/2026" not in reply


@pytest.mark.parametrize(("first", "second"), ORDERS)
async def test_the_draft_answers_the_newest_of_two_mails_that_come_together(
    thread: Workroom, first: str, second: str
) -> None:
    await offer(thread, first)
    await ask(thread, second, first)
    await thread.work()
    await check_answered(thread)


@pytest.mark.parametrize(("first", "second"), ORDERS)
async def test_the_draft_answers_the_newest_mail_if_the_older_one_comes_last(
    thread: Workroom, first: str, second: str
) -> None:
    await ask(thread, second, first)
    await thread.decide()
    await offer(thread, first)
    await thread.work()
    await check_answered(thread)


async def test_the_deadline_of_an_item_stands_in_the_decision_that_explains_it(thread: Workroom) -> None:
    await offer(thread)
    await ask(thread)
    await thread.work()
    item = await thread.item()
    assert item.deadline is not None
    explained = await thread.do(explain_item, item.id)
    assert explained.decision is not None
    assert explained.decision.deadline == item.deadline
    assert f"{item.deadline:%Y-%m-%d}" in explained.sentence


async def test_a_demand_is_read_with_the_head_of_its_own_mail(thread: Workroom) -> None:
    offered, asked = await offer(thread), await ask(thread)
    await thread.decide()
    decisions = await thread.rows("SELECT inputs FROM decision")
    found = {
        row.inputs["document"]: [one["evidence"]["words"] for one in row.inputs["facts"]["requests"]]
        for row in decisions
    }
    assert found == {
        offered: ["Please confirm by Friday, 20 November 2026."],
        asked: ["Can you deliver on 30 November?"],
    }
    memory = await thread.do(load_memory, (await thread.item()).id)
    assert memory.data["subject"] == "Re: Offer"
    assert memory.data["asked"] == ["Can you deliver on 30 November?"]


async def test_a_day_is_counted_from_the_mail_that_names_it(thread: Workroom) -> None:
    wish = "Hello Bob,\n\nplease send the drawing by tomorrow.\n\nAnna\n"
    await thread.mail(wish, "m1", sender=ANNA, to=[BOB], subject="Drawing", written_at=OFFERED)
    await ask(thread)
    await thread.decide()
    first, second = await thread.rows("SELECT deadline FROM decision ORDER BY id")
    assert first.deadline.date() == (OFFERED + timedelta(days=1)).date()
    assert second.deadline == first.deadline


async def test_a_decision_about_an_older_mail_says_which_one_was_read(thread: Workroom) -> None:
    await ask(thread)
    await thread.decide()
    await offer(thread)
    await thread.decide()
    item = await thread.item()
    assert (item.title, item.deadline is not None) == ("m2", True)
    memory = await thread.do(load_memory, item.id)
    assert memory.data["asked"] == ["Can you deliver on 30 November?"]
    assert memory.reason.startswith("The mail “m1” of 2026-11-16 was read.")
    assert f"The deadline {item.deadline:%Y-%m-%d}" in memory.reason
    explained = await thread.do(explain_item, item.id)
    words = "".join(piece.text for one in explained.excerpts for piece in one.pieces)
    assert "Please confirm by Friday" in words


async def test_a_copy_that_waits_is_described_by_the_newest_mail_that_asks(thread: Workroom) -> None:
    far = "Hello Bob,\n\nplease confirm the offer by 18 December 2026.\n\nAnna\n"
    await thread.mail(far, "m1", sender=ANNA, to=[BOB], subject="Offer", written_at=OFFERED)
    wish = "Hello Anna,\n\nplease send the drawing by 21 December 2026.\n\nBob\n"
    asked = await thread.mail(wish, "m2", answers=["m1"], sender=BOB, to=[ANNA], subject="Drawing", written_at=ASKED)
    await thread.decide()
    original, copy = await thread.items()
    assert (original.outcome, copy.state, copy.type) == ("scheduled", "scheduled", "scheduled")
    assert (copy.document, copy.title, copy.note["sender"]) == (asked, "m2", BOB)


async def test_thanks_do_not_take_the_place_of_the_question_before(thread: Workroom) -> None:
    await offer(thread)
    await ask(thread)
    await thread.mail("Thanks!\n", "m3", answers=["m2"], sender=ANNA, to=[BOB], written_at=THANKED)
    await thread.work()
    await check_answered(thread)


async def test_a_mail_that_comes_while_the_item_runs_is_in_the_draft(thread: Workroom) -> None:
    begun, go_on = hold_runs(thread)
    await offer(thread)
    async with thread.working():
        await asyncio.wait_for(begun.wait(), PATIENCE)
        await ask(thread)
        await thread.until(lambda: thread.rows("SELECT FROM decision OFFSET 1"))
        go_on.set()
        await thread.until_state("completed")
    await check_answered(thread)


async def test_a_mail_that_came_before_the_run_and_is_decided_while_it_runs_is_in_the_draft(thread: Workroom) -> None:
    begun, go_on = hold_runs(thread)
    qualify = thread.qualify

    async def wait_for_run(texts: Sequence[ItemText]) -> Any:
        if any("30 November" in one.text for one in texts):
            await begun.wait()
        return await qualify(texts)

    thread.qualify = wait_for_run
    await offer(thread)
    await ask(thread)
    async with thread.working():
        await thread.until(lambda: thread.rows("SELECT FROM decision OFFSET 1"))
        go_on.set()
        await thread.until_state("completed")
    await check_answered(thread)
    assert "It was decided again while it ran." in [event.why for event in await thread.events()]


def hold_runs(room: Workroom) -> tuple[asyncio.Event, asyncio.Event]:
    """The built-in executor says when a run has begun, and waits until it may go on."""
    begun, go_on = asyncio.Event(), asyncio.Event()
    builtin = BuiltInExecutor(room.db)

    async def work(item: WorkItem, messages: Sequence[ItemMessage], checkpoint: Checkpoint) -> Any:
        begun.set()
        await go_on.wait()
        return await builtin.run(item, room.executor.memories[-1], messages, checkpoint)

    room.executor = Puppet(work)
    return begun, go_on
