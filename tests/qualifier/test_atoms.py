"""The atomic chunk of an item: by rule, once, under the key of its node, and gone with its document."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from item_desk import ACME, EMBEDDER, ItemDesk

from gristmill.documents import Item as DocumentItem
from gristmill.documents import WholeText, find_written, prepare_text, remove, take_in
from gristmill.errors import Transient
from gristmill.ids import ChunkId, WorkItemId
from gristmill.knowledge import graph, search_hybrid
from gristmill.qualifier import has_unkept_atoms, load_memory, save_memory
from gristmill.qualifier.atoms import LARGE, keep_atom
from gristmill.qualifier.letters import KeepAtom
from gristmill.qualifier.memory import remember_chunks
from gristmill.queue import Done, Skip, Snooze, TaskFilter, cancel, find_tasks
from gristmill.scopes import Scope, find_scope

SOMEBODY_WAITS = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
INVOICE = "Dear Sir or Madam,\n\ninvoice no. 2026-0077 over 1,240.00 EUR is payable until 30 June 2026.\n"


async def keep(desk: ItemDesk) -> Any:
    """What a worker does with the letters of all decisions so far."""
    answer: Any = None
    for letter in await desk.letters("qualify-atoms.keep"):
        answer = await keep_atom(KeepAtom(**letter), db=desk.db, embedders=EMBEDDER)
        if isinstance(answer, Done) and answer.write:
            async with desk.db.transaction() as tx:
                await answer.write(tx)
    return answer


async def chunks_of(desk: ItemDesk, id_: WorkItemId) -> list[int]:
    async with desk.db.reading() as tx:
        memory = await load_memory(tx, id_)
    assert memory is not None
    return list(memory.chunks)


async def test_an_item_is_found_by_its_title_and_key_fields(desk: ItemDesk):
    item = await desk.qualify(INVOICE, subject="Invoice of May", urn="email::77@beta.example")
    await keep(desk)
    (hit,) = await search_hybrid(desk.db, EMBEDDER, "invoice 2026-0077", scope=ACME)
    assert hit.text.startswith("Invoice of May\n\nfrom: petr@beta.example; written: 2026-05-04; amount: 1240.00 EUR")
    assert await chunks_of(desk, item.id) == [hit.chunk]
    async with desk.db.reading() as tx:
        node = await graph.node(tx, ACME, "email::77@beta.example")
    assert [one.chunk for one in node.evidence] == [hit.chunk]


async def test_a_chunk_that_says_the_same_is_linked_and_not_kept_twice(desk: ItemDesk):
    first = await desk.qualify(INVOICE, subject="Invoice of May", urn="email::1@beta.example")
    second = await desk.qualify(INVOICE, subject="Invoice of May", urn="email::2@beta.example")
    await keep(desk)
    assert await chunks_of(desk, first.id) == await chunks_of(desk, second.id)
    assert len(await search_hybrid(desk.db, EMBEDDER, "invoice 2026-0077", scope=ACME)) == 1


async def test_a_chunk_of_another_client_is_none(desk: ItemDesk):
    mine = await desk.qualify(INVOICE, subject="Invoice of May")
    other = await desk.qualify(INVOICE, subject="Invoice of May", scope=Scope("beta"))
    await keep(desk)
    assert await chunks_of(desk, mine.id) != await chunks_of(desk, other.id)


async def test_it_waits_for_the_document_and_goes_with_it(desk: ItemDesk):
    async with desk.db.transaction() as tx:
        taken = await take_in(tx, DocumentItem("email::9@beta.example", "mail.eml", INVOICE, ACME))
    id_ = await desk.make(INVOICE, subject="Invoice of May", urn="email::9@beta.example", document=taken.document)
    await desk.decide(id_)
    assert isinstance(await keep(desk), Snooze)
    async with desk.db.transaction() as tx:
        await tx.execute("UPDATE document SET completed_at = clock() WHERE id = %(id)s", id=taken.document)
    assert isinstance(await keep(desk), Done)
    async with desk.db.transaction() as tx:
        scope = await find_scope(tx, ACME)
        assert scope is not None
        assert await find_written(tx, scope, "atom:email::9@beta.example") is not None
    assert taken.document is not None
    async with desk.db.transaction() as tx:
        await remove(tx, [taken.document])
        assert await find_written(tx, scope, "atom:email::9@beta.example") is None
    assert list(await search_hybrid(desk.db, EMBEDDER, "invoice 2026-0077", scope=ACME)) == []


@pytest.mark.parametrize(("length", "chunks"), [(LARGE - 100, 1), (LARGE + 100, 12)])
async def test_only_a_large_text_without_a_document_is_divided_by_its_length(desk: ItemDesk, length: int, chunks: int):
    text = "".join(f"word{n} " for n in range(length))[:length]
    item = await desk.qualify(text, subject="Notes", type="user_task")
    await keep(desk)
    assert len(await chunks_of(desk, item.id)) == chunks


async def test_a_summary_knows_that_an_item_is_not_in_the_graph_yet(desk: ItemDesk):
    async with desk.db.reading() as tx:
        assert not await has_unkept_atoms(tx)
    await desk.qualify(INVOICE)
    async with desk.db.reading() as tx:
        assert await has_unkept_atoms(tx)
    async with desk.db.transaction() as tx:
        for task in (await find_tasks(tx, TaskFilter(kind=KeepAtom.kind))).tasks:
            await cancel(tx, [task.id])
        assert not await has_unkept_atoms(tx)


async def test_an_item_that_is_gone_is_left_alone(desk: ItemDesk):
    item = await desk.qualify(INVOICE)
    async with desk.db.transaction() as tx:
        await tx.execute("DELETE FROM item WHERE id = %(id)s", id=item.id)
    assert isinstance(await keep(desk), Skip)


@pytest.mark.parametrize("linked", [True, False])
async def test_an_item_whose_document_goes_while_its_chunk_is_kept_is_tried_again_and_skipped(
    desk: ItemDesk, linked: bool
):
    """No dead letter: people remove documents whenever they like."""
    text = f"Invoice of May\n\n{INVOICE}" if linked else "Nothing of the kind."
    prepared = await prepare_text(desk.db, EMBEDDER, text, "Invoice of May")
    async with desk.db.transaction() as tx:
        taken = await take_in(tx, WholeText("email::9@beta.example", "Invoice", text, prepared, ACME, "email"))
    assert taken.document is not None
    id_ = await desk.make(INVOICE, subject="Invoice of May", urn="email::9@beta.example", document=taken.document)
    await desk.decide(id_)
    (letter,) = await desk.letters("qualify-atoms.keep")
    answer = await keep_atom(KeepAtom(**letter), db=desk.db, embedders=EMBEDDER)
    assert isinstance(answer, Done)
    assert answer.write
    assert taken.document is not None
    async with desk.db.transaction() as tx:
        await remove(tx, [taken.document])
    with pytest.raises(Transient):
        async with desk.db.transaction() as tx:
            await answer.write(tx)
    assert await keep_atom(KeepAtom(**letter), db=desk.db, embedders=EMBEDDER) == Skip("Its document is gone.")


async def test_a_chunk_of_another_document_that_goes_meanwhile_is_looked_for_again(desk: ItemDesk):
    await desk.qualify(INVOICE, subject="Invoice of May", urn="email::1@beta.example")
    await keep(desk)
    item = await desk.qualify(INVOICE, subject="Invoice of May", urn="email::2@beta.example")
    letter = (await desk.letters("qualify-atoms.keep"))[-1]
    answer: Any = await keep_atom(KeepAtom(**letter), db=desk.db, embedders=EMBEDDER)
    async with desk.db.transaction() as tx:
        scope = await find_scope(tx, ACME)
        assert scope is not None
        note = await find_written(tx, scope, "atom:email::1@beta.example")
        assert note is not None
        await remove(tx, [note.id])
    with pytest.raises(Transient, match="went while it was linked"):
        async with desk.db.transaction() as tx:
            await answer.write(tx)
    assert isinstance(await keep(desk), Done)
    assert len(await chunks_of(desk, item.id)) == 1


async def test_chunks_are_added_to_a_memory_that_another_decision_saves_meanwhile(desk: ItemDesk):
    item = await desk.qualify(INVOICE)

    async def add_chunk() -> None:
        async with desk.db.transaction() as tx:
            await remember_chunks(tx, item.id, ["email::1", "email::1"], [ChunkId(7)])

    async with desk.db.transaction() as tx:
        memory = await load_memory(tx, item.id)
        assert memory is not None
        await save_memory(tx, item.id, replace(memory, node_keys=["email::0"], data={"asked": ["Something new."]}))
        adding = asyncio.create_task(add_chunk())
        async with desk.db.reading() as watching, asyncio.timeout(60):
            while not await watching.all(SOMEBODY_WAITS):  # noqa: ASYNC110 no event says so
                await asyncio.sleep(0.01)
    await adding
    async with desk.db.reading() as tx:
        memory = await load_memory(tx, item.id)
    assert memory is not None
    assert memory.data == {"asked": ["Something new."]}
    assert (memory.node_keys, memory.chunks) == (["email::0", "email::1"], [7])


async def test_the_document_of_an_item_is_not_repeated_by_a_note(desk: ItemDesk):
    async with desk.db.transaction() as tx:
        text = f"Invoice of May\n\n{INVOICE}"
        prepared = await prepare_text(desk.db, EMBEDDER, text, "Invoice of May")
        whole = WholeText("email::9@beta.example", "Invoice of May", text, prepared, ACME, "email")
        taken = await take_in(tx, whole)
    id_ = await desk.make(INVOICE, subject="Invoice of May", urn="email::9@beta.example", document=taken.document)
    await desk.decide(id_)
    assert isinstance(await keep(desk), Done)
    (hit,) = await search_hybrid(desk.db, EMBEDDER, "invoice 2026-0077", scope=ACME)
    assert hit.document == taken.document
    assert await chunks_of(desk, id_) == [hit.chunk]


async def test_an_issue_that_a_mail_merely_names_is_no_key_of_it(desk: ItemDesk):
    item = await desk.qualify("Please look at MILL-12 and MILL-13.", subject="MILL-12 is slow")
    async with desk.db.reading() as tx:
        memory = await load_memory(tx, item.id)
    assert memory is not None
    assert memory.data["issue"] == "MILL-12"
    item = await desk.qualify("Please look at MILL-12 and MILL-13.", subject="Two issues")
    async with desk.db.reading() as tx:
        memory = await load_memory(tx, item.id)
    assert memory is not None
    assert "issue" not in memory.data
