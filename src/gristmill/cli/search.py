"""`gristmill search`: find what documents say, by words and by meaning."""

import asyncio
from contextlib import suppress
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from gristmill.cli.output import Json, Misused, emit, short, warn
from gristmill.cli.scopes import lack_of, scope_of
from gristmill.cli.session import Session, instant, run, session
from gristmill.documents import types
from gristmill.errors import GristmillError, Refused
from gristmill.knowledge import Hit, Hits, search
from gristmill.models import Embedder, MiniLm, make_embedder
from gristmill.processes import ProcessPool
from gristmill.scopes import Scope

COLD = 60.0  # seconds for a model to be loaded on a busy machine


def register(root: typer.Typer, text: str) -> None:
    root.command("search")(search_)


def search_(
    query: Annotated[str, typer.Argument(help="What is looked for.")],
    alpha: Annotated[float, typer.Option(min=0, max=1, help="0 is words (BM25), 1 is meaning (vectors).")] = 0.5,
    client: Annotated[str | None, typer.Option(help="Whose knowledge; without it, what is everybody's.")] = None,
    project: Annotated[str | None, typer.Option(help="Which project of the client.")] = None,
    type: Annotated[str | None, typer.Option(help="Only documents of this type: pdf, mail, image, markdown …")] = None,
    after: Annotated[str | None, typer.Option(help="Only documents written since: 2026-12-01.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many hits at most.")] = 10,
    expand: Annotated[int, typer.Option(min=0, max=2, help="How many steps the graph is followed.")] = 0,
    json: Json = False,
) -> None:
    """Find what documents say, by words and by meaning.

    Example: gristmill search "when is the invoice due" --client acme --type pdf
    """
    if not query.strip():
        raise Misused("Say what to look for, for example gristmill search invoice.")
    hits = run(_search(query, alpha, scope_of(client, project), type, after, limit, expand))
    if hits.note:
        warn(hits.note)
    emit(json, {"query": query, "note": hits.note, "hits": hits}, lambda: hits_view(hits, query))


async def _search(
    query: str, alpha: float, scope: Scope, type: str | None, after: str | None, limit: int, expand: int
) -> Hits:
    since = instant(after) if after else None
    async with session() as at:
        if type is not None:
            await _refuse_unknown(at, scope, type)
        async with at.db.transaction() as tx:
            lack = await lack_of(tx, scope)
        hits = await find(at, query, scope, alpha=alpha, limit=limit, type=type, after=since, expand=expand)
    hits.note = " ".join(one for one in (lack, hits.note) if one) or None
    return hits


async def _refuse_unknown(at: Session, scope: Scope, type: str) -> None:
    """Before a model is loaded that could find nothing."""
    async with at.db.transaction() as tx:
        known = await types(tx, scope)
    if known and type not in known:
        raise Refused(f"No document is of the type “{type}”: there are {', '.join(known)}.")


async def find(at: Session, query: str, scope: Scope, **how: Any) -> Hits:
    """Search with a model of one's own, for as long as the question takes."""
    pool = ProcessPool(1, nice=at.settings.queue.nice)  # the words are looked up meanwhile, on few cores
    ours = make_embedder(at.settings.embedding, pool)
    try:
        if ours.name == MiniLm.name and how.get("alpha"):
            await _warmed(ours)
        # while another model is being filled, vectors are those of the one before: most likely of the built-in model
        return await search(at.db, [ours, MiniLm(pool)], query, scope, **how)
    finally:
        await ours.close()
        await pool.close()


async def _warmed(built_in: Embedder) -> None:
    """A cold model takes its time, which is not that of the question."""
    with suppress(GristmillError, TimeoutError):  # without its vectors, search goes by words and says so
        async with asyncio.timeout(COLD):
            await built_in.embed_question("")


# --- views


def hits_view(hits: Hits, query: str) -> RenderableType:
    if not hits:
        return Text(f"Nothing fits “{query.strip()}”.", style="dim")
    return Group(*(_hit(n, hit) for n, hit in enumerate(hits, 1)))


def _hit(n: int, hit: Hit) -> RenderableType:
    head = Text.assemble(
        (f"{n:>2}. ", "dim"),
        (short(hit.title or hit.name, 80), "bold"),
        (f"  {short(hit.name, 40)}" if hit.title else "", "dim"),
        (f"  in {short(hit.part_of, 40)}" if hit.part_of else "", "dim"),
        (f"  page {hit.page}", "cyan"),
        (f"  {hit.start}–{hit.stop}", "dim"),
    )
    meaning = "–" if hit.similarity is None else f"{hit.similarity:.2f}"
    parts = f"    {hit.score:.3f} = words {hit.lexical:.2f}, meaning {meaning}"
    whose = "/".join(one for one in (hit.client, hit.project) if one)
    why = Text(parts + (f"  in {whose}" if whose else ""), style="dim")
    if hit.via:
        why = Text(f"    {hit.score:.3f}, related by {', '.join(hit.via[:3])}", style="dim")
    where = [Text("    " + hit.heading, style="italic")] if hit.heading and hit.heading != hit.title else []
    return Group(head, *where, _snippet(hit), why, "")


def _snippet(hit: Hit) -> RenderableType:
    text = Text()
    at = 0
    for start, stop in hit.snippet.highlights:
        text.append(hit.snippet.text[at:start])
        text.append(hit.snippet.text[start:stop], style="bold yellow")
        at = stop
    return Padding(text.append(hit.snippet.text[at:]), (0, 0, 0, 4))
