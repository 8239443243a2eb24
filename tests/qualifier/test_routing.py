"""Routes: what a decision makes of an item, and that a later one only raises it."""

from dataclasses import replace

import pytest
from workroom import FAR, SOON, WRITTEN, Workroom

from gristmill.errors import Permanent
from gristmill.ids import WorkItemId
from gristmill.qualifier.adding import ItemWish, add_item, cancel_item, reopen_item, say
from gristmill.qualifier.executor import ExecutorResult
from gristmill.qualifier.identifiers import find_items_about, note_identifiers
from gristmill.qualifier.model import ChildItem, Identifier, Route, WorkItem
from gristmill.qualifier.routing import apply_route, guard_route, rises
from gristmill.qualifier.store import list_events
from gristmill.scopes import GLOBAL, Scope


async def test_a_far_deadline_makes_a_copy_that_waits_and_ends_the_original(room: Workroom) -> None:
    await room.come("LATER")
    await room.decide()
    original, copy = await room.items()
    assert (original.state, original.outcome) == ("done", "scheduled")
    assert (copy.state, copy.type, copy.origin, copy.scheduled_at, copy.deadline) == (
        "scheduled",
        "scheduled",
        original.id,
        WRITTEN + FAR - SOON,
        WRITTEN + FAR,
    )


async def test_a_version_with_a_nearer_deadline_brings_the_copy_forward(room: Workroom) -> None:
    await room.come("LATER")
    await room.decide()
    await room.come("SOONER", version=2)
    await room.decide()
    _, copy = await room.items()
    assert copy.scheduled_at == WRITTEN + FAR - 2 * SOON


async def test_work_now_takes_the_place_of_the_copy_for_later(room: Workroom) -> None:
    await room.come("LATER")
    await room.decide()
    await room.come("NOW", version=2)
    await room.decide()
    original, copy = await room.items()
    assert (original.state, copy.state, copy.outcome, copy.merged_into) == (
        "ready_for_execution",
        "done",
        "consolidated",
        original.id,
    )


async def test_an_item_that_was_filed_may_rise_to_later(room: Workroom) -> None:
    await room.come("Nothing.")
    await room.decide()
    await room.come("LATER", version=2)
    await room.decide()
    assert await room.states() == ["done: scheduled", "scheduled"]


async def test_an_item_about_the_same_thing_joins_the_open_one(room: Workroom) -> None:
    await room.come("NOW", name="first.txt")
    await room.decide()
    first = await room.item()
    await room.come(f"INTO {first.id}", name="second.txt")
    await room.decide()
    first, second = await room.items()
    assert (second.state, second.outcome, second.merged_into) == ("done", "consolidated", first.id)
    assert (first.state, first.urgency) == ("ready_for_execution", "high")
    assert await room.messages(first.id) == [("item", f"Item {second.id} is about the same thing: second")]


async def test_an_item_does_not_vanish_in_one_that_has_ended(room: Workroom) -> None:
    await room.come("Nothing.", name="first.txt")
    await room.decide()
    first = await room.item()
    await room.come(f"INTO {first.id}", name="second.txt")
    await room.decide()
    assert await room.states() == ["done: info_only", "ready_for_execution"]


async def test_a_reminder_wakes_the_copy_that_waits_for_later(room: Workroom) -> None:
    await room.come("LATER", name="first.txt")
    await room.decide()
    _, copy = await room.items()
    await room.come(f"INTO {copy.id}", name="reminder.txt")
    await room.decide()
    assert await room.states() == ["done: scheduled", "ready_for_execution", "done: consolidated"]


async def test_open_items_are_found_by_their_numbers_within_their_client(room: Workroom) -> None:
    number = Identifier("invoice", "2026-17")
    await room.come("NOW", name="a.txt", scope=Scope("acme"))
    await room.come("NOW", name="b.txt", scope=Scope("acme"))
    await room.come("NOW", name="c.txt", scope=Scope("beta"))
    await room.come("Nothing.", name="d.txt", scope=Scope("acme"))
    await room.decide()
    a, b, c, d = await room.items()
    for item in (a, c, d):
        await room.do(note_identifiers, item.id, [number])
    assert await room.do(find_items_about, b, [number, Identifier("order", "2026-17")]) == [(a.id, number)]
    assert await room.do(find_items_about, a, [number]) == []


async def test_an_item_is_decomposed_and_ends_with_its_last_part(room: Workroom) -> None:
    await room.come("PARTS 3")
    await room.decide()
    parent, *parts = await room.items()
    assert (parent.state, [part.state for part in parts]) == ("waiting_for_children", ["ready_for_execution"] * 3)
    await room.work()
    assert await room.states() == ["completed"] * 4
    assert [event.why for event in await room.events(parent.id)][-1] == "all of its parts are done"
    (group,) = await room.rows("SELECT outcome FROM task WHERE id = %(id)s", id=parent.task)
    assert group.outcome == "completed"


async def test_a_part_that_fails_fails_the_whole_until_it_is_reopened(room: Workroom) -> None:
    room.executor.act = lambda item, *_: Permanent("no") if item.title == "Part 1" else ExecutorResult("done")
    await room.come("PARTS 2")
    await room.work()
    parent, _, failed = await room.items()
    assert (parent.state, parent.error) == ("error", "1 of its parts failed: reopen them.")
    room.executor.act = lambda *_: ExecutorResult("done")
    await room.do(reopen_item, failed.id, by="ana")
    assert (await room.item(parent.id)).state == "waiting_for_children"
    await room.work()
    assert await room.states() == ["completed"] * 3


@pytest.mark.parametrize("parts", [1, 7])
async def test_an_item_has_two_to_six_parts(room: Workroom, parts: int) -> None:
    await room.come("Nothing.")
    await room.decide()
    route = Route("decompose", children=[ChildItem(f"Part {n}", "Do it.") for n in range(parts)])
    with pytest.raises(Permanent, match=f"2 to 6 parts, not into {parts}"):
        await room.do(apply_route, await room.item(), route, decision=None, why="x", by="rules")


# --- what people do


async def test_a_wish_is_decided_and_executed(room: Workroom) -> None:
    item = await room.do(add_item, GLOBAL, ItemWish("NOW\nCall Ana.", type="user_task"), by="jana")
    assert (item.state, item.title, item.added_by) == ("ready_for_qualification", "NOW", "jana")
    await room.work()
    assert await room.path() == ["ready_for_qualification", "ready_for_execution", "dispatched", "running", "completed"]


async def test_a_cancelled_item_is_not_executed(room: Workroom) -> None:
    await room.come("NOW")
    await room.decide()
    item = await room.item()
    await room.do(cancel_item, item.id, by="jana")
    await room.work()
    assert (await room.states(), room.executor.runs) == (["done: cancelled"], [])


async def test_a_filed_item_that_is_reopened_is_executed(room: Workroom) -> None:
    await room.come("Nothing.")
    await room.decide()
    async with room.db.transaction() as tx:
        await tx.execute("UPDATE item SET decision = 1")
    await room.do(reopen_item, (await room.item()).id, by="jana")
    await room.work()
    assert await room.states() == ["completed"]


async def test_an_item_that_is_opened_again_says_so_and_by_what(room: Workroom) -> None:
    await room.come("NOW", name="first.txt")
    await room.work()
    first = await room.item()
    await room.come(f"INTO {first.id}", name="second.txt")
    await room.decide()
    async with room.db.reading() as tx:
        events = await list_events(tx, first.id)
    (again,) = [one for one in events if one.is_reopening]
    assert again.title == "opened again, ready for execution"
    second = (await room.items())[1]
    assert again.why == f"Item {second.id} “second” is about the same thing and is to be done now."


async def test_a_message_to_an_item_that_has_ended_begins_it_again(room: Workroom) -> None:
    await room.come("NOW")
    await room.work()
    item = await room.do(say, (await room.item()).id, "And the second page?", by="jana")
    assert (item.state, item.foreground) == ("ready_for_execution", True)
    await room.work()
    assert room.executor.runs[-1] == (item.id, ["And the second page?"])


# --- the rules by themselves


def an_item(**columns: object) -> WorkItem:
    names = WorkItem.__dataclass_fields__
    return WorkItem(**{name: columns.get(name) for name in names} | {"state": "new", "note": {}} | columns)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("state", "outcome", "to", "expected"),
    [
        ("new", None, "info_only", True),
        ("error", None, "info_only", True),
        ("done", "info_only", "info_only", False),
        ("done", "info_only", "later", True),
        ("done", "handled", "now", True),
        ("done", "scheduled", "later", False),
        ("done", "scheduled", "now", True),
        ("scheduled", None, "info_only", False),
        ("scheduled", None, "now", True),
        ("ready_for_execution", None, "later", False),
        ("running", None, "now", False),
        ("waiting_for_user", None, "info_only", False),
        ("completed", None, "info_only", False),
        ("completed", None, "now", True),
    ],
)
def test_a_decision_only_raises(state: str, outcome: str | None, to: str, expected: bool) -> None:
    assert rises(an_item(state=state, outcome=outcome), Route(to)) is expected  # type: ignore[arg-type]


def test_what_could_not_be_read_is_never_filed() -> None:
    item = an_item(id=WorkItemId(1), warning="a page is missing")
    assert guard_route(item, Route("info_only")).to == "now"
    assert guard_route(replace(item, warning=None), Route("info_only")).to == "info_only"
