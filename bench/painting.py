"""How soon a person sees a page, what it weighs, how much of it jumps, and whom it keeps out: by a real Chromium."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests" / "web"))

from browser import CHROMIUM, find_barriers, open_browser
from playwright.async_api import Browser, StorageState

SETTLED = 300  # milliseconds after the page is there, in which late things would move others
READ_FIGURES = """async settled => {
  await new Promise(done => setTimeout(done, settled));
  let moved = 0;
  const watch = new PerformanceObserver(() => {});
  watch.observe({type: "layout-shift", buffered: true});
  for (const one of watch.takeRecords()) if (!one.hadRecentInput) moved += one.value;
  const files = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  return {
    paint_ms: paint ? paint.startTime : 0,
    loaded_ms: files[0].loadEventEnd,
    bytes: files.reduce((sum, file) => sum + file.transferSize, 0),
    files: files.length,
    moved,
  };
}"""


@dataclass(frozen=True)
class Painting:
    """One visit of a page with an empty cache."""

    address: str
    paint_ms: float  # until the first text or picture is seen
    loaded_ms: float
    bytes: int  # over the wire, styles and scripts included
    files: int
    moved: float  # the share of the window that jumped, times how far it did; below 0.1 is good
    barriers: tuple[str, ...]  # what axe finds serious


async def paint_pages(link: str, addresses: Sequence[str]) -> list[Painting]:
    """Every page as a new visitor sees it; nothing where there is no Chromium."""
    if CHROMIUM is None:
        return []
    async with open_browser() as browser:
        visitor = await browser.new_context()
        page = await visitor.new_page()
        await page.goto(link)
        await page.wait_for_selector("nav.side")
        signed_in, place = await visitor.storage_state(), link.partition("/?")[0]
        await visitor.close()
        return [await paint_page(browser, signed_in, place, address) for address in addresses]


async def paint_page(browser: Browser, signed_in: StorageState, place: str, address: str) -> Painting:
    context = await browser.new_context(storage_state=signed_in, viewport={"width": 1440, "height": 900})
    page = await context.new_page()
    await page.goto(place + address, wait_until="load")
    figures = await page.evaluate(READ_FIGURES, SETTLED)
    barriers = await find_barriers(page)
    await context.close()
    return Painting(address, **figures, barriers=tuple(barriers))
