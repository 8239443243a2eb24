"""`gristmill graph`: who and what the documents name, and how they belong together."""

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer
from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from gristmill.cli.output import Json, Misused, emit, err, make_facts, make_table, shorten
from gristmill.cli.scopes import scope_of, warn_of_lack
from gristmill.cli.session import run, session
from gristmill.db import Tx
from gristmill.errors import Refused
from gristmill.knowledge import graph, keys
from gristmill.scopes import Scope
from gristmill.wording import format_count

app = typer.Typer(no_args_is_help=True)
alias = typer.Typer(no_args_is_help=True)
app.add_typer(alias, name="alias", help="Other names for nodes: add, list, rm.")

Client = Annotated[str | None, typer.Option(help="Whose graph; without it only what is GLOBAL is seen.")]
Project = Annotated[str | None, typer.Option(help="One project of the client.")]
Name = Annotated[str, typer.Argument(help="A key like “person::jane doe”, or a name that only one node has.")]
MOST_KEYS = 12
STDOUT = Path("-")
COLOURS = ("cyan", "green", "magenta", "yellow", "blue")


def register(root: typer.Typer, text: str) -> None:
    root.add_typer(app, name="graph", help=text)


@app.command()
def show(
    node: Name,
    client: Client = None,
    project: Project = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many edges and places at most.")] = 20,
    json: Json = False,
) -> None:
    """A node: its edges with their evidence counted, and where it is named.

    Example: gristmill graph show "Jane Doe"
    """
    found = run(_load_node(scope_of(client, project), node, limit))
    emit(json, found, lambda: _node_view(found))


@app.command()
def path(
    source: Annotated[str, typer.Argument(help="A key or name.")],
    target: Annotated[str, typer.Argument(help="A key or name.")],
    client: Client = None,
    project: Project = None,
    hops: Annotated[int, typer.Option(min=1, max=20, help="How long the way may be.")] = 6,
    json: Json = False,
) -> None:
    """The shortest way from one node to another, with a place that shows each step. Ends with 1 if there is none.

    Example: gristmill graph path "Jane Doe" "Acme Corp"
    """
    steps = run(_find_path(scope_of(client, project), source, target, hops))
    emit(json, {"found": steps is not None, "steps": steps or []}, lambda: _path_view(source, target, hops, steps))
    if steps is None:
        raise typer.Exit(1)


@app.command()
def find(
    text: Annotated[str, typer.Argument(help="The beginning or a part of a name.")],
    client: Client = None,
    project: Project = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")] = 20,
    json: Json = False,
) -> None:
    """Nodes by their names. Ends with 1 if there is none.

    Example: gristmill graph find jane
    """
    found = run(_find_nodes(scope_of(client, project), text, limit))
    rows = [(one.key, one.type, one.mentions, one.chunks, one.name) for one in found]
    emit(
        json,
        found,
        lambda: make_table(
            ("~key", "type", ">mentions", ">chunks", "name"), rows, empty=f"No node is called “{text}”."
        ),
    )
    if not found:
        raise typer.Exit(1)


@app.command()
def export(
    file: Annotated[Path, typer.Argument(help="Where to, for example graph.graphml; - is standard output.")],
    client: Client = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """The whole graph as GraphML, for Gephi, yEd or networkx.

    Example: gristmill graph export graph.graphml --client acme
    """
    if file.is_dir():
        raise Refused(f"{file} is a folder: name the file to write, for example {file / 'graph.graphml'}.")
    special = file == STDOUT or (file.exists() and not file.is_file())
    if json and file == STDOUT:
        raise Misused("The graph itself goes to standard output: leave --json out, or name a file.")
    size = run(_export(scope_of(client, project), file, special))
    if special:
        err.print(f"Wrote {size:,} bytes to {file}.", soft_wrap=True)  # on stderr: stdout may be the file
    else:
        emit(json, {"file": file, "bytes": size}, lambda: f"Wrote {size:,} bytes to {file}.")


@app.command()
def stats(client: Client = None, project: Project = None, json: Json = False) -> None:
    """How large the graph is, and of what it consists.

    Example: gristmill graph stats --json
    """
    found = run(_count_graph(scope_of(client, project)))
    emit(json, found, lambda: _counts_view(found))


@alias.command("add")
def add_(
    other: Annotated[str, typer.Argument(metavar="ALIAS", help="Another name, for example “person::j. doe”.")],
    key: Annotated[str, typer.Argument(help="The node's key, for example “person::jane doe”.")],
    client: Client = None,
    json: Json = False,
) -> None:
    """Say that two names mean one node: what is known of either is joined, now and in the future.

    Example: gristmill graph alias add "person::j. doe" "person::jane doe"
    """
    merged = run(_add_alias(client, other, key))
    moved = f"{merged.mentions:,} mentions and {merged.relations:,} relations were moved"
    emit(json, merged, lambda: f"“{merged.alias.alias}” is “{merged.alias.key}” from now on; {moved}.")


@alias.command("list")
def list_(client: Client = None, json: Json = False) -> None:
    """All aliases of a client.

    Example: gristmill graph alias list --client acme
    """
    found = run(_load_aliases(client))
    emit(
        json, found, lambda: make_table(("alias", "key"), [(one.alias, one.key) for one in found], empty="No aliases.")
    )


@alias.command("rm")
def rm(
    other: Annotated[str, typer.Argument(metavar="ALIAS", help="The name that is no alias any more.")],
    client: Client = None,
    json: Json = False,
) -> None:
    """Remove an alias; nodes that were joined stay joined until their documents are read again.

    Example: gristmill graph alias rm "person::j. doe"
    """
    gone = run(_remove_alias(client, other))
    again = "gristmill document reindex draws both names again"
    emit(json, gone, lambda: f"“{gone.alias}” is no alias of “{gone.key}” any more: {again}.")


# --- work


async def _load_node(scope: Scope, node: str, limit: int) -> graph.Node:
    async with session() as at, at.db.transaction() as tx:
        await warn_of_lack(tx, scope)
        return await graph.node(tx, scope, node, limit=limit)


async def _find_path(scope: Scope, source: str, target: str, hops: int) -> list[dict[str, Any]] | None:
    async with session() as at, at.db.transaction() as tx:
        await warn_of_lack(tx, scope)
        steps = await graph.path(tx, scope, source, target, hops=hops)
        if steps is None:
            return None
        return [{"edge": step, "shown_by": await graph.edge_evidence(tx, scope, step, limit=1)} for step in steps]


async def _find_nodes(scope: Scope, text: str, limit: int) -> list[graph.FoundNode]:
    async with session() as at, at.db.transaction() as tx:
        await warn_of_lack(tx, scope)
        return await graph.find(tx, scope, text, limit=limit)


async def _count_graph(scope: Scope) -> graph.GraphCounts:
    async with session() as at, at.db.transaction() as tx:
        await warn_of_lack(tx, scope)
        return await graph.counts(tx, scope)


async def _export(scope: Scope, file: Path, special: bool) -> int:
    """Written under another name until it is complete. It shows one moment of the graph, however long it takes.

    A `special` file, a pipe or a device, is written to and never replaced."""
    draft = file if special else file.with_name(f".{file.name}.part")
    size = 0
    async with session() as at:
        moment = {"default_transaction_isolation": "serializable", "default_transaction_read_only": "on"}
        async with await at.db.connect("export", **moment) as connection, connection.transaction():
            await warn_of_lack(Tx(connection), scope)
            try:
                with _open_file(draft) as out, err.status("Writing …"):
                    async for piece in graph.export(Tx(connection), scope):
                        size += out.write(piece.encode())
                if not special:
                    draft.replace(file)
            except OSError as error:
                if not special:
                    draft.unlink(missing_ok=True)
                raise Refused(f"{file} cannot be written: {error.strerror}.") from error
    return size


def _open_file(file: Path) -> AbstractContextManager[BinaryIO]:
    return nullcontext(sys.stdout.buffer) if file == STDOUT else file.open("wb")


async def _add_alias(client: str | None, other: str, key: str) -> keys.AliasMerge:
    async with session() as at, at.db.transaction() as tx:
        return await keys.add_alias(tx, scope_of(client, None).client, other, key)


async def _load_aliases(client: str | None) -> list[keys.Alias]:
    async with session() as at, at.db.transaction() as tx:
        return await keys.aliases(tx, scope_of(client, None).client)


async def _remove_alias(client: str | None, other: str) -> keys.Alias:
    async with session() as at, at.db.transaction() as tx:
        return await keys.remove_alias(tx, scope_of(client, None).client, other)


# --- views


def _node_view(node: graph.Node) -> RenderableType:
    top = Text.assemble((node.name, "bold"), "  ", (node.key, "dim"))
    told = f"{node.type}, named {node.mentions:,} × (chunks: {node.chunks:,}, documents: {node.documents:,})"
    tree = Tree(top, guide_style="dim")
    tree.add(Text(told, style="dim"))
    for name, value in node.properties.items():
        tree.add(Text(f"{name}: {shorten(value)}"))
    for edge in node.neighbours:
        tree.add(_format_edge(edge))
    if node.edges > len(node.neighbours):
        tree.add(Text(f"… and {format_count(node.edges - len(node.neighbours), 'more edge')}: --limit", style="dim"))
    if not node.evidence:
        return tree
    rows = [(_format_place(one), f"“{one.snippet}”") for one in node.evidence]
    return Group(tree, "", make_table(("~where", "text"), rows, empty=""))


def _format_edge(edge: graph.Neighbour) -> Text:
    arrow = (f"─{edge.type}→ " if edge.outward else f"←{edge.type}─ ", "yellow")
    colour = COLOURS[sum(map(ord, edge.node_type)) % len(COLOURS)]
    return Text.assemble(arrow, (edge.name, colour), "  ", (edge.key, "dim"), f"  ×{edge.evidence:,}")


def _format_place(one: graph.Evidence) -> str:
    return f"{one.title or one.file} p. {one.page} ({one.start}–{one.stop})"


def _path_view(source: str, target: str, hops: int, steps: Sequence[dict[str, Any]] | None) -> RenderableType:
    if steps is None:
        return Text(f"No way leads from “{source}” to “{target}” within {hops} steps.", style="dim")
    if not steps:
        return Text(f"“{source}” and “{target}” are the same node.", style="dim")
    rows: list[tuple[Any, ...]] = []
    for step in steps:
        edge: graph.PathEdge = step["edge"]
        shown: list[graph.Evidence] = step["shown_by"]
        said = f"{_format_place(shown[0])} “{shown[0].snippet}”" if shown else ""
        rows.append((edge.source, f"─{edge.type}→", edge.target, edge.evidence, said))
    return make_table(("~from", "", "~to", ">evidence", "for example"), rows, empty="")


def _counts_view(found: graph.GraphCounts) -> RenderableType:
    top = make_facts(
        [
            ("nodes", found.nodes),
            ("edges", found.edges),
            ("mentions", found.mentions),
            ("evidence", found.evidence),
        ]
    )
    nodes = make_table(("type", ">nodes"), found.node_types.items(), empty="No nodes.")
    edges = make_table(("type", ">edges"), list(found.edge_types.items())[:MOST_KEYS], empty="No edges.")
    rest = len(found.edge_types) - MOST_KEYS
    more = [Text(f"… and {format_count(rest, 'more type')}: --json", style="dim")] if rest > 0 else []
    return Group(top, "", nodes, "", edges, *more)
