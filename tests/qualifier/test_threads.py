"""Mails of one thread that come together: each is read as itself, and the draft answers the newest that asks."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from workroom import Workroom, move_clock

from gristmill.ids import DocumentId
from gristmill.qualifier.builtin import BuiltInExecutor
from gristmill.qualifier.qualification import qualify_many
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


async def ask(room: Workroom, id_: str = "m2", answers: str = "m1") -> DocumentId:
    return await room.mail(
        QUESTION, id_, answers=[answers], sender=BOB, to=[ANNA], subject="Re: Offer", written_at=ASKED
    )


async def test_a_day_is_counted_from_the_mail_that_names_it(thread: Workroom) -> None:
    wish = "Hello Bob,\n\nplease send the drawing by tomorrow.\n\nAnna\n"
    await thread.mail(wish, "m1", sender=ANNA, to=[BOB], subject="Drawing", written_at=OFFERED)
    await ask(thread)
    await thread.decide()
    first, second = await thread.rows("SELECT deadline FROM decision ORDER BY id")
    assert first.deadline.date() == (OFFERED + timedelta(days=1)).date()
    assert second.deadline == first.deadline
