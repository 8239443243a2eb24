"""What the address of the graph page says: the nodes that were opened, the one that is looked at, a path."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from gristmill.web.console.graph_picture import MOST_OPENED

PAGE = "/graph"
LONGEST_KEY = 1_000  # characters


@dataclass(frozen=True)
class GraphView:
    """A state of the page; the same state has the same picture, for a colleague as well."""

    client: str = ""
    project: str = ""
    opened: tuple[str, ...] = ()
    node: str = ""  # whose evidence the side panel shows
    edge: tuple[str, str] | None = None  # or the nodes at both ends of this line
    start: str = ""  # of a path …
    goal: str = ""  # … and its end
    as_list: bool = False

    @property
    def is_empty(self) -> bool:
        return not self.opened and not self.has_path

    @property
    def has_path(self) -> bool:
        return bool(self.start and self.goal)

    @property
    def link(self) -> str:
        return write_link(
            client=self.client,
            project=self.project,
            open=self.opened,
            node=self.node,
            edge=self.edge or (),
            start=self.start,
            goal=self.goal,
            shown="list" if self.as_list else "",
        )

    def look_at(self, node: str) -> str:
        """The same picture, and the evidence of this node beside it."""
        return replace(self, node=node, edge=None).link

    def look_between(self, source: str, target: str) -> str:
        return replace(self, node="", edge=(source, target)).link

    def open(self, node: str) -> str:
        """The picture with further neighbours of this node."""
        return replace(self, opened=(*self.opened, node), node=node, edge=None).link

    def begin_with(self, node: str) -> str:
        """A new picture around this node."""
        return replace(self, opened=(node,), node=node, edge=None, start="", goal="").link

    def show_as(self, as_list: bool) -> str:
        return replace(self, as_list=as_list).link

    def leave_path(self) -> str:
        return replace(self, opened=self.opened or (self.start,), start="", goal="").link


def write_link(**values: str | Sequence[str]) -> str:
    """The address of the page; what is empty is left out."""
    given = {name: value for name, value in values.items() if value}
    return f"{PAGE}?{urlencode(given, doseq=True)}" if given else PAGE


def read_view(given: QueryParams, **scope: Any) -> GraphView:
    """The state in an address; a key that is too long is no node, and a list that is too long is cut."""
    edge = given.getlist("edge")
    return GraphView(
        opened=tuple(key for key in given.getlist("open") if 0 < len(key) <= LONGEST_KEY)[:MOST_OPENED],
        node=given.get("node", "")[:LONGEST_KEY],
        edge=(edge[0][:LONGEST_KEY], edge[1][:LONGEST_KEY]) if len(edge) == 2 else None,
        start=given.get("start", "").strip()[:LONGEST_KEY],
        goal=given.get("goal", "").strip()[:LONGEST_KEY],
        as_list=given.get("shown") == "list",
        **scope,
    )
