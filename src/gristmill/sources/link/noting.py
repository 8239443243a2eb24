"""Writes down the links of a document: a row for each address, an edge to the document, a task if it is safe."""

from collections.abc import Sequence
from dataclasses import dataclass

from gristmill.db import Tx
from gristmill.ids import DocumentId, ScopeId
from gristmill.queue import send
from gristmill.scopes import Scope, scope_id
from gristmill.settings import FetchSettings
from gristmill.sources.fetch.location import Location, read_location
from gristmill.sources.link.canonical import hash_url
from gristmill.sources.link.deciding import decide_link
from gristmill.sources.link.letters import FetchLink
from gristmill.sources.link.model import Decision, FoundLink, LinkId, LinkRule, Place, State
from gristmill.sources.link.rules import find_rules
from gristmill.sources.link.statements import SQL

STRICT = FetchSettings()


@dataclass(frozen=True)
class Noted:
    """How many links a document has, and how many of them are new here."""

    links: int
    new: int


@dataclass(frozen=True)
class _Known:
    id: LinkId
    state: State


async def note_links(
    tx: Tx,
    found: Sequence[FoundLink],
    *,
    urn: str,
    scope: Scope,
    document: DocumentId | None = None,
    settings: FetchSettings = STRICT,
) -> Noted:
    """Write down the links of the document with this URN, in the transaction that takes it in.

    A link that is known already gets an edge and nothing else; links that an older version had lose theirs. Nothing is
    fetched here: a link that is safe becomes a task, one that nobody has decided about waits for a person.
    """
    own = await scope_id(tx, scope)
    located = {one.url: read_location(one.url) for one in found}
    rules = await find_rules(tx, scope, located.values())
    ids: list[LinkId] = []
    new = 0
    # in one order for all: two documents with the same links would otherwise wait for each other
    for one in sorted(found, key=lambda link: link.url):
        id_, is_new = await _note_link(tx, one, located[one.url], own, rules, settings)
        place = {"urn": urn, "document": document, "label": one.label, "context": one.context}
        await tx.execute(SQL["add_place"], link=id_, scope=own, **place)
        ids.append(id_)
        new += is_new
    await tx.execute(SQL["drop_places"], scope=own, urn=urn, kept=ids)
    return Noted(len(ids), new)


async def add_found(tx: Tx, found: FoundLink, place: Place, scope: Scope, settings: FetchSettings) -> None:
    """Write down one more link of a document whose other links are known."""
    own, location = await scope_id(tx, scope), read_location(found.url)
    rules = await find_rules(tx, scope, [location])
    id_, _ = await _note_link(tx, found, location, own, rules, settings)
    where = {"urn": place.urn, "document": place.document, "label": found.label, "context": found.context}
    await tx.execute(SQL["add_place"], link=id_, scope=own, **where)


async def _note_link(
    tx: Tx,
    found: FoundLink,
    location: Location,
    scope: ScopeId,
    rules: Sequence[LinkRule],
    settings: FetchSettings,
) -> tuple[LinkId, bool]:
    known = await tx.one(SQL["find_link"], _Known, scope=scope, hash=hash_url(found.url))
    is_indexed = known is not None and known.state == "indexed"
    decision = decide_link(location, found=found, is_indexed=is_indexed, rules=rules, settings=settings)
    if known is None:
        known = await _add_link(tx, found, location, scope, decision)
        if isinstance(known, int):
            return LinkId(known), True
    if decision.verdict == "blocked" and known.state in ("waiting", "queued"):
        # the same address, but here its label says that to open it does something
        await write_decision(tx, known.id, decision)
    return known.id, False


async def _add_link(
    tx: Tx, found: FoundLink, location: Location, scope: ScopeId, decision: Decision
) -> "LinkId | _Known":
    """The id of the new row; or, if somebody else was faster, what is there."""
    hash_ = hash_url(found.url)
    id_ = await tx.value(
        SQL["add_link"],
        scope=scope,
        hash=hash_,
        url=found.url,
        host=location.host,
        verdict=decision.verdict,
        reason=decision.reason,
        rule=decision.rule,
        state=decision.state,
        label=found.label,
        lead_in=found.leading,
        context=found.context,
    )
    if id_ is None:
        known = await tx.one(SQL["find_link"], _Known, scope=scope, hash=hash_)
        assert known is not None
        return known
    if decision.verdict == "safe":
        await queue_link(tx, LinkId(id_), scope)
    return LinkId(id_)


async def queue_link(tx: Tx, id_: LinkId, scope: ScopeId) -> None:
    """Let a link be fetched, by a task of its own."""
    task = await send(tx, FetchLink(id_), scope=scope)
    await tx.execute(SQL["queue_link"], id=id_, task=task)


async def write_decision(tx: Tx, id_: LinkId, decision: Decision, by: str | None = None) -> bool:
    """Change what was decided about a link; False if it is indexed, and nothing is left to decide."""
    changed = await tx.one(
        SQL["decide"],
        id=id_,
        verdict=decision.verdict,
        reason=decision.reason,
        rule=decision.rule,
        by=by,
        state=decision.state,
    )
    return changed is not None
