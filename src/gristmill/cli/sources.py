"""`gristmill source`: mailboxes, repositories, calendars and folders that flow in by themselves."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from gristmill.cli.output import Json, Misused, Yes, confirm_removal, emit, err, make_facts, make_table, warn
from gristmill.cli.scopes import Client, Project, format_scope, scope_of
from gristmill.cli.session import Session, blame_options, load_settings, parse_span, run, session
from gristmill.db import Tx
from gristmill.errors import Permanent, Refused
from gristmill.ids import TaskId
from gristmill.sources import (
    KINDS,
    Comparison,
    ItemRow,
    Kind,
    Opener,
    Source,
    SourceStanding,
    Wanted,
    add_source,
    ask_for_poll,
    check_options,
    clear_folder,
    compare_ids,
    count_items,
    drop_source,
    find_kind,
    find_source,
    list_items,
    list_sources,
    load_standings,
    note_listing,
    pause_source,
    retry_set_aside,
    show_options,
)
from gristmill.wording import format_count, show_in_line

app = typer.Typer(no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="The name of the source.")]
Options = Annotated[list[str] | None, typer.Argument(help="Its options, each as name=value.")]
MOST_SHOWN = 20  # ids that a person is shown


def register(root: typer.Typer, text: str) -> None:
    root.add_typer(app, name="source", help=text)


@dataclass(frozen=True)
class SourceShown:
    """A source as people and programs see it."""

    id: int
    name: str
    kind: str
    scope: str
    status: str
    sentence: str
    options: Mapping[str, Any]
    every: timedelta
    last_success: datetime | None
    lag: timedelta | None
    next_at: datetime | None
    failures: int
    items: Mapping[str, int]
    listed_at: datetime | None
    listing_every: timedelta
    last_listing_success: datetime | None
    next_listing_at: datetime | None
    listing_failures: int
    listing_trouble: str | None


@app.command()
def kinds(json: Json = False) -> None:
    """The kinds of sources, and the options of each.

    Example: gristmill source kinds
    """
    found = {
        kind.name: {
            "title": kind.title,
            "every": kind.every,
            "options": {name: field.description for name, field in kind.options.model_fields.items()},
        }
        for kind in KINDS.values()
    }
    rows = [(name, option, said) for name, about in found.items() for option, said in _name_options(about["options"])]
    emit(json, found, lambda: make_table(["kind", "option", "meaning"], rows, empty="There are none."))


def _name_options(options: Any) -> Sequence[tuple[str, str]]:
    return list(options.items())


@app.command()
def add(
    kind: Annotated[str, typer.Argument(help="The kind: gristmill source kinds lists them.")],
    name: Name,
    options: Options = None,
    every: Annotated[str | None, typer.Option(help="How often it is polled, such as 5min or 1h.")] = None,
    listing_every: Annotated[str | None, typer.Option(help="How often all ids are compared, such as 1d.")] = None,
    client: Client = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """Name a source; its items keep arriving while workers run.

    Example: gristmill source add eml letters path=/srv/letters --client acme
    """
    with blame_options():
        given = check_options(find_kind(kind), _read_options(options or []))
    wanted = Wanted(name, kind, given, scope_of(client, project), parse_span(every), parse_span(listing_every))
    _look_for_folder(find_kind(kind), given)
    found = run(_add(wanted))
    emit(json, found, lambda: _show_one(found))


@app.command("ls")
def list_(client: Client = None, project: Project = None, json: Json = False) -> None:
    """All sources: how each is, its last and next poll, its items.

    Example: gristmill source ls
    """
    found = run(_list(client, project))
    emit(json, found, lambda: _show_table(found))


@app.command()
def show(name: Name, client: Client = None, project: Project = None, json: Json = False) -> None:
    """One source.

    Example: gristmill source show letters
    """
    found = run(_show(name, client, project))
    emit(json, found, lambda: _show_one(found))


@app.command("test")
def connect(name: Name, client: Client = None, project: Project = None, json: Json = False) -> None:
    """Connect to a source, and say what is there; nothing is fetched.

    Example: gristmill source test letters
    """
    said = run(_test(name, client, project))
    emit(json, {"ok": True, "sentence": said}, lambda: said)


@app.command()
def pause(name: Name, client: Client = None, project: Project = None, json: Json = False) -> None:
    """Let a source rest; what came from it stays.

    Example: gristmill source pause letters
    """
    found = run(_pause(name, client, project, paused=True))
    emit(json, found, lambda: f"{name} is paused.")


@app.command()
def resume(name: Name, client: Client = None, project: Project = None, json: Json = False) -> None:
    """Let a source go on from where it was.

    Example: gristmill source resume letters
    """
    found = run(_pause(name, client, project, paused=False))
    emit(json, found, lambda: f"{name} goes on.")


@app.command()
def sync(
    name: Name,
    full: Annotated[bool, typer.Option("--full", help="Compare all ids, and remove what is gone there.")] = False,
    agree: Annotated[bool, typer.Option("--agree", help="With --full: agree that most items are gone.")] = False,
    client: Client = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """Poll a source now, and try items again that were set aside. Pauses after failures are short again.

    Example: gristmill source sync letters
    """
    task, again = run(_sync(name, client, project, full=full or agree, agreed=agree))
    aside = f", {format_count(again, 'item')} that was set aside is tried again" if again else ""
    emit(json, {"task": task, "tried_again": again}, lambda: f"Sent as task {task}{aside}.")


@app.command()
def verify(name: Name, client: Client = None, project: Project = None, json: Json = False) -> None:
    """Compare all ids there and here, and say what is missing, stale or surplus; nothing is changed.

    Example: gristmill source verify letters
    """
    found = run(_verify(name, client, project))
    emit(json, {**found.shorten(), "agrees": found.agrees}, lambda: _show_comparison(name, found))
    if not found.agrees:
        raise typer.Exit(1)


@app.command()
def items(
    name: Name,
    state: Annotated[str | None, typer.Option(help="NEW, INDEXING, INDEXED, FAILED, SET_ASIDE or DELETED.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many, the newest first.")] = 50,
    client: Client = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """The items of a source, the newest first.

    Example: gristmill source items letters --state SET_ASIDE
    """
    found = run(_items(name, client, project, state, limit))
    emit(json, found, lambda: _show_items(found))


@app.command()
def rm(
    name: Name,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the documents that came from it.")] = False,
    client: Client = None,
    project: Project = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Remove a source, and the documents that came from it alone.

    Example: gristmill source rm letters --keep
    """
    what = f"the source {name}" + ("" if keep else " and its documents")
    confirm_removal(what, yes=yes, as_json=json)
    gone = run(_remove(name, client, project, keep=keep))
    told = ", ".join(name_loss(thing, n) for thing, n in gone.items() if n)
    emit(json, gone, lambda: f"Removed {name}" + (f": {told}." if told else "."))


def name_loss(thing: str, n: int) -> str:
    """`1 document`, `21 nodes that lost evidence`."""
    what, _, weaker = thing.partition("_")
    return format_count(n, what.removesuffix("s")) + (" that lost evidence" if weaker else "")


# --- what they do


def _read_options(words: Sequence[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not name:
            raise Misused(f"“{word}” is no option: write name=value.")
        given[name] = value
    return given


async def _add(wanted: Wanted) -> SourceShown:
    async with session() as at, at.db.transaction() as tx:
        return (await _describe(tx, [await add_source(tx, wanted)]))[0]


def _look_for_folder(kind: Kind, options: Mapping[str, Any]) -> None:
    """A path that is misspelt, or leads to another kind of folder, is refused; with a database that others share, a
    worker elsewhere may have the right folder.
    """
    path = options.get("path")
    if not isinstance(path, str):
        return
    folder, is_shared = Path(path).expanduser(), bool(load_settings().database_url)
    if not folder.is_dir():
        if not is_shared:
            raise Refused(f"There is no folder {path}: make it first, or mend the path.")
        warn(f"There is no folder {path} on this machine: workers that have it will poll it.")
    elif kind.check_folder is not None:
        try:
            kind.check_folder(folder)
        except Permanent as error:
            if not is_shared:
                raise Refused(str(error)) from None
            warn(f"On this machine, {error}")


async def _list(client: str | None, project: str | None) -> list[SourceShown]:
    async with session() as at, at.db.transaction() as tx:
        return await _describe(tx, await list_sources(tx, client, project))


async def _show(name: str, client: str | None, project: str | None) -> SourceShown:
    async with session() as at, at.db.transaction() as tx:
        return (await _describe(tx, [await find_source(tx, name, client, project)]))[0]


async def _describe(tx: Tx, sources: Sequence[Source]) -> list[SourceShown]:
    standings = await load_standings(tx, sources)
    counts = await count_items(tx, [one.id for one in sources])
    return [_make_shown(one, standings[one.id], counts[one.id]) for one in sources]


def _make_shown(source: Source, standing: SourceStanding, items: Mapping[str, int]) -> SourceShown:
    return SourceShown(
        id=source.id,
        name=source.name,
        kind=source.kind,
        scope=format_scope(source.client, source.project),
        status=standing.status,
        sentence=standing.sentence,
        options=show_options(source.options),
        every=source.every,
        last_success=source.succeeded_at,
        lag=standing.lag,
        next_at=standing.next_at,
        failures=source.failures,
        items=items,
        listed_at=source.listed_at,
        listing_every=source.listing_every,
        last_listing_success=source.listing_succeeded_at,
        next_listing_at=standing.next_listing_at,
        listing_failures=source.listing_failures,
        listing_trouble=standing.listing_trouble,
    )


async def _find(at: Session, name: str, client: str | None, project: str | None) -> Source:
    async with at.db.transaction() as tx:
        return await find_source(tx, name, client, project)


def _make_opener(at: Session) -> Opener:
    return Opener(at.db, KINDS, at.settings.data / "sources", at.settings.documents.max_bytes)


async def _test(name: str, client: str | None, project: str | None) -> str:
    async with session() as at:
        source = await _find(at, name, client, project)
        async with asyncio.timeout(120), _make_opener(at).open(source) as connector:
            return await connector.check()


async def _pause(name: str, client: str | None, project: str | None, *, paused: bool) -> SourceShown:
    async with session() as at, at.db.transaction() as tx:
        source = await find_source(tx, name, client, project)
        await pause_source(tx, source, paused)
        return (await _describe(tx, [await find_source(tx, name, client, project)]))[0]


async def _sync(name: str, client: str | None, project: str | None, *, full: bool, agreed: bool) -> tuple[TaskId, int]:
    async with session() as at, at.db.transaction() as tx:
        source = await find_source(tx, name, client, project)
        if source.paused:
            raise Misused(f"{name} is paused: gristmill source resume {name} lets it go on.")
        again = await retry_set_aside(tx, source)
        return await ask_for_poll(tx, source, listing=full, agreed=agreed), again


async def _verify(name: str, client: str | None, project: str | None) -> Comparison:
    async with session() as at:
        source = await _find(at, name, client, project)
        with err.status("Comparing all ids …"):
            async with _make_opener(at).open(source) as connector:
                found = await compare_ids(at.db, source, connector)
        async with at.db.transaction() as tx:
            await note_listing(tx, source, found)
        return found


async def _items(name: str, client: str | None, project: str | None, state: str | None, limit: int) -> list[ItemRow]:
    async with session() as at, at.db.transaction() as tx:
        source = await find_source(tx, name, client, project)
        return await list_items(tx, source.id, state=state, limit=limit)


async def _remove(name: str, client: str | None, project: str | None, *, keep: bool) -> dict[str, int]:
    async with session() as at:
        source = await _find(at, name, client, project)
        with err.status("Removing …") as status:
            gone = await drop_source(
                at.db, source, keep=keep, tell=lambda n: status.update(f"Removed {format_count(n, 'document')} …")
            )
            await clear_folder(at.settings.data, source.id)
            return gone


# --- what they show


def _show_table(found: Sequence[SourceShown]) -> RenderableType:
    rows = [
        (one.name, one.kind, one.scope, one.status, one.last_success, one.next_at, *_count(one), one.sentence)
        for one in found
    ]
    columns = ["~source", "kind", "scope", "status", "last success", "next"]
    columns += [">indexed", ">waiting", ">failed", ">set aside", "how"]
    return make_table(columns, rows, empty="There is no source yet: gristmill source add names one.")


def _show_items(found: Sequence[ItemRow]) -> RenderableType:
    def show(text: str | None) -> str | None:
        return text and show_in_line(text)

    def explain(one: ItemRow) -> str | None:
        return show(": ".join(filter(None, (one.title, one.error)))) or None

    rows = [(one.state, show(one.external), show(one.urn), one.document, explain(one)) for one in found]
    columns = ["state", "~id", "~urn", ">document", "title or error"]
    return make_table(columns, rows, empty="There are none.")


def _count(one: SourceShown) -> tuple[int, int, int, int]:
    """How many are handed on and read, wait, could not be read, and are set aside."""
    items = one.items
    waiting = items.get("NEW", 0) + items.get("INDEXING", 0)
    return items.get("INDEXED", 0), waiting, items.get("FAILED", 0), items.get("SET_ASIDE", 0)


def _show_one(one: SourceShown) -> RenderableType:
    facts = asdict(one)
    shown = {name: value for name, value in facts.items() if name not in ("options", "items")}
    options = ", ".join(f"{name}={value}" for name, value in one.options.items())
    items = ", ".join(f"{n:,} {state}" for state, n in one.items.items())
    return make_facts(
        [(name.replace("_", " "), value) for name, value in {**shown, "options": options, "items": items}.items()]
    )


def _show_comparison(name: str, found: Comparison) -> RenderableType:
    if found.agrees:
        head = f"{name} agrees: {format_count(found.there, 'item')} there, as many here."
    else:
        head = f"{name} differs: {found.there:,} there, {found.here:,} here."
    rows = [(what, one) for what in ("missing", "stale", "surplus") for one in getattr(found, what)[:MOST_SHOWN]]
    counts = [
        ("at", found.at),
        ("result", head),
        ("missing", len(found.missing)),
        ("stale", len(found.stale)),
        ("surplus", len(found.surplus)),
        ("waiting", found.waiting),
        ("set aside", found.set_aside),
    ]
    return make_facts([*counts, *rows])
