"""The inbox in a real browser: lanes, why with marked words, order by drag and keys, answers, conventions, replay."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

import pytest
from browser import find_barriers, needs_chromium, open_browser, open_site, overflows
from inbox_scene import MAILS, bring_mails, bring_trouble
from playwright.async_api import Page, expect

from gristmill.db import Database
from gristmill.qualifier.deciding_room import replay_history
from gristmill.qualifier.letters import ReplayHistory
from gristmill.queue import Worker, bind, on
from gristmill.settings import QualifierSettings, QueueSettings

pytestmark = needs_chromium
BEARING, INVOICE, BOARD, KEYS, CONTRACT, PARCEL, NEWS, LUNCH = (one[0] for one in MAILS)
expect.set_options(timeout=30_000)


@asynccontextmanager
async def inbox(db: Database, width: int = 1440) -> AsyncGenerator[Page]:
    async with open_site(db) as site, open_browser() as browser:
        page = await site.open_page(browser, width=width)
        await page.goto(f"{site.address}/inbox")
        yield page


def lane(page: Page, name: str):
    return page.locator("section", has=page.get_by_role("heading", name=name, exact=True))


async def read_titles(page: Page, name: str) -> list[str]:
    return [one.strip() for one in await lane(page, name).locator("bdi").all_inner_texts()]


async def test_each_item_stands_in_its_lane_with_its_whole_title(db: Database) -> None:
    await bring_mails(db)
    async with inbox(db) as page:
        assert await read_titles(page, "Now") == [BEARING, KEYS, CONTRACT]
        assert sorted(await read_titles(page, "Later")) == sorted([INVOICE, BOARD])
        assert sorted(await read_titles(page, "Information")) == sorted([PARCEL, NEWS, LUNCH])
        cut = "element => element.scrollWidth > element.clientWidth || element.scrollHeight > element.clientHeight + 2"
        assert not any([await one.evaluate(cut) for one in await page.locator(".lanes a[data-row]").all()])
        assert await find_barriers(page) == []


@pytest.mark.parametrize("width", [1440, 1024, 390])
async def test_no_page_of_items_moves_sideways(db: Database, width: int) -> None:
    ids = await bring_mails(db)
    await bring_trouble(db)
    async with inbox(db, width) as page:
        for path in ("/inbox", "/inbox?lane=now", f"/items/{ids[BEARING]}", "/conventions", "/replay"):
            await page.goto(page.url.partition("/inbox")[0].partition("/items")[0].rstrip("/") + path)
            assert not await overflows(page), path
            await page.goto(page.url.partition(path)[0] + "/inbox")


async def test_the_page_of_an_item_says_why_and_marks_the_words(db: Database) -> None:
    await bring_mails(db)
    async with inbox(db) as page:
        await page.get_by_role("link", name=INVOICE).click()
        why = page.locator("section", has=page.get_by_role("heading", name="Why"))
        await expect(why.locator(".steps li").first).to_contain_text("A payment of EUR 1,250.00 is asked for")
        marked = await why.locator("blockquote mark").all_inner_texts()
        assert any("EUR 1,250.00" in one for one in marked)
        assert any("payable by 2" in one for one in marked)


async def test_items_are_put_in_order_by_dragging_and_by_keys(db: Database) -> None:
    await bring_mails(db)
    async with inbox(db) as page:
        rows = lane(page, "Now").locator("tr[data-id]")
        target = await rows.nth(0).bounding_box()
        handle = await rows.nth(2).locator("[data-handle]").bounding_box()
        assert target is not None
        assert handle is not None
        await page.mouse.move(handle["x"] + handle["width"] / 2, handle["y"] + handle["height"] / 2)
        await page.mouse.down()
        await page.mouse.move(target["x"] + 60, target["y"] + 20, steps=8)
        await page.mouse.move(target["x"] + 60, target["y"] + 3, steps=4)
        async with page.expect_response(lambda answer: answer.url.endswith("/inbox/order")):
            await page.mouse.up()
        await page.reload()
        assert await read_titles(page, "Now") == [CONTRACT, BEARING, KEYS]
        await rows.filter(has_text=KEYS).locator("[data-handle]").focus()
        async with page.expect_response(lambda answer: answer.url.endswith("/inbox/order")):
            await page.keyboard.press("ArrowUp")
        await page.reload()
        assert await read_titles(page, "Now") == [CONTRACT, KEYS, BEARING]


async def test_a_question_is_answered_in_the_inbox(db: Database) -> None:
    asks, fails = await bring_trouble(db)
    async with inbox(db) as page:
        await expect(page.locator(f"#error-{fails}")).to_contain_text("Its documents were removed.")
        question = page.locator(f"#question-{asks}")
        await expect(question).to_contain_text("What is to be done?")
        await question.get_by_placeholder("Your answer").fill("Pay it.")
        await question.get_by_role("button", name="Answer").click()
        await expect(page.locator(f"#question-{asks}")).to_have_count(0)
        await expect(lane(page, "Now").get_by_role("link", name="scan-0031.pdf")).to_be_visible()
        await page.goto(page.url.replace("/inbox", f"/items/{asks}"))
        await expect(page.locator("main")).to_contain_text("Pay it.")


async def test_a_convention_is_made_of_a_decision_tried_and_stated(db: Database) -> None:
    await bring_mails(db)
    async with inbox(db) as page:
        await page.get_by_role("link", name=PARCEL).click()
        await page.get_by_role("link", name="Make a convention of this").click()
        text = page.get_by_label("A convention")
        await expect(text).to_have_value(
            'when type is email and sender is "*@parcel.example" and noise is noise_sender then ignore'
        )
        await page.get_by_role("button", name="Try it on past items").click()
        await expect(page.locator("#trial")).to_have_text(f"1 item of the last {len(MAILS)} would fit")
        await page.get_by_role("button", name="State it").click()
        await expect(page.locator("tr[data-row]").filter(has_text="*@parcel.example")).to_have_count(1)


async def test_a_replay_shows_what_would_differ_today(db: Database) -> None:
    await bring_mails(db)
    async with inbox(db) as page:
        await page.goto(page.url.replace("/inbox", "/conventions"))
        await page.get_by_label("A convention").fill('when subject has "keys" then handled')
        await page.get_by_role("button", name="State it").click()
        await expect(page.locator("tr[data-row]").filter(has_text="keys")).to_have_count(1)
        await page.goto(page.url.partition("/conventions")[0] + "/replay")
        await page.get_by_role("button", name="Decide again").click()
        await answer_replay(db)
        await expect(page.locator(".sentence")).to_contain_text(f"{len(MAILS)} items decided again: 1 would differ.")
        await expect(page.locator("tr[data-row] del")).to_have_text("now")
        await expect(page.locator("tr[data-row] ins")).to_have_text("handled")
        assert await find_barriers(page) == []


async def answer_replay(db: Database) -> None:
    """What a worker does with the task of a replay."""
    async with asyncio.timeout(60):
        handlers = bind(on(ReplayHistory, partial(replay_history, db=db, settings=QualifierSettings())))
        await Worker(db, handlers, QueueSettings(), maintenance=False, until_idle=True).run()
