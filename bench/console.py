"""Measures the console and the API over millions of tasks: `make bench-console`.

Every page and every list is found in the application itself. The last line is JSON.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT)

import argparse  # noqa: E402
import asyncio  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import re  # noqa: E402
import shutil  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402
from collections.abc import AsyncIterator, Mapping, Sequence  # noqa: E402
from contextlib import AsyncExitStack, asynccontextmanager  # noqa: E402
from time import perf_counter, strftime  # noqa: E402

import httpx  # noqa: E402
import psutil  # noqa: E402
from bench.crowd import Answers, crowd, look_alone  # noqa: E402
from bench.painting import Painting, paint_pages  # noqa: E402
from bench.stock import Stock, fill  # noqa: E402
from fastapi.routing import APIRoute, iter_route_contexts  # noqa: E402

from gristmill.app import ROOMS  # noqa: E402
from gristmill.db import Database, Embedded, open_database  # noqa: E402
from gristmill.documents import Item, take_in_many  # noqa: E402
from gristmill.knowledge import Finder  # noqa: E402
from gristmill.scopes import Scope  # noqa: E402
from gristmill.serving import Caller  # noqa: E402
from gristmill.settings import Settings  # noqa: E402
from gristmill.web import add_key  # noqa: E402
from gristmill.web.application import create_app  # noqa: E402

PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- console:begin -->", "<!-- console:end -->"
# what the page says of a figure, and what is to be reached
GOALS = {
    "p95_ms": ("first data of every page and list, p95, ms", "≤ 200"),
    "worst_page_ms": ("… of the slowest of them, p95, ms", "≤ 200"),
    "errors": ("200 users at once: errors", "0"),
    "crowded_p95_ms": ("… p95, ms", ""),
    "ingest_ratio": ("… ingest meanwhile, of its speed alone", "≥ 0.80"),
    "first_paint_ms": ("first paint of the slowest page, empty cache, ms", ""),
    "page_kb": ("bytes of the heaviest page, with styles and scripts, kB", "≤ 150"),
    "layout_shift": ("what jumps on the most restless page", "< 0.1"),
    "barriers": ("serious findings of axe", "0"),
}
FULL, TENTH = (10_000_000, 100_000), (1_000_000, 10_000)
BOX = 330.0  # seconds for filling, so that the whole stays below ten minutes
USERS, WATCH, PAUSE = 200, 40.0, 5.0  # people look at a page for some seconds
QUIET = 12.0
ROUNDS, CLIENT_ROUNDS = 20, 10
OPERATOR = Caller("bench", "admin", None, "bench")
# lists whose filters decide how much must be looked through
FILTERED = (
    "/api/tasks?text=nowhere-to-be-found",
    "/api/tasks?queue=bench-3&text=nowhere-to-be-found",
    "/api/tasks?status=pending",
    "/api/tasks?status=pending&queue=bench-7",
    "/api/tasks?status=failed&queue=bench-3",
    "/api/tasks?status=skipped",
    "/api/tasks?kind=none.such",
    "/api/tasks?older_than=1209600",
    "/api/tasks?document=7",
    "/api/documents?status=failed",
    "/api/documents?status=pending",
    "/api/documents?name=nowhere-to-be-found",
    "/api/documents?order=name",
    "/api/items?state=done",
    "/api/links?state=refused",
    "/api/records?import_id=7",
    "/api/records?category=TOP_10",
    "/api/runs?state=failed",
    "/api/questions?all=true",
    "/api/audit?action=none",
    "/documents?status=failed",
    "/tasks?status=pending",
    "/tasks?text=nowhere-to-be-found",
)
OF_TASKS = ("/tasks", "/api/tasks", "/api/groups")
NOT_PAGES = ("/mcp", "/static/", "/api/workers/", "/sign-", "/metrics", "/healthz", "/readyz", "/api/openapi.json")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--full", action="store_true", help="all ten million tasks, however long it takes")
    size.add_argument("--tenth", action="store_true", help="a million tasks")
    size.add_argument("--tasks", type=int, help="so many tasks, for trying")
    parser.add_argument("--ingest", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ingest:
        return await run_ingest(*options.ingest)
    tasks, documents = TENTH if options.tenth else FULL
    if options.tasks:
        tasks, documents = options.tasks, max(100, options.tasks // 100)
    folder = Path(tempfile.mkdtemp(prefix="gristmill-bench-"))
    server = Embedded(folder)
    try:
        url = server.start()
        async with open_database(Settings(database_url=url), size=4) as db:
            boxed = None if options.full or options.tenth or options.tasks else BOX
            load = os.getloadavg()[0]
            stock = await fill(db, tasks, documents, seconds=boxed, say=say)
            figures = await measure(db, url, stock)
        if not options.tenth and not options.tasks:
            write_page(figures, load)
        print(json.dumps(figures))
    finally:
        server.stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)


async def measure(db: Database, url: str, stock: Stock) -> dict[str, float]:
    async with db.transaction() as tx:
        keys = [(await add_key(tx, OPERATOR, f"user {n}", "admin", None)).secret for n in range(USERS)]
        client = (await add_key(tx, OPERATOR, "client", "viewer", Scope("client 3"))).secret
    async with serve(url) as (link, server), open_clients(link.partition("/?")[0], [*keys, client]) as clients:
        addresses = await choose_addresses(clients[0], await find_addresses(db, stock))
        spent = server.cpu_times()
        alone = await look_alone(clients[0], addresses, ROUNDS)
        report("one person", alone)
        cost = (sum(server.cpu_times()[:2]) - sum(spent[:2])) * 1000 / (len(addresses) * (ROUNDS + 1))
        say(f"processor time of the server: {cost:.1f} ms an answer")
        scoped = await look_alone(clients[-1], await choose_addresses(clients[-1], addresses), CLIENT_ROUNDS)
        report("one client of twenty", scoped)
        painted = await paint_pages(link, await list_pages(clients[0], addresses))
        report_painting(painted)
        quiet = await ingest_elsewhere(url, QUIET, "quiet")
        busy = asyncio.create_task(ingest_elsewhere(url, WATCH * 0.8, "busy"))
        crowded = await crowd(clients[:-1], addresses, WATCH, PAUSE)
        speed = await busy
    report(f"{USERS} users at once", crowded)
    say(f"ingest: {quiet:.0f} documents a second alone, {speed:.0f} meanwhile")
    errors = alone.errors + scoped.errors + crowded.errors
    for error in sorted(set(errors)):
        say(f"error: {error} ({errors.count(error)} times)")
    return {
        "users": USERS,
        "errors": len(errors),
        "p95_ms": round(max(alone.p95, scoped.p95), 1),
        "worst_page_ms": round(max(alone.list_slowest()[0][0], scoped.list_slowest()[0][0]), 1),
        "ingest_ratio": round(speed / quiet, 2),
        "crowded_p95_ms": round(crowded.p95, 1),
        "barriers": sum(len(one.barriers) for one in painted),
        "first_paint_ms": round(max((one.paint_ms for one in painted), default=0.0), 1),
        "page_kb": round(max((one.bytes for one in painted), default=0) / 1000),
        "layout_shift": round(max((one.moved for one in painted), default=0.0), 3),
        "tasks": stock.tasks,
        "open": stock.open,
        "documents": stock.documents,
    }


async def choose_addresses(client: httpx.AsyncClient, found: Sequence[str]) -> list[str]:
    """Those that show something: of some things nothing is in stock. A failure stays, and is counted."""
    chosen: list[str] = []
    for address in found:
        async with client.stream("GET", address) as answer:
            if 400 <= answer.status_code < 500:
                say(f"left out: {address} ({answer.status_code})")
            else:
                chosen.append(address)
    say(f"{len(chosen)} pages and lists")
    return chosen


async def find_addresses(db: Database, stock: Stock) -> list[str]:
    """Every page and every list of the application that can be looked at, with numbers of things that are there."""
    settings = Settings()
    async with Finder(db, settings) as finder:
        app = create_app(db, settings, ROOMS, finder)
    values = {
        "task": stock.group,
        "document": 7,
        "item": 6,
        "record": 7,
        "import_id": 7,
        "name": "bench-3",
        "queue": "bench-3",
        "page": 1,
        "number": 1,
        "run": 7,
    }
    found: list[str] = []
    for context in iter_route_contexts(app.routes):
        path = context.path
        if (
            not isinstance(context.original_route, APIRoute)
            or "GET" not in context.methods
            or path.startswith(NOT_PAGES)
        ):
            continue
        try:
            found.append(fill_in(path, values | {"id": stock.group if path.startswith(OF_TASKS) else 7}))
        except KeyError:
            say(f"left out: {path} (nothing of it is in stock)")
    return [one for one in dict.fromkeys(found) if not one.startswith("/api/schedules/bench")] + list(FILTERED)


def fill_in(path: str, values: Mapping[str, object]) -> str:
    return re.sub(r"{(\w+)(?::\w+)?}", lambda found: str(values[found[1]]), path)


async def list_pages(client: httpx.AsyncClient, addresses: Sequence[str]) -> list[str]:
    """The whole pages among these, for people: no part of a page, no answer for a program."""
    pages = [one for one in addresses if not one.startswith("/api/")]
    return [one for one in pages if "<nav" in (await client.get(one)).text]


@asynccontextmanager
async def serve(url: str) -> AsyncIterator[tuple[str, psutil.Process]]:
    """The program in a process of its own, as people run it; the link to its console."""
    command = [sys.executable, "-m", "gristmill", "serve", "--port", "0", "--json"]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=subprocess.PIPE, env=os.environ | {"GRISTMILL_DATABASE_URL": url}
    )
    assert process.stdout
    try:
        yield json.loads(await process.stdout.readline())["console"], psutil.Process(process.pid)
    finally:
        process.terminate()
        await process.wait()


@asynccontextmanager
async def open_clients(place: str, keys: Sequence[str]) -> AsyncIterator[list[httpx.AsyncClient]]:
    """One for each key, with connections of its own, as browsers have."""
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(
                httpx.AsyncClient(base_url=place, headers={"Authorization": f"Bearer {key}"}, timeout=60)
            )
            for key in keys
        ]


async def ingest_elsewhere(url: str, seconds: float, name: str) -> float:
    """As `ingest`, in a process of its own, as workers are."""
    command = [sys.executable, str(Path(__file__)), "--ingest", url, str(seconds), name]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    said, _ = await process.communicate()
    return float(said)


async def run_ingest(url: str, seconds: str, name: str) -> None:
    async with open_database(Settings(database_url=url), size=2) as db:
        print(await ingest(db, float(seconds), name))


async def ingest(db: Database, seconds: float, name: str) -> float:
    """Documents a second that one program takes in, twenty a transaction, with all the tasks for them."""
    began, n = perf_counter(), 0
    while perf_counter() - began < seconds:
        items = [
            Item(f"bench:{name}:{n + i}", f"{name} {n + i}.md", f"# Note {n + i}\n\nSome words.") for i in range(20)
        ]
        async with db.transaction() as tx:
            await take_in_many(tx, items)
        n += len(items)
    return n / (perf_counter() - began)


def report(title: str, answers: Answers) -> None:
    say(f"{title}: p95 {answers.p95:.1f} ms over {sum(map(len, answers.times.values())):,} answers; the slowest:")
    for p95, address in answers.list_slowest()[:12]:
        say(f"  {p95:8.1f} ms  {address}")


def write_page(figures: Mapping[str, float], load: float) -> None:
    stocked = (
        f"{figures['tasks']:,.0f} tasks, {figures['open']:,.0f} of them open, {figures['documents']:,.0f} documents"
    )
    note = f"*{strftime('%Y-%m-%d')}, {os.cpu_count()} cores, load average before {load:.1f}; {stocked}*"
    rows = [f"| {text} | {figures[name]:,} | {goal} |" for name, (text, goal) in GOALS.items()]
    body = "\n".join([BEGIN, note, "", "| | | to reach |", "|---|--:|---|", *rows, END])
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: body, page, flags=re.DOTALL), encoding="utf-8")


def report_painting(painted: Sequence[Painting]) -> None:
    for barrier in sorted({barrier for one in painted for barrier in one.barriers}):
        say(f"axe: {barrier}")
    say(
        f"{len(painted)} pages in Chromium, with an empty cache; the slowest, heaviest and most restless:"
        if painted
        else "no Chromium is here"
    )
    slowest = sorted(painted, key=lambda one: one.paint_ms, reverse=True)[:8]
    heaviest = sorted(painted, key=lambda one: one.bytes, reverse=True)[:4]
    restless = sorted(painted, key=lambda one: one.moved, reverse=True)[:2]
    for one in dict.fromkeys((*slowest, *heaviest, *restless)):
        size = f"{one.bytes / 1000:6.0f} kB in {one.files:2} files"
        say(f"  {one.paint_ms:6.0f} ms to the first paint, {size}, moved {one.moved:.3f}  {one.address}")


def say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        sys.exit(130)
