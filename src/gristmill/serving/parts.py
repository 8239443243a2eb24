"""What a room adds to the web: its routes, and its entries in the menu of the console.

A room that answers over HTTP has a file `<room>/web.py` with one constant `WEB`, and its templates in
`<room>/templates`, named in `render` as `<room>/page.html`. web finds them by their place; commands that serve nothing
never import them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter

from gristmill.serving.caller import Role

FILES_OF = "x-files-of"  # in the OpenAPI document: the room whose setting `max_bytes` bounds the body


def take_files(room: str) -> dict[str, Any]:
    """`openapi_extra=take_files("documents")` on a route: its body may be as large as a file of this room."""
    return {FILES_OF: room}


# where each part of the menu begins; the first has no heading, and its four pages are the bar of a narrow screen
SECTIONS = ((0, ""), (20, "Knowledge"), (40, "Work"), (60, "Sources"), (70, "Queue"), (90, "Machine"))


@dataclass(frozen=True)
class MenuEntry:
    """A page in the menu and in the command palette."""

    path: str
    title: str
    icon: str  # the name of a drawing in web/static/icons.svg
    role: Role = "viewer"
    operator: bool = False  # only for callers that see all clients
    place: int = 50  # in the menu, from the top; the numbers of SECTIONS say under which heading

    @property
    def section(self) -> str:
        return next(title for first, title in reversed(SECTIONS) if self.place >= first)


@dataclass(frozen=True)
class WebPart:
    """`api` is served under /api and stands in the OpenAPI document; `console` holds the pages.

    `foreign` are routes at addresses that programs of others expect (/v1, /mcp): for programs, and not in the document.
    """

    api: Sequence[APIRouter] = ()
    console: Sequence[APIRouter] = ()
    foreign: Sequence[APIRouter] = ()
    menu: Sequence[MenuEntry] = ()
