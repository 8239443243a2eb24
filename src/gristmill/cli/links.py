"""`gristmill link`: links that wait for a decision, rules for domains, and why a link is where it is."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from gristmill.cli.output import Json, Misused, emit, make_facts, make_table
from gristmill.cli.scopes import Client, Project, format_scope, scope_of
from gristmill.cli.session import name_user, run, session
from gristmill.errors import Unsafe
from gristmill.scopes import Scope
from gristmill.sources import (
    LINK_STATES,
    Effect,
    Link,
    LinkId,
    ShownRule,
    State,
    decide_one,
    explain_url,
    find_link,
    list_links,
    list_places,
    list_rules,
    load_link,
    refresh_one,
    set_rule,
)

app = typer.Typer(no_args_is_help=True)
Which = Annotated[str, typer.Argument(help="A domain, a part of one (example.org/docs), or the number of a link.")]
Limit = Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")]


def register(root: typer.Typer, text: str) -> None:
    root.add_typer(app, name="link", help=text)


@app.command("allow")
def allow(which: Which, client: Client = None, project: Project = None, json: Json = False) -> None:
    """Let the links of a domain be fetched, or one link. Links that would change something are never fetched.

    Example: gristmill link allow example.org/docs --client acme
    """
    _decide(which, "allow", scope_of(client, project), as_json=json)


@app.command("deny")
def deny(which: Which, client: Client = None, project: Project = None, json: Json = False) -> None:
    """Never fetch the links of a domain, or one link.

    Example: gristmill link deny ads.example.org
    """
    _decide(which, "deny", scope_of(client, project), as_json=json)


@app.command("refresh")
def refresh(
    number: Annotated[int, typer.Argument(min=1, help="The number of a link that is indexed.")], json: Json = False
) -> None:
    """Fetch the page of a link again. One that has not changed stays as it is.

    Example: gristmill link refresh 42
    """
    link = run(_refresh(LinkId(number)))
    emit(json, vars(link), lambda: f"Link {link.id} will be fetched again: {link.url}")


@app.command("ls")
def ls(
    state: Annotated[State | None, typer.Option(help="Only links in this state.")] = None,
    domain: Annotated[str | None, typer.Option(help="Only links of this domain and its subdomains.")] = None,
    rules: Annotated[bool, typer.Option("--rules", help="The rules for domains instead of the links.")] = False,
    limit: Limit = 50,
    json: Json = False,
) -> None:
    """Links, the newest first; those that wait for a decision with --state waiting.

    Example: gristmill link ls --state waiting
    """
    if rules:
        known = run(_load_rules(limit))
        emit(json, [_plain_rule(one) for one in known], lambda: _rules_table(known))
        return
    found = run(_load_links(LINK_STATES if state is None else (state,), domain, limit))
    emit(json, [vars(one) for one in found], lambda: _links_table(found))


@app.command("why")
def why(
    which: Annotated[str, typer.Argument(help="The number of a link, or an address.")],
    client: Client = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """What was decided about a link and why, and where it was found; or what would be decided about an address.

    Example: gristmill link why https://example.org/page
    """
    facts = run(_explain(which, scope_of(client, project)))
    emit(json, facts, lambda: make_facts(_write_facts(facts)))


def _decide(which: str, effect: Effect, scope: Scope, *, as_json: bool) -> None:
    if which.isdecimal():
        link = run(_decide_link(LinkId(int(which)), effect))
        word = "will be fetched" if link.state == "queued" else "is never fetched"
        emit(as_json, vars(link), lambda: f"Link {link.id} {word}: {link.url}")
        return
    rule = run(_set_rule(scope, effect, which))
    word = "are fetched" if effect == "allow" else "are never fetched"
    whom = format_scope(rule.client, rule.project)
    emit(as_json, _plain_rule(rule), lambda: f"Links of {rule.pattern} {word} ({whom}). Waiting links follow soon.")


async def _decide_link(id_: LinkId, effect: Effect) -> Link:
    async with session() as at, at.db.transaction() as tx:
        return await decide_one(tx, id_, effect, name_user())


async def _refresh(id_: LinkId) -> Link:
    async with session() as at, at.db.transaction() as tx:
        return await refresh_one(tx, id_)


async def _set_rule(scope: Scope, effect: Effect, pattern: str) -> ShownRule:
    async with session() as at, at.db.transaction() as tx:
        return await set_rule(tx, scope, effect, pattern, name_user(), settings=at.settings.fetch)


async def _load_rules(limit: int) -> list[ShownRule]:
    async with session() as at, at.db.reading() as tx:
        return await list_rules(tx, limit=limit)


async def _load_links(states: Sequence[State], domain: str | None, limit: int) -> list[Link]:
    async with session() as at, at.db.reading() as tx:
        return await list_links(tx, states, domain=domain, limit=limit)


async def _explain(which: str, scope: Scope) -> dict[str, Any]:
    async with session() as at, at.db.reading() as tx:
        try:
            link = await load_link(tx, LinkId(int(which))) if which.isdecimal() else await find_link(tx, which, scope)
        except Unsafe as unsafe:
            raise Misused(f"“{which[:80]}” is no address that could be fetched. {unsafe}") from None
        if link is None:
            found = await explain_url(tx, which, scope, at.settings.fetch)
            return {"url": which, "state": None, "verdict": found.verdict, "reason": found.reason, "found_in": []}
        places = await list_places(tx, link.id, limit=10)
        return {**vars(link), "found_in": [vars(one) for one in places]}


def _write_facts(facts: dict[str, Any]) -> list[tuple[str, Any]]:
    known = ("url", "state", "verdict", "reason", "decided_by", "error", "document", "task", "context")
    shown = [(name.replace("_", " "), facts.get(name)) for name in known]
    return [*shown, *(("found in", f"{one['urn']}: {one['context']}") for one in facts["found_in"])]


def _plain_rule(rule: ShownRule) -> dict[str, Any]:
    return {**vars(rule), "pattern": rule.pattern}


def _links_table(found: Sequence[Link]) -> RenderableType:
    rows = [
        (one.id, one.state, format_scope(one.client, one.project), one.url, one.error or one.reason) for one in found
    ]
    return make_table(
        (">link", "state", "whose", "~address", "why"), rows, empty="There are no such links; they come with mails."
    )


def _rules_table(found: Sequence[ShownRule]) -> RenderableType:
    rows = [(one.id, one.effect, one.pattern, format_scope(one.client, one.project), one.by, one.at) for one in found]
    empty = "There are no rules yet: gristmill link allow example.org makes one."
    return make_table((">rule", "effect", "~pattern", "whose", "by", "since"), rows, empty=empty)
