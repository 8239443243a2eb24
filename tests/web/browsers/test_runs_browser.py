"""Runs in a real browser: started, watched while they go on, answered in place, stopped; and what a viewer may not."""

import re
import sys
from pathlib import Path
from typing import Any

from browser import Site, look_for_barriers, needs_chromium, open_browser, open_site
from playwright.async_api import Browser, Page, expect
from serving import add_keys

from gristmill.db import Database
from gristmill.ids import RunId
from gristmill.settings import Settings

sys.path.insert(0, str(Path(__file__).parents[2] / "agents"))
from run_scenes import go_on, play_delegating, play_long, play_waiting

from gristmill.agents.runs import QuestionToAsk, load_run

pytestmark = needs_chromium
WHICH = QuestionToAsk("clarify:1", "clarify", "Which letters?")
PUSH = QuestionToAsk("push:1", "push", "Push it?", choices=("approve", "refuse"))


async def go(page: Page, site: Site, path: str) -> None:
    await page.goto(site.address + path)
    await page.wait_for_load_state("load")


async def place_of(page: Page, selector: str) -> Any:
    return await page.locator(selector).bounding_box()


async def open_as(browser: Browser, site: Site, key: str) -> Page:
    """A page of somebody who signed in with this key."""
    context = await browser.new_context()
    page = await context.new_page()
    page.on("console", site.note_complaint)
    await page.goto(f"{site.address}/sign-in")
    await page.get_by_label("Your key").fill(key)
    await page.get_by_role("button", name="Sign in").click()
    await page.wait_for_selector("nav.side")
    return page


async def test_a_run_is_started_watched_answered_and_stopped(db: Database) -> None:
    async with open_site(db) as site, open_browser() as browser:
        page = await site.open_page(browser)
        await go(page, site, "/runs")
        await page.get_by_role("link", name="New run").click()
        await page.locator("#dialog").get_by_label("What shall be done").fill("Sum up the letters.")
        await page.locator("#dialog").get_by_role("button", name="Start").click()
        await page.wait_for_url("**/runs/*")
        run = RunId(int(page.url.rpartition("/")[2]))
        await expect(page.locator("#figures")).to_contain_text("queued")
        played = await go_on(db, run)
        step = await played.begin("intake", "reads the request", input={"wish": "Sum up"})
        await expect(page.locator("#node-intake")).to_have_class(re.compile("running"))
        before = await place_of(page, "#node-intake .word")
        await page.locator(f"#step-{step} summary").click()
        await expect(page.locator(f"#step-{step}")).to_contain_text('"wish": "Sum up"')
        await played.end(step, {"category": "ADVICE"}, tokens=120)
        await expect(page.locator(f"#step-{step}")).to_contain_text('"category": "ADVICE"')
        await expect(page.locator("#node-intake")).to_have_class(re.compile("done"))
        await played.visit(("evidence_pack", "plan", "plan_steps", "execute_step"))
        await played.wait_for(WHICH, PUSH)
        await expect(page.locator("#node-execute_step .word")).to_have_text("waits · 2×")
        after = await place_of(page, "#node-intake .word")
        assert after["x"] == before["x"], "no node moves"
        first = page.locator("article", has_text="Which letters?")
        await first.get_by_label("Your answer").fill("Harrow’s")
        await page.evaluate("htmx.trigger('#view', 'refresh')")
        await page.wait_for_timeout(300)
        await expect(first.get_by_label("Your answer")).to_have_value("Harrow’s")
        await first.get_by_role("button", name="Answer").click()
        await expect(page.locator("article", has_text="Which letters?")).to_have_count(0)
        await page.locator("article", has_text="Push it?").get_by_role("button", name="Refuse").click()
        await expect(page.locator(".toast").last).to_contain_text("goes on")
        await expect(page.locator("#figures")).to_contain_text("queued")
        async with db.reading() as tx:
            assert (await load_run(tx, run)).state == "queued"
        await page.get_by_role("button", name="Stop", exact=True).click()
        await expect(page.locator("#figures")).to_contain_text("stopped")
        await expect(page.get_by_role("button", name="Stop", exact=True)).to_have_count(0)


async def test_a_viewer_watches_and_can_change_nothing(db: Database) -> None:
    run = (await play_waiting(db)).run
    keys = await add_keys(db)
    async with open_site(db) as site, open_browser() as browser:
        page = await open_as(browser, site, keys["acme viewer"])
        await go(page, site, "/runs")
        await expect(page.get_by_role("link", name="New run")).to_have_count(0)
        await page.get_by_role("link", name="Sum up the letters.").click()
        await expect(page.locator("#questions")).to_contain_text("Somebody with the role manager can answer it.")
        await expect(page.get_by_role("button", name="Stop", exact=True)).to_have_count(0)
        await expect(page.get_by_role("button", name="Approve", exact=True)).to_have_count(0)
        await go(page, site, "/questions")
        await expect(page.get_by_role("button", name="Approve", exact=True)).to_have_count(0)
        other = await open_as(browser, site, keys["globex admin"])
        answer = await other.goto(f"{site.address}/runs/{run}")
        assert answer is not None
        assert answer.status == 404
        site.problems.clear()  # the browser notes the 404, which is meant


async def test_questions_are_answered_on_their_page_and_filters_stay_in_the_address(db: Database) -> None:
    await play_waiting(db)
    await play_delegating(db)
    async with open_site(db) as site, open_browser() as browser:
        page = await site.open_page(browser)
        await go(page, site, "/questions")
        card = page.locator("article", has_text="It changes something outside.")
        await expect(card).to_contain_text("eve⟨U+202E⟩@evil.example")
        await card.get_by_role("button", name="Refuse").click()
        await expect(page.locator("article.question")).to_have_count(1)
        await go(page, site, "/runs")
        await page.get_by_role("navigation", name="State").get_by_role("link", name="Running").click()
        await page.wait_for_url("**/runs?state=running")
        await expect(page.locator("#rows tr")).to_have_count(1)
        await page.get_by_label("Words of the request").fill("nothing has these words")
        await page.wait_for_url("**/runs?*q=nothing*")
        await expect(page.locator("#view")).to_contain_text("No run fits")


async def test_a_node_shows_its_steps_by_keyboard_and_the_last_of_five_hundred_steps_are_shown(db: Database) -> None:
    run = (await play_long(db)).run
    async with open_site(db) as site, open_browser() as browser:
        page = await site.open_page(browser)
        await go(page, site, f"/runs/{run}")
        await expect(page.locator("#step-list > li")).to_have_count(60)
        await page.locator("#node-intake").focus()
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/runs/*node=intake*")
        await expect(page.locator("#step-list > li")).to_have_count(1)
        await page.get_by_role("link", name="show the steps of all nodes").click()
        await page.get_by_role("link", name="Show the 440 before").click()
        await expect(page.locator("#step-list > li")).to_have_count(500)


async def test_no_page_of_runs_has_barriers_or_moves_sideways(db: Database) -> None:
    runs = [(await make(db)).run for make in (play_waiting, play_delegating, play_long)]
    paths = ["/runs", "/runs/new", "/questions", *(f"/runs/{run}" for run in runs)]
    async with open_site(db, Settings()) as site, open_browser() as browser:
        found: list[str] = []
        for page in (
            await site.open_page(browser),
            await site.open_page(browser, width=1024),
            await site.open_page(browser, width=390, dark=True),
        ):
            found += await look_for_barriers(page, paths)
        assert not found, "\n".join(found)
