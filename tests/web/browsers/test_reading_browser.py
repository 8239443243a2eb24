"""Documents, search and graph in a real browser: files come in and are read, words are found and marked on the page."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from browser import look_for_barriers, needs_chromium, open_browser, open_site
from paper import BLANK, put_document
from playwright.async_api import Page, expect
from serving import ACME, GLOBEX

from documents.grindstone import Mill, a_mill, a_model_pool
from gristmill.db import Database
from gristmill.documents.letters import ReadPage
from gristmill.errors import Permanent
from gristmill.queue import Worker, on
from scenes import UGLY

pytestmark = needs_chromium
INBOX = Path(__file__).parents[3] / "examples" / "inbox"
QUICK = ("contract-HT-2026-014.pdf", "meeting-2026-05-26.md", "bearing-broke.eml")  # without OCR
READ = 60_000  # milliseconds in which a busy machine has read them
expect.set_options(timeout=30_000)  # the first search loads a model; no test here is decided by how long that takes


@asynccontextmanager
async def working(mill: Mill) -> AsyncGenerator[None]:
    """A worker that grinds whatever comes."""
    worker = Worker(mill.db, mill.handlers, mill.settings.queue)
    running = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        worker.stop()
        await running


async def go(page: Page, path: str) -> None:
    await page.goto(re.sub(r"^(\w+://[^/]+).*", rf"\1{path}", page.url))
    await page.wait_for_load_state("load")


async def test_files_are_added_read_found_and_their_words_stand_marked_on_the_page(
    db: Database, tmp_path: Path
) -> None:
    async with a_model_pool() as models, open_browser() as browser:
        mill = a_mill(db, tmp_path, models)
        async with open_site(db, mill.settings) as site, working(mill):
            page = await site.open_page(browser)
            await add_files(page)
            await search_to_the_marked_page(page)
            await look_at_the_graph(page)


async def add_files(page: Page) -> None:
    await go(page, "/documents")
    await page.locator("#pick-files").set_input_files([INBOX / name for name in QUICK])
    await expect(page.locator("#upload-title")).to_have_text("3 added")
    rows = page.locator("#document-rows tr")
    await expect(rows.filter(has_text=QUICK[0])).to_have_count(1)
    await expect(page.locator("#document-rows .is-done")).to_have_count(3, timeout=READ)
    await page.get_by_role("button", name="1 new").click()  # the attachment of the mail
    await expect(page.locator("#document-rows .is-done")).to_have_count(4, timeout=READ)
    await page.locator("#pick-files").set_input_files([INBOX / QUICK[0]])
    await expect(page.locator("#upload-title")).to_have_text("1 there already")


async def search_to_the_marked_page(page: Page) -> None:
    await page.keyboard.press("/")
    await page.keyboard.type("listed building permit")
    await page.keyboard.press("Enter")
    await expect(page.locator(".hit").first).to_contain_text("Restoration Contract")
    await expect(page.locator("#preview .boxes .mark").first).to_be_visible()
    await page.keyboard.press("Enter")  # from the box to the first hit …
    await page.keyboard.press("j")
    await page.keyboard.press("k")
    await page.keyboard.press("Enter")  # … and to its page
    await page.wait_for_url("**/documents/*?page=1&q=*")
    await expect(page.locator(".paper .boxes .mark").first).to_be_visible()
    assert await marks_lie_on_the_picture(page)
    await expect(page.locator(".page-text mark").first).to_be_visible()


async def marks_lie_on_the_picture(page: Page) -> bool:
    return await page.evaluate(
        """() => {
          const paper = document.querySelector(".paper").getBoundingClientRect();
          return [...document.querySelectorAll(".boxes .mark")].every((mark) => {
            const box = mark.getBoundingClientRect();
            return box.width > 5 && box.left >= paper.left && box.right <= paper.right && box.bottom <= paper.bottom;
          });
        }"""
    )


async def look_at_the_graph(page: Page) -> None:
    await go(page, "/graph?open=harrow+trust")
    before = await page.locator(".node").count()
    place = await page.locator('[data-key="organisation::harrow trust"]').locator("xpath=..").get_attribute("transform")
    await page.locator('[data-key="person::tomas lindqvist"]').focus()
    await page.keyboard.press("Enter")
    await expect(page.locator(".graph-panel h2")).to_have_text("Tomas Lindqvist")
    await page.get_by_role("link", name="Open", exact=True).click()
    await expect(page.locator(".node.is-open")).to_have_count(2)
    assert await page.locator(".node").count() >= before
    again = await page.locator('[data-key="organisation::harrow trust"]').locator("xpath=..").get_attribute("transform")
    assert again == place, "growing moves nothing"
    await page.locator(".passage a").first.click()
    await expect(page.locator(".page-text mark").first).to_be_visible()


async def test_a_failed_page_is_tried_again_where_the_eye_is_and_turns_green(db: Database, tmp_path: Path) -> None:
    async def refuse(_: ReadPage) -> None:
        raise Permanent(BLANK)

    async with a_model_pool() as models, open_browser() as browser:
        mill = a_mill(db, tmp_path, models)
        broken = replace_handler(mill, refuse)
        added = await broken.add("board-pack.txt", "The wheel turns.")
        await broken.grind()
        async with open_site(db, mill.settings) as site:
            page = await site.open_page(browser)
            await go(page, "/documents?status=failed")
            await expect(page.locator("#document-rows")).to_contain_text(BLANK)
            await go(page, f"/documents/{added.document}")
            await expect(page.locator(".thumb.is-failed")).to_have_count(1)
            await page.get_by_role("button", name="Retry page 1").click()
            await expect(page.locator(".toast").last).to_contain_text("is tried again")
            async with working(mill):
                await expect(page.locator("#document-head .badge")).to_contain_text("done", timeout=READ)
            await expect(page.locator(".thumb.is-done")).to_have_count(1)
            await expect(page.locator(".page-text")).to_contain_text("The wheel turns.")


def replace_handler(mill: Mill, refuse: object) -> Mill:
    return replace_handlers(mill, {**mill.handlers, ReadPage.kind: on(ReadPage, refuse)})  # type: ignore[arg-type]


def replace_handlers(mill: Mill, handlers: object) -> Mill:
    other = replace(mill)
    other.handlers = handlers  # type: ignore[assignment]
    return other


async def test_two_clients_side_by_side_see_nothing_of_each_other(db: Database) -> None:
    for scope, word in ((ACME, "anvil"), (GLOBEX, "gasket")):
        await put_document(db, f"The {word} broke.", name=f"{word}.md", scope=scope, facts=[f"{word} -OF-> Mill"])
    async with open_site(db) as site, open_browser() as browser:
        for scope, own, other in ((ACME, "anvil", "gasket"), (GLOBEX, "gasket", "anvil")):
            page = await site.open_with_key(browser, "manager", scope)
            for path in ("/documents", "/search?q=broke&alpha=0", "/graph"):
                await go(page, path)
                await expect(page.locator("main")).to_contain_text(own)
                assert other not in await page.content()
            await page.context.close()


async def test_documents_are_reached_by_keyboard_alone(db: Database) -> None:
    first = await put_document(db, "One.", "Two.", name="first.md")
    await put_document(db, "Other.", name="second.md")
    async with open_site(db) as site, open_browser() as browser:
        page = await site.open_page(browser)
        await page.keyboard.press("Control+k")
        await page.keyboard.type("documents")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/documents")
        await page.keyboard.press("j")
        await page.keyboard.press("j")
        await page.keyboard.press("Enter")
        await expect(page.locator(".document-pane h2")).to_have_text("first.md")
        assert page.url.endswith(f"open={first}")
        await page.keyboard.press("Escape")
        await expect(page.locator(".document-pane")).to_have_count(0)
        assert await page.evaluate("document.activeElement.matches('[data-row]')"), "the focus is back in the list"
        await page.keyboard.press("Enter")
        await expect(page.locator(".document-pane")).to_have_count(1)
        await page.keyboard.press("Enter")
        await page.wait_for_url(f"**/documents/{first}")
        await page.keyboard.press("ArrowRight")
        await page.wait_for_url("**?page=2")
        await expect(page.locator(".page-text")).to_contain_text("Two.")


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (390, True)])
async def test_no_page_has_barriers_or_moves_sideways(db: Database, width: int, dark: bool) -> None:
    facts = ["Jane -KNOWS-> Bob", "Jane -HIRED-> Cid"]
    document = await put_document(db, "Jane knows Bob.", name="a.md", urn="test:a")
    document = await put_document(db, "Jane hired Cid.", name="a.md", urn="test:a", version=2, facts=facts)
    for name in UGLY:
        await put_document(db, name, name=name, title=name)
    tabs = [f"/documents/{document}?tab={tab}" for tab in ("pages", "graph", "versions", "about", "activity")]
    lists = ["/documents", f"/documents?open={document}", "/search", "/search?q=Jane&alpha=0"]
    graphs = ["/graph", "/graph?open=person%3A%3Ajane", "/graph?open=person%3A%3Ajane&shown=list"]
    async with open_site(db) as site, open_browser() as browser:
        page = await site.open_page(browser, width=width, dark=dark)
        found = await look_for_barriers(page, [*lists, *tabs, f"/documents/{document}/delete", *graphs])
        assert not found, "\n".join(found)
