"""Decisions over HTTP: why with its words, conventions and their trials, who we are, replays."""

from collections.abc import AsyncIterator
from functools import partial

import pytest
from serving import ACME, SAME_ORIGIN, Web, serve

from gristmill.db import Database
from gristmill.ids import WorkItemId
from gristmill.models import FakeEmbedder
from gristmill.qualifier.deciding_room import replay_history
from gristmill.qualifier.letters import ReplayHistory
from gristmill.qualifier.qualification import qualify_many
from gristmill.qualifier.store import ItemDraft, make_item
from gristmill.qualifier.texts import load_item_texts
from gristmill.queue import Worker, bind, on
from gristmill.rooms import Tools
from gristmill.scopes import scope_id
from gristmill.settings import QualifierSettings, QueueSettings, Settings

MANAGER, VIEWER, STRANGER = "acme manager", "acme viewer", "globex admin"
TEXT = "Could you please send us the <b>signed</b> contract?\n"
DECIDED_AGAIN = """
INSERT INTO decision (item, scope, author, route, standing, urgency, rules, characters, digest, inputs, path)
SELECT item, scope, author, route, standing, urgency, rules, characters, digest, inputs, path FROM decision
 WHERE item = %(item)s
"""
NEWS = 'when sender is "*@news.example" then ignore'


async def decide(db: Database, text: str) -> WorkItemId:
    async with db.transaction() as tx:
        own = await scope_id(tx, ACME)
        note = {"subject": "A contract", "sender": "petr@beta.example"}
        new = ItemDraft(own, "email", "A contract", "ready_for_qualification", "It came.", "test", text=text, note=note)
        id_ = await make_item(tx, new)
    models = type("Models", (), {"embedder": FakeEmbedder(), "built_in_embedder": FakeEmbedder(), "llm": None})()
    async with db.reading() as tx:
        texts = await load_item_texts(tx, [id_])
    (found,) = await qualify_many(Tools(db, Settings(), models), texts)
    assert not isinstance(found, Exception), found
    async with db.transaction() as tx:
        await found.write(tx)
    return id_


@pytest.fixture
async def decided(db: Database) -> AsyncIterator[tuple[Web, WorkItemId]]:
    async with serve(db) as web:
        yield web, await decide(db, TEXT)


async def test_why_names_the_rules_and_their_words(decided: tuple[Web, WorkItemId]) -> None:
    web, item = decided
    told = (await web.client(VIEWER).get(f"/api/items/{item}/why")).json()
    assert (told["route"], told["author"], told["state"]) == ("now", "rules", "ready_for_execution")
    (words,) = told["path"][0]["words"]
    text = f"A contract\n\n{TEXT}"
    assert text[words["start"] : words["stop"]] == words["words"]
    assert told["inputs"]["facts"]["requests"]
    assert (await web.client(STRANGER).get(f"/api/items/{item}/why")).status_code == 404


async def test_the_page_of_an_item_says_how_often_it_was_decided(decided: tuple[Web, WorkItemId]) -> None:
    web, item = decided
    assert "for the 1st" not in (await web.client(VIEWER).get(f"/items/{item}")).text
    async with web.db.transaction() as tx:
        await tx.execute(DECIDED_AGAIN, item=item)
    assert "for the 2nd time." in (await web.client(VIEWER).get(f"/items/{item}")).text


async def test_a_convention_is_stated_listed_changed_and_taken_back(decided: tuple[Web, WorkItemId]) -> None:
    web, _ = decided
    client = web.client(MANAGER)
    assert (await web.client(VIEWER).post("/api/conventions", json={"text": NEWS})).status_code == 403
    wrong = await client.post("/api/conventions", json={"text": "when sendr is then"})
    assert wrong.status_code == 422
    assert "did you mean sender?" in wrong.json()["detail"]
    made = (await client.post("/api/conventions", json={"text": NEWS, "note": "tired of it"})).json()
    assert (made["client"], made["fired"], made["contradictions"]) == ("acme", 0, [])
    again = await client.post("/api/conventions", json={"text": NEWS.upper().replace("NEWS.EXAMPLE", "news.example")})
    assert again.json()["detail"] == f"Convention {made['id']} says the same already."
    other = (await client.post("/api/conventions", json={"text": "when type is email then now"})).json()
    assert "differ in the outcome" in other["contradictions"][0]
    path = f"/api/conventions/{made['id']}"
    assert (await client.patch(path, json={"enabled": False})).json()["version"] == 2
    assert [one["version"] for one in (await client.get(path)).json()["versions"]] == [2, 1]
    assert (await web.client(STRANGER).patch(path, json={"enabled": True})).status_code == 404
    assert (await web.client(STRANGER).get("/api/conventions")).json()["items"] == []
    assert (await client.delete(path)).json() == {"removed": True}
    assert [one["id"] for one in (await client.get("/api/conventions")).json()["items"]] == [other["id"]]


async def test_a_convention_is_tried_and_made_of_a_decision(decided: tuple[Web, WorkItemId]) -> None:
    web, item = decided
    client = web.client(MANAGER)
    trial = (await client.post("/api/conventions/test", json={"text": 'when text has "contract" then handled'})).json()
    assert (trial["looked_at"], [one["item"] for one in trial["fitting"]]) == (1, [item])
    made = (await client.get(f"/api/items/{item}/convention", params={"then": "handled"})).json()
    assert (
        made["text"] == 'when type is email and sender is "petr@beta.example" and subject has "contract" then handled'
    )


async def test_who_we_are_is_set_for_the_own_client(decided: tuple[Web, WorkItemId]) -> None:
    web, _ = decided
    client = web.client(MANAGER)
    wish = {"names": ["Jana Nová", " "], "addresses": ["Jana@Acme.example"], "lead_days": 5}
    told = (await client.put("/api/profiles", json=wish)).json()
    assert (told["client"], told["names"], told["addresses"]) == ("acme", ["Jana Nová"], ["jana@acme.example"])
    assert (await client.put("/api/profiles", json={"addresses": ["nobody"]})).status_code == 422
    assert (await web.client(STRANGER).get("/api/profiles")).json()["items"] == []
    assert (await client.delete("/api/profiles")).json() == {"removed": True}


async def test_a_replay_runs_as_a_task_and_shows_its_differences(decided: tuple[Web, WorkItemId]) -> None:
    web, item = decided
    client = web.client(MANAGER)
    await client.post("/api/conventions", json={"text": 'when text has "contract" then handled'})
    task = (await client.post("/api/replays", json={})).json()["task"]
    assert (await client.get(f"/api/replays/{task}")).json()["status"] == "pending"
    run = partial(replay_history, db=web.db, settings=QualifierSettings())
    await Worker(web.db, bind(on(ReplayHistory, run)), QueueSettings(), until_idle=True).run()
    told = (await client.get(f"/api/replays/{task}")).json()
    assert told["status"] == "completed"
    assert (told["report"]["looked_at"], told["report"]["lowered"]) == (1, 1)
    (one,) = told["report"]["differences"]
    assert (one["item"], one["was"]["route"], one["now"]["route"]) == (item, "now", "handled")
    page = (await client.get(f"/replay/{task}")).text
    assert "<del>now</del>" in page
    assert "<ins>handled</ins>" in page
    assert (await web.client(STRANGER).get(f"/api/replays/{task}")).status_code == 404


# --- pages


async def test_the_page_of_conventions_states_tries_and_says_what_is_wrong(decided: tuple[Web, WorkItemId]) -> None:
    web, item = decided
    browser = web.make_browser()
    await browser.sign_in(web.keys[MANAGER])
    token = await browser.read_token()
    form = {"csrf": token, "text": NEWS}
    page = await browser.client.post("/conventions", data={**form, "only_try": "true"}, headers=SAME_ORIGIN)
    assert "0 items of the last 1 would fit" in page.text
    wrong = await browser.client.post("/conventions", data={**form, "text": "when so"}, headers=SAME_ORIGIN)
    assert wrong.status_code == 422
    assert "is nothing that a convention can test" in wrong.text
    await browser.client.post("/conventions", data=form, headers=SAME_ORIGIN)
    listed = (await browser.client.get("/conventions")).text
    assert "when sender is &#34;*@news.example&#34; then ignore" in listed
    suggested = (await browser.client.get("/conventions", params={"item": item})).text
    assert "petr@beta.example" in suggested
    number = (await web.client(MANAGER).get("/api/conventions")).json()["items"][0]["id"]
    for step, sentence in (("disable", "rests"), ("enable", "holds")):
        await browser.client.post(f"/conventions/{number}/{step}", data={"csrf": token}, headers=SAME_ORIGIN)
        assert sentence in (await browser.client.get(f"/conventions/{number}")).text
    changed = {"csrf": token, "text": NEWS.replace("ignore", "handled")}
    await browser.client.post(f"/conventions/{number}/change", data=changed, headers=SAME_ORIGIN)
    assert "then handled" in (await browser.client.get(f"/conventions/{number}")).text
    await browser.client.post(f"/conventions/{number}/remove", data={"csrf": token}, headers=SAME_ORIGIN)
    assert "No conventions yet" in (await browser.client.get("/conventions")).text


async def test_a_profile_is_set_in_the_console(decided: tuple[Web, WorkItemId]) -> None:
    web, _ = decided
    browser = web.make_browser()
    await browser.sign_in(web.keys[MANAGER])
    form = {"csrf": await browser.read_token(), "names": "Jana Nová\nPetr", "addresses": "", "lead_days": "4"}
    await browser.client.post("/profiles", data=form, headers=SAME_ORIGIN)
    assert "Jana Nová, Petr" in (await browser.client.get("/conventions")).text
