"""Decides anew about the links of a domain whose rules have changed, a portion at a time."""

from dataclasses import dataclass
from functools import partial

from gristmill.db import Column, Tx, array
from gristmill.ids import ScopeId
from gristmill.queue import Done, send
from gristmill.scopes import Scope
from gristmill.settings import FetchSettings
from gristmill.sources.fetch.location import read_location
from gristmill.sources.link.deciding import decide_link
from gristmill.sources.link.letters import ReviewLinks
from gristmill.sources.link.model import FoundLink, LinkId, State
from gristmill.sources.link.noting import queue_links, write_decision
from gristmill.sources.link.rules import find_rules
from gristmill.sources.link.statements import SQL

PORTION = 200


@dataclass(frozen=True)
class _Undecided:
    id: LinkId
    scope: ScopeId
    client: str
    project: str
    url: str
    state: State
    label: str
    lead_in: str
    context: str


async def review_links(letter: ReviewLinks, *, settings: FetchSettings) -> Done:
    """Everything is done in the transaction that completes the task."""
    return Done(write=partial(_review, letter=letter, settings=settings))


async def _review(tx: Tx, *, letter: ReviewLinks, settings: FetchSettings) -> None:
    scopes = await tx.values(SQL["scopes_within"], Column[ScopeId], scope=letter.scope)
    found = await tx.all(
        SQL["find_undecided"],
        _Undecided,
        scopes=array(scopes),
        after=letter.after,
        backward=letter.domain[::-1],
        limit=PORTION,
    )
    for one in found:
        await _decide(tx, one, settings)
    if len(found) == PORTION:
        await send(tx, ReviewLinks(letter.scope, letter.domain, found[-1].id), scope=ScopeId(letter.scope))


async def _decide(tx: Tx, one: _Undecided, settings: FetchSettings) -> None:
    location = read_location(one.url)
    rules = await find_rules(tx, Scope(one.client, one.project), [location])
    seen = FoundLink(one.url, one.label, one.context, one.lead_in)
    decision = decide_link(location, found=seen, is_indexed=False, rules=rules, settings=settings)
    if decision.state == one.state:
        return
    await write_decision(tx, one.id, decision)
    if decision.state == "queued":
        await queue_links(tx, [(one.id, one.scope)])
