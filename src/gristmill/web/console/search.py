"""The page of the search: hits as you type, why each is one, and beside them the page with the words marked."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from starlette.datastructures import QueryParams

from gristmill.documents import find_in_documents, list_types
from gristmill.errors import Refused
from gristmill.knowledge import Hit, Hits
from gristmill.records import list_columns
from gristmill.scopes import Scope, list_clients
from gristmill.serving import MenuEntry, Services, Viewer, services_of
from gristmill.web.console.marking import MarkedRun, TextSpan, cut_text
from gristmill.web.console.seen_scope import read_view

PAGES = APIRouter()
MENU = (MenuEntry("/search", "Search", "search", place=14),)
LONGEST_QUERY = 2_000
LIMIT = 20  # hits
MOST_LIMIT = 100
LONGEST_COLUMN, LONGEST_VALUE = 200, 1_000


@dataclass(frozen=True)
class SearchView:
    """What the address asks for."""

    query: str
    alpha: float
    type: str
    after: str
    limit: int
    expand: int
    column: str = ""  # of records …
    value: str = ""  # … and what stands in it
    wrong: str = ""  # a sentence about what cannot be read

    @property
    def since(self) -> datetime | None:
        return datetime.combine(date.fromisoformat(self.after), time(), UTC) if self.after else None

    @property
    def is_narrowed(self) -> bool:
        return bool(self.type or self.after or self.columns)

    @property
    def columns(self) -> dict[str, str] | None:
        return {self.column: self.value} if self.column and self.value else None


class ShownHit(NamedTuple):
    """A hit as the page shows it."""

    hit: Hit
    link: str
    preview: str
    snippet: Sequence[MarkedRun]
    words: float  # the part of the score that comes from words …
    meaning: float  # … and from meaning


def read_search(given: QueryParams) -> SearchView:
    """What cannot be read is told and left out: a search answers also while somebody is typing."""
    wrong = ""
    alpha, limit = _read_number(given.get("alpha"), 0.5, 0, 1), _read_number(given.get("limit"), LIMIT, 1, MOST_LIMIT)
    after = given.get("after", "").strip()
    try:
        date.fromisoformat(after or "2026-01-01")
    except ValueError:
        after, wrong = "", f"“{after[:40]}” is no date: write it as 2026-12-01."
    expand = round(_read_number(given.get("expand"), 0, 0, 2))
    return SearchView(
        given.get("q", "")[:LONGEST_QUERY],
        alpha,
        given.get("type", "")[:50],
        after,
        round(limit),
        expand,
        given.get("column", "")[:LONGEST_COLUMN],
        given.get("value", "")[:LONGEST_VALUE],
        wrong,
    )


def _read_number(text: str | None, otherwise: float, least: float, most: float) -> float:
    try:
        number = float(text or otherwise)
    except ValueError:
        return otherwise
    return min(most, max(least, number)) if number == number else otherwise  # not a number is not equal to itself


@PAGES.get("/search")
async def show_search(request: Request, caller: Viewer) -> Response:
    services = services_of(request)
    scope = read_view(request, caller)
    view = read_search(request.query_params)
    async with caller.reading(services.db) as tx:
        types, columns = await list_types(tx, scope), await list_columns(tx, scope)
        clients = await list_clients(tx) if caller.is_operator else []
    hits, trouble = await find_hits(services, scope, view)
    return services.render(
        request,
        "search.html",
        query=view.query,
        view=view,
        scope=scope,
        types=types,
        columns=columns,
        clients_to_choose=clients,
        hits=[show_hit(hit, view) for hit in hits],
        note=hits.note,
        trouble=trouble or view.wrong,
        more=link_more(request, view) if len(hits) == view.limit < MOST_LIMIT else None,
    )


async def find_hits(services: Services, scope: Scope | None, view: SearchView) -> tuple[Hits, str]:
    """The hits, and a sentence if the question cannot be answered."""
    if not view.query.strip():
        return Hits(), ""
    try:
        return await find_in_documents(
            services.db,
            services.finder,
            view.query,
            scope,
            type=view.type or None,
            alpha=view.alpha,
            limit=view.limit,
            after=view.since,
            columns=view.columns,
            expand=view.expand,
        ), ""
    except Refused as refusal:
        return Hits(), str(refusal)


def show_hit(hit: Hit, view: SearchView) -> ShownHit:
    given = urlencode({"page": hit.page, "q": view.query, "at": f"{hit.start}-{hit.stop}"})
    spans = [TextSpan(*span) for span in hit.snippet.highlights]
    snippet = [run for passage in cut_text(hit.snippet.text, [], spans) for run in passage.runs]
    link, preview = f"/documents/{hit.document}?{given}", f"/documents/{hit.document}/pages/{hit.page}/view?{given}"
    if hit.record is not None:
        link = preview = f"/records/record/{hit.record}"
    return ShownHit(
        hit,
        link,
        preview,
        snippet,
        words=(1 - view.alpha) * hit.lexical,
        meaning=view.alpha * max(hit.similarity or 0.0, 0.0),
    )


def link_more(request: Request, view: SearchView) -> str:
    given = [(name, value) for name, value in request.query_params.multi_items() if name != "limit"]
    return f"/search?{urlencode([*given, ('limit', min(MOST_LIMIT, view.limit * 2))])}"
