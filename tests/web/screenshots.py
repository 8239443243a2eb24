"""Takes a picture of every page of the console: three widths, light and dark, and three scenes.

Run it as `python tests/web/screenshots.py FOLDER [SCENE …]`, with the scenes nothing, examples and ugly;
`--only /tasks` takes the pages whose address begins so. Look at each picture: is anything cut, misaligned, unreadable,
or shouting?
"""

import argparse
import asyncio
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from browser import Site, find_barriers, open_browser, open_site, overflows
from playwright.async_api import Browser, Page

from gristmill.db import Database, open_database
from gristmill.settings import Settings
from gristmill.telemetry import set_up_logs
from scenes import set_scene

WIDTHS = (1440, 1024, 390)
SCENES = ("nothing", "examples", "ugly")
INBOX = Path(__file__).parents[2] / "examples" / "inbox"
PAGES = ("/", "/queues", "/tasks", "/dead", "/schedules", "/bulk", "/alarms", "/documents", "/search?q=mill", "/graph")
SETTLED = 500  # milliseconds in which scripts and the first fetch of the bell are over


def main(folder: Path, scenes: Sequence[str], only: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for scene in scenes:
        with tempfile.TemporaryDirectory(prefix="gristmill-look-") as data:
            if scene == "examples":
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
    async with open_database(settings, size=4) as db:
        pages = [path for path in [*PAGES, *(await prepare(db, scene))] if path.startswith(only)]
        async with open_site(db, settings) as site, open_browser() as browser:
            for dark in (False, True):
                for width in WIDTHS:
                    await picture_pages(folder / scene, site, browser, pages, width, dark)


async def prepare(db: Database, scene: str) -> list[str]:
    """The pages of single things that this scene has."""
    if scene == "nothing":
        return []
    if scene == "ugly":
        made = await set_scene(db)
        return [
            f"/tasks?task={made.waiting}",
            *(f"/tasks/{one}" for one in (made.dead, made.group, made.blocked)),
            "/queues/extract",
            "/queues/extract/settings",
            "/bulk/new?status=failed",
        ]
    return ["/tasks/3", "/queues/ocr", "/documents/1"]


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
