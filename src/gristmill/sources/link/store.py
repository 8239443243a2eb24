"""Links as people and programs ask for them, and what a person decides about one of them."""

from collections.abc import Sequence

from gristmill.db import Column, Tx
from gristmill.errors import Refused, Unknown
from gristmill.scopes import Scope, scope_id
from gristmill.settings import FetchSettings
from gristmill.sources.fetch.location import read_location
from gristmill.sources.link.canonical import canonicalise, hash_url
from gristmill.sources.link.deciding import decide_link
from gristmill.sources.link.model import STATES, Effect, Link, LinkDecision, LinkId, LinkPlace, State
from gristmill.sources.link.noting import queue_links, write_decision
from gristmill.sources.link.patterns import find_unsafe_pattern
from gristmill.sources.link.rules import find_rules
from gristmill.sources.link.statements import SQL


async def list_links(
    tx: Tx,
    states: Sequence[State] = STATES,
    *,
    domain: str | None = None,
    before: int | None = None,
    limit: int = 100,
) -> list[Link]:
    """The newest links in these states, of one domain or of all; `before` continues behind the last one."""
    given = {"states": list(states), "before": before, "limit": limit}
    if domain is None:
        return await tx.all(SQL["list_links"], Link, **given)
    return await tx.all(SQL["list_links_of_host"], Link, backward=domain.lower()[::-1], **given)


async def load_link(tx: Tx, id_: LinkId) -> Link:
    found = await tx.one(SQL["load_link"], Link, id=id_)
    if found is None:
        raise Unknown(f"There is no link {id_}.")
    return found


async def find_link(tx: Tx, url: str, scope: Scope) -> Link | None:
    """The link with this address in exactly this scope."""
    given = {"hash": hash_url(canonicalise(url).url), "client": scope.client, "project": scope.project}
    id_ = await tx.value(SQL["find_by_url"], Column[LinkId], **given)
    return None if id_ is None else await load_link(tx, LinkId(id_))


async def list_places(tx: Tx, id_: LinkId, *, limit: int = 50) -> list[LinkPlace]:
    """Where a link was found, the last place first."""
    return await tx.all(SQL["list_places"], LinkPlace, link=id_, limit=limit)


async def count_waiting_links(tx: Tx) -> int:
    """How many links wait for a decision, of those that are seen from here; counting stops at a thousand."""
    return await tx.only_value(SQL["count_waiting"], int)


async def decide_one(tx: Tx, id_: LinkId, effect: Effect, by: str) -> Link:
    """A person decides about one link: it is fetched, or never."""
    link = await load_link(tx, id_)
    if link.state == "indexed":
        raise Refused(f"Link {id_} is indexed already: remove document {link.document} if it should not be.")
    if effect == "deny":
        await write_decision(tx, id_, LinkDecision("unsafe", f"{by} denied it."), by)
    else:
        await _allow(tx, link, by)
    return await load_link(tx, id_)


async def refresh_one(tx: Tx, id_: LinkId) -> Link:
    """Fetch the page of a link again; one that has not changed costs a question."""
    link = await load_link(tx, id_)
    if link.state != "indexed":
        raise Refused(f"Link {id_} is {link.state}: only a link that is indexed is fetched again.")
    await queue_links(tx, [(id_, await scope_id(tx, Scope(link.client, link.project)))], again=True)
    return await load_link(tx, id_)


async def _allow(tx: Tx, link: Link, by: str) -> None:
    """A person cannot allow a link that does something: the click here is not meant as the click on its page."""
    if reason := find_unsafe_pattern(read_location(link.url)):
        raise Refused(f"Link {link.id} is never fetched. {reason}")
    if not await write_decision(tx, link.id, LinkDecision("safe", f"{by} allowed it."), by):
        raise Unknown(f"There is no link {link.id} that you may decide about.")
    if link.state != "queued":
        await queue_links(tx, [(link.id, await scope_id(tx, Scope(link.client, link.project)))])


async def explain_url(tx: Tx, url: str, scope: Scope, settings: FetchSettings) -> LinkDecision:
    """What would be decided about an address that nobody has found yet."""
    location = canonicalise(url)
    rules = await find_rules(tx, scope, [location])
    return decide_link(location, found=None, is_indexed=False, rules=rules, settings=settings)
