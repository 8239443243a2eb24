"""The console in a real browser: by keyboard, by hand, narrow and dark, live, and while the server is away."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from browser import find_barriers, look_for_barriers, needs_chromium, open_browser, open_site
from furnishing import furnish, list_pages
from playwright.async_api import Page, Response, expect

from gristmill.db import Database
from gristmill.ids import TaskId
from gristmill.queue import get_task, list_line, run_portion, send, send_many
from gristmill.scopes import Scope
from gristmill.settings import Settings
from gristmill.sources import LinkedDocument, extract_links, note_links
from scenes import Extract, buried, set_scene

pytestmark = needs_chromium


async def go(page: Page, path: str) -> Response:
    """Open a page of the same site, and wait until its scripts run."""
    answer = await page.goto(re.sub(r"^(\w+://[^/]+).*", rf"\1{path}", page.url))
    await page.wait_for_load_state("load")
    assert answer is not None
    return answer


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (390, True)])
async def test_no_page_has_barriers_or_moves_sideways(db: Database, tmp_path: Path, width: int, dark: bool) -> None:
    """Every page of every room, found in the application: with nothing in it, and with ugly names."""
    async with open_site(db, Settings(data=tmp_path)) as site, open_browser() as browser:
        page = await site.open_page(browser, width=width, dark=dark)
        pages = list_pages(site)
        assert len(pages) > 20
        found = await look_for_barriers(page, pages)
        scene = await set_scene(db)
        async with site.call() as client:
            furnished = await furnish(db, client)
        single = [f"/tasks?task={scene.waiting}", f"/tasks/{scene.group}", "/queues/extract", "/bulk/new?status=failed"]
        found += await look_for_barriers(page, [*pages, *single, *furnished.addresses])
        assert not found, "\n".join(found)


async def test_the_buttons_of_each_link_stand_in_two_columns_however_long_its_host_is(db: Database) -> None:
    hosts = ("a.org", "documentation.example.org", "a-very-long-name-of-a-host.documentation.example.org")
    text = " ".join(f"Before the address stand many words, then https://{host}/page and more." for host in hosts)
    async with db.transaction() as tx:
        await note_links(tx, [LinkedDocument("email::1", Scope("acme"), extract_links(text))])
    async with open_site(db) as site, open_browser() as browser:
        page = await site.open_page(browser, width=1440)
        await go(page, "/links")
        cells = await page.locator(".decisions").all()
        assert len(cells) == len(hosts)
        for cell in cells:
            boxes = [await button.bounding_box() for button in await cell.get_by_role("button").all()]
            places = [(box["x"], box["y"]) for box in boxes if box]
            assert [len({place[side] for place in places}) for side in (0, 1)] == [2, 2]


PUT_BARRIERS = """() => {
  document.querySelector("main").insertAdjacentHTML("beforeend", "<button></button><p class='pale'>hardly seen</p>");
  document.querySelector("nav.side").insertAdjacentHTML("beforeend", "<a href='/'></a>");
  document.querySelector("p.pale").style.color = "#ccc";
}"""


async def test_a_barrier_is_found_in_the_page_and_in_its_frame(db: Database) -> None:
    """Of what the tests above look for, something of each kind: a name that is missing, and a colour."""
    async with open_site(db) as site, open_browser() as browser:
        page = await site.open_page(browser)
        assert await look_for_barriers(page, ["/schedules"]) == []
        await page.evaluate(PUT_BARRIERS)
        found = [{line.split()[1] for line in await find_barriers(page, frame=frame)} for frame in (True, False)]
        assert found == [{"button-name:", "color-contrast:", "link-name:"}, {"button-name:", "color-contrast:"}]


# what makes a text that was found good hard to read, without another name or class
SPOILED = {
    "the text": "document.querySelector('main h1').style.color = '#ccc'",
    "a background": "document.querySelector('main').style.backgroundColor = '#333'",
    "an opacity": "document.querySelector('main').style.opacity = 0.3",
}


async def test_what_was_found_good_is_found_bad_when_its_colours_change(db: Database) -> None:
    async with open_site(db) as site, open_browser() as browser:
        page = await site.open_page(browser)
        for what, spoil in SPOILED.items():
            assert await look_for_barriers(page, ["/schedules"]) == []
            await page.evaluate(f"() => {{ {spoil} }}")
            assert {line.split()[1] for line in await find_barriers(page, frame=False)} == {"color-contrast:"}, what


async def test_everything_is_reached_by_keyboard(db: Database) -> None:
    async with db.transaction() as tx:
        tasks = await send_many(tx, [Extract(str(place)) for place in range(3)])
    async with open_site(db) as site, open_browser() as browser:
        page = await site.open_page(browser)
        await page.keyboard.press("/")
        assert await page.evaluate("document.activeElement.id") == "find"
        await page.keyboard.press("Escape")
        await page.keyboard.press("Control+k")
        await page.keyboard.type("tasks that wa")
        await expect(page.locator("#palette li").first).to_contain_text("Tasks that wait")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/tasks?status=pending")
        for _ in range(2):
            await page.keyboard.press("j")
        await page.keyboard.press("Enter")
        await expect(page.locator(".pane h2")).to_contain_text(str(tasks[1]))
        assert page.url.endswith(f"task={tasks[1]}")
        assert await page.evaluate("document.activeElement.matches('[data-row]')"), "the focus stays in the list"
        outline = await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid"
        await page.keyboard.press("Escape")
        await expect(page.locator(".pane")).to_have_count(0)
        await page.keyboard.press("?")
        await expect(page.locator("#keys")).to_be_visible()


async def test_every_button_is_in_the_palette_and_every_head_sorts(db: Database) -> None:
    async with db.transaction() as tx:
        for n, rule in enumerate(("disk", "clock", "breaker-open")):
            await tx.execute(ALARM, rule=rule, told=(n + 1) * 9)
    async with open_site(db) as site, open_browser() as browser:
        page = await site.open_page(browser)
        await go(page, "/alarms")
        head = page.get_by_role("button", name="Told")
        for order in (["9×", "18×", "27×"], ["27×", "18×", "9×"]):
            await head.click()
            await expect(page.locator("tbody td:nth-child(5)")).to_have_text(order)
        assert page.url.endswith("by=-told")
        async with page.expect_response("**/alarms"):
            await page.evaluate("htmx.trigger('#view', 'refresh')")
        await expect(page.locator("tbody td:nth-child(5)")).to_have_text(order)
        await page.reload()
        await expect(page.locator("tbody td:nth-child(5)")).to_have_text(order)
        await expect(page.locator("th[aria-sort=descending]")).to_have_text("Told")
        await page.keyboard.press("Control+k")
        await page.keyboard.type("acknowledge alarm")
        await expect(page.locator("#palette li").first).to_contain_text("Acknowledge alarm")
        await page.keyboard.press("Escape")
        await go(page, "/records")
        await page.keyboard.press("Control+k")
        await page.keyboard.type("look at it")
        await expect(page.locator("#palette li").first).to_contain_text("Look at it")


ALARM = """
INSERT INTO alarm (rule, subject, level, sentence, since, seen_at, fired_at, told)
VALUES (%(rule)s, '', 'warning', 'It is so.', clock(), clock(), clock(), %(told)s)
"""


async def test_a_cluster_is_replayed_after_a_preview_and_stopped(db: Database) -> None:
    async with db.transaction() as tx:
        await send_many(tx, [Extract(str(place)) for place in range(1_200)])
        await buried(tx, 1_200, "the scan is blank", queues=("extract",))
    async with open_site(db) as site, open_browser() as browser:
        page = await site.open_page(browser)
        await go(page, "/dead")
        await page.get_by_role("link", name="Replay …").click()
        dialog = page.locator("#dialog")
        await expect(dialog.locator(".sentence")).to_contain_text("1,200 tasks")
        await expect(dialog.locator("tbody tr")).to_have_count(10)
        await dialog.get_by_role("button", name="Replay 1,200").click()
        await page.wait_for_url("**/bulk/*")
        id = int(page.url.rpartition("/")[2])
        await run_portion(db, id)
        await expect(page.locator("#bulk")).to_contain_text("500 of 1,200 replayed")
        await page.get_by_role("button", name="Stop").click()
        await expect(page.locator(".toast").last).to_contain_text("It stops after the portion")
        await run_portion(db, id)
        await expect(page.locator("#bulk .badge")).to_contain_text("stopped")
        await expect(page.get_by_role("button", name="Undo")).to_be_visible()


async def test_new_rows_wait_behind_a_line_and_rows_are_put_in_order(db: Database) -> None:
    async with db.transaction() as tx:
        first, second, third = await send_many(tx, [Extract(str(place)) for place in range(3)])
    async with open_site(db) as site, open_browser() as browser:
        page = await site.open_page(browser)
        await go(page, "/tasks")
        async with db.transaction() as tx:
            newest = await send(tx, Extract("new"))
        await page.evaluate("htmx.trigger('#rows', 'refresh')")
        await page.get_by_role("button", name="1 new").wait_for()
        assert await rows(page) == [third, second, first]
        await page.get_by_role("button", name="1 new").click()
        assert await rows(page) == [newest, third, second, first]
        await go(page, "/queues/extract")
        await page.locator(f"#line-{third} [data-handle]").focus()
        async with page.expect_response("**/order"):
            await page.keyboard.press("ArrowUp")
        async with page.expect_response("**/order"):
            await page.locator(f"#line-{newest} [data-handle]").drag_to(page.locator(f"#line-{first} td").first)
        async with db.reading() as tx:
            line = [one.id for one in await list_line(tx, "extract")]
        assert line.index(third) < line.index(second)
        assert line.index(newest) < line.index(second)


async def rows(page: Page) -> list[TaskId]:
    ids = await page.eval_on_selector_all("#rows tr", "rows => rows.map(row => row.id)")
    return [TaskId(int(one.partition("-")[2])) for one in ids]


async def test_a_viewer_sees_everything_and_is_offered_nothing_to_change(db: Database, tmp_path: Path) -> None:
    async with open_site(db, Settings(data=tmp_path)) as site, open_browser() as browser:
        scene = await set_scene(db, children=3)
        async with site.call() as client:
            furnished = await furnish(db, client)
        page = await site.open_with_key(browser, "viewer")
        for path in [*list_pages(site), f"/tasks/{scene.waiting}", f"/tasks/{scene.dead}", *furnished.addresses]:
            answer = await go(page, path)
            assert answer.status in (200, 403, 404), path
            if answer.status == 403:
                await expect(page.locator("[data-problem]")).to_contain_text("your key has the role viewer")
            offered = [urlsplit(one).path for one in await page.eval_on_selector_all(CHANGES, LIST_CHANGES)]
            assert [one for one in offered if not ALLOWED.fullmatch(one)] == [], path
        refused = await page.evaluate(TRY, f"/tasks/{scene.waiting}/cancel")
        assert refused == 403, "who sends it all the same is refused"
        async with db.reading() as tx:
            assert (await get_task(tx, scene.waiting)).status == "pending"


# forms and links that change something, and where they lead
CHANGES = "form[method=post], [hx-post], [hx-put], [hx-delete], [data-order]"
LIST_CHANGES = """found => found.map(one => ["hx-post", "hx-put", "hx-delete", "data-order", "action"]
  .map(name => one.getAttribute(name)).find(value => value))"""
ALLOWED = re.compile("/sign-out|/view-as|/ask(/.*)?")
TRY = """async path => {
  const token = document.querySelector("[name=csrf]").value;
  return (await fetch(path, {method: "POST", headers: {"X-CSRF-Token": token}})).status;
}"""


async def test_a_page_says_that_the_server_is_away_and_goes_on_when_it_is_back(db: Database) -> None:
    async with open_site(db) as site, open_browser() as browser:
        page = await site.open_page(browser)
        await expect(page.locator(".figures")).to_contain_text("Waiting")
        await site.stop()
        await expect(page.locator("#offline")).to_be_visible()
        async with db.transaction() as tx:
            await send_many(tx, [Extract(str(place)) for place in range(77)])
        await site.start()
        await expect(page.locator(".figures")).to_contain_text("77")
        await expect(page.locator("#offline")).to_be_hidden()


async def test_it_is_usable_on_a_phone_in_the_dark(db: Database) -> None:
    scene = await set_scene(db, documents=False, children=3)
    async with open_site(db) as site, open_browser() as browser:
        page = await site.open_page(browser, width=390, dark=True)
        assert await page.evaluate("getComputedStyle(document.body.parentElement).backgroundColor") == "rgb(14, 18, 24)"
        await page.locator(".side .rest summary").click()
        await page.locator(".side .rest").get_by_role("link", name="Schedules").click()
        await page.wait_for_url("**/schedules")
        await go(page, f"/tasks/{scene.waiting}")
        await page.get_by_role("button", name="Cancel").click()
        await page.locator(".toast").get_by_role("button", name="Undo").click()
        await expect(page.locator(".toast").last).to_contain_text("will run again")
        async with db.reading() as tx:
            assert (await get_task(tx, scene.waiting)).status == "pending"
        await page.locator("summary[aria-label^=operator]").click()
        await page.get_by_role("button", name="Light").click()
        await page.reload()
        assert await page.evaluate("document.documentElement.dataset.theme") == "light"
