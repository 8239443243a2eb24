"""Makes the case of an item from its words: facts, hints, conventions that hold, pieces of work that it lists.

Pure functions: they run in threads and child processes, and a replay runs the same ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gristmill.models import About, ClientIdentity, Hint, Hints, TextFacts, make_hints, read_facts
from gristmill.qualifier.conventions import InForce, Material, match_condition
from gristmill.qualifier.deciding import PAYMENT, RANK, STANDING, Case, Firing
from gristmill.qualifier.dividing import find_children
from gristmill.qualifier.model import URGENCIES, Identifier, ItemText, WorkItem
from gristmill.qualifier.reading import ItemWording, ScopeTerms
from gristmill.qualifier.reasons import ReasonWords, words_of

SHARED = ("invoice", "order", "issue", "case")  # numbers by which two items are about the same thing
TELLING = 200  # characters of a text in which rules should find something
WISHES = ("user_input", "user_task", "scheduled")  # types of items that a person adds
SUBJECTS = (*WISHES, "email", "bugtracker", "git")  # types whose title somebody wrote
WORDLESS = ("git", "link", "scheduled")  # types whose texts often ask and name nothing


def word_item(item_text: ItemText, me: ClientIdentity) -> ItemWording:
    """The words of an item as the rules read them."""
    item = item_text.item
    is_given = item.type in WISHES and item.decision is None  # later on, they are those of the decision
    attachments = [one.name for one in item_text.parts if one.document != item.document]
    return ItemWording(
        item_text.text,
        item_text.new,
        describe_item(item, me),
        list(dict.fromkeys(attachments)),
        is_whole=item.is_whole,
        is_due=item.origin is not None,
        has_text=_has_text(item_text),
        is_awaited=item.foreground,
        deadline=item.deadline if is_given else None,
        urgency=item.urgency if is_given else "low",
        file_names=item_text.file_names,
    )


def _has_text(item_text: ItemText) -> bool:
    """The subject of a mail is a text; the name of a file is none."""
    begins = len(str(item_text.item.note.get("subject") or item_text.item.title))
    return item_text.item.type in SUBJECTS or bool(item_text.text[begins:].strip())


def describe_item(item: WorkItem, me: ClientIdentity) -> About:
    """What is known of an item beside its words."""
    note = item.note
    return About(
        written_at=item.written_at.astimezone(find_zone(item.zone)),
        type=item.type,
        subject=str(note.get("subject") or item.title),
        sender=str(note.get("sender") or ""),
        recipients=tuple(map(str, note.get("recipients") or ())),
        headers=_as_texts(note.get("headers")),
        fields=_as_texts(note.get("fields")),
        me=me,
    )


def _as_texts(pairs: Mapping[str, Any] | None) -> dict[str, str]:
    return {str(name): str(value) for name, value in (pairs or {}).items() if value is not None}


def find_zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")


def make_case(wording: ItemWording, terms: ScopeTerms) -> Case:
    """Everything that rules and conventions say of an item; nothing of other items or of an LLM."""
    facts = read_facts(wording.text, wording.about, new=wording.new, file_names=wording.file_names)
    hints = _hear_person(make_hints(facts, wording.about), wording)
    material = Material(
        wording.text,
        wording.new,
        wording.about,
        facts,
        hints.suggested_deadline.value,
        terms.now,
        wording.attachments,
    )
    return Case(
        facts=facts,
        hints=hints,
        now=terms.now,
        lead=terms.lead,
        has_text=wording.has_text,
        is_whole=wording.is_whole,
        is_wish=wording.about.type in WISHES,
        is_due=wording.is_due,
        is_awaited=wording.is_awaited,
        firings=find_firings(terms.conventions, material),
        children=find_children(wording.text, facts, wording.new, wording.about.written_at.tzinfo or UTC),
    )


def _hear_person(hints: Hints, wording: ItemWording) -> Hints:
    """A deadline and an urgency that somebody gave stand above those that the words say."""
    if wording.deadline is not None:
        given = Hint[datetime | None](wording.deadline)
        hints = replace(hints, has_future_deadline=Hint(True), suggested_deadline=given)
    if URGENCIES.index(wording.urgency) > URGENCIES.index(hints.urgency.value):
        hints = replace(hints, urgency=Hint(wording.urgency))
    return hints


def find_firings(conventions: Sequence[InForce], material: Material) -> list[Firing]:
    """The conventions that hold, those first that stand above others.

    A project's stands above its client's, and that above everybody's. Of two on one level, the one that makes more
    work comes first: a contradiction must not put work away.
    """
    held = [(one, words) for one in conventions if (words := match_condition(one.rule.condition, material)) is not None]
    held.sort(key=lambda pair: (-pair[0].nearness, -_find_rank(pair[0]), pair[0].id))
    return [Firing(one.id, one.version, one.rule.consequence, words) for one, words in held]


def _find_rank(convention: InForce) -> int:
    fate = convention.rule.consequence.fate
    return RANK[STANDING[fate]] if fate else -1


def choose_conventions(conventions: Sequence[InForce], client: str, project: str) -> list[InForce]:
    return [one for one in conventions if one.is_seen_from(client, project)]


def find_identifiers(facts: TextFacts, subject: str) -> dict[Identifier, ReasonWords]:
    """The number that an item is about, if it names one: that of its subject, or else the first of the strongest kind.

    It is one number, so that which items belong together does not depend on which of them came first. The payment of an
    invoice is another thing than a question about it: it must not be hidden in that, nor in a contract.
    """
    kinds = SHARED[:1] if facts.payment else SHARED
    named = [(one, words) for one in facts.references if one.kind in kinds and (words := words_of([one.evidence]))]
    if not named:
        return {}
    chosen, words = min(
        named,
        key=lambda pair: (
            pair[0].evidence.start >= len(subject),
            SHARED.index(pair[0].kind),
            pair[0].evidence.start,
        ),
    )
    return {Identifier(PAYMENT if facts.payment else chosen.kind, chosen.value): words[0]}


def is_silent(case: Case, wording: ItemWording) -> bool:
    """Whether nothing at all was found in a text where something should be.

    One such text is nothing. Many of them mean that texts arrive broken, or that a model answers with nothing.
    """
    facts = case.facts
    found = facts.dates or facts.amounts or facts.references or facts.requests or facts.mentions or facts.noise
    if found or facts.payment or wording.about.type in WORDLESS:
        return False
    return len(wording.text.strip()) >= TELLING
