"""`gristmill effects`: the ledger of what agents changed and want to change."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType

from gristmill.agents import EffectRow, list_effects, list_newest_effects, load_run
from gristmill.cli.output import Json, emit, make_facts, make_table, shorten
from gristmill.cli.session import run, session
from gristmill.ids import RunId
from gristmill.wording import join_sentences

app = typer.Typer(no_args_is_help=True)


def register(root: typer.Typer, text: str) -> None:
    root.add_typer(app, name="effects", help=text)


@app.command("ls")
def ls(
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")] = 100, json: Json = False
) -> None:
    """The newest effects of all runs.

    Example: gristmill effects ls --limit 20
    """
    found = run(_load_newest(limit))
    rows = [(one.id, one.run, one.state, one.tool, one.intended_at, one.summary) for one in found]
    empty = "Agents have changed nothing yet."
    columns = (">effect", ">run", "state", "tool", "intended", "what")
    emit(json, [_describe(one) for one in found], lambda: make_table(columns, rows, empty=empty))


@app.command("show")
def show(number: Annotated[int, typer.Argument(metavar="RUN", min=1, help="The run.")], json: Json = False) -> None:
    """The ledger of a run: every effect, who said its values, who approved it, and what came of it.

    Example: gristmill effects show 12
    """
    found = run(_load(RunId(number)))
    emit(json, [_describe(one) for one in found], lambda: _show(found, number))


async def _load_newest(limit: int) -> list[EffectRow]:
    async with session() as at, at.db.reading() as tx:
        return await list_newest_effects(tx, limit=limit)


async def _load(id_: RunId) -> list[EffectRow]:
    async with session() as at, at.db.reading() as tx:
        return await list_effects(tx, (await load_run(tx, id_)).id)


def _describe(one: EffectRow) -> dict[str, Any]:
    return {**vars(one), "hash": one.hash.hex()}


def _show(found: Sequence[EffectRow], number: int) -> RenderableType:
    if not found:
        return f"Run {number} has changed nothing."
    return Group(*(_show_one(one) for one in found))


def _show_one(one: EffectRow) -> RenderableType:
    said = [f"{origin['argument']} {origin['value']!r}: {origin['sentence']}" for origin in one.origins]
    return make_facts(
        [
            (f"effect {one.id}", one.summary),
            ("state", f"{one.state}{f', attempt {one.attempt}' if one.attempt > 1 else ''}"),
            ("call", f"{one.tool} {shorten(one.arguments, 200)}"),
            ("who said it", join_sentences(said)),
            ("asked because", join_sentences(one.reasons)),
            ("approved by", one.approved_by),
            ("result", shorten(one.result["text"], 200) if one.result else None),
            ("error", one.error),
            ("", " "),
        ]
    )
