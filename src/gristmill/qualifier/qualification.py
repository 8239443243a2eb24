"""Qualifies items: reads their words, follows conventions, asks an LLM where there is one, decides, writes it down."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from gristmill.db import Tx
from gristmill.qualifier.atoms import Atom, list_key_fields, make_atom, summarise_text
from gristmill.qualifier.casework import (
    choose_conventions,
    find_identifiers,
    is_silent,
    make_case,
    word_item,
)
from gristmill.qualifier.conventions import InForce, count_firings, fold_firings, load_in_force
from gristmill.qualifier.deciding import Advice, Case, ItemVerdict, decide, explain_suspicion, is_settled, is_work
from gristmill.qualifier.decisions import find_known, load_former, load_moment, save_decision
from gristmill.qualifier.identifiers import hold_numbers, note_identifiers
from gristmill.qualifier.letters import AskLlm, KeepAtom
from gristmill.qualifier.memory import save_memory, save_reason
from gristmill.qualifier.model import UNDECIDED, ItemMemory, ItemText, WorkItem
from gristmill.qualifier.moving import move_item
from gristmill.qualifier.profiles import Profile, find_identity, find_lead_of, load_profiles
from gristmill.qualifier.reading import ItemWording, ScopeTerms
from gristmill.qualifier.reasons import DecisionStep
from gristmill.qualifier.routing import apply_route
from gristmill.qualifier.store import get_item, warn_item
from gristmill.queue import Envelope, Letter, send
from gristmill.rooms import Tools
from gristmill.scopes import Scope
from gristmill.settings import QualifierSettings

SHOWN_REQUESTS = 10  # sentences that the memory of an item keeps


@dataclass(frozen=True)
class PreparedItem:
    """An item whose words are read: everything of its decision that needs no other item."""

    item: WorkItem
    wording: ItemWording
    case: Case
    atom: Atom
    summary: str


@dataclass(frozen=True)
class Qualified:
    """What is to be written about an item, in the transaction that ends its task."""

    item: WorkItem
    write: Callable[[Tx], Awaitable[None]]
    is_work: bool = False  # its words ask for something
    then: Sequence[Letter | Envelope] = ()  # letters that are sent with those of many others


@dataclass(frozen=True)
class Customs:
    """The conventions and profiles of some clients at one moment."""

    now: datetime
    conventions: Sequence[InForce]
    profiles: Sequence[Profile]

    def find_terms(
        self, client: str, project: str, settings: QualifierSettings, now: datetime | None = None
    ) -> ScopeTerms:
        """What holds in one scope; `now` is the moment that is decided from, if it is not this one."""
        scope = Scope(client, project)
        return ScopeTerms(
            now or self.now,
            find_lead_of(self.profiles, scope, settings.lead_days),
            find_identity(self.profiles, scope),
            choose_conventions(self.conventions, client, project),
        )


async def load_customs(tx: Tx, clients: Sequence[str]) -> Customs:
    return Customs(await load_moment(tx), await load_in_force(tx, clients), await load_profiles(tx, clients))


async def qualify_many(tools: Tools, texts: Sequence[ItemText]) -> Sequence[Qualified | Exception]:
    """Decide about items by rules and conventions, or send them to an LLM first; one answer for each, in order."""
    async with tools.db.reading() as tx:
        customs = await load_customs(tx, [one.item.client for one in texts])
    settings = tools.settings
    prepared = await asyncio.to_thread(prepare_many, texts, customs, settings.qualifier)
    has_llm = bool(settings.llm.model)
    return [one if isinstance(one, Exception) else _qualify(one, has_llm=has_llm) for one in prepared]


def prepare_many(
    texts: Sequence[ItemText], customs: Customs, settings: QualifierSettings
) -> list[PreparedItem | Exception]:
    """Read the words of many items; a text that breaks a rule breaks nothing for the others."""
    found: list[PreparedItem | Exception] = []
    for one in texts:
        try:
            found.append(prepare(one, customs.find_terms(one.item.client, one.item.project, settings)))
        except Exception as error:  # noqa: BLE001 its task fails with it, alone
            found.append(error)
    return found


def prepare(text: ItemText, terms: ScopeTerms) -> PreparedItem:
    wording = word_item(text, terms.me)
    case = make_case(wording, terms)
    summary = summarise_text(wording)
    return PreparedItem(text.item, wording, case, make_atom(text.item, wording, case.facts, summary), summary)


def _qualify(prepared: PreparedItem, *, has_llm: bool) -> Qualified:
    """An LLM is asked about items that are new here. A decision that is made again is made by rules: it only rises."""
    item, asks = prepared.item, is_work(prepared.case)
    if has_llm and item.state in UNDECIDED and not is_settled(prepared.case):
        return Qualified(item, partial(_ask_llm, prepared=prepared), asks)
    return Qualified(item, partial(decide_and_write, prepared=prepared), asks, list_letters(prepared))


def list_letters(prepared: PreparedItem) -> list[Envelope]:
    """The atomic chunk is kept later, and by others: an urgent item does not wait for vectors."""
    atom, item = prepared.atom, prepared.item
    is_first = item.decision is None and item.origin is None and item.parent is None
    if not is_first or not prepared.wording.has_text:
        return []
    return [Envelope(KeepAtom(item.id, atom.node_key, atom.node_type, atom.text), scope=item.scope)]


async def _ask_llm(tx: Tx, *, prepared: PreparedItem) -> None:
    item = prepared.item
    task = await send(tx, AskLlm(item.id), scope=item.scope, foreground=item.foreground, position=item.position)
    await move_item(tx, item.id, "qualifying", since=UNDECIDED, why="An LLM is asked.", by="qualifier", task=task)


async def decide_and_write(
    tx: Tx,
    *,
    prepared: PreparedItem,
    advice: Advice | None = None,
    summary: str = "",
    asked: bool = False,
) -> None:
    """Decide, now that other items are known, and write the decision with everything that follows from it.

    An LLM that was `asked` and gave no advice is a silent one.
    """
    item, facts = prepared.item, prepared.case.facts
    identifiers = find_identifiers(facts, prepared.wording.about.subject)
    await hold_numbers(tx, item, list(identifiers))
    known = await find_known(tx, item, identifiers)
    case = replace(prepared.case, known=known, former=await load_former(tx, item), advice=advice)
    case = replace(case, is_silent=asked and advice is None)
    verdict = await _name_mail(tx, item, decide(case))
    silent = case.is_silent or is_silent(case, prepared.wording)
    decision = await save_decision(tx, item, prepared.wording, case, verdict, silent=silent)
    await note_identifiers(tx, item.id, list(identifiers))
    await _count(tx, case)
    reason = explain_briefly(verdict)
    if not await save_memory(tx, item.id, make_memory(prepared, verdict, summary), document=item.document):
        await save_reason(tx, item.id, verdict.route.to, reason)
    if facts.suspicion is not None and item.warning is None:
        item = await warn_item(tx, item, explain_suspicion(facts.suspicion))
    await apply_route(tx, item, verdict.route, decision=decision, why=reason, by=verdict.author)


async def _name_mail(tx: Tx, item: WorkItem, verdict: ItemVerdict) -> ItemVerdict:
    """A decision about another mail than the one that describes the item says which one was read."""
    if item.decision is None or (await get_item(tx, item.id)).document == item.document:
        return verdict
    sentence = f"The mail “{item.title}” of {item.written_at:%Y-%m-%d} was read."
    return replace(verdict, path=(DecisionStep("other_mail", sentence), *verdict.path))


async def _count(tx: Tx, case: Case) -> None:
    if case.firings:
        await count_firings(tx, [one.id for one in case.firings])
        await fold_firings(tx)


def explain_briefly(verdict: ItemVerdict) -> str:
    """The sentences of the path, in order."""
    return " ".join(step.sentence for step in verdict.path)


def make_memory(prepared: PreparedItem, verdict: ItemVerdict, summary: str = "") -> ItemMemory:
    """What the executor of an item is told."""
    item = prepared.item
    return ItemMemory(
        summary or prepared.summary or item.title,
        node_keys=[prepared.atom.node_key],
        data=make_data(prepared, verdict),
        routing=verdict.route.to,
        reason=explain_briefly(verdict),
        source=item.type,
        source_id=item.urn,
    )


def make_data(prepared: PreparedItem, verdict: ItemVerdict) -> Mapping[str, Any]:
    """The key fields of an item for programs."""
    facts = prepared.case.facts
    fields: dict[str, Any] = {"subject": prepared.wording.about.subject, "language": facts.language}
    fields |= dict(list_key_fields(prepared.wording, facts))
    asked = [one.evidence.words for one in facts.requests[:SHOWN_REQUESTS]]
    if facts.suspicion is not None:
        fields["suspicion"] = facts.suspicion.words
    reply_by = verdict.own_deadline.isoformat() if verdict.own_deadline else ""
    routed = {"assign": verdict.assign, "urgency": verdict.route.urgency}
    return {**fields, "asked": asked, "reply_by": reply_by, **routed}
