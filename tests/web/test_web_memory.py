"""What agents remember, over HTTP and on its page: everybody sees their own, managers state and forget."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from serving import ACME, GLOBEX, SAME_ORIGIN, Web, serve

from gristmill.agents import RunWish, load_run, start_run
from gristmill.agents.memory import ProcedureStep, learn, remember, remember_in, state_procedure
from gristmill.db import Database
from gristmill.scopes import GLOBAL

STEPS = [ProcedureStep("test", "run <b>tests</b>")]
NEW: dict[str, Any] = {"trigger_pattern": "bake bread", "steps": [{"agent": "coding", "action": "write a recipe"}]}


@pytest.fixture
async def web(db: Database) -> AsyncIterator[Web]:
    async with db.transaction() as tx:
        for scope in (GLOBAL, ACME, GLOBEX):
            run = await load_run(tx, await start_run(tx, RunWish(f"Release {scope}", "anna", scope)))
            await remember(tx, run, "background", f"<i>Released</i> {scope}\u202e", {"files": ["main.py"]})
            await learn(tx, run, STEPS)
        await remember_in(tx, ACME, "acme viewer", "chat", "Talked.")
        await state_procedure(tx, GLOBAL, "release everything", STEPS, "root")
    async with serve(db) as web:
        yield web


async def test_everybody_sees_their_own_memory_and_what_was_stated_for_all(web: Web) -> None:
    for caller, scopes in {"operator viewer": {"", "acme", "globex"}, "acme viewer": {"acme"}}.items():
        client = web.client(caller)
        entries = (await client.get("/api/memory")).json()["items"]
        assert {one["client"] for one in entries} == scopes
        procedures = (await client.get("/api/procedures")).json()["items"]
        assert {one["client"] for one in procedures if one["source"] == "learned"} == scopes
        assert [one["trigger_pattern"] for one in procedures if one["source"] == "user_defined"] == [
            "release everything"
        ]
    (entry,) = (await web.client("acme viewer").get("/api/memory", params={"limit": 1})).json()["items"]
    assert (entry["source"], entry["summary"], entry["run"]) == ("chat", "Talked.", None)
    others = (await web.client("acme manager").get("/api/memory")).json()["items"]
    assert "Talked." not in [one["summary"] for one in others]  # it was said in a conversation of somebody else


async def test_a_list_goes_on_behind_its_cursor(web: Web) -> None:
    client = web.client("operator viewer")
    seen: list[int] = []
    cursor: str | None = None
    while True:
        page = (
            await client.get("/api/memory", params={"limit": 3, "cursor": cursor} if cursor else {"limit": 3})
        ).json()
        seen += [one["id"] for one in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == sorted(seen, reverse=True)
    assert len(seen) == 4


async def test_a_manager_forgets_what_is_its_own_alone(web: Web) -> None:
    entries = (await web.client("operator viewer").get("/api/memory")).json()["items"]
    ids = {one["client"]: one["id"] for one in entries}
    manager = web.client("acme manager")
    assert (await web.client("acme viewer").delete(f"/api/memory/{ids['acme']}")).status_code == 403
    assert (await manager.delete(f"/api/memory/{ids['globex']}")).status_code == 404
    assert (await manager.delete(f"/api/memory/{ids['']}")).status_code == 404
    assert (await manager.delete(f"/api/memory/{ids['acme']}")).json() == {"entries": 1}
    assert (await manager.delete("/api/memory")).json() == {"entries": 1}
    left = (await web.client("operator viewer").get("/api/memory")).json()["items"]
    assert {one["client"] for one in left} == {"", "globex"}
    assert (await manager.delete("/api/memory", params={"client": "globex"})).status_code == 404


async def test_a_manager_states_a_procedure_and_takes_it_back(web: Web) -> None:
    manager = web.client("acme manager")
    assert (await web.client("acme viewer").post("/api/procedures", json=NEW)).status_code == 403
    made = await manager.post("/api/procedures", json=NEW)
    assert made.status_code == 201
    shown = made.json()
    assert (shown["client"], shown["stated_by"], shown["strength"]) == ("acme", "acme manager", 1.0)
    assert (await manager.post("/api/procedures", json=NEW)).status_code == 422  # exactly this is there
    assert (await web.client("globex manager").delete(f"/api/procedures/{shown['id']}")).status_code == 404
    assert (await manager.delete(f"/api/procedures/{shown['id']}")).json()["trigger_pattern"] == "bake bread"
    everybodys = [
        one
        for one in (await manager.get("/api/procedures")).json()["items"]
        if one["trigger_pattern"] == "release everything"
    ]
    assert (await manager.delete(f"/api/procedures/{everybodys[0]['id']}")).status_code == 404


@pytest.mark.parametrize(
    "change",
    [
        {"trigger_pattern": ""},
        {"steps": []},
        {"steps": [{"agent": "dancer", "action": "dance"}]},
        {"steps": [{"agent": "coding", "action": " "}]},
        {"client": "globex"},
    ],
)
async def test_a_procedure_that_nobody_could_follow_is_refused(web: Web, change: dict[str, Any]) -> None:
    answer = await web.client("acme manager").post("/api/procedures", json={**NEW, **change})
    assert answer.status_code in (404, 422)
    assert len((await web.client("acme viewer").get("/api/procedures")).json()["items"]) == 2


async def test_the_page_shows_memory_and_a_manager_changes_it_there(web: Web) -> None:
    browser = web.make_browser()
    await browser.sign_in(web.keys["acme manager"])
    page = (await browser.client.get("/memory")).text
    assert "&lt;i&gt;Released&lt;/i&gt; acme" in page
    assert "run &lt;b&gt;tests&lt;/b&gt;" in page
    assert "\u202e" not in page
    assert "globex" not in page
    assert "they are switched off" in page
    form = {
        "csrf": await browser.read_token(),
        "pattern": "bake bread",
        "steps": "coding: write a recipe\n\ntest: taste it",
    }
    made = await browser.client.post("/memory/procedures", data=form, headers=SAME_ORIGIN)
    assert (made.status_code, made.headers["location"]) == (303, "/memory")
    page = (await browser.client.get("/memory")).text
    assert "bake bread" in page
    assert "taste it" in page
    wrong = await browser.client.post("/memory/procedures", data={**form, "steps": "dance"}, headers=SAME_ORIGIN)
    assert wrong.status_code == 422
    assert "is no step" in wrong.text
    assert "dance" in wrong.text  # what was written is not lost
    (entry, *_) = (await web.client("acme viewer").get("/api/memory")).json()["items"]
    token = {"csrf": await browser.read_token()}
    gone = await browser.client.post(f"/memory/{entry['id']}/forget", data=token, headers=SAME_ORIGIN)
    assert gone.status_code == 303
    assert "Talked." not in (await browser.client.get("/memory")).text
    assert "Forget</button>" not in (await web.client("acme viewer").get("/memory")).text
