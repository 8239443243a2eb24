"""Tries a convention on past items, and makes one of a past decision."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from gristmill.db import Tx
from gristmill.errors import Refused
from gristmill.ids import WorkItemId
from gristmill.models import TextFacts
from gristmill.qualifier.casework import word_item
from gristmill.qualifier.conventions import (
    Contradiction,
    Material,
    find_contradictions_with,
    format_convention,
    match_condition,
    parse_convention,
    suggest_convention,
)
from gristmill.qualifier.conventions.model import Fate
from gristmill.qualifier.decisions import Decision, find_documents_read, load_decision
from gristmill.qualifier.model import RouteTo
from gristmill.qualifier.profiles import find_identity, load_profiles
from gristmill.qualifier.reading import ItemWording
from gristmill.qualifier.reasons import ReasonWords
from gristmill.qualifier.replay import SQL
from gristmill.qualifier.store import get_item
from gristmill.qualifier.texts import load_item_texts
from gristmill.scopes import Scope

LOOKED_AT = 500  # items that a convention is tried on


@dataclass(frozen=True)
class Fitting:
    """A past item that fits a convention."""

    item: WorkItemId
    title: str
    route: RouteTo  # what was decided
    words: tuple[ReasonWords, ...]


@dataclass(frozen=True)
class Trial:
    """What a convention would have held for."""

    text: str
    looked_at: int
    fitting: Sequence[Fitting]
    contradictions: Sequence[Contradiction]


async def try_convention(tx: Tx, text: str, scope: Scope, since: datetime) -> Trial:
    """Look which of the decided items of a scope fit, and which conventions would contradict."""
    rule = parse_convention(text)
    written = format_convention(rule)
    decisions = await _load_decisions(tx, scope, since)
    ids, read = [one.item for one in decisions], find_documents_read(decisions)
    texts = {one.item.id: one for one in await load_item_texts(tx, ids, read)}
    profiles = await load_profiles(tx, [one.item.client for one in texts.values()])
    fitting: list[Fitting] = []
    for decision in decisions:
        found = texts.get(decision.item)
        if found is None:
            continue
        me = find_identity(profiles, Scope(found.item.client, found.item.project))
        words = match_condition(rule.condition, _make_material(word_item(found, me), decision))
        if words is not None:
            fitting.append(Fitting(decision.item, found.item.title, decision.route, words))
    return Trial(written, len(decisions), fitting, await find_contradictions_with(tx, written, scope))


async def _load_decisions(tx: Tx, scope: Scope, since: datetime) -> list[Decision]:
    """The newest of them; everybody's conventions are tried on all items that are seen."""
    return await tx.all(
        SQL["newest_decisions"],
        Decision,
        since=since,
        client=scope.client or None,
        project=scope.project or None,
        limit=LOOKED_AT,
    )


def _make_material(wording: ItemWording, decision: Decision) -> Material:
    """The facts are those of the decision: nothing is read again."""
    facts = TextFacts.from_json(decision.inputs["facts"])
    return Material(
        wording.text,
        wording.new,
        wording.about,
        facts,
        decision.deadline,
        decision.decided_at,
        wording.attachments,
    )


async def suggest_from(tx: Tx, item: WorkItemId, fate: Fate | None = None) -> tuple[Scope, str]:
    """A convention that decides items like this one in the same way, or as is wished; and the scope of the item."""
    found = await get_item(tx, item)
    decision = await load_decision(tx, item)
    if decision is None:
        raise Refused(f"Item {item} is not decided yet: there is nothing that a convention could be made of.")
    scope = Scope(found.client, found.project)
    me = find_identity(await load_profiles(tx, [found.client]), scope)
    (text,) = await load_item_texts(tx, [item], find_documents_read([decision]))
    about, facts = word_item(text, me).about, TextFacts.from_json(decision.inputs["facts"])
    return scope, suggest_convention(about, facts, decision.route, fate)
