"""`gristmill convention`: rules that people state about items, with how often they held."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType

from gristmill.cli.output import Json, emit, make_facts, make_table, warn
from gristmill.cli.scopes import Client, Project, format_scope, scope_of
from gristmill.cli.session import name_user, parse_span, run, session
from gristmill.ids import WorkItemId
from gristmill.qualifier import (
    Contradiction,
    Convention,
    ConventionVersion,
    Fate,
    Trial,
    add_convention,
    change_convention,
    find_all_contradictions,
    find_contradictions_with,
    list_conventions,
    list_versions,
    load_convention,
    load_moment,
    remove_convention,
    suggest_from,
    try_convention,
)
from gristmill.scopes import Scope
from gristmill.wording import format_count

app = typer.Typer(no_args_is_help=True)
Text = Annotated[str, typer.Argument(help='For example: when sender is "*@news.example" then ignore')]
Number = Annotated[int, typer.Argument(min=1, help="Its number, as gristmill convention ls shows it.")]
Since = Annotated[str, typer.Option(help="How far back, for example 30d.")]
SHOWN = 20  # past items that a trial prints


def register(root: typer.Typer, text: str) -> None:
    root.add_typer(app, name="convention", help=text)


@app.command("add")
def add(
    text: Text,
    client: Client = None,
    project: Project = None,
    note: Annotated[str, typer.Option(help="Why, for people who read it later.")] = "",
    json: Json = False,
) -> None:
    """State a convention. It holds for the items that are decided from now on.

    Example: gristmill convention add 'when sender is "*@news.example" then ignore' --client acme
    """
    added, found = run(_add(text, scope_of(client, project), note, None))
    _warn_of(found)
    emit(json, _describe(added, found), lambda: f"Convention {added.id} holds from now on: {added.text}")


@app.command("ls")
def ls(json: Json = False) -> None:
    """All conventions, with how often each held and when last; and those that contradict each other.

    Example: gristmill convention ls
    """
    known = run(_load_all())
    found = find_all_contradictions(known)
    plain = [_describe(one, [pair for pair in found if one.id in (pair.first, pair.second)]) for one in known]
    emit(json, plain, lambda: _conventions_table(known))
    if not json:
        _warn_of(found)


@app.command("show")
def show(number: Number, json: Json = False) -> None:
    """One convention, and what it said before.

    Example: gristmill convention show 3
    """
    one, versions = run(_load_one(number))
    emit(json, {**_describe(one, []), "versions": versions}, lambda: _show_one(one, versions))


@app.command("change")
def change(number: Number, text: Text, json: Json = False) -> None:
    """Let a convention say something else from now on; what it said before is kept.

    Example: gristmill convention change 3 'when sender is "*@news.example" then handled'
    """
    changed, found = run(_change(number, text=text))
    _warn_of(found)
    emit(json, _describe(changed, found), lambda: f"Convention {number} says now: {changed.text}")


@app.command("on")
def on(number: Number, json: Json = False) -> None:
    """Let a convention hold again.

    Example: gristmill convention on 3
    """
    changed, found = run(_change(number, enabled=True))
    _warn_of(found)
    emit(json, _describe(changed, found), lambda: f"Convention {number} holds again.")


@app.command("off")
def off(number: Number, json: Json = False) -> None:
    """Let a convention rest; it is kept, and can be switched on again.

    Example: gristmill convention off 3
    """
    changed, _ = run(_change(number, enabled=False))
    emit(json, _describe(changed, []), lambda: f"Convention {number} rests.")


@app.command("rm")
def rm(number: Number, json: Json = False) -> None:
    """Take a convention back. What was decided by it stays as it is.

    Example: gristmill convention rm 3
    """
    text = run(_remove(number))
    emit(json, {"id": number, "removed": True}, lambda: f"Convention {number} holds no more: {text}")


@app.command("test")
def try_(text: Text, client: Client = None, project: Project = None, since: Since = "30d", json: Json = False) -> None:
    """Try a convention on past items before it is stated. Nothing is changed.

    Example: gristmill convention test 'when text has "reminder" then now, urgency high'
    """
    trial = run(_try(text, scope_of(client, project), parse_span(since) or timedelta(days=30)))
    emit(json, _describe_trial(trial), lambda: _trial_table(trial))
    if not json:
        _warn_of(trial.contradictions)


@app.command("from")
def from_(
    item: Annotated[int, typer.Argument(min=1, help="The number of a decided item.")],
    then: Annotated[Fate | None, typer.Option(help="What becomes of items like it, if not the same.")] = None,
    add: Annotated[bool, typer.Option("--add", help="State it at once.")] = False,
    json: Json = False,
) -> None:
    """Make a convention of a past decision: it recognises items like this one.

    Example: gristmill convention from 12 --then ignore --add
    """
    scope, text = run(_suggest(WorkItemId(item), then))
    if not add:
        plain = {"text": text, "client": scope.client, "project": scope.project}
        emit(json, plain, lambda: f"{text}\nAdd --add to state it for {scope}.")
        return
    added, found = run(_add(text, scope, f"made of item {item}", WorkItemId(item)))
    _warn_of(found)
    emit(json, _describe(added, found), lambda: f"Convention {added.id} holds from now on: {added.text}")


async def _add(text: str, scope: Scope, note: str, origin: WorkItemId | None) -> tuple[Convention, list[Contradiction]]:
    async with session() as at, at.db.transaction() as tx:
        added = await add_convention(tx, scope, text, name_user(), note=note, origin=origin)
        return added, await find_contradictions_with(tx, added.text, scope)


async def _change(
    number: int, *, text: str | None = None, enabled: bool | None = None
) -> tuple[Convention, list[Contradiction]]:
    async with session() as at, at.db.transaction() as tx:
        changed = await change_convention(tx, number, name_user(), text=text, enabled=enabled)
        return changed, await find_contradictions_with(tx, changed.text, changed.scope)


async def _load_all() -> list[Convention]:
    async with session() as at, at.db.reading() as tx:
        return await list_conventions(tx)


async def _load_one(number: int) -> tuple[Convention, list[ConventionVersion]]:
    async with session() as at, at.db.reading() as tx:
        return await load_convention(tx, number), await list_versions(tx, number)


async def _remove(number: int) -> str:
    async with session() as at, at.db.transaction() as tx:
        return await remove_convention(tx, number)


async def _try(text: str, scope: Scope, span: timedelta) -> Trial:
    async with session() as at, at.db.reading() as tx:
        return await try_convention(tx, text, scope, await load_moment(tx) - span)


async def _suggest(item: WorkItemId, fate: Fate | None) -> tuple[Scope, str]:
    async with session() as at, at.db.reading() as tx:
        return await suggest_from(tx, item, fate)


def _warn_of(found: Sequence[Contradiction]) -> None:
    for one in found:
        warn(one.sentence)


def _describe(one: Convention, found: Sequence[Contradiction]) -> dict[str, Any]:
    return {**vars(one), "contradictions": [pair.sentence for pair in found]}


def _describe_trial(trial: Trial) -> dict[str, Any]:
    fitting = [{"item": one.item, "title": one.title, "was": one.route} for one in trial.fitting]
    told = [one.sentence for one in trial.contradictions]
    return {"text": trial.text, "looked_at": trial.looked_at, "fitting": fitting, "contradictions": told}


def _conventions_table(known: Sequence[Convention]) -> RenderableType:
    rows = [
        (
            one.id,
            format_scope(one.client, one.project),
            "on" if one.enabled else "off",
            one.fired,
            one.fired_at,
            one.text,
        )
        for one in known
    ]
    empty = "No convention is stated yet: gristmill convention add states one."
    return make_table((">convention", "scope", "is", ">held", "last", "says"), rows, empty=empty)


def _show_one(one: Convention, versions: Sequence[ConventionVersion]) -> RenderableType:
    facts = make_facts(
        [
            ("says", one.text),
            ("scope", format_scope(one.client, one.project)),
            ("is", "on" if one.enabled else "off"),
            ("held", f"{one.fired:,} times" if one.fired != 1 else "once"),
            ("last", one.fired_at),
            ("note", one.note),
            ("made of", f"item {one.origin}" if one.origin else None),
            ("stated by", one.created_by),
        ]
    )
    rows = [(each.version, each.at, each.by, "on" if each.enabled else "off", each.text) for each in versions]
    return Group(facts, "", make_table((">version", "since", "by", "is", "says"), rows, empty=""))


def _trial_table(trial: Trial) -> RenderableType:
    rows = [
        (one.item, one.route, one.title, ", ".join(each.words for each in one.words)) for one in trial.fitting[:SHOWN]
    ]
    empty = f"None of the last {format_count(trial.looked_at, 'item')} fits: {trial.text}"
    n = len(trial.fitting)
    title = f"{format_count(n, 'item')} of the last {trial.looked_at:,} {'fits' if n == 1 else 'fit'}: {trial.text}"
    return make_table((">item", "was", "~title", "by"), rows, empty=empty, title=title if n else None)
