"""Links: those that wait for a decision, with the text around them and one click; the rules for domains."""

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Query, Request, Response

from gristmill.serving import Cursor, Manager, MenuEntry, Viewer, answer_action, services_of, stay_here
from gristmill.sources import Effect, LinkId, State, list_places, list_rules, load_link
from gristmill.web.api.links import (
    PORTION,
    Domain,
    LinkWish,
    Number,
    RuleWish,
    delete_rule,
    load_portion,
    post_decision,
    post_rule,
)

PAGES = APIRouter(prefix="/links")
MENU = (MenuEntry("/links", "Links", "link", place=64),)
TABS: tuple[tuple[State | None, str], ...] = (
    ("waiting", "Waiting"),
    ("queued", "Being fetched"),
    ("indexed", "Indexed"),
    ("failed", "Failed"),
    ("refused", "Refused"),
)
Wanted = Annotated[State, Query()]
Chosen = Annotated[Effect, Form()]
Back = Annotated[str, Form(max_length=2_000)]


@PAGES.get("")
async def show_links(
    request: Request, caller: Viewer, state: Wanted = "waiting", domain: Domain = None, cursor: Cursor = None
) -> Response:
    found, more = await load_portion(request, caller, [state], domain, cursor, PORTION)
    kept = [("state", state), *([("domain", domain)] if domain else [])]
    return services_of(request).render(
        request,
        "links.html",
        links=found,
        state=state,
        domain=domain,
        tabs=TABS,
        next=f"/links?{urlencode([*kept, ('cursor', more)])}" if more else None,
        first=f"/links?{urlencode(kept)}" if cursor else None,
        here=request.url.path + (f"?{request.url.query}" if request.url.query else ""),
    )


@PAGES.get("/rules")
async def show_rules(request: Request, caller: Viewer) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        rules = await list_rules(tx, limit=500)
    return services.render(request, "link_rules.html", rules=rules)


@PAGES.post("/rules")
async def add_rule(
    request: Request,
    caller: Manager,
    effect: Chosen,
    pattern: Annotated[str, Form(min_length=1, max_length=800)],
    back: Back = "/links/rules",
) -> Response:
    rule = await post_rule(request, caller, RuleWish(effect=effect, pattern=pattern))
    word = "allowed: its links are fetched" if effect == "allow" else "denied: its links are never fetched"
    return answer_action(request, f"{rule.domain}{rule.path} is {word}.", back=stay_here(back, "/links/rules"))


@PAGES.post("/rules/{id}/remove")
async def drop_rule(request: Request, caller: Manager, id: Number) -> Response:
    gone = await delete_rule(request, caller, id)
    return answer_action(
        request, f"The rule for {gone.pattern} is gone; its links are decided anew.", back="/links/rules"
    )


@PAGES.get("/{id}")
async def show_link(request: Request, caller: Viewer, id: Number) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        link, places = await load_link(tx, LinkId(id)), await list_places(tx, LinkId(id))
    return services.render(request, "link.html", link=link, places=places)


@PAGES.post("/{id}/decide")
async def decide_link(request: Request, caller: Manager, id: Number, effect: Chosen, back: Back = "/links") -> Response:
    link = await post_decision(request, caller, id, LinkWish(effect=effect))
    word = "will be fetched" if link.state == "queued" else "is never fetched"
    return answer_action(request, f"{link.url} {word}.", back=stay_here(back, "/links"))
