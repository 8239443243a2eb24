"""`gristmill item`: what came in, what is decided about it, and what a person says to it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from gristmill.cli.output import Json, Misused, emit, format_moment, make_facts, make_table, out, shorten
from gristmill.cli.output import say as say_line
from gristmill.cli.reasons import describe_reasons, show_reasons
from gristmill.cli.scopes import Client, Project, format_scope, scope_of
from gristmill.cli.session import Session, blame_options, name_user, parse_instant, run, session
from gristmill.db import Tx
from gristmill.ids import DocumentId, WorkItemId
from gristmill.qualifier import (
    LANES,
    STATES,
    UNDECIDED,
    URGENCIES,
    Explanation,
    ItemEvent,
    ItemMemory,
    ItemMessage,
    ItemResult,
    ItemState,
    ItemWish,
    WorkItem,
    add_item,
    answer,
    cancel_item,
    explain_item,
    find_item_of,
    get_item,
    has_unkept_atoms,
    list_events,
    list_in_line,
    list_items,
    list_messages,
    load_items,
    load_memory,
    load_result,
    place_item,
    position_item,
    reopen_item,
    say,
)
from gristmill.scopes import Scope
from gristmill.wording import format_count, show_unseen

app = typer.Typer(no_args_is_help=True)
MOST_EVENTS = 10_000
Id = Annotated[int, typer.Argument(min=1, help="The number of the item.")]
PATIENCE = 60.0  # seconds that a summary waits for decisions of an LLM
PATIENCE_WITH_NOTES = 15.0  # … and for the notes that are made of them
LOOK_EVERY = 0.2  # seconds
ADDED = ("user_input", "user_task", "scheduled")


def register(root: typer.Typer, text: str) -> None:
    root.add_typer(app, name="item", help=text)


@dataclass(frozen=True)
class Details:
    """An item with what belongs to it."""

    item: WorkItem
    memory: ItemMemory | None
    result: ItemResult | None
    messages: Sequence[ItemMessage]
    reopened: Sequence[ItemEvent]  # when it was worked on again after it had ended


@app.command()
def add(
    text: Annotated[str, typer.Argument(help="What is to be done.")],
    title: Annotated[str, typer.Option(help="Without it, the first line of the text.")] = "",
    type: Annotated[str, typer.Option(help="user_input, user_task or scheduled.")] = "user_task",
    foreground: Annotated[
        bool | None, typer.Option("--foreground/--background", help="Whether a person waits for it.")
    ] = None,
    urgency: Annotated[str, typer.Option(help="low, normal, high or critical.")] = "normal",
    deadline: Annotated[str | None, typer.Option(help="By when, such as 2026-12-01T08:00.")] = None,
    at: Annotated[str | None, typer.Option(help="When it is to be done, such as 2026-12-01T08:00.")] = None,
    cron: Annotated[str | None, typer.Option(help='Again and again, such as "0 6 * * *", or @daily.')] = None,
    zone: Annotated[str, typer.Option(help="The time zone of --cron, --at and --deadline.")] = "UTC",
    position: Annotated[int | None, typer.Option(help="Before items without one, in the order of positions.")] = None,
    client: Client = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """Add an item: it is decided next, or waits for its time.

    Example: gristmill item add "Call the miller about the bearing" --urgency high
    """
    wish = ItemWish(
        text,
        title,
        _choose(type, ADDED, "type"),
        foreground,
        _choose(urgency, URGENCIES, "urgency"),
        parse_instant(deadline, zone) if deadline else None,
        parse_instant(at, zone) if at else None,
        cron,
        zone,
        position,
    )
    with blame_options():
        found = run(_add(wish, scope_of(client, project)))
    emit(json, found, lambda: _show_table([found]))


async def _load_why(id_: WorkItemId) -> Explanation:
    async with session() as at, at.db.reading() as tx:
        return await explain_item(tx, id_)


def _choose(value: str, allowed: Sequence[Any], what: str) -> Any:
    if value not in allowed:
        raise Misused(f"“{value}” is no {what} of an item: choose one of {', '.join(allowed)}.")
    return value


@app.command("ls")
def list_(
    state: Annotated[list[str] | None, typer.Option(help="Only items in this state. May be repeated.")] = None,
    lane: Annotated[str | None, typer.Option(help=f"Or a lane of the inbox: {', '.join(LANES)}.")] = None,
    line: Annotated[bool, typer.Option("--line", help="Items that wait, in the order of their turns.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many, the newest first.")] = 50,
    client: Client = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """Items, the newest first.

    Example: gristmill item ls --lane now
    """
    states: list[ItemState] = [_choose(one, STATES, "state") for one in state or ()]
    wanted = states or (LANES[_choose(lane, list(LANES), "lane")] if lane else STATES)
    scope = scope_of(client, project) if client is not None else None
    found = run(_list(wanted, limit, scope, in_line=line, copied=lane is None))
    emit(json, found, lambda: _show_table(found))


@app.command()
def show(id: Id, json: Json = False) -> None:
    """One item: its state, what is remembered of it, what was said, and what came of it.

    Example: gristmill item show 7
    """
    found = run(_show(WorkItemId(id)))
    emit(json, found, lambda: _show_details(found))


@app.command()
def why(id: Id, json: Json = False) -> None:
    """Why an item was decided so: the rules that applied, and the text with the words that they found.

    Example: gristmill item why 7
    """
    found = run(_load_why(WorkItemId(id)))
    emit(json, describe_reasons(found), lambda: show_reasons(found))


@app.command()
def events(id: Id, json: Json = False) -> None:
    """What happened to an item, the oldest first.

    Example: gristmill item events 7
    """
    found = run(_events(WorkItemId(id)))
    emit(json, found, lambda: _show_events(found))


@app.command("say")
def say_(id: Id, text: Annotated[str, typer.Argument(help="What is said to it.")], json: Json = False) -> None:
    """Say something to an item; one that has ended begins again with it.

    Example: gristmill item say 7 "The price is without tax"
    """
    _change(id, json, lambda tx, one: say(tx, one, text, by=name_user()))


@app.command("answer")
def answer_(id: Id, text: Annotated[str, typer.Argument(help="The answer.")], json: Json = False) -> None:
    """Answer the question of an item: it goes on.

    Example: gristmill item answer 7 "Yes, pay it"
    """
    _change(id, json, lambda tx, one: answer(tx, one, text, by=name_user()))


@app.command()
def cancel(id: Id, json: Json = False) -> None:
    """End an item, whatever it does.

    Example: gristmill item cancel 7
    """
    _change(id, json, lambda tx, one: cancel_item(tx, one, by=name_user()))


@app.command()
def reopen(id: Id, json: Json = False) -> None:
    """Work on an item again that has ended, or could not go on.

    Example: gristmill item reopen 7
    """
    _change(id, json, lambda tx, one: reopen_item(tx, one, by=name_user()))


@app.command()
def move(
    id: Id,
    position: Annotated[
        int | None, typer.Argument(help="Its position: items with one go first, in this order.")
    ] = None,
    before: Annotated[int | None, typer.Option(min=1, help="Before this other item.")] = None,
    after: Annotated[int | None, typer.Option(min=1, help="Or after this one.")] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Give up its position: by age again.")] = False,
    json: Json = False,
) -> None:
    """Move an item in line.

    Example: gristmill item move 7 --before 5
    """
    if sum([position is not None, before is not None, after is not None, clear]) != 1:
        raise Misused("Say one place: a position, --before ITEM, --after ITEM, or --clear.")
    if position is not None or clear:
        _change(id, json, lambda tx, one: _position(tx, one, position))
    else:
        _change(id, json, lambda tx, one: _place(tx, one, before=before, after=after))


@app.command()
def first(id: Id, json: Json = False) -> None:
    """Put an item before all others.

    Example: gristmill item first 7
    """
    _change(id, json, lambda tx, one: _place(tx, one))


# --- work


async def _add(wish: ItemWish, scope: Scope) -> WorkItem:
    async with session() as at, at.db.transaction() as tx:
        return await add_item(tx, scope, wish, by=name_user())


async def _list(
    states: Sequence[ItemState], limit: int, scope: Scope | None, *, in_line: bool, copied: bool
) -> list[WorkItem]:
    async with session() as at, at.db.reading(seen_from=scope) as tx:
        return await (list_in_line(tx, limit=limit) if in_line else list_items(tx, states, limit=limit, copied=copied))


async def _show(id_: WorkItemId) -> Details:
    async with session() as at, at.db.reading() as tx:
        item = await get_item(tx, id_)
        memory, result = await load_memory(tx, id_), await load_result(tx, id_)
        reopened = [one for one in await list_events(tx, id_, limit=MOST_EVENTS) if one.is_reopening]
        return Details(item, memory, result, await list_messages(tx, id_), reopened)


async def _events(id_: WorkItemId) -> list[ItemEvent]:
    async with session() as at, at.db.reading() as tx:
        await get_item(tx, id_)
        return await list_events(tx, id_, limit=MOST_EVENTS)


def _change(id_: int, as_json: bool, change: Callable[[Tx, WorkItemId], Awaitable[WorkItem]]) -> None:
    async def work() -> WorkItem:
        async with session() as at, at.db.transaction() as tx:
            return await change(tx, WorkItemId(id_))

    found = run(work())
    emit(as_json, found, lambda: _show_table([found]))


async def _position(tx: Tx, id_: WorkItemId, position: int | None) -> WorkItem:
    await position_item(tx, await get_item(tx, id_), position, by=name_user())
    return await get_item(tx, id_)


async def _place(tx: Tx, id_: WorkItemId, *, before: int | None = None, after: int | None = None) -> WorkItem:
    others = {
        name: WorkItemId(one) if one is not None else None for name, one in (("before", before), ("after", after))
    }
    await place_item(tx, await get_item(tx, id_), **others, by=name_user())
    return await get_item(tx, id_)


# --- what is shown


async def show_qualified(at: Session, documents: Sequence[DocumentId]) -> None:
    """The items that documents became, and why each is where it is, once all of them are decided."""
    found = await wait_until_decided(at, documents)
    if found:
        rows = [(item.id, item.title, describe_state(item), item.deadline, why) for item, why in found]
        say_line(f"\n{format_count(len(rows), 'item')} qualified; gristmill item why ID says more:")
        out.print(make_table([">item", "~title", "state", "due", "because"], rows, empty=""))


async def wait_until_decided(at: Session, documents: Sequence[DocumentId]) -> list[tuple[WorkItem, str]]:
    """The items of these documents and why each was decided; only the advice of an LLM can keep us waiting here."""
    loop = asyncio.get_running_loop()
    end = loop.time() + PATIENCE
    while True:
        async with at.db.reading() as tx:
            items = await load_items(tx, [id_ for one in documents if (id_ := await find_item_of(tx, one)) is not None])
            if not any(item.state in UNDECIDED for item in items.values()) or loop.time() > end:
                return [(item, await _explain(tx, item)) for item in sorted(items.values(), key=lambda one: one.id)]
        await asyncio.sleep(LOOK_EVERY)


async def wait_until_kept(at: Session) -> None:
    """Wait until all decisions are in the graph: before that, a count of its nodes is too small."""
    loop = asyncio.get_running_loop()
    end = loop.time() + PATIENCE_WITH_NOTES
    while loop.time() < end:
        async with at.db.reading() as tx:
            if not await has_unkept_atoms(tx):
                return
        await asyncio.sleep(LOOK_EVERY)


async def _explain(tx: Tx, item: WorkItem) -> str:
    memory = await load_memory(tx, item.id)
    return shorten(memory.reason, 200) if memory else (item.warning or "It is not decided yet.")


def describe_state(item: WorkItem) -> str:
    """The state in a few words: done: info only, scheduled for a time."""
    state = item.state.replace("_", " ")
    return f"{state}: {item.outcome.replace('_', ' ')}" if item.outcome else state


def _find_time(item: WorkItem) -> datetime | None:
    return item.scheduled_at or item.deadline


def _show_table(items: Sequence[WorkItem]) -> RenderableType:
    rows = [
        (
            item.id,
            item.type.replace("_", " "),
            item.title,
            format_scope(item.client, item.project),
            item.urgency,
            _find_time(item),
            describe_state(item),
        )
        for item in items
    ]
    columns = [">id", "type", "~title", "~scope", "urgency", "due", "state"]
    return make_table(columns, rows, empty="There are no such items: gristmill item add makes one.")


def _show_details(found: Details) -> RenderableType:
    item, result = found.item, found.result
    facts = make_facts(
        [
            ("item", f"{item.id}"),
            ("title", item.title),
            ("type", item.type.replace("_", " ")),
            ("scope", format_scope(item.client, item.project)),
            ("state", describe_state(item)),
            ("opened again", "\n".join(f"{format_moment(one.at)} {one.why}" for one in found.reopened)),
            ("urgency", item.urgency),
            ("deadline", item.deadline),
            ("time", item.scheduled_at),
            ("cron", item.cron and f"{item.cron} in {item.zone}"),
            ("position", item.position),
            ("document", item.document and f"{item.document}"),
            ("copy of", item.origin and f"item {item.origin}"),
            ("part of", item.parent and f"item {item.parent}"),
            ("joined", item.merged_into and f"item {item.merged_into}"),
            ("question", item.question and show_unseen(item.question)),
            ("warning", item.warning),
            ("error", item.error),
            ("remembered", found.memory and found.memory.summary),
            ("because", found.memory and found.memory.reason),
            ("came of it", result and result.summary),
        ]
    )
    said = [f"{one.by}, {one.kind}: {one.text}" for one in found.messages]
    draft = result and result.reply
    reply = [Text("\nA draft of a reply, not sent:\n", style="bold"), Text(draft)] if draft else []
    return Group(facts, *(Text(line) for line in said), *reply)


def _show_events(found: Sequence[ItemEvent]) -> RenderableType:
    rows = [(one.at, one.title, one.by, shorten(one.why, 400)) for one in found]
    return make_table(["when", "state", "by", "why"], rows, empty="Nothing happened to it.")
