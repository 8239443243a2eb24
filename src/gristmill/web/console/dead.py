"""Dead letters: clusters of the same error, their samples, and replay or removal of one, a cluster, a queue, or all."""

from functools import partial
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response

from gristmill.documents import names_of
from gristmill.queue import dead
from gristmill.serving import MenuEntry, Viewer, services_of
from gristmill.web.console.sorting import Columns, read_sort, sort_rows

PAGES = APIRouter()
MENU = (MenuEntry("/dead", "Dead letters", "dead", place=74),)
SAMPLES = 20
PORTION = 60  # clusters
COLUMNS: Columns[dead.Cluster] = {
    "count": lambda one: one.count,
    "error": lambda one: one.error,
    "first": lambda one: one.first,
    "last": lambda one: one.last,
}


@PAGES.get("/dead")
async def show_dead(
    request: Request,
    caller: Viewer,
    queue: str = "",
    cluster: str = "",
    q: str = "",
    start: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        every = await dead.clusters(tx)
        letters = await dead.dead_letters(tx, fingerprint=cluster, limit=SAMPLES) if cluster else []
        names = await names_of(tx, [one.owner for one in letters])
    shown = [one for one in every if fits(one, queue, q)]
    sort = read_sort(request, COLUMNS, "-count")
    order = request.query_params.get("sort", "")
    link = partial(link_page, queue=queue, q=q, sort=order)
    return services.render(
        request,
        "dead.html",
        query="",  # the text of this filter is not for the search box of the header
        clusters=sort_rows(shown, sort, COLUMNS)[start : start + PORTION],
        sort=sort,
        total=sum(one.count for one in every),
        queues=sorted({name for one in every for name in one.queues}),
        queue=queue,
        q=q,
        chosen=next((one for one in every if one.fingerprint == cluster), None),
        letters=letters,
        names=names,
        link=partial(link, start=start),
        next=link(start=start + PORTION) if len(shown) > start + PORTION else None,
        first=link() if start else None,
        here=str(request.url.replace(scheme="", netloc="")),
    )


def fits(one: dead.Cluster, queue: str, text: str) -> bool:
    in_queue = not queue or queue in one.queues
    return in_queue and text.lower() in f"{one.error} {' '.join(one.kinds)}".lower()


def link_page(**given: str | int) -> str:
    """The same list, with other values: a cluster that is opened, where the list begins."""
    given = {name: value for name, value in given.items() if value}
    return f"/dead?{urlencode(given)}" if given else "/dead"
