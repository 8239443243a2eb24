"""Draws the pages of the console: templates of web under their names, those of a room as `<room>/page.html`."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PrefixLoader, StrictUndefined

from gristmill.serving import Caller, MenuEntry, Render
from gristmill.web.console.answering import is_partial
from gristmill.web.console.drawing import equip
from gristmill.web.gate.callers import token_of

HOUSE = Path(__file__).parents[1]
TEMPLATES = HOUSE / "web" / "console" / "templates"


def make_environment(rooms: Iterable[str]) -> Environment:
    """Texts are escaped everywhere, and a value that a template names but nobody gave is an error."""
    folders = {room: HOUSE / room / "templates" for room in rooms}
    of_rooms = {name: FileSystemLoader(folder) for name, folder in folders.items() if folder.is_dir()}
    environment = Environment(
        loader=ChoiceLoader([FileSystemLoader(TEMPLATES), PrefixLoader(of_rooms)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    equip(environment)
    return environment


def make_render(environment: Environment, menu: Sequence[MenuEntry]) -> Render:
    """Gives every template the caller, the menu that the caller may see, the token of its forms, and the path."""
    ordered = sorted(menu, key=lambda entry: (entry.place, entry.title))

    def render(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        caller: Caller | None = getattr(request.state, "caller", None)
        shown = {
            "caller": caller,
            "menu": [entry for entry in ordered if caller and may_open(caller, entry)],
            "csrf": token_of(request),
            "path": request.url.path,
            "partial": is_partial(request),
            "query": request.query_params.get("q", ""),  # what stands in the search box
        }
        return HTMLResponse(environment.get_template(template).render(shown | values), status)

    return render


def may_open(caller: Caller, entry: MenuEntry) -> bool:
    return caller.has_role(entry.role) and (caller.is_operator or not entry.operator)
