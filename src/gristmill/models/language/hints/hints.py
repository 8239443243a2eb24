"""Makes the five neutral hints of the facts: what a text holds, never where it goes."""

import re
from datetime import datetime, time

from gristmill.models.language.hints.model import About, Hint, Hints, TextEvidence, TextFacts, Urgency
from gristmill.models.language.hints.words import fold

END_OF_DAY = time(23, 59)  # of a deadline that names a day alone
SILENT = frozenset({"auto_reply", "bounce", "read_receipt", "calendar_reply", "newsletter", "acknowledgement"})
CLOSED = frozenset({"done", "closed", "resolved", "cancelled", "canceled", "rejected", "fixed", "merged", "erledigt",
    "geschlossen", "vyřešeno", "uzavřeno", "hotovo", "zatvoreno", "riješeno", "wontfix", "duplicate"})  # fmt: skip
SURE = 0.9  # the score of a request in plain words
GIVEN = frozenset({"user_input", "user_task", "scheduled"})  # somebody wrote it to have it done
CRITICAL = re.compile(r"critical|emergency|down|outage|notfall|kritisch|ausfall|kritick|výpadek|kritičn|ispad", re.I)
PRIORITIES: dict[str, Urgency] = {
    "blocker": "critical", "critical": "critical", "highest": "critical", "p0": "critical", "p1": "critical",
    "high": "high", "major": "high", "p2": "high", "urgent": "high", "low": "low", "lowest": "low", "minor": "low",
    "trivial": "low",
}  # fmt: skip


def _is_alarm(subject: str) -> bool:
    """Whether a machine reports that something is broken; that of a build goes to whoever broke it."""
    return ALARM.search(fold(subject)) is not None and not BUILD.search(subject)


BUILD = re.compile(r"\b(?:run|builds?|ci|pipeline|workflow|tests?)\b", re.IGNORECASE)
ALARM = re.compile(  # in folded words of a subject
    r"\b(?:critical|alert|fail(?:ed|ure|ing)|error|outage|problem|unreachable|expir\w+|overdue|fehlgeschlagen|fehler|"
    r"ausfall|storung|kritisch\w*|selha\w+|chyb\w+|vypad\w+|kritick\w+|neuspje\w+|gresk\w+|kvar\w*|ispad\w*)\b"
)


def make_hints(facts: TextFacts, about: About) -> Hints:
    """The hints of a text, each with the words that it was taken from."""
    actionable = _find_action(facts, about)
    deadline = _make_deadline(facts, about)
    return Hints(
        has_actionable_content=actionable,
        is_assigned_to_me=_find_assignment(facts, about),
        has_future_deadline=Hint(deadline.value is not None, deadline.evidence),
        suggested_deadline=deadline,
        urgency=_judge_urgency(facts, about, actionable.value),
    )


def is_closed(about: About) -> bool:
    """Whether a tracker says that nothing is left to do."""
    return about.fields.get("state", about.fields.get("status", "")).strip().lower() in CLOSED


def _find_action(facts: TextFacts, about: About) -> Hint[bool]:
    """A payment and a direct mention always ask for action; a request does, unless nobody waits for an answer."""
    found: list[TextEvidence] = list(facts.payment.evidence) if facts.payment else []
    found += [one.evidence for one in facts.mentions if one.kind == "mention"]
    silent = is_closed(about) or any(one.kind in SILENT for one in facts.noise)
    if not silent:
        found += [one.evidence for one in facts.mentions if one.kind == "assignee"]
        # the questions of a machine are headlines; what it reports as broken is not
        robot = any(one.kind == "noise_sender" for one in facts.noise) and not _is_alarm(about.subject)
        found += [one.evidence for one in facts.requests if not robot or one.score >= SURE]
    given = about.type in GIVEN or _is_pressing_ticket(about)
    return Hint(bool(found) or given, tuple(dict.fromkeys(found)))


def _is_pressing_ticket(about: About) -> bool:
    """Whether a tracker calls a ticket important that nobody has taken."""
    if about.type != "bugtracker" or is_closed(about) or about.fields.get("assignee", "nobody knows").strip():
        return False
    return PRIORITIES.get(about.fields.get("priority", "").strip().lower()) in ("critical", "high")


def _find_assignment(facts: TextFacts, about: About) -> Hint[bool]:
    """A greeting assigns what is asked for; below a bill it is mere form, and a bill is due when it is due."""
    kinds = {"mention", "assignee"}
    if _is_only_payment(facts):
        kinds -= {"assignee"} if about.type == "email" else set()  # Frau Novak, bitte überweisen Sie …
    elif facts.requests:
        kinds |= {"greeting", "address"}
    found = tuple(one.evidence for one in facts.mentions if one.kind in kinds)
    return Hint(bool(found), found)


PAYING = re.compile(  # in folded words
    r"pay|transfer|remit|settle|invoice|u(?:e)?berweis|zahl|begleich|rechnung|betrag|uhrad|zaplat|faktur|castk|uplat|"
    r"plat|plac|podmir|racun|iznos|due|terms|splatn|dospije|bedingung|konditionen"
)


def _is_only_payment(facts: TextFacts) -> bool:
    return facts.payment is not None and all(PAYING.search(fold(one.evidence.words)) for one in facts.requests)


def _make_deadline(facts: TextFacts, about: About) -> Hint[datetime | None]:
    if facts.deadline is None:
        return Hint(None)
    moment = datetime.combine(facts.deadline.day, facts.deadline.clock or END_OF_DAY, about.written_at.tzinfo)
    return Hint(moment, (facts.deadline.evidence,))


def _judge_urgency(facts: TextFacts, about: About, actionable: bool) -> Hint[Urgency]:
    if not actionable:
        return Hint("low")
    stated = PRIORITIES.get(about.fields.get("priority", "").strip().lower())
    if facts.urgent:
        return Hint("critical" if CRITICAL.search(facts.urgent.words) else "high", (facts.urgent,))
    if stated:
        return Hint(stated)
    if facts.payment and facts.payment.due and facts.payment.due < about.written_at.date():
        return Hint("high", facts.payment.evidence)
    return Hint("normal")
