"""Links for programs: the list, why, a decision about one, and the rules for domains."""

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field

from gristmill.serving import (
    Caller,
    Cursor,
    Listing,
    Manager,
    Viewer,
    read_cursor,
    services_of,
    write_cursor,
)
from gristmill.sources import (
    LINK_STATES,
    Effect,
    Link,
    LinkId,
    State,
    count_waiting_links,
    decide_one,
    explain_url,
    list_links,
    list_places,
    list_rules,
    load_link,
    remove_rule,
    set_rule,
)

ROUTES = APIRouter(prefix="/links", tags=["links"])
PORTION = 50
Number = Annotated[int, Path(ge=1, le=2**63 - 1)]
Limit = Annotated[int, Query(ge=1, le=500)]
Wanted = Annotated[list[State] | None, Query(description="In these states; without, in all.", max_length=5)]
Domain = Annotated[str | None, Query(description="Of this domain and its subdomains.", max_length=253)]
Name = Annotated[str | None, Field(max_length=200)]


class ShownLink(BaseModel):
    """A link; `verdict` and `reason` say what was decided, `state` what became of it."""

    id: int
    client: str
    project: str
    url: str
    host: str
    verdict: Literal["skip", "blocked", "safe", "unsafe", "uncertain"]
    reason: str
    state: State
    decided_by: str | None
    decided_at: datetime
    label: str
    context: str
    places: int
    document: int | None
    task: int | None
    fetched_at: datetime | None
    error: str | None
    first_at: datetime


class ShownPlace(BaseModel):
    """Where a link was found."""

    urn: str
    document: int | None
    name: str | None
    label: str
    context: str
    at: datetime


class LinkWithPlaces(ShownLink):
    """A link, and the last places where it was found."""

    found_in: list[ShownPlace]


class LinkCount(BaseModel):
    """How many links wait for a decision; counting stops at a thousand."""

    waiting: int


class LinkWish(BaseModel):
    """What a person decides about a link."""

    effect: Effect


class RuleWish(BaseModel):
    """A domain with its subdomains, or a part of it: `example.org`, `example.org/docs`."""

    effect: Effect
    pattern: str = Field(min_length=1, max_length=800)
    client: Name = None
    project: Name = None


class DomainRule(BaseModel):
    """What somebody decided for a domain."""

    id: int
    client: str
    project: str
    effect: Effect
    domain: str
    path: str
    by: str
    at: datetime


class RemovedRule(BaseModel):
    """The rule that is gone."""

    pattern: str


class LinkWhy(BaseModel):
    """What would be decided about an address, and why."""

    url: str
    verdict: Literal["skip", "blocked", "safe", "unsafe", "uncertain"]
    reason: str


@ROUTES.get("")
async def get_links(
    request: Request,
    caller: Viewer,
    state: Wanted = None,
    domain: Domain = None,
    cursor: Cursor = None,
    limit: Limit = PORTION,
) -> Listing[ShownLink]:
    """The newest links first."""
    found, more = await load_portion(request, caller, state, domain, cursor, limit)
    return Listing(items=[ShownLink.model_validate(vars(one)) for one in found], next=more)


@ROUTES.get("/count")
async def get_count(request: Request, caller: Viewer) -> LinkCount:
    """How many links wait for a decision."""
    async with caller.reading(services_of(request).db) as tx:
        return LinkCount(waiting=await count_waiting_links(tx))


@ROUTES.get("/why")
async def get_why(request: Request, caller: Viewer, url: Annotated[str, Query(max_length=4_000)]) -> LinkWhy:
    """What would be decided about an address that nobody has found yet."""
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        found = await explain_url(tx, url, caller.scope, services.settings.fetch)
    return LinkWhy(url=url, verdict=found.verdict, reason=found.reason)


@ROUTES.get("/rules")
async def get_rules(
    request: Request, caller: Viewer, cursor: Cursor = None, limit: Limit = PORTION
) -> Listing[DomainRule]:
    """The newest rules first."""
    last = read_cursor(cursor, int)
    async with caller.reading(services_of(request).db) as tx:
        found = await list_rules(tx, before=int(last[0]) if last else None, limit=limit + 1)
    more = write_cursor(found[limit - 1].id) if len(found) > limit else None
    return Listing(items=[DomainRule.model_validate(vars(one)) for one in found[:limit]], next=more)


@ROUTES.post("/rules", status_code=201)
async def post_rule(request: Request, caller: Manager, body: RuleWish) -> DomainRule:
    """Allow or deny a domain; links that wait are decided by it in the background."""
    services = services_of(request)
    scope = caller.choose_scope(body.client, body.project)
    async with caller.transaction(services.db) as tx:
        rule = await set_rule(tx, scope, body.effect, body.pattern, caller.name, settings=services.settings.fetch)
        await services.record(tx, caller, body.effect, f"links of {rule.pattern}")
    return DomainRule.model_validate(vars(rule))


@ROUTES.delete("/rules/{id}")
async def delete_rule(request: Request, caller: Manager, id: Number) -> RemovedRule:
    """Take a rule back; links that it decided are decided anew."""
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        pattern = await remove_rule(tx, id)
        await services.record(tx, caller, "remove", f"rule for links of {pattern}")
    return RemovedRule(pattern=pattern)


@ROUTES.get("/{id}")
async def get_link(request: Request, caller: Viewer, id: Number) -> LinkWithPlaces:
    """One link, and where it was found."""
    async with caller.reading(services_of(request).db) as tx:
        link, places = await load_link(tx, LinkId(id)), await list_places(tx, LinkId(id))
    return LinkWithPlaces.model_validate({**vars(link), "found_in": [vars(one) for one in places]})


@ROUTES.post("/{id}/decide")
async def post_decision(request: Request, caller: Manager, id: Number, body: LinkWish) -> ShownLink:
    """Let a link be fetched, or never."""
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        link = await decide_one(tx, LinkId(id), body.effect, caller.name)
        await services.record(tx, caller, body.effect, f"link {id}", url=link.url)
    return ShownLink.model_validate(vars(link))


async def load_portion(
    request: Request,
    caller: Caller,
    states: list[State] | None,
    domain: str | None,
    cursor: str | None,
    limit: int,
) -> tuple[list[Link], str | None]:
    """A portion of the list, and the cursor of the next one."""
    last = read_cursor(cursor, int)
    before = int(last[0]) if last else None
    async with caller.reading(services_of(request).db) as tx:
        found = await list_links(tx, states or LINK_STATES, domain=domain or None, before=before, limit=limit + 1)
    return found[:limit], write_cursor(found[limit - 1].id) if len(found) > limit else None
