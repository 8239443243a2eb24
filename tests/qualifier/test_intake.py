"""Intake: families become items, mails join threads, versions decide again, and what cannot be read is never lost."""

from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from workroom import WRITTEN, Workroom

from gristmill.errors import Transient
from gristmill.qualifier.qualification import qualify_many
from gristmill.rooms import Tools
from gristmill.scopes import Scope
from gristmill.settings import Settings

HOUR = timedelta(hours=1)


async def test_a_document_that_is_read_becomes_an_item_and_is_decided(room: Workroom) -> None:
    await room.come("NOW please")
    await room.decide()
    item = await room.item()
    assert (item.state, item.type, item.title, item.urgency) == ("ready_for_execution", "document", "letter", "normal")
    assert await room.path() == ["new", "ready_for_execution"]


async def test_information_is_filed(room: Workroom) -> None:
    await room.come("Nothing to do.")
    await room.decide()
    assert await room.states() == ["done: info_only"]


async def test_a_mail_and_its_attachments_are_one_item(room: Workroom) -> None:
    mail = await room.mail("See the attachment.", "m1", tell=False)
    await room.come("an invoice", name="invoice.pdf", urn="email::m1#attachment=1", type="pdf", container=mail)
    await room.decide()
    item = await room.item()
    assert (item.type, item.urn, item.document) == ("email", "email::m1", mail)


async def test_an_item_waits_until_all_of_its_documents_are_read(room: Workroom) -> None:
    mail = await room.mail("NOW please", "m1")
    part = {"name": "scan.pdf", "urn": "email::m1#attachment=1", "type": "pdf"}
    scan = await room.come("", **part, container=mail, read=False)
    await room.decide()
    assert await room.states() == ["new"]
    await room.finish_reading(scan, "the scan")
    await room.decide()
    assert await room.states() == ["ready_for_execution"]
    assert len(await room.rows("SELECT FROM item_event WHERE was IS DISTINCT FROM state")) == 2


async def test_each_mail_of_a_mailbox_is_an_item_and_the_mailbox_is_none(room: Workroom) -> None:
    box = await room.come("", name="all.mbox", type="mailbox")
    await room.mail("NOW", "m1", container=box)
    await room.mail("Just so you know.", "m2", container=box)
    await room.decide()
    assert await room.states() == ["ready_for_execution", "done: info_only"]


async def test_two_letters_about_one_family_decide_it_once(room: Workroom) -> None:
    mail = await room.mail("NOW", "m1")
    await room.come("x", name="a.pdf", urn="email::m1#attachment=1", type="pdf", container=mail)
    await room.work()
    assert await room.path() == ["new", "ready_for_execution", "dispatched", "running", "completed"]


# --- what cannot be read


async def test_a_family_with_an_unreadable_part_is_decided_with_a_warning_and_never_filed(room: Workroom) -> None:
    mail = await room.mail("Just so you know.", "m1", tell=False)
    part = {"name": "scan.pdf", "urn": "email::m1#attachment=1", "type": "pdf"}
    await room.come("", **part, container=mail, read=None)
    await room.decide()
    item = await room.item()
    assert item.state == "ready_for_execution"
    assert item.warning is not None
    assert item.warning.startswith("Not all of it could be read: scan.pdf")


async def test_a_page_that_is_read_later_decides_again_and_takes_the_warning_away(room: Workroom) -> None:
    scan = await room.come("", name="scan.pdf", type="pdf", read=None)
    await room.decide()
    assert (await room.item()).warning is not None
    await room.finish_reading(scan, "HIGH and clear")
    await room.decide()
    item = await room.item()
    assert (item.warning, item.urgency, item.state) == (None, "high", "ready_for_execution")


async def test_a_file_that_cannot_be_opened_is_no_work(room: Workroom) -> None:
    garbage = await room.come("", name="garbage.pdf", type=None, read=None)
    await room.decide()
    assert await room.items() == []
    await room.do(add_dead_page, garbage)
    await room.sweep()
    assert await room.items() == []


@pytest.mark.parametrize("more", [{"urn": "email::m1", "meta": {"item": "email"}}, {}])
async def test_a_mail_that_cannot_be_opened_is_an_item_that_says_so(room: Workroom, more: dict[str, Any]) -> None:
    room.qualify = partial(qualify_many, Tools(room.db, Settings(), cast(Any, SimpleNamespace(llm=None))))
    mail = await room.come("", name="The offer.eml", type=None, read=None, tell=False, **more)
    await room.do(add_dead_opening, mail)
    await room.sweep()
    item = await room.item()
    assert (item.type, item.title, item.state) == ("email", "The offer", "ready_for_execution")
    assert item.warning == "It could not be read: Broken."


async def test_a_mail_that_could_not_be_opened_and_then_can_is_decided_by_its_words(room: Workroom) -> None:
    mail = await room.come("", name="The offer.eml", urn="email::m1", type=None, read=None)
    await room.decide()
    await room.rows("UPDATE document SET type = 'mail', title = 'Your offer' WHERE id = %(id)s RETURNING id", id=mail)
    await room.finish_reading(mail, "HIGH and clear")
    await room.decide()
    item = await room.item()
    assert (item.title, item.warning, item.urgency) == ("Your offer", None, "high")


async def test_a_mail_that_cannot_be_opened_belongs_to_its_thread(room: Workroom) -> None:
    await room.mail("NOW please.", "m1", answers=["m2"])
    await room.decide()
    await room.come("", name="Offer.eml", urn="email::m2", type=None, read=None)
    await room.decide()
    (item,) = await room.items()
    assert ("mail", "Offer") in await room.messages(item.id)


async def test_the_sweep_finds_documents_whose_pages_died(room: Workroom) -> None:
    scan = await room.come("", name="scan.pdf", type="pdf", read=None, tell=False)
    await room.do(add_dead_page, scan)
    await room.sweep()
    assert await room.states() == ["ready_for_execution"]
    await room.sweep()  # finds it again, and leaves it alone
    assert await room.path() == ["new", "ready_for_execution"]


async def add_dead_opening(tx: object, document: int) -> None:
    await tx.execute(  # type: ignore[attr-defined]
        """WITH dead AS (
             INSERT INTO task (id, created_at, finished_at, died_at, lane, queue, kind, outcome, owner, error)
             VALUES (nextval('task_id'), clock(), clock(), clock(), 1, 'ocr', 'documents.open', 'failed', %(owner)s,
                     'Broken.') RETURNING id)
           UPDATE document SET opening = dead.id FROM dead WHERE document.id = %(document)s""",
        owner=f"document:{document}",
        document=document,
    )


async def add_dead_page(tx: object, document: int) -> None:
    await tx.execute(  # type: ignore[attr-defined]
        "INSERT INTO task (id, created_at, finished_at, died_at, lane, queue, kind, outcome, owner, error)"
        " VALUES (nextval('task_id'), clock(), clock(), clock(), 1, 'ocr', 'ocr.read', 'failed', %(owner)s, 'broken')",
        owner=f"document:{document}",
    )


async def test_an_item_that_waits_too_long_for_a_part_is_decided_without_it(room: Workroom) -> None:
    mail = await room.mail("NOW", "m1")
    part = {"name": "scan.pdf", "urn": "email::m1#attachment=1", "type": "pdf"}
    await room.come("", **part, container=mail, read=False)
    await room.decide()
    await room.sweep()
    assert await room.states() == ["new"]
    async with room.db.transaction() as tx:
        await tx.execute("UPDATE item SET changed_at = changed_at - interval '2 h'")
    await room.sweep()
    item = await room.item()
    assert item.state == "ready_for_execution"
    assert item.warning is not None
    assert "it was not read in time" in item.warning


async def test_a_busy_model_is_asked_again_and_anything_else_ends_in_error(room: Workroom) -> None:
    answers: list[Exception] = [Transient("the model is busy"), ValueError("a bug")]

    async def fail(texts: object) -> list[Exception]:
        return [answers.pop(0)]

    room.qualify = fail
    await room.come("NOW")
    await room.decide()  # waits for the second attempt
    item = await room.item()
    assert (item.state, item.error, answers) == ("error", "It cannot be decided: a bug", [])
    assert [row.error for row in await room.rows("SELECT error FROM task_failure")] == ["the model is busy"]


# --- versions


async def test_a_new_version_may_raise_a_decision(room: Workroom) -> None:
    await room.come("Nothing to do.")
    await room.decide()
    await room.come("HIGH after all.", version=2)
    await room.decide()
    item = await room.item()
    assert (item.state, item.urgency) == ("ready_for_execution", "high")


async def test_a_new_version_never_lowers_a_decision(room: Workroom) -> None:
    await room.come("NOW")
    await room.decide()
    await room.come("Never mind.", version=2)
    await room.decide()
    assert await room.states() == ["ready_for_execution"]
    assert (await room.events())[-1].why.startswith("Decided again, stays as it is")


async def test_a_letter_about_an_older_version_changes_nothing(room: Workroom) -> None:
    old = await room.come("Nothing.", tell=False)
    new = await room.come("Nothing either.", version=2)
    await room.decide()
    await room.tell(old)
    await room.decide()
    assert (await room.item()).document == new


async def test_an_item_goes_with_its_document_but_not_with_an_older_version(room: Workroom) -> None:
    old = await room.come("NOW")
    new = await room.come("NOW again", version=2)
    await room.decide()
    async with room.db.transaction() as tx:
        await tx.execute("DELETE FROM document WHERE id = %(id)s", id=old)
    assert len(await room.items()) == 1
    async with room.db.transaction() as tx:
        await tx.execute("DELETE FROM document WHERE id = %(id)s", id=new)
    assert await room.items() == []
    assert await room.rows("SELECT state, sum(n) FROM item_tally GROUP BY state HAVING sum(n) <> 0") == []
    await room.work()  # the task that would run it finds nothing, and ends


# --- threads


async def test_a_mail_of_a_thread_is_appended_to_its_open_item(room: Workroom) -> None:
    await room.mail("NOW", "m1")
    await room.decide()
    second = await room.mail("HIGH now", "m2", answers=["m1"], written_at=WRITTEN + HOUR)
    await room.decide()
    item = await room.item()
    assert (item.state, item.urgency, item.document, item.title) == ("ready_for_execution", "high", second, "m2")
    assert await room.messages() == [("mail", "ana@north.example: m2")]


async def test_mails_of_a_thread_that_come_together_are_one_item_each_decided(room: Workroom) -> None:
    await room.mail("Hello", "m1")
    await room.mail("NOW", "m2", answers=["m1"], written_at=WRITTEN + HOUR)
    await room.mail("Thanks", "m3", answers=["m1", "m2"], written_at=WRITTEN + 2 * HOUR)
    await room.decide()
    states = await room.states()
    assert "ready_for_execution" in states
    assert len(await room.rows("SELECT FROM item_source WHERE known IS NOT NULL")) == 3


async def test_a_mail_that_we_sent_closes_the_item_of_its_thread(room: Workroom) -> None:
    await room.mail("NOW", "m1")
    await room.decide()
    await sent(room, "m2", answers=["m1"], after=HOUR)
    await room.decide()
    assert await room.states() == ["done: handled"]
    await room.work()
    assert room.executor.runs == []


async def test_an_answer_that_is_older_than_the_mail_closes_nothing(room: Workroom) -> None:
    await room.mail("NOW", "m1")
    await room.decide()
    await sent(room, "m0", answers=["m1"], after=-HOUR)
    await room.decide()
    assert await room.states() == ["ready_for_execution"]


async def test_a_mail_that_comes_in_after_our_answer_to_it_is_handled(room: Workroom) -> None:
    await sent(room, "m2", answers=["m1"], after=HOUR)
    await room.decide()
    assert await room.items() == []
    await room.mail("NOW", "m1")
    await room.decide()
    assert await room.states() == ["done: handled"]


async def test_our_answer_ends_the_copy_that_waits_for_later(room: Workroom) -> None:
    await room.mail("LATER", "m1")
    await room.decide()
    assert await room.states() == ["done: scheduled", "scheduled"]
    await sent(room, "m2", answers=["m1"], after=HOUR)
    await room.decide()
    assert await room.states() == ["done: scheduled", "done: handled"]


async def test_a_mail_from_one_of_us_to_others_is_sent_and_one_among_us_is_work(room: Workroom) -> None:
    async def ours(tx: object, scopes: list[int]) -> dict[int, list[str]]:
        return {scope: ["jana@acme.example", "office@acme.example"] for scope in scopes}

    room.find_own_addresses = ours
    await room.mail("NOW", "m1", sender="Jana <Jana@acme.example>", to=["ana@north.example"])
    await room.mail("NOW", "m2", sender="Jana <jana@acme.example>", to=["office@acme.example"])
    await room.decide()
    assert [item.message for item in await room.items()] == ["m2"]


async def sent(room: Workroom, id_: str, *, answers: list[str], after: timedelta) -> None:
    """A mail in a folder of sent mails."""
    document = await room.mail("We will.", id_, answers=answers, written_at=WRITTEN + after, tell=False)
    async with room.db.transaction() as tx:
        await tx.execute(
            "INSERT INTO source (scope, name, kind, options, every, listing_every)"
            " VALUES (1, 'box', 'imap', '{}', '5 min', '1 day') ON CONFLICT DO NOTHING"
        )
        await tx.execute(
            "INSERT INTO source_item (source, scope, external, state, urn, sent, document)"
            " SELECT id, 1, %(urn)s, 'INDEXED', %(urn)s, true, %(document)s FROM source",
            urn=f"email::{id_}",
            document=document,
        )
    await room.tell(document)


# --- one Message-ID, two mails


async def test_a_mail_with_the_id_of_another_mail_is_an_item_of_its_own_and_says_so(room: Workroom) -> None:
    first = await room.mail("NOW pay the miller", "m1")
    await room.decide()
    before = await room.item()
    forged = await room.mail(
        "NOW pay the thief",
        "m1",
        sender="thief@elsewhere.example",
        urn="file:///upload.eml",
        answers=["m0"],
        written_at=WRITTEN + HOUR,
    )
    await room.decide()
    one, other = await room.items()
    assert (one.document, one.title, one.note, one.warning) == (first, before.title, before.note, None)
    assert other.document == forged
    assert other.warning is not None
    assert other.warning.startswith("It has the same Message-ID as another mail")
    assert other.note["same_id_as"] == "m1"
    assert await room.rows("SELECT FROM item_message") == []


async def test_an_answer_joins_the_first_mail_and_not_the_one_that_says_its_id(room: Workroom) -> None:
    await room.mail("NOW", "m1")
    await room.mail("NOW forged", "m1", urn="file:///upload.eml")
    await room.decide()
    await room.mail("HIGH", "m2", answers=["m1"], written_at=WRITTEN + HOUR)
    await room.decide()
    assert [(item.title, item.urgency) for item in await room.items()] == [("m2", "high"), ("m1", "normal")]


async def test_of_mails_with_one_id_that_are_read_together_the_first_one_keeps_it(room: Workroom) -> None:
    await room.mail("NOW", "m1", urn="file:///z.eml")
    await room.mail("NOW forged", "m1", urn="file:///a.eml")
    await room.decide()
    marks = {item.urn: item.warning is not None for item in await room.items()}
    assert marks == {"file:///z.eml": False, "file:///a.eml": True}


async def test_the_same_mail_by_another_way_is_the_same_item(room: Workroom) -> None:
    await room.mail("NOW", "m1")
    await room.decide()
    again = await room.mail("NOW", "m1", urn="file:///upload.eml", written_at=WRITTEN + HOUR)
    await room.decide()
    item = await room.item()
    assert (item.document != again, await room.messages()) == (True, [])
    assert len(await room.rows("SELECT FROM item_source WHERE known IS NOT NULL")) == 2


async def test_a_mail_with_the_id_of_one_that_we_sent_closes_nothing(room: Workroom) -> None:
    async def ours(tx: object, scopes: list[int]) -> dict[int, list[str]]:
        return {scope: ["jana@acme.example"] for scope in scopes}

    room.find_own_addresses = ours
    await sent(room, "m2", answers=["m0"], after=-HOUR)
    await room.mail("NOW", "m1", answers=["m0"])
    await room.decide()
    forged = {"sender": "jana@acme.example", "to": ["ana@north.example"], "urn": "file:///upload.eml"}
    await room.mail("Done.", "m2", answers=["m1"], written_at=WRITTEN + HOUR, **forged)
    await room.decide()
    assert (await room.states())[0] == "ready_for_execution"


# --- scopes


async def test_threads_of_two_clients_never_meet(room: Workroom) -> None:
    await room.mail("NOW", "m1", scope=Scope("acme"))
    await room.mail("NOW", "m2", answers=["m1"], scope=Scope("beta"))
    await room.decide()
    assert [item.client for item in await room.items()] == ["acme", "beta"]
