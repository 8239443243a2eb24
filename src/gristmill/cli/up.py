"""`gristmill up`: everything one needs, started with one word."""

import asyncio
import re
import shlex
import signal
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.live import Live
from rich.text import Text

from gristmill.app import ROOMS
from gristmill.cli.add import make_intake, outcomes_view
from gristmill.cli.background import run_workers
from gristmill.cli.grinding import as_dict, draw_board, find_notes, follow
from gristmill.cli.items import show_qualified, wait_until_decided, wait_until_kept
from gristmill.cli.output import Json, err, out, say_json, to_plain, warn
from gristmill.cli.scopes import Client, Project, scope_of
from gristmill.cli.search import hits_view
from gristmill.cli.serve import CONNECTIONS, print_link
from gristmill.cli.session import Session, run, session, wait_for_database
from gristmill.cli.stopping import Interruption
from gristmill.db import explain_full_disk
from gristmill.documents import Progress, choose_pause, explain_failures, load_overview, load_overview_of
from gristmill.errors import Refused, Unreachable
from gristmill.knowledge import Finder, chunks, graph
from gristmill.scopes import GLOBAL, Scope
from gristmill.sources import check_folder, find_first_files, watch_folder
from gristmill.web import Serving, open_search_service, open_web
from gristmill.wording import format_count

TELLING = 8  # letters that a title needs at least to say what a document is about
LONG_WORD = re.compile(r"\w{4,}")


def register(root: typer.Typer, text: str) -> None:
    root.command("up")(up)


def up(
    folder: Annotated[str | None, typer.Argument(help="A folder to grind and to watch.")] = None,
    client: Client = None,
    project: Project = None,
    once: Annotated[
        bool, typer.Option("--once", help="End when everything in the folder is done, with a summary.")
    ] = False,
    json: Json = False,
) -> None:
    """Start the database, workers, the API and the console, and grind a folder: now, and whenever it changes.

    Example: gristmill up examples/inbox --once
    """
    scope = scope_of(client, project)
    path = None if folder is None else check_folder(folder)
    if once and path is None:
        raise typer.BadParameter("--once needs a folder: without one there is nothing to be done with")
    try:
        failed = run(_up(path, scope, once, json))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    if failed:
        raise typer.Exit(1)


async def _up(folder: Path | None, scope: Scope, once: bool, as_json: bool) -> bool:
    interruption = Interruption()
    interruption.listen(signal.SIGTERM)
    try:
        async with (
            session(size=CONNECTIONS) as at,
            _mention_database(at, quiet=as_json),
            run_workers(at, interruption, quiet=as_json) as workers,
        ):
            if once:
                assert folder is not None
                return await workers.keep_during(_grind(at, folder, scope, as_json))
            async with (
                Finder(at.db, at.settings) as finder,
                open_search_service(at.db, at.settings, finder),
                open_web(at.db, at.settings, ROOMS, finder, roams=True) as serving,
            ):
                await workers.keep_during(_serve(at, folder, scope, serving, as_json))
    except asyncio.CancelledError:
        if once or interruption.first != signal.SIGTERM:
            raise
    return False  # a SIGTERM is the usual end of a server


@asynccontextmanager
async def _mention_database(at: Session, *, quiet: bool) -> AsyncGenerator[None]:
    """Say at the end that the embedded PostgreSQL still runs. It makes the next command faster, but nobody sees it."""
    try:
        yield
    finally:
        if not at.settings.database_url and not quiet:
            err.print("PostgreSQL keeps running for the next command; gristmill db stop stops it.", style="dim")


async def _grind(at: Session, folder: Path, scope: Scope, as_json: bool) -> bool:
    intake = make_intake(at, scope, patient=True)
    added = await intake.add_files(find_first_files(intake, folder))
    if not added:
        raise Refused(f"There is no file in {folder}.")
    ids = [one.document for one in added if one.document is not None]
    refused = [one for one in added if one.status == "refused"]
    found = await follow(at, ids, quiet=as_json, has_workers=True)
    failed = bool(refused) or not all(one.status == "completed" for one in found)
    if as_json:
        say_json({"documents": [as_dict(one) for one in found], "refused": refused})
        return failed
    out.print(outcomes_view(found))
    for one in refused:
        out.print(Text(f"  {one.name}: refused, {one.reason}", style="red"), soft_wrap=True)
    async with at.db.transaction() as tx:
        errors = await explain_failures(tx, found)
    for one, error in errors:
        out.print(Text(f"  {one.id} {one.name}: {error}", style="red"), soft_wrap=True)
    await _sum_up(at, found, scope)
    return failed


async def _sum_up(at: Session, found: Sequence[Progress], scope: Scope) -> None:
    """Print how much was ground, and a first search."""
    await wait_until_decided(at, [one.id for one in found])
    await wait_until_kept(at)
    async with at.db.transaction() as tx:
        known = await graph.counts(tx, scope)
    pages = sum(one.pages or 0 for one in found)
    chunks = sum(phase.done for one in found if (phase := one.phase("vector")))
    whole = sum(one.status == "completed" for one in found)
    out.print(
        f"\n{whole:,} of {format_count(len(found), 'document')} complete: {format_count(pages, 'page')}, "
        f"{format_count(chunks, 'chunk')}, {format_count(known.nodes, 'node')} and "
        f"{format_count(known.edges, 'edge')} in the graph."
    )
    await show_qualified(at, [one.id for one in found])
    query = await choose_query(at, found)
    if query:
        out.print(Text(f"\n$ {format_search(query, scope)}"), soft_wrap=True)
        async with Finder(at.db, at.settings) as finder:
            hits = await finder.find(query, scope, limit=3)
        if hits.note:
            warn(hits.note)
        out.print(hits_view(hits, query))


def format_search(query: str, scope: Scope) -> str:
    """The command of a search as a person would type it."""
    words = ["gristmill", "search", f'"{query}"']
    for option, value in (("--client", scope.client), ("--project", scope.project)):
        words += [option, shlex.quote(value)] if value else []
    return " ".join(words)


async def choose_query(at: Session, found: Sequence[Progress]) -> str | None:
    """A query that finds something: the title of the largest document, or else its first long words."""
    whole = [one for one in found if one.status == "completed" and one.chunks]
    whole.sort(key=lambda one: one.chunks, reverse=True)
    titles = [one.title for one in whole if one.title and sum(map(str.isalpha, one.title)) >= TELLING]
    if titles or not whole:
        return re.sub(r'["$`\\]', "", titles[0]) if titles else None
    async with at.db.transaction() as tx:
        (first,) = await chunks.load(tx, [(whole[0].id, 1, 0)])
    return " ".join(LONG_WORD.findall(first.text)[:4]) if first else None


async def _serve(at: Session, folder: Path | None, scope: Scope, serving: Serving, as_json: bool) -> None:
    """Until this task is cancelled."""
    if not as_json:
        what = f"Grinding {folder} and watching it" if folder else "Workers are running"
        err.print(f"{what} until Ctrl-C; what they log is in {at.settings.data / 'worker.log'}.", soft_wrap=True)
    print_link(serving, as_json=as_json)
    duties = [asyncio.create_task(_show_board(at, folder, scope, as_json))]
    if folder is not None:
        duties.append(asyncio.create_task(_add_and_print(at, folder, scope, as_json)))
    try:
        done, _ = await asyncio.wait(duties, return_when=asyncio.FIRST_COMPLETED)
        for one in done:
            one.result()
    finally:
        for one in duties:
            one.cancel()
        await asyncio.gather(*duties, return_exceptions=True)


async def _add_and_print(at: Session, folder: Path, scope: Scope, as_json: bool) -> None:
    async for added in watch_folder(make_intake(at, scope, patient=True), folder):
        for one in added:
            if as_json:
                say_json(to_plain(one))
            elif one.status in ("failed", "cancelled", "refused"):
                err.print(f"{one.name}: {one.status}, {one.reason}", soft_wrap=True)
            elif one.status != "unchanged" and not err.is_terminal:  # in a terminal, the board shows it
                err.print(f"{one.name}: {one.status}", soft_wrap=True)


async def _show_board(at: Session, folder: Path | None, scope: Scope, as_json: bool) -> None:
    live = Live(console=err, auto_refresh=False) if err.is_terminal and not as_json else None
    loop = asyncio.get_running_loop()
    disk = DiskNotice()
    with live or nullcontext():
        while True:
            began = loop.time()
            if live:
                live.update(await _draw_board(at, folder, scope, rows=err.height - 4), refresh=True)
            elif news := disk.note(explain_full_disk(at.settings.data)):
                err.print(Text(news), soft_wrap=True)
            await asyncio.sleep(choose_pause(loop.time() - began))


class DiskNotice:
    """A line when the disk gets full, and one when there is space again; the free space changes at every look."""

    def __init__(self) -> None:
        self._is_full = False

    def note(self, full: str | None) -> str | None:
        was_full, self._is_full = self._is_full, full is not None
        if was_full == self._is_full:
            return None
        return full or "There is space on the disk again: this goes on."


async def _draw_board(at: Session, folder: Path | None, scope: Scope, rows: int) -> RenderableType:
    while True:
        try:
            async with at.db.transaction(snapshot=True) as tx:
                everything = folder is None and scope == GLOBAL
                seen = await (load_overview(tx, rows) if everything else load_overview_of(tx, scope, folder, rows))
            notes = find_notes(at.settings, seen.documents)
            return draw_board(seen.documents, rows=rows - len(notes), tally=seen.tally, notes=notes)
        except Unreachable as error:
            await wait_for_database(at.db, error)
