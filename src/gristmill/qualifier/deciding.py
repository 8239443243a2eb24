"""Decides what becomes of an item: the decision tree, as a pure function that says by which rules and words.

The passes stand in a fixed order. The tree reads the hints. A person's conventions stand above the tree. An LLM may
raise what these said. A payment that is due and a direct mention are never lowered below work, by anybody. A decision
that is made again never falls below the one before.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from gristmill.ids import WorkItemId
from gristmill.models import Hints, Noise, TextEvidence, TextFacts
from gristmill.qualifier.conventions.language import format_consequence, format_days
from gristmill.qualifier.conventions.model import Consequence, Fate
from gristmill.qualifier.model import END_OF_DAY, SUSPECTED, URGENCIES, ChildItem, Identifier, ItemState, Route, Urgency
from gristmill.qualifier.reasons import DecisionStep, ReasonWords, words_of

Standing = Literal["info_only", "handled", "later", "now"]
RANK: dict[Standing, int] = {"info_only": 0, "handled": 1, "later": 2, "now": 3}
STANDING: dict[Fate, Standing] = {"ignore": "info_only", "handled": "handled", "later": "later", "now": "now"}
WORK = ("later", "now")
Author = Literal["rules", "convention", "llm"]
LONGEST_SUSPICION = 120  # characters of suspicious words that are shown
FLOORS = {"payment_due": "A payment that is due", "mention": "A direct mention", "wish": "The wish of a person"}
PAYMENT = "payment"  # the kind of a number by which payments of one invoice are known
SHOWN_REQUESTS = 3  # sentences that the path quotes


@dataclass(frozen=True)
class Firing:
    """A convention that holds for the item, with the words that it holds by."""

    id: int
    version: int
    consequence: Consequence
    words: tuple[ReasonWords, ...] = ()


@dataclass(frozen=True)
class RelatedItem:
    """Another item that names the same number."""

    id: WorkItemId
    title: str
    state: ItemState
    shared: Identifier
    words: ReasonWords
    scheduled_at: datetime | None = None


@dataclass(frozen=True)
class Advice:
    """What an LLM made of the item."""

    to: Standing
    reason: str
    urgency: Urgency = "low"
    deadline: datetime | None = None
    words: tuple[ReasonWords, ...] = ()
    into: WorkItemId | None = None
    children: tuple[ChildItem, ...] = ()


@dataclass(frozen=True)
class Former:
    """What was decided before, of an item that is decided again."""

    to: Standing
    urgency: Urgency
    deadline: datetime | None
    scheduled_at: datetime | None


@dataclass(frozen=True)
class Case:
    """Everything that a decision goes by."""

    facts: TextFacts
    hints: Hints
    now: datetime
    lead: timedelta
    has_text: bool = True
    is_whole: bool = True  # False: a part of it could not be read
    is_wish: bool = False  # a person added it in order that it is done
    is_due: bool = False  # it waited for its time, which has come
    is_awaited: bool = False  # a person waits for it
    firings: Sequence[Firing] = ()  # the ones that stand above others first
    known: Sequence[RelatedItem] = ()
    children: Sequence[ChildItem] = ()  # the independent pieces of work that it lists
    advice: Advice | None = None
    is_silent: bool = False  # an LLM was asked, and gave no answer that can be used
    former: Former | None = None


@dataclass(frozen=True)
class ItemVerdict:
    """Where an item goes, how the passes came to it, and which of them had the last word."""

    route: Route
    standing: Standing  # by itself, if it joined no other item and fell into no parts
    path: tuple[DecisionStep, ...]
    author: Author = "rules"
    assign: str = ""  # whom a convention names
    own_deadline: datetime | None = None  # without that of the decision before, which may be about another mail


@dataclass(frozen=True)
class _View:
    """What the passes so far make of an item."""

    to: Standing
    urgency: Urgency
    deadline: datetime | None = None
    scheduled_at: datetime | None = None
    author: Author = "rules"
    path: tuple[DecisionStep, ...] = ()

    def say(self, rule: str, sentence: str, words: Sequence[ReasonWords] = ()) -> "_View":
        return replace(self, path=(*self.path, DecisionStep(rule, sentence, tuple(words))))


def decide(case: Case) -> ItemVerdict:
    """Tree, conventions, LLM, floor, the decision before; then whether it joins another item or falls into parts."""
    tree = _warn(decide_by_tree(case), case.facts)
    view = _follow_conventions(tree, case)
    view = _follow_advice(view, case)
    view = own = _hold_floor(view, tree, case)
    view = _hold_former(view, case.former)
    view = _end_waiting(view, case)
    return replace(_join_or_divide(view, case), assign=_find_assignee(case), own_deadline=own.deadline)


def list_allowed(case: Case) -> tuple[Standing, ...]:
    """The outcomes that an LLM may choose among: none below what rules and conventions say."""
    least = RANK[_decide_without_advice(case).to]
    return tuple(one for one in RANK if RANK[one] >= least and one != "handled")


def is_work(case: Case) -> bool:
    """Whether its words ask for something, as rules and conventions say."""
    return _decide_without_advice(case).to in WORK


def is_settled(case: Case) -> bool:
    """Whether nothing is left to ask an LLM: a person's convention says the outcome, or nobody wrote the text."""
    return (
        _fate_of(case) is not None
        or not case.has_text
        or (find_noise(case.facts) is not None and find_floor(case) is None)
    )


def _decide_without_advice(case: Case) -> _View:
    tree = decide_by_tree(case)
    return _hold_floor(_follow_conventions(tree, case), tree, case)


# --- the tree


def decide_by_tree(case: Case) -> _View:
    """The tree of the requirement, on the hints and facts alone."""
    urgency = case.hints.urgency.value
    view = _View("info_only", urgency, deadline=find_deadline(case))
    if not case.has_text:
        return _decide_without_text(view, case)
    floor = find_floor(case)
    if floor is not None:
        view = view.say(*floor)
    elif (noise := find_noise(case.facts)) is not None:
        return _call_noise(view, noise)
    elif case.hints.has_actionable_content.value:
        view = view.say("actionable", *_say_requests(case))
    elif _may_be_bill(case.facts):
        view = view.say("maybe_bill", *_say_bill(case.facts))
    else:
        return _call_information(view, case)
    return _find_time(view, case)


def _warn(view: _View, facts: TextFacts) -> _View:
    """A text that wants to lead astray is decided as any other, and says so."""
    if facts.suspicion is None:
        return view
    return view.say("suspicious", explain_suspicion(facts.suspicion), words_of([facts.suspicion]))


def explain_suspicion(words: TextEvidence) -> str:
    """What a person should know who opens such an item."""
    shown = " ".join(words.words.split())[:LONGEST_SUSPICION]
    return f"{SUSPECTED}: “{shown}”. Do not follow what it says; no reply to it is drafted."


def _decide_without_text(view: _View, case: Case) -> _View:
    if case.is_whole:
        return view.say("empty", "It has no text: there is nothing to do.")
    return replace(view, to="now").say("unread", "It could not be read: nobody knows yet what it asks.")


def find_floor(case: Case) -> tuple[str, str, tuple[ReasonWords, ...]] | None:
    """What forbids that an item is put away: a payment that is due, a direct mention, a person who asked for it."""
    payment = case.facts.payment
    if payment is not None:
        amount = f" of {payment.amount.evidence.words}" if payment.amount else ""
        due = f", due on {payment.due:%Y-%m-%d}" if payment.due else ""
        return "payment_due", f"A payment{amount} is asked for{due}.", words_of(payment.evidence)
    direct = [one for one in case.facts.mentions if one.kind == "mention"]
    if direct:
        return "mention", f"{direct[0].evidence.words} is addressed directly.", words_of([direct[0].evidence])
    if case.is_wish:
        return "wish", "A person added it in order that it is done.", ()
    return None


def find_noise(facts: TextFacts) -> Noise | None:
    """Why nobody waits for an answer. That a machine sent it does not mean that it asks for nothing."""
    return next((one for one in facts.noise if one.kind != "noise_sender"), None)


def _call_noise(view: _View, noise: Noise) -> _View:
    return replace(view, to="info_only", urgency="low").say(
        f"noise_{noise.kind}", _end_sentence(noise.because), words_of([noise.evidence])
    )


def _call_information(view: _View, case: Case) -> _View:
    """Nothing is asked, as far as it was read; a part that could not be read may ask for something."""
    if not case.is_whole:
        return replace(view, to="now").say("partly_unread", "A part of it could not be read: it may ask for something.")
    return view.say("information", "Nothing in it asks for anything.")


def _say_requests(case: Case) -> tuple[str, tuple[ReasonWords, ...]]:
    hint = case.hints.has_actionable_content
    return "The text asks for something.", words_of(hint.evidence[:SHOWN_REQUESTS])


def _may_be_bill(facts: TextFacts) -> bool:
    """A net under the rules of payments: an amount, a deadline, and the number of an invoice or of an account."""
    numbered = any(one.kind in ("invoice", "iban") for one in facts.references)
    return numbered and bool(facts.amounts and facts.deadline) and not facts.is_contract


def _say_bill(facts: TextFacts) -> tuple[str, tuple[ReasonWords, ...]]:
    found = [facts.amounts[0].evidence, facts.deadline.evidence if facts.deadline else None]
    return "An amount, a deadline and the number of a bill are named: it may be one.", words_of(found)


def _find_time(view: _View, case: Case) -> _View:
    """When an item that asks for something is worked on."""
    assigned = case.hints.is_assigned_to_me
    if assigned.value and case.hints.has_actionable_content.value:
        sentence = "It asks for something, and it is assigned to us: now."
        return _raise_urgency(replace(view, to="now"), "high").say("assigned", sentence, words_of(assigned.evidence))
    if case.is_awaited:
        return replace(view, to="now").say("awaited", "A person waits for it: now.")
    if view.deadline is None:
        return replace(view, to="now").say("no_deadline", "No deadline is named: now.")
    return _plan(view, case.now, find_lead(case), words_of(case.hints.suggested_deadline.evidence))


def _plan(view: _View, now: datetime, lead: timedelta, words: Sequence[ReasonWords]) -> _View:
    """Now if the deadline is nearer than the lead, else at deadline − lead."""
    assert view.deadline is not None
    begins = view.deadline - lead
    day, before = f"{view.deadline:%Y-%m-%d}", format_days(lead)
    if view.deadline <= now:
        return _raise_urgency(replace(view, to="now"), "high").say(
            "overdue", f"The deadline {day} is over: now.", words
        )
    if begins <= now or (_is_whole_day(view.deadline) and begins.date() <= now.astimezone(begins.tzinfo).date()):
        return replace(view, to="now").say(
            "deadline_near", f"The deadline {day} is less than {before} away: now.", words
        )
    sentence = f"The deadline is {day}: it is worked on from {begins:%Y-%m-%d}, {before} before."
    return replace(view, to="later", scheduled_at=begins).say("deadline_far", sentence, words)


def _is_whole_day(deadline: datetime) -> bool:
    """Whether a deadline names a day alone: then nobody puts the work off until the evening of the same day."""
    return deadline.time() == END_OF_DAY


def find_deadline(case: Case) -> datetime | None:
    return case.hints.suggested_deadline.value


def find_lead(case: Case) -> timedelta:
    """How long before a deadline work begins: as a convention says, or as the profile of the client does."""
    said = [one.consequence.lead for one in case.firings if one.consequence.lead is not None]
    return said[0] if said else case.lead


# --- conventions


def _follow_conventions(view: _View, case: Case) -> _View:
    """The first convention that says something about a thing decides it."""
    decided: set[str] = set()
    for firing in case.firings:
        said = {name for name in ("fate", "urgency", "assign", "lead") if getattr(firing.consequence, name)} - decided
        if said:
            view = _follow(view, firing, said, case)
            decided |= said
    return view


def _follow(view: _View, firing: Firing, said: set[str], case: Case) -> _View:
    wanted = firing.consequence
    view = replace(view, author="convention").say(
        f"convention_{firing.id}",
        f"Convention {firing.id} (version {firing.version}) says: {format_consequence(wanted)}.",
        firing.words,
    )
    if "urgency" in said and wanted.urgency:
        view = replace(view, urgency=wanted.urgency)
    if "fate" in said and wanted.fate:
        view = _follow_fate(view, wanted.fate, wanted.wait, case)
    return view


def _follow_fate(view: _View, fate: Fate, wait: timedelta | None, case: Case) -> _View:
    if fate != "later":
        return replace(view, to=STANDING[fate], scheduled_at=None)
    begins = [view.deadline - find_lead(case)] if view.deadline else []
    begins += [case.now + wait] if wait is not None else []
    if not begins:
        return replace(view, to="now", scheduled_at=None).say(
            "no_time", "No deadline is named, and the convention says no time: now."
        )
    at = min(begins)  # a wish to wait never lets a deadline pass
    if at <= case.now:
        return replace(view, to="now", scheduled_at=None).say("deadline_near", "Its time has come: now.")
    return replace(view, to="later", scheduled_at=at)


def _fate_of(case: Case) -> Fate | None:
    return next((one.consequence.fate for one in case.firings if one.consequence.fate), None)


def _find_assignee(case: Case) -> str:
    return next((one.consequence.assign for one in case.firings if one.consequence.assign), "")


# --- the LLM


def _follow_advice(view: _View, case: Case) -> _View:
    """An LLM raises the outcome and the urgency; what it would lower stays."""
    advice = case.advice
    if advice is None:
        said = "The LLM gave no answer that can be used: rules and conventions decide alone."
        return view.say("llm_silent", said) if case.is_silent else view
    said = view.say("llm", f"The LLM says {advice.to}: {_end_sentence(advice.reason)}", advice.words)
    raised = _raise_urgency(said, advice.urgency)
    if _fate_of(case) is not None or RANK[advice.to] <= RANK[view.to]:
        lower = RANK[advice.to] < RANK[view.to]
        return raised.say("llm_kept", f"An LLM lowers nothing: it stays {view.to}.") if lower else raised
    return _raise_standing(replace(raised, author="llm"), advice, case)


def _raise_standing(view: _View, advice: Advice, case: Case) -> _View:
    if advice.to != "later":
        return replace(view, to=advice.to, scheduled_at=None)
    deadline = view.deadline or advice.deadline
    if deadline is None:
        return replace(view, to="now").say("no_deadline", "The LLM names no deadline that stands in the text: now.")
    return _plan(replace(view, deadline=deadline), case.now, find_lead(case), advice.words)


# --- what nothing lowers


def _hold_floor(view: _View, tree: _View, case: Case) -> _View:
    floor = find_floor(case)
    if view.to in WORK or tree.to not in WORK or floor is None:
        return view
    kept = replace(view, to=tree.to, deadline=tree.deadline, scheduled_at=tree.scheduled_at)
    return kept.say("floor", f"{FLOORS[floor[0]]} is never put away: it stays {tree.to}.")


def _hold_former(view: _View, former: Former | None) -> _View:
    """A decision that is made again may rise, and never falls by itself."""
    if former is None:
        return view
    view = _keep_deadline(_raise_urgency(view, former.urgency), former)
    if RANK[former.to] < RANK[view.to] or (former.to == view.to and not _is_earlier(former, view)):
        return view
    if former.to == view.to == "now":
        return view
    kept = replace(view, to=former.to, scheduled_at=former.scheduled_at)
    return kept.say("former", f"It was decided before as {former.to}: a decision never falls by itself.")


def _keep_deadline(view: _View, former: Former) -> _View:
    """The nearer deadline of work stays: the item keeps it, so its decision says it."""
    before = former.deadline if former.to in WORK else None
    if before is None or (view.deadline is not None and view.deadline <= before):
        return view
    sentence = f"The deadline {before:%Y-%m-%d}, named before, stays."
    return replace(view, deadline=before).say("former_deadline", sentence)


def _is_earlier(former: Former, view: _View) -> bool:
    """Whether the decision before would have it worked on earlier."""
    if former.scheduled_at is None or view.scheduled_at is None:
        return False
    return former.scheduled_at < view.scheduled_at


def _end_waiting(view: _View, case: Case) -> _View:
    """What has waited for its time does not wait again: the same rules would put it off for ever."""
    if not case.is_due or view.to != "later":
        return view
    return replace(view, to="now", scheduled_at=None).say("due", "It has waited, and its time has come: now.")


def _raise_urgency(view: _View, urgency: Urgency) -> _View:
    return replace(view, urgency=max(view.urgency, urgency, key=URGENCIES.index))


# --- together with others, or in parts


def _join_or_divide(view: _View, case: Case) -> ItemVerdict:
    route = Route(view.to, view.urgency, view.deadline, view.scheduled_at)
    if view.to not in WORK or case.former is not None:
        return ItemVerdict(route, view.to, view.path, view.author)
    if (target := _find_target(case, view)) is not None:
        shared = target.shared
        is_over = target.state in ("done", "completed")
        what = "is opened again" if is_over else "has it from now on"
        thing = f"is the payment of invoice {shared.value}, too"
        if shared.kind != PAYMENT:
            thing = f"is about the same {shared.kind} {shared.value}"
        sentence = f"Item {target.id} “{target.title}” {thing}: it {what}."
        view = view.say("reopen" if is_over else "consolidate", sentence, [target.words])
        return ItemVerdict(replace(route, to="consolidate", into=target.id), view.to, view.path, view.author)
    children = (case.advice.children if case.advice else ()) or tuple(case.children)
    if children:
        view = view.say("decompose", f"It lists {len(children)} pieces of work that do not depend on each other.")
        return ItemVerdict(replace(route, to="decompose", children=children), view.to, view.path, view.author)
    return ItemVerdict(route, view.to, view.path, view.author)


def _find_target(case: Case, view: _View) -> RelatedItem | None:
    """The item that this one joins. A payment joins only the payment of the same invoice: it must not be hidden.

    Work that was completed is opened again only by something that is to be done now.
    """
    fitting = [
        one
        for one in case.known
        if (case.facts.payment is None) == (one.shared.kind != PAYMENT)
        and (one.state != "completed" or view.to == "now")
    ]
    if case.advice and case.advice.into is not None:
        return next((one for one in fitting if one.id == case.advice.into), None)
    return fitting[0] if fitting else None


def _end_sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."
