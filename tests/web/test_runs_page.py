"""The pages of runs: the graph, the steps as a tree, filters in the address, and what is new as a stream."""

import json
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Any

from serving import SAME_ORIGIN, Web

from gristmill.agents import end_run, watch_run
from gristmill.db import Database
from gristmill.scopes import Scope

sys.path.insert(0, str(Path(__file__).parents[1] / "agents"))
from run_scenes import play, play_delegating, play_long, play_waiting


def read_events(text: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Id, name and data of each event."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line and not line.startswith(":"))
        if "event" in fields:
            found.append((fields["id"], fields["event"], json.loads(fields["data"])))
    return found


async def test_the_page_of_a_run_shows_its_graph_its_steps_its_effects_and_its_questions(
    web: Web, db: Database
) -> None:
    run = (await play_waiting(db)).run
    page = (await web.client("acme manager").get(f"/runs/{run}")).text
    assert 'class="node is-paused waiting' in page
    assert "plan steps: done" in page
    assert "execute step: waits for a person, 3 visits" in page
    assert "finalize: not visited" in page
    assert page.count("<script>alert") == 0
    assert "eve⟨U+202E⟩@evil.example" in page
    assert page.count("/answer") == 4, "two questions can be answered in place, with and without scripts"
    viewed = (await web.client("acme viewer").get(f"/runs/{run}")).text
    assert "/answer" not in viewed
    assert "/stop" not in viewed


async def test_a_step_opens_with_what_went_in_and_what_came_out(web: Web, db: Database) -> None:
    played = await play_waiting(db)
    client = web.client("acme viewer")
    steps = (await client.get(f"/api/runs/{played.run}/steps")).json()["items"]
    page = (await client.get(f"/runs/{played.run}/steps/{steps[0]['id']}")).text
    assert "Sum up the letters" in page
    assert "intake is over" in page
    one = (await client.get(f"/api/runs/{played.run}/steps/{steps[0]['id']}")).json()
    assert one == steps[0]
    other = await play(db, scope=Scope("globex"))
    for path in (f"/runs/{other.run}/steps/{steps[0]['id']}", f"/runs/{played.run}/steps/999999"):
        assert (await client.get(path)).status_code == (await client.get(f"/api{path}")).status_code == 404


async def test_delegations_stand_below_the_step_that_they_belong_to(web: Web, db: Database) -> None:
    played = await play_delegating(db)
    page = (await web.client("operator").get(f"/runs/{played.run}")).text
    assert "execute delegation: running" in page
    assert [page.count(f'class="deep-{depth}"') for depth in range(4)] == [4, 2, 3, 2]
    only = (await web.client("operator").get(f"/runs/{played.run}?node=execute_delegation")).text
    assert [only.count(f'class="deep-{depth}"') for depth in range(4)] == [1, 2, 3, 2]


async def test_a_run_of_five_hundred_steps_is_shown_by_its_last_ones(web: Web, db: Database) -> None:
    played = await play_long(db)
    client = web.client("operator")
    page = await client.get(f"/runs/{played.run}")
    assert page.text.count('<li id="step-') == 60
    assert "Show the 440 before" in page.text
    assert "165×" in page.text or "166×" in page.text
    assert len(page.content) < 250_000
    whole = await client.get(f"/runs/{played.run}?all=true")
    assert whole.text.count('<li id="step-') == 500


async def test_the_list_is_filtered_by_its_address(web: Web, db: Database) -> None:
    waiting = (await play_waiting(db, "Grind the barley.")).run
    running = (await play(db, "Grind the wheat.", Scope("globex", "mill"))).run
    client = web.client("operator")
    for query, found in {
        "": {waiting, running},
        "q=BARLEY": {waiting},
        "state=running": {running},
        "client=globex": {running},
        "client=globex&state=completed": set(),
    }.items():
        page = (await client.get(f"/runs?{query}")).text
        assert {run for run in (waiting, running) if f'id="run-{run}"' in page} == found, query
        listed = (await client.get(f"/api/runs?{query}")).json()["items"]
        assert {one["id"] for one in listed} == found, query
    assert (await client.get("/runs?state=nonsense")).status_code == 200


async def test_a_run_is_started_from_the_console_by_a_manager(web: Web) -> None:
    browser = web.make_browser()
    await browser.sign_in(web.keys["acme manager"])
    form = {"wish": "Grind it.", "project": "mill", "background": "true", "csrf": await browser.read_token()}
    assert "What shall be done" in (await browser.client.get("/runs/new")).text
    answer = await browser.client.post("/runs", data=form, headers=SAME_ORIGIN)
    assert answer.status_code == 303
    run = (await browser.client.get(f"/api{answer.headers['location']}")).json()
    assert (run["request"], run["client"], run["project"], run["foreground"]) == ("Grind it.", "acme", "mill", False)
    wrong = await browser.client.post("/runs", data={**form, "repository": "nowhere"}, headers=SAME_ORIGIN)
    assert wrong.status_code == 404
    assert "There is no git source “nowhere”" in wrong.text
    assert len((await browser.client.get("/api/runs")).json()["items"]) == 1
    viewer = web.client("acme viewer")
    assert (await viewer.get("/runs/new")).status_code == 403


async def test_the_stream_of_a_run_goes_on_behind_the_last_event(web: Web, db: Database) -> None:
    played = await play(db)
    await played.visit(("intake", "evidence_pack"))
    open_step = await played.begin("plan")
    await played.fail("The model does not answer.")
    client, path = web.client("acme viewer"), f"/api/runs/{played.run}/events"
    ((id_, name, data),) = read_events((await client.get(path)).text)
    assert (name, data["run"]["state"]) == ("ended", "failed")
    assert [one["node"] for one in data["steps"]] == ["intake", "evidence_pack", "plan"]
    assert (await client.get(path, headers={"Last-Event-ID": id_})).status_code == 204
    await played.end(open_step, error="It was killed.")
    ((_, _, later),) = read_events((await client.get(path, headers={"Last-Event-ID": id_})).text)
    assert [(one["node"], one["error"]) for one in later["steps"]] == [("plan", "It was killed.")]
    for wrong in ("x", "-", "9" * 40, "1-2-3"):
        assert (await client.get(path, headers={"Last-Event-ID": wrong})).status_code == 200
    assert (await web.client("globex viewer").get(path)).status_code == 404


async def test_the_stream_tells_every_step_effect_and_question_once(db: Database) -> None:
    played = await play(db)
    async with aclosing(watch_run(db.reading, played.run)) as heard:
        first = await anext(heard)
        assert (first.run.state, first.steps, first.effects) == ("running", [], [])
        step = await played.begin("intake")
        assert [(one.node, one.finished_at) for one in (await anext(heard)).steps] == [("intake", None)]
        await played.end(step)
        await played.do("1#0")
        news = await anext(heard)
        while not news.effects:
            news = await anext(heard)
        assert [one.state for one in news.effects] == ["done"]
        async with db.transaction() as tx:
            await end_run(tx, played.run, "anna")
        last = await anext(heard)
        assert (last.is_last, last.run.stopped_by, last.steps, last.effects) == (True, "anna", [], [])
        assert [one async for one in heard] == []
