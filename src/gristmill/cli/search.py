"""`gristmill search`: find what documents say, by words and by meaning."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import unquote

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from gristmill.cli.elsewhere import is_elsewhere, remote
from gristmill.cli.output import Json, Misused, emit, shorten, warn
from gristmill.cli.scopes import ViewedClient, view_of
from gristmill.cli.session import load_settings, parse_instant, run, session
from gristmill.documents import find_in_documents
from gristmill.knowledge import Finder, Hit, Hits
from gristmill.records import list_columns
from gristmill.scopes import Scope
from gristmill.web import ask_search

LONGEST_ECHO = 200  # characters of a question that found nothing
FILE = "file://"  # how the URN of a file begins


def register(root: typer.Typer, text: str) -> None:
    root.command("search")(search_)


def search_(
    query: Annotated[str, typer.Argument(help="What is looked for.")],
    alpha: Annotated[float, typer.Option(min=0, max=1, help="0 is words (BM25), 1 is meaning (vectors).")] = 0.5,
    client: ViewedClient = None,
    project: Annotated[str | None, typer.Option(help="Which project of the client.")] = None,
    type: Annotated[str | None, typer.Option(help="Only documents of this type: pdf, mail, image, markdown …")] = None,
    after: Annotated[str | None, typer.Option(help="Only documents written since: 2026-12-01.")] = None,
    where: Annotated[
        list[str] | None, typer.Option(help="Only records with this value in a column: rating=1. May be repeated.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many hits at most.")] = 10,
    expand: Annotated[int, typer.Option(min=0, max=2, help="How many steps the graph is followed.")] = 0,
    json: Json = False,
) -> None:
    """Find what documents say, by words and by meaning.

    Example: gristmill search "when is the invoice due" --client acme --type pdf
    """
    if not query.strip():
        raise Misused("Say what to look for, for example gristmill search invoice.")
    columns = parse_columns(where or ())
    how = {"alpha": alpha, "type": type, "columns": columns, "limit": limit, "expand": expand}
    scope = view_of(client, project)
    hits = run(_search(query, scope, after, **how))
    if columns and not hits and not is_elsewhere():
        run(_refuse_unknown_columns(scope, columns))
    if hits.note:
        warn(hits.note)
    emit(json, {"query": query, "note": hits.note, "hits": hits}, lambda: hits_view(hits, query))


async def _search(query: str, scope: Scope | None, after: str | None, **how: Any) -> Hits:
    """A running `gristmill up` answers at once; without one, the model is loaded for this one question."""
    how["after"] = parse_instant(after) if after else None
    if is_elsewhere():
        return remote().search_elsewhere(query, scope, **how)
    hits = await ask_search(load_settings(), query, scope, **how)
    if hits is not None:
        return hits
    async with session() as at, Finder(at.db, at.settings) as finder:
        return await find_in_documents(at.db, finder, query, scope, **how)


async def _refuse_unknown_columns(scope: Scope | None, columns: Mapping[str, str]) -> None:
    """A column that is misspelt looks like one in which nothing has the value."""
    async with session() as at, at.db.transaction(seen_from=scope) as tx:
        known = await list_columns(tx, scope)
    for name in columns:
        if known and name not in known:
            raise Misused(f"No record has a column “{name}”: there are {', '.join(known[:20])}.")


def parse_columns(words: Sequence[str]) -> dict[str, str] | None:
    """`rating=1` as a column and its value."""
    columns: dict[str, str] = {}
    for word in words:
        name, is_there, value = word.partition("=")
        if not is_there or not name.strip():
            raise Misused(f"“{word}” names no column: write --where rating=1.")
        columns[name.strip()] = value
    return columns or None


# --- views


def hits_view(hits: Hits, query: str) -> RenderableType:
    if not hits:
        return Text(f"Nothing fits “{shorten(query, LONGEST_ECHO)}”.", style="dim")
    return Group(*(_hit_view(n, hit) for n, hit in enumerate(hits, 1)))


def _hit_view(n: int, hit: Hit) -> RenderableType:
    head = Text.assemble(
        (f"{n:>2}. ", "dim"),
        (shorten(hit.title or hit.name, 80), "bold"),
        (f"  {shorten(hit.name, 40)}" if hit.title else "", "dim"),
        (f"  in {shorten(hit.part_of, 40)}" if hit.part_of else "", "dim"),
        *_place_of(hit),
    )
    meaning = "–" if hit.similarity is None else f"{hit.similarity:.2f}"
    parts = f"    {hit.score:.3f} = words {hit.lexical:.2f}, meaning {meaning}"
    whose = "/".join(one for one in (hit.client, hit.project) if one)
    why = Text(parts + (f"  in {whose}" if whose else ""), style="dim")
    if hit.via:
        why = Text(f"    {hit.score:.3f}, related by {', '.join(hit.via[:3])}", style="dim")
    heading = [Text("    " + hit.heading, style="italic")] if hit.heading and hit.heading != hit.title else []
    path = [Text(f"    {_path_of(hit.urn)}", style="dim")] if hit.urn.startswith(FILE) else []
    return Group(head, *heading, _snippet_view(hit), why, *path, "")


def _place_of(hit: Hit) -> list[tuple[str, str]]:
    if hit.record is not None:
        return [(f"  record {hit.record}", "cyan"), (f"  row {hit.page}", "cyan"), (_write_columns(hit), "dim")]
    return [
        (f"  document {hit.document}", "cyan"),
        (f"  page {hit.page}", "cyan"),
        (f"  {hit.start}–{hit.stop}", "dim"),
    ]


def _write_columns(hit: Hit) -> str:
    """The first columns of a record, as filters are written."""
    cells = [f"{name}={shorten(value, 24)}" for name, value in (hit.columns or {}).items() if value]
    return "  " + "  ".join(cells[:4])


def _path_of(urn: str) -> str:
    return unquote(urn.removeprefix(FILE), errors="replace")


def _snippet_view(hit: Hit) -> RenderableType:
    text = Text()
    at = 0
    for start, stop in hit.snippet.highlights:
        text.append(hit.snippet.text[at:start])
        text.append(hit.snippet.text[start:stop], style="bold yellow")
        at = stop
    return Padding(text.append(hit.snippet.text[at:]), (0, 0, 0, 4))
