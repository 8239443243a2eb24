"""Writes down the links of documents: a row for each address, a place in the document, a task if it is safe."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gristmill.db import Tx, array
from gristmill.ids import DocumentId, ScopeId
from gristmill.queue import Envelope, send_many
from gristmill.scopes import Scope, scope_id
from gristmill.settings import FetchSettings
from gristmill.sources.fetch.location import Location, read_location
from gristmill.sources.link.canonical import hash_url
from gristmill.sources.link.deciding import decide_link
from gristmill.sources.link.letters import FetchLink
from gristmill.sources.link.model import FoundLink, LinkDecision, LinkId, LinkPlace, LinkRule, State
from gristmill.sources.link.rules import find_rules
from gristmill.sources.link.statements import SQL

STRICT = FetchSettings()
Key = tuple[ScopeId, bytes]  # the scope of a link, and the hash of its address


@dataclass(frozen=True)
class LinkedDocument:
    """A document with the links that were found in it."""

    urn: str
    scope: Scope
    links: Sequence[FoundLink] = ()
    document: DocumentId | None = None


@dataclass(frozen=True)
class NotedLinks:
    """How many links documents have, and how many of them are new here."""

    links: int
    new: int


class _Known(NamedTuple):
    id: LinkId
    scope: ScopeId
    hash: bytes
    state: State


@dataclass(frozen=True)
class _Spot:
    """A link at one place, and what would be decided about it by what stands around it there."""

    found: FoundLink
    location: Location
    key: Key
    place: LinkedDocument
    decision: LinkDecision


async def note_links(tx: Tx, documents: Sequence[LinkedDocument], *, settings: FetchSettings = STRICT) -> NotedLinks:
    """Write down the links of documents, in the transaction that takes them in.

    A link that is known already gets a place and nothing else; links that an older version had lose theirs. Nothing is
    fetched here: a link that is safe becomes a task, one that nobody has decided about waits for a person.
    """
    scopes = {one.scope: await scope_id(tx, one.scope) for one in documents}
    spots, new = await _note_spots(tx, documents, scopes, settings)
    if documents:
        await tx.execute(
            SQL["drop_places"],
            scopes=array(scopes[one.scope] for one in documents),
            urns=[one.urn for one in documents],
            kept=array(id_ for id_, _ in spots),
            kept_urns=[urn for _, urn in spots],
        )
    return NotedLinks(len(spots), new)


async def add_found(tx: Tx, found: FoundLink, place: LinkPlace, scope: Scope, settings: FetchSettings) -> None:
    """Write down one more link of a document whose other links are known."""
    one = LinkedDocument(place.urn, scope, [found], place.document)
    await _note_spots(tx, [one], {scope: await scope_id(tx, scope)}, settings)


async def _note_spots(
    tx: Tx, documents: Sequence[LinkedDocument], scopes: Mapping[Scope, ScopeId], settings: FetchSettings
) -> tuple[set[tuple[LinkId, str]], int]:
    """The links that stand in each document, and how many of them are new here."""
    known = await _find_links(tx, {key for one in documents for key in _keys_of(one, scopes)})
    spots = [
        spot
        for scope in scopes
        for spot in await _decide_all(tx, [one for one in documents if one.scope == scope], scopes, known, settings)
    ]
    if not spots:
        return set(), 0
    fresh = {spot.key: spot for spot in _put_blocked_last(spots) if spot.key not in known}
    known |= await _add_links(tx, list(fresh.values()))
    for spot in spots:
        if spot.decision.verdict == "blocked" and known[spot.key].state in ("waiting", "queued"):
            # the same address, but here its label says that to open it does something
            await write_decision(tx, known[spot.key].id, spot.decision)
    places = {(known[spot.key].id, spot.place.urn): spot for spot in spots}
    await tx.execute(
        SQL["add_places"],
        links=array(id_ for id_, _ in places),
        scopes=array(spot.key[0] for spot in places.values()),
        urns=[urn for _, urn in places],
        documents=[spot.place.document for spot in places.values()],
        labels=[spot.found.label for spot in places.values()],
        contexts=[spot.found.context for spot in places.values()],
    )
    return set(places), len(fresh)


def _keys_of(document: LinkedDocument, scopes: Mapping[Scope, ScopeId]) -> Iterator[Key]:
    return ((scopes[document.scope], hash_url(link.url)) for link in document.links)


def _put_blocked_last(spots: Sequence[_Spot]) -> list[_Spot]:
    """The spots, so that the last one of each new link decides: a blocked spot if there is one, else the first."""
    return sorted(reversed(spots), key=lambda spot: spot.decision.verdict == "blocked")


async def _find_links(tx: Tx, keys: set[Key]) -> dict[Key, _Known]:
    if not keys:
        return {}
    rows = await tx.all(
        SQL["find_links"], _Known, scopes=array(scope for scope, _ in keys), hashes=[hash_ for _, hash_ in keys]
    )
    return {(row.scope, row.hash): row for row in rows}


async def _decide_all(
    tx: Tx,
    documents: Sequence[LinkedDocument],
    scopes: Mapping[Scope, ScopeId],
    known: Mapping[Key, _Known],
    settings: FetchSettings,
) -> list[_Spot]:
    """All links of documents of one scope, each with what is decided about it."""
    located = {link.url: read_location(link.url) for one in documents for link in one.links}
    if not located:
        return []
    rules = await find_rules(tx, documents[0].scope, located.values())
    return [
        _decide(link, located[link.url], key, one, known.get(key), rules, settings)
        for one in documents
        for link, key in zip(one.links, _keys_of(one, scopes), strict=True)
    ]


def _decide(
    found: FoundLink,
    location: Location,
    key: Key,
    place: LinkedDocument,
    known: _Known | None,
    rules: Sequence[LinkRule],
    settings: FetchSettings,
) -> _Spot:
    is_indexed = known is not None and known.state == "indexed"
    decision = decide_link(location, found=found, is_indexed=is_indexed, rules=rules, settings=settings)
    return _Spot(found, location, key, place, decision)


async def _add_links(tx: Tx, spots: Sequence[_Spot]) -> dict[Key, _Known]:
    """The rows of these links: new ones, or those that another writer added first; what is safe is queued."""
    if not spots:
        return {}
    rows = await tx.all(
        SQL["add_links"],
        _Known,
        scopes=array(spot.key[0] for spot in spots),
        hashes=[spot.key[1] for spot in spots],
        urls=[spot.found.url for spot in spots],
        hosts=[spot.location.host for spot in spots],
        verdicts=[spot.decision.verdict for spot in spots],
        reasons=[spot.decision.reason for spot in spots],
        rules=[spot.decision.rule for spot in spots],
        states=[spot.decision.state for spot in spots],
        labels=[spot.found.label for spot in spots],
        lead_ins=[spot.found.leading for spot in spots],
        contexts=[spot.found.context for spot in spots],
    )
    made = {(row.scope, row.hash): row for row in rows}
    safe = [made[spot.key] for spot in spots if spot.decision.verdict == "safe" and spot.key in made]
    await queue_links(tx, [(row.id, row.scope) for row in safe])
    return made | await _find_links(tx, {spot.key for spot in spots if spot.key not in made})


async def queue_links(tx: Tx, links: Sequence[tuple[LinkId, ScopeId]], *, again: bool = False) -> None:
    """Let links be fetched, each by a task of its own; or `again`, those that are indexed."""
    if links:
        tasks = await send_many(tx, [Envelope(FetchLink(id_), scope=scope) for id_, scope in links])
        query = SQL["refresh_links"] if again else SQL["queue_links"]
        await tx.execute(query, ids=array(id_ for id_, _ in links), tasks=array(tasks))


async def write_decision(tx: Tx, id_: LinkId, decision: LinkDecision, by: str | None = None) -> bool:
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
