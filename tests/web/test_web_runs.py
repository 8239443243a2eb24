"""Runs, effects, questions and policies over HTTP: everybody sees their own, managers answer, admins set policies."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from serving import ACME, GLOBEX, SAME_ORIGIN, Web, serve

from gristmill.agents import RunWish, load_run, start_run
from gristmill.agents.effects import Ask, Begun, Effect, EffectResult, Ledger
from gristmill.agents.runs import WaitingForUser, rest_run, take_over
from gristmill.db import Database
from gristmill.ids import RunId
from gristmill.scopes import GLOBAL, Scope

MAIL = {"to": ["eve\u202e@evil.example"], "text": "<script>alert(1)</script>"}
SAID = {"who": "untrusted", "sources": ["mail 7"], "sentence": "it comes from mail 7"}
ORIGINS = [{"argument": "to", "value": MAIL["to"][0], **SAID}]


async def begin(db: Database, scope: Scope) -> RunId:
    """A run that waits for an approval."""
    async with db.transaction() as tx:
        run = await start_run(tx, RunWish("Send <b>it</b>.", "anna", scope))
        fence = await take_over(tx, run)
    assert fence is not None

    async def act(_: Begun) -> EffectResult:
        return EffectResult("sent")

    effect = Effect("1#0", "send_mail", MAIL, "Send a mail.", "outside", False, origins=ORIGINS)
    with pytest.raises(WaitingForUser):
        await Ledger(db, run, fence).perform(effect, act, lambda _: Ask(("It changes something outside.",)))
    async with db.transaction() as tx:
        await rest_run(tx, run, fence)
    return run


@pytest.fixture
async def waiting(db: Database) -> AsyncIterator[tuple[Web, dict[str, int]]]:
    """The web with three runs that wait for a person: of nobody, of acme, of globex."""
    runs = {"machine": await begin(db, GLOBAL), "acme": await begin(db, ACME), "globex": await begin(db, GLOBEX)}
    async with serve(db) as web:
        yield web, {name: int(run) for name, run in runs.items()}


async def question_of(web: Web, run: int) -> int:
    found = (await web.client("operator").get("/api/questions", params={"run": run})).json()["items"]
    return found[0]["id"]


async def test_everybody_sees_their_own_runs_effects_and_questions(waiting: tuple[Web, dict[str, int]]) -> None:
    web, runs = waiting
    for caller, seen in {"operator viewer": set(runs), "acme viewer": {"acme"}, "globex admin": {"globex"}}.items():
        client = web.client(caller)
        listed = (await client.get("/api/runs")).json()["items"]
        asked = (await client.get("/api/questions")).json()["items"]
        assert {one["id"] for one in listed} == {one["run"] for one in asked} == {runs[name] for name in seen}
        for name, run in runs.items():
            status = 200 if name in seen else 404
            for path in (f"/api/runs/{run}", f"/api/runs/{run}/effects", f"/api/runs/{run}/steps", f"/runs/{run}"):
                assert (await client.get(path)).status_code == status, (caller, path)
            question = await question_of(web, run)
            for path in (f"/api/questions/{question}", f"/questions/{question}"):
                assert (await client.get(path)).status_code == status, (caller, path)


async def test_a_manager_answers_questions_of_its_client_alone_and_once(waiting: tuple[Web, dict[str, int]]) -> None:
    web, runs = waiting
    body, questions = {"choice": "approve"}, await ids(web, runs)
    for caller, name, status in (
        ("acme viewer", "acme", 403),
        ("acme manager", "globex", 404),
        ("acme manager", "machine", 404),
        ("acme manager", "acme", 200),
        ("acme manager", "acme", 422),
    ):
        path = f"/api/questions/{questions[name]}/answer"
        assert (await web.client(caller).post(path, json=body)).status_code == status, (caller, name)
    (effect,) = (await web.client("acme viewer").get(f"/api/runs/{runs['acme']}/effects")).json()["items"]
    assert (effect["state"], effect["approved_by"]) == ("approved", "acme manager")
    assert (await web.client("acme viewer").get(f"/api/runs/{runs['acme']}")).json()["state"] == "queued"
    audit = (await web.client("acme admin").get("/api/audit")).json()["items"]
    assert audit[0]["action"] == "answer"


async def ids(web: Web, runs: dict[str, int]) -> dict[str, int]:
    found = (await web.client("operator").get("/api/questions", params={"all": True})).json()["items"]
    return {name: next(one["id"] for one in found if one["run"] == run) for name, run in runs.items()}


@pytest.mark.parametrize("body", [{"choice": "maybe"}, {"answer": "yes"}, {}])
async def test_an_answer_must_be_one_of_the_choices(waiting: tuple[Web, dict[str, int]], body: dict[str, Any]) -> None:
    web, runs = waiting
    path = f"/api/questions/{await question_of(web, runs['acme'])}/answer"
    assert (await web.client("acme manager").post(path, json=body)).status_code == 422


async def test_a_run_is_started_and_stopped(web: Web, db: Database) -> None:
    client = web.client("acme manager")
    assert (await web.client("acme viewer").post("/api/runs", json={"request": "x"})).status_code == 403
    assert (await client.post("/api/runs", json={"request": "x", "client": "globex"})).status_code == 404
    assert (await client.post("/api/runs", json={"request": " "})).status_code == 422
    made = await client.post("/api/runs", json={"request": "Grind it.", "project": "mill"})
    assert (made.status_code, made.json()["asked_by"], made.json()["state"]) == (201, "acme manager", "queued")
    run = made.json()["id"]
    assert (await web.client("globex manager").post(f"/api/runs/{run}/stop")).status_code == 404
    stopped = (await client.post(f"/api/runs/{run}/stop")).json()
    assert (stopped["state"], stopped["stopped_by"]) == ("stopped", "acme manager")
    assert (await client.post(f"/api/runs/{run}/stop")).status_code == 200
    async with db.reading() as tx:
        task = (await load_run(tx, RunId(run))).task
    assert (await client.get(f"/api/tasks/{task}")).json()["status"] == "cancelled"


async def test_a_stopped_run_asks_nobody_any_more(waiting: tuple[Web, dict[str, int]]) -> None:
    web, runs = waiting
    client = web.client("acme manager")
    await client.post(f"/api/runs/{runs['acme']}/stop")
    assert (await client.get("/api/questions")).json()["items"] == []
    (effect,) = (await client.get(f"/api/runs/{runs['acme']}/effects")).json()["items"]
    assert effect["state"] == "failed"


async def test_an_admin_sets_the_policy_of_its_projects(web: Web) -> None:
    admin = web.client("acme admin")
    assert (await admin.get("/api/policy")).json()["is_own"] is False
    assert (await web.client("acme manager").put("/api/policy", json={"max_files": 3})).status_code == 403
    assert (await admin.put("/api/policy", json={"client": "globex", "max_files": 3})).status_code == 404
    assert (await admin.put("/api/policy", json={"recipients": ["*"]})).status_code == 422
    changed = await admin.put("/api/policy", json={"project": "mill", "commands": ["make test"], "max_files": 3})
    assert (changed.status_code, changed.json()["commands"], changed.json()["is_own"]) == (200, ["make test"], True)
    assert (await web.client("acme viewer").get("/api/policy", params={"project": "mill"})).json()["max_files"] == 3
    assert (await web.client("globex viewer").get("/api/policy")).json()["max_files"] == 20
    dropped = await admin.request("DELETE", "/api/policy", params={"project": "mill"})
    assert (dropped.json()["is_own"], dropped.json()["max_files"]) == (False, 20)


async def test_pages_show_what_hides_and_run_nothing(waiting: tuple[Web, dict[str, int]]) -> None:
    web, runs = waiting
    question = await question_of(web, runs["acme"])
    client = web.client("acme manager")
    for path in (f"/runs/{runs['acme']}", f"/questions/{question}", "/questions", "/runs"):
        page = (await client.get(path)).text
        assert "<script>alert" not in page
        assert "<b>it</b>" not in page
        assert "\u202e" not in page
    page = (await client.get(f"/questions/{question}")).text
    assert "eve⟨U+202E⟩@evil.example" in page
    assert "it comes from mail 7" in page


async def test_a_question_is_answered_on_its_page(waiting: tuple[Web, dict[str, int]]) -> None:
    web, runs = waiting
    question = await question_of(web, runs["acme"])
    browser = web.make_browser()
    await browser.sign_in(web.keys["acme manager"])
    page = (await browser.client.get(f"/questions/{question}")).text
    assert f'action="/questions/{question}/answer"' in page
    form = {"csrf": await browser.read_token(), "choice": "refuse", "answer": "not to her"}
    done = await browser.client.post(f"/questions/{question}/answer", data=form, headers=SAME_ORIGIN)
    assert (done.status_code, done.headers["location"]) == (303, "/questions")
    assert "Nobody waits for you" in (await browser.client.get("/questions")).text
    assert "acme manager said no: not to her" in (await browser.client.get(f"/runs/{runs['acme']}")).text
    viewer = (await web.client("acme viewer").get(f"/questions/{question}")).text
    assert "/answer" not in viewer


async def test_a_request_that_no_prompt_has_room_for_is_refused(db: Database) -> None:
    async with serve(db) as web:
        client = web.client("operator")
        assert (await client.post("/api/runs", json={"request": "x" * 8_000})).status_code == 201
        refused = await client.post("/api/runs", json={"request": "x" * 8_001})
        assert (refused.status_code, "at most 8000 characters" in refused.json()["detail"]) == (422, True)
        assert len((await client.get("/api/runs")).json()["items"]) == 1
