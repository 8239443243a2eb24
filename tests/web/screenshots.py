"""Takes a picture of every page of the console: three widths, light and dark, and three scenes.

Run it as `python tests/web/screenshots.py FOLDER [SCENE …]`, with the scenes nothing, examples and ugly;
`--only /tasks` takes the pages whose address begins so. The scene readme takes the three pictures of the README. Look
at each picture: is anything cut, misaligned, unreadable, or shouting?
"""

import argparse
import asyncio
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "agents"))
sys.path.insert(0, str(Path(__file__).parent))

from browser import Site, find_barriers, open_browser, open_site, overflows
from furnishing import furnish, import_table, list_pages
from playwright.async_api import Browser, Page
from run_scenes import play_delegating, play_long, play_waiting
from test_web_router import run_ollama

from gristmill.db import Database, open_database
from gristmill.router.server import open_router
from gristmill.settings import BackendSettings, LlmSettings, RouterSettings, Settings
from gristmill.telemetry import set_up_logs
from scenes import set_scene

WIDTHS = (1440, 1024, 390)
SCENES = ("nothing", "examples", "ugly")
INBOX = Path(__file__).parents[2] / "examples" / "inbox"
REVIEWS = Path(__file__).parents[2] / "examples" / "reviews.csv"
EXAMPLES = ("/graph?open=harrow+trust", "/documents/1?tab=graph", "/documents?open=1", "/items/1", "/tasks/1")
SETTLED = 500  # milliseconds in which scripts and the first fetch of the bell are over


def main(folder: Path, scenes: Sequence[str], only: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for scene in scenes:
        with tempfile.TemporaryDirectory(prefix="gristmill-look-") as data:
            if scene in ("examples", "readme"):
                run_program(data, "up", str(INBOX), "--once")
            try:
                asyncio.run(picture_scene(folder, scene, Path(data), only))
            finally:
                run_program(data, "db", "stop")


def run_program(data: str, *words: str) -> None:
    program = Path(sys.executable).parent / "gristmill"
    env = {**os.environ, "GRISTMILL_DATA": data}
    subprocess.run([program, *words], env=env, check=True, stdout=subprocess.DEVNULL)


async def picture_scene(folder: Path, scene: str, data: Path, only: str) -> None:
    settings = Settings(data=data)
    set_up_logs(settings.log)  # without this, every request would be a line
    async with (
        open_database(settings, size=4) as db,
        with_router(settings, scene) as chosen,
        open_site(db, chosen) as site,
        open_browser() as browser,
    ):
        if scene == "readme":
            await picture_readme(folder, db, site, browser)
            return
        found = [*list_pages(site), *(await prepare(db, site, scene))]
        pages = [path for path in found if path.startswith(only)]
        for dark in (False, True):
            for width in WIDTHS:
                await picture_pages(folder / scene, site, browser, pages, width, dark)


@asynccontextmanager
async def with_router(settings: Settings, scene: str) -> AsyncGenerator[Settings]:
    """With the examples, a router with one backend runs."""
    if scene == "nothing":
        yield settings
        return
    async with run_ollama() as (port, _):
        backend = BackendSettings(name="gpu0", url=f"http://127.0.0.1:{port}", parallel=1, vram=8 * 2**30)
        router = RouterSettings(port=0, gpu_backends=(backend,), cpu_backends=())
        async with open_router(router, lambda: router) as served:
            llm = LlmSettings(url=f"http://127.0.0.1:{served.port}")
            own = router.model_copy(update={"port": served.port})
            yield settings.model_copy(update={"llm": llm, "router": own})


async def prepare(db: Database, site: Site, scene: str) -> list[str]:
    """The pages of single things that this scene has."""
    if scene == "nothing":
        return []
    async with site.call() as client:
        if scene == "examples":
            table = await import_table(client, REVIEWS.read_bytes(), REVIEWS.name, load=True)
            return ["/tasks/3", "/queues/ocr", "/documents/1", f"/records/{table}", "/search?q=mill", *EXAMPLES]
        made, furnished = await set_scene(db), await furnish(db, client)
    runs = [(await play(db)).run for play in (play_waiting, play_delegating, play_long)]
    return [
        *(f"/runs/{run}" for run in runs),
        f"/runs/{runs[0]}?node=execute_step",
        f"/tasks?task={made.waiting}",
        *(f"/tasks/{one}" for one in (made.dead, made.group, made.blocked)),
        "/queues/extract",
        "/queues/extract/settings",
        "/bulk/new?status=failed",
        *furnished.addresses,
    ]


async def picture_readme(folder: Path, db: Database, site: Site, browser: Browser) -> None:
    async with db.reading() as tx:
        letter = await tx.value("SELECT id FROM document WHERE name = 'letter-harrow-trust.tiff'")
    pages = {
        "overview": "/",
        "search": "/search?q=which+grease+for+slow+bearings",
        "document": f"/documents/{letter}?page=1&q=harrow+trust+mill",
    }
    page = await site.open_page(browser, width=1360)
    await page.set_viewport_size({"width": 1360, "height": 850})
    for name, path in pages.items():
        await page.goto(site.address + path)
        await page.wait_for_timeout(8 * SETTLED)  # the picture of a page is drawn once
        await page.screenshot(path=folder / f"console-{name}.png")


async def picture_pages(
    prefix: Path, site: Site, browser: Browser, paths: Sequence[str], width: int, dark: bool
) -> None:
    page = await site.open_page(browser, width=width, dark=dark)
    for path in paths:
        answer = await page.goto(site.address + path)
        await page.wait_for_timeout(SETTLED)
        name = re.sub(r"\W+", "-", path).strip("-") or "overview"
        look = "dark" if dark else "light"
        await page.screenshot(path=f"{prefix}-{name}-{width}-{look}.png", full_page=True)
        for sentence in await judge(page, answer.status if answer else 0):
            sys.stdout.write(f"{prefix.name} {path} at {width}, {look}: {sentence}\n")
    await page.context.close()


async def judge(page: Page, status: int) -> list[str]:
    """What a machine sees; the rest is for eyes."""
    said = [f"answered {status}"] if status != 200 else []
    said += ["moves sideways"] if await overflows(page) else []
    return said + await find_barriers(page)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("scenes", nargs="*", default=SCENES)
    parser.add_argument("--only", default="/", help="pages whose address begins so")
    given = parser.parse_args()
    main(given.folder, given.scenes, given.only)
