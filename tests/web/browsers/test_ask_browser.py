"""Ask in a real browser: a question, its answer as it is written, its evidence, a stop, and a message meanwhile."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio
from browser import Site, find_barriers, needs_chromium, open_browser, open_site, overflows
from playwright.async_api import Page, expect

from gristmill.db import Database
from gristmill.knowledge import Finder
from gristmill.models import FakeEmbedder, Message
from gristmill.settings import LlmSettings, Settings

sys.path.insert(0, str(Path(__file__).parents[2] / "agents"))
from evidence import store_page

pytestmark = needs_chromium
KETTLE = "The price of the copper kettle is EUR 5,000.00. It was made in 1868 in Brno."
QUESTION = "What is the price of the copper kettle?"


class PacedLlm:
    """A model that writes a piece whenever the test lets it; `ended` notes how each answer was left."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = [list(one) for one in answers]
        self.asked: list[str] = []
        self.ended: list[str] = []
        self.allowed, self.begun = asyncio.Semaphore(0), asyncio.Semaphore(0)

    def go_on(self, pieces: int = 1) -> None:
        for _ in range(pieces):
            self.allowed.release()

    async def stream_text(self, question: Sequence[Message], **_: object) -> AsyncGenerator[str]:
        self.asked.append("\n".join(turn.text for turn in question))
        self.begun.release()
        pieces = self.answers.pop(0)
        try:
            for piece in pieces:
                await self.allowed.acquire()
                yield piece
        except (asyncio.CancelledError, GeneratorExit):
            self.ended.append("left")
            raise
        self.ended.append("done")

    async def ask_text(self, *_: object, **__: object) -> str:
        return "A summary."

    async def close(self) -> None:
        """Nothing is open."""


@pytest_asyncio.fixture(loop_scope="session")
async def settings(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(Finder, "embedders", [FakeEmbedder()])
    await store_page(db, KETTLE, name="kettles.md", title="Kettles", embedder=FakeEmbedder())
    return Settings(data=tmp_path, llm=LlmSettings(model="scripted"))


def script(monkeypatch: pytest.MonkeyPatch, *answers: Sequence[str]) -> PacedLlm:
    llm = PacedLlm(*answers)
    monkeypatch.setattr("gristmill.agents.ask.service.RouterLlm", lambda *_, **__: llm)
    return llm


async def ask(page: Page, site: Site, question: str = QUESTION) -> None:
    await page.goto(f"{site.address}/ask")
    await page.get_by_label("Question").fill(question)
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/ask/*")


async def test_an_answer_is_written_before_the_eyes_and_its_citation_opens_the_page_at_the_words(
    db: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = script(
        monkeypatch, ["The price of the copper kettle ", "is EUR 5,000.00 [1]. ", "It belongs to Gerald Finch [1]."]
    )
    async with open_site(db, settings) as site, open_browser() as browser:
        page = await site.open_page(browser)
        await ask(page, site)
        answer = page.locator(".message.of-assistant")
        llm.go_on()
        await expect(answer.locator(".draft")).to_contain_text("The price of the copper kettle")
        await expect(page.locator("#stop")).to_be_visible()
        llm.go_on(2)
        await expect(answer.locator(".sentence")).to_have_count(1)
        await expect(page.locator("#stop")).to_be_hidden()
        await expect(answer.locator(".why summary")).to_have_text("1 sentence left out")
        await expect(answer).not_to_contain_text("Searching")
        await answer.locator(".cite").first.click()
        await page.wait_for_url("**/documents/*at=0-47*")
        await expect(page.locator("mark").first).to_have_text("The price of the copper kettle is EUR 5,000.00.")
        await page.go_back()
        await expect(page.locator(".message.of-assistant .sentence")).to_have_count(1)


async def test_stop_ends_the_answer_down_to_the_model(
    db: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = script(monkeypatch, ["The price of the copper kettle is EUR 5,000.00 [1]. ", "It was made ", "in 1868 [1]."])
    async with open_site(db, settings) as site, open_browser() as browser:
        page = await site.open_page(browser)
        await ask(page, site)
        llm.go_on(2)
        answer = page.locator(".message.of-assistant")
        await expect(answer.locator(".sentence")).to_have_count(1)
        await page.locator("#stop").click()
        await expect(answer).to_contain_text("stopped")
        await expect(page.locator("#stop")).to_be_hidden()
        await expect(answer.locator(".sentence")).to_have_count(1)
        assert llm.ended == ["left"]


async def test_a_message_that_is_sent_meanwhile_is_taken_into_account(
    db: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = ["The price of the copper kettle is EUR 5,000.00 [1]. ", "It was made in 1868 in Brno [1]."]
    llm = script(monkeypatch, ["The price "], both)
    async with open_site(db, settings) as site, open_browser() as browser:
        page = await site.open_page(browser)
        await ask(page, site)
        await expect(page.locator(".message.of-assistant")).to_contain_text("…")
        await llm.begun.acquire()
        await page.get_by_label("Question").fill("And when was it made?")
        await page.keyboard.press("Enter")
        await expect(page.locator(".message.of-user")).to_have_count(2)
        await llm.begun.acquire()
        llm.go_on(3)
        await expect(page.locator(".message.of-assistant .sentence")).to_have_count(2)
        await expect(page.locator(".message.of-assistant")).to_have_count(1)
        assert "And when was it made?" in llm.asked[1]
        await expect(page.locator("#stop")).to_be_hidden()


async def test_conversations_are_found_again_and_removed(
    db: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = script(monkeypatch, ["The price of the copper kettle is EUR 5,000.00 [1]."])
    async with open_site(db, settings) as site, open_browser() as browser:
        page = await site.open_page(browser, width=390, dark=True)
        await ask(page, site)
        llm.go_on()
        await expect(page.locator(".message.of-assistant .sentence")).to_have_count(1)
        found = await find_barriers(page)
        assert not found, "\n".join(found)
        assert not await overflows(page)
        await page.goto(f"{site.address}/ask")
        await page.get_by_role("navigation", name="Conversations").get_by_role("link").first.click()
        await expect(page.locator(".message")).to_have_count(2)
        await page.get_by_role("button", name="Remove").click()
        await page.wait_for_url("**/ask")
        await expect(page.get_by_role("navigation", name="Conversations")).to_have_count(0)
