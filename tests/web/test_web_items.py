"""Items over HTTP: added once, seen by their own, talked to, moved and answered; the inbox with its lanes."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from serving import ACME, GLOBEX, SAME_ORIGIN, Web, serve

from gristmill.db import Database
from gristmill.ids import WorkItemId
from gristmill.qualifier import ItemWish, WorkItem, add_item, get_item, move_item
from gristmill.scopes import GLOBAL, Scope

AHEAD = "2036-05-04T10:00:00+00:00"


async def add(db: Database, text: str, scope: Scope = ACME, **more: Any) -> WorkItem:
    async with db.transaction() as tx:
        return await add_item(tx, scope, ItemWish(text, **more), by="test")


async def put(db: Database, item: WorkItem, *states: Any, **columns: Any) -> None:
    """Take an item through these states."""
    async with db.transaction() as tx:
        for state in states:
            held = await get_item(tx, item.id)
            task = held.task
            await move_item(
                tx, item.id, state, since=[held.state], why="a test", by="test", **{"task": task, **columns}
            )


@pytest.fixture
async def stocked(db: Database) -> AsyncIterator[tuple[Web, dict[str, WorkItem]]]:
    """The web with items of everybody, of acme and of globex."""
    items = {
        "common": await add(db, "Tell everybody", GLOBAL),
        "letters": await add(db, "Answer <b>Ana</b>", ACME),
        "mails": await add(db, "Pay the miller", GLOBEX),
    }
    async with serve(db) as web:
        yield web, items


async def test_everybody_sees_their_own_items(stocked: tuple[Web, dict[str, WorkItem]]) -> None:
    web, items = stocked
    seen = {
        "operator viewer": {"common", "letters", "mails"},
        "acme viewer": {"common", "letters"},
        "globex admin": {"common", "mails"},
    }
    for caller, names in seen.items():
        listed = (await web.client(caller).get("/api/items")).json()["items"]
        assert {one["id"] for one in listed} == {items[name].id for name in names}
        for name, item in items.items():
            status = 200 if name in names else 404
            for path in (f"/api/items/{item.id}", f"/items/{item.id}", f"/api/items/{item.id}/events"):
                assert (await web.client(caller).get(path)).status_code == status, (caller, path)


async def test_clients_change_their_own_items_alone(stocked: tuple[Web, dict[str, WorkItem]]) -> None:
    web, items = stocked
    manager = web.client("acme manager")
    assert (await manager.post(f"/api/items/{items['letters'].id}/cancel")).json()["outcome"] == "cancelled"
    assert (await manager.post(f"/api/items/{items['common'].id}/cancel")).status_code == 403
    foreign = await manager.post(f"/api/items/{items['mails'].id}/cancel")
    assert (foreign.status_code, foreign.json()["detail"]) == (404, f"There is no item {items['mails'].id}.")
    assert (await web.client("acme viewer").post(f"/api/items/{items['letters'].id}/reopen")).status_code == 403


async def test_an_item_that_is_sent_twice_is_added_once(web: Web) -> None:
    manager = web.client("acme manager")
    body = {"text": "Call Ana\nabout the bearing", "urgency": "high", "type": "user_input"}
    answers = [await manager.post("/api/items", json=body, headers={"Idempotency-Key": "one"}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 201]
    first, second = (answer.json() for answer in answers)
    assert first == second
    assert (first["title"], first["client"], first["foreground"], first["state"]) == (
        "Call Ana",
        "acme",
        True,
        "ready_for_qualification",
    )
    assert len((await manager.get("/api/items")).json()["items"]) == 1


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"text": " "}, 422, "needs a text"),
        ({"text": "x", "type": "email"}, 422, "come from sources"),
        ({"text": "x", "type": "scheduled"}, 422, "needs a time"),
        ({"text": "x", "cron": "nonsense"}, 422, "This schedule cannot be read"),
        ({"text": "x", "scheduled_at": "2036-05-04T10:00:00"}, 422, "no time zone"),
        ({"text": "x", "urgency": "now"}, 422, ""),
        ({"text": "x", "client": "globex"}, 404, "There is no client"),
    ],
)
async def test_what_cannot_be_added_is_refused_in_one_sentence(
    web: Web, body: dict[str, Any], status: int, words: str
) -> None:
    answer = await web.client("acme manager").post("/api/items", json=body)
    assert (answer.status_code, words in answer.json()["detail"]) == (status, True), answer.text


async def test_a_scheduled_item_waits_for_its_time_and_a_broken_cron_is_warned_of(web: Web) -> None:
    manager = web.client("acme manager")
    body = {"text": "Water the plants", "scheduled_at": AHEAD}
    plain = (await manager.post("/api/items", json=body)).json()
    assert (plain["state"], plain["type"], plain["warning"]) == ("scheduled", "scheduled", None)
    broken = (await manager.post("/api/items", json={**body, "cron": "every day"})).json()
    assert (broken["state"], broken["cron"]) == ("scheduled", None)
    assert "it runs once" in broken["warning"]


async def test_a_question_hides_no_characters_that_turn_others_around(db: Database) -> None:
    item = await add(db, "NOW")
    await put(db, item, "ready_for_execution", "dispatched")
    await put(db, item, "running", run=1, started_at=item.created_at)
    await put(db, item, "waiting_for_user", question="Write to anna@\u202eelpmaxe.live\u202c?")
    async with serve(db) as web:
        for path in ("/inbox", f"/items/{item.id}"):
            page = (await web.client("acme manager").get(path)).text
            assert "anna@⟨U+202E⟩elpmaxe.live⟨U+202C⟩?" in page, path
            assert "\u202e" not in page


async def test_a_question_is_answered_over_http(db: Database) -> None:
    item = await add(db, "NOW")
    await put(db, item, "ready_for_execution", "dispatched")
    await put(db, item, "running", run=1, started_at=item.created_at)
    await put(db, item, "waiting_for_user", question="Which one?")
    async with serve(db) as web:
        manager = web.client("acme manager")
        assert "Which one?" in (await manager.get("/inbox")).text
        answered = await manager.post(f"/api/items/{item.id}/answer", json={"text": "The blue one"})
        assert (answered.json()["state"], answered.json()["question"]) == ("ready_for_execution", None)
        again = await manager.post(f"/api/items/{item.id}/answer", json={"text": "Or not"})
        assert (again.status_code, "asks nothing" in again.json()["detail"]) == (422, True)
        said = (await manager.get(f"/api/items/{item.id}/messages")).json()
        assert [(one["kind"], one["text"]) for one in said] == [("answer", "The blue one")]


async def test_items_are_moved_in_line(db: Database) -> None:
    items = [await add(db, f"Do {n}") for n in range(3)]
    for item in items:
        await put(db, item, "ready_for_execution")
    first, second, third = (item.id for item in items)
    async with serve(db) as web:
        manager = web.client("acme manager")

        async def line() -> list[int]:
            return [one["id"] for one in (await manager.get("/api/items/line")).json()]

        assert await line() == [first, second, third]
        await manager.post(f"/api/items/{third}/move", json={"first": True})
        assert await line() == [third, first, second]
        form = {"item": str(second), "before": str(first)}
        moved = await manager.post("/inbox/order", data=form, headers=SAME_ORIGIN)
        assert moved.status_code == 303
        assert await line() == [third, second, first]
        await manager.post(f"/api/items/{first}/move", json={"position": -5000})
        assert (await line())[0] == first
        refused = await manager.post(f"/api/items/{first}/move", json={"first": True, "clear": True})
        assert (refused.status_code, "one place" in refused.json()["detail"]) == (422, True)


async def test_the_status_tells_of_both_queues_and_the_executor(db: Database) -> None:
    foreground = await add(db, "Now, please", type="user_input")
    background = await add(db, "Some time")
    for item in (foreground, background):
        await put(db, item, "ready_for_execution")
    async with serve(db) as web:
        status = (await web.client("acme viewer").get("/api/items/status")).json()
    assert [one["id"] for one in status["foreground"]["next"]] == [foreground.id]
    assert [one["id"] for one in status["background"]["next"]] == [background.id]
    assert (status["foreground"]["waiting"], status["background"]["waiting"]) == (1, 1)
    assert (status["executor_healthy"], status["lanes"]["now"]) == (True, 2)


async def test_the_status_is_streamed_whenever_it_changes(db: Database) -> None:
    async with serve(db) as web, asyncio.timeout(60):
        from gristmill.qualifier.api import write_events  # noqa: PLC0415 the stream itself: httpx reads whole answers

        caller = web.client("acme manager")
        events = write_events(web.app.state.services, _acme())
        assert (await anext(events)).startswith("retry: ")
        first = read_event(await anext(events))
        await caller.post("/api/items", json={"text": "One more", "type": "user_input"})
        second = read_event(await anext(events))
        await events.aclose()
    assert (first["lanes"]["deciding"], second["lanes"]["deciding"]) == (0, 1)
    assert second["executor_healthy"] is True


def _acme() -> Any:
    from gristmill.serving import Caller  # noqa: PLC0415 as above

    return Caller("test", "viewer", ACME, "127.0.0.1")


def read_event(text: str) -> dict[str, Any]:
    assert "event: status" in text
    return json.loads(text.partition("data: ")[2])


# --- pages


async def test_the_inbox_shows_each_item_in_its_lane_and_escapes_its_title(db: Database) -> None:
    now = await add(db, "Answer <b>Ana</b>")
    await put(db, now, "ready_for_execution")
    await add(db, "Water the plants", scheduled_at=now.created_at.replace(year=2036))
    filed = await add(db, "Just so you know")
    async with db.transaction() as tx:
        await move_item(
            tx, filed.id, "done", since=["ready_for_qualification"], outcome="info_only", why="w", by="rules"
        )
    broken = await add(db, "Broken")
    await put(db, broken, "error", error="It cannot be read.")
    async with serve(db) as web:
        page = (await web.client("acme manager").get("/inbox")).text
        assert "Answer &lt;b&gt;Ana&lt;/b&gt;" in page
        lanes = [page.index(f'id="lane-{name}"') for name in ("now", "later", "information")]
        assert lanes == sorted(lanes)
        places = [page.index(text) for text in ("Answer &lt;b&gt;", "Water the plants", "Just so you know")]
        assert [sum(lane < place for lane in lanes) for place in places] == [1, 2, 3]
        assert "It cannot be read." in page
        for lane, title in (("now", "Answer"), ("later", "Water"), ("information", "Just so"), ("errors", "Broken")):
            listed = (await web.client("acme viewer").get("/inbox", params={"lane": lane})).text
            assert title in listed, lane


async def test_the_page_of_an_item_shows_what_happened_to_it(stocked: tuple[Web, dict[str, WorkItem]]) -> None:
    web, items = stocked
    id_ = items["letters"].id
    manager = web.client("acme manager")
    said = await manager.post(f"/items/{id_}/say", data={"text": "Be quick"}, headers=SAME_ORIGIN)
    assert (said.status_code, said.headers["location"]) == (303, f"/items/{id_}")
    page = (await manager.get(f"/items/{id_}")).text
    for words in ("Be quick", "What happened", "test added it.", "Answer &lt;b&gt;Ana&lt;/b&gt;"):
        assert words in page


async def test_a_wish_of_a_person_is_added_on_the_page(web: Web) -> None:
    manager = web.client("acme manager")
    added = await manager.post("/inbox", data={"text": "Call Ana"}, headers=SAME_ORIGIN)
    assert added.status_code == 303
    (item,) = (await manager.get("/api/items")).json()["items"]
    assert (item["title"], item["type"], added.headers["location"]) == (
        "Call Ana",
        "user_input",
        f"/items/{item['id']}",
    )


async def test_what_people_do_with_items_is_written_down(stocked: tuple[Web, dict[str, WorkItem]]) -> None:
    web, items = stocked
    await web.client("acme manager").post(f"/api/items/{items['letters'].id}/cancel")
    async with web.db.transaction() as tx:
        rows = await tx.all("SELECT action, subject FROM audit WHERE subject LIKE 'item %%'")
        item = await get_item(tx, WorkItemId(items["letters"].id))
    assert [(row.action, row.subject) for row in rows] == [("cancel", f"item {item.id}")]


# --- people first


async def test_a_search_is_noted_as_a_request_of_a_person_and_a_look_at_a_list_is_not(web: Web) -> None:
    async def noted() -> int:
        async with web.db.transaction() as tx:
            return await tx.value("SELECT count(*)::int FROM person_request")

    await web.client("acme viewer").get("/inbox")
    await web.client(None).get("/search", params={"q": "mill"})
    assert await noted() == 0
    await web.client("acme viewer").get("/search", params={"q": "mill"})
    async with asyncio.timeout(60):
        while not await noted():  # noqa: ASYNC110 it is noted beside the answer
            await asyncio.sleep(0.01)
