"""Cases for decisions, made in few words."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from gristmill.models import (
    FoundAmount,
    FoundDate,
    FoundMention,
    FoundReference,
    FoundRequest,
    Hint,
    Hints,
    Noise,
    Payment,
    TextEvidence,
    TextFacts,
)
from gristmill.qualifier.conventions import parse_convention
from gristmill.qualifier.deciding import Case, Firing

NOW = datetime(2026, 5, 4, 9, tzinfo=UTC)
TWO_DAYS = timedelta(days=2)
WORDS = TextEvidence(0, 5, "words")
NOISE = Noise("newsletter", "A list sent it", None)
REQUEST = FoundRequest("request", 0.9, TextEvidence(10, 30, "Please send the file"))
AMOUNT = FoundAmount(Decimal("1240.00"), "EUR", TextEvidence(40, 50, "1.240,00 €"))
INVOICE = FoundReference("invoice", "2026-77", TextEvidence(60, 67, "2026-77"))
ORDER = FoundReference("order", "4711", TextEvidence(70, 74, "4711"))
MENTION = FoundMention("jana", "mention", TextEvidence(80, 85, "@jana"))
GREETING = FoundMention("jana", "greeting", TextEvidence(90, 97, "Hi Jana"))


def in_days(days: float) -> datetime:
    return NOW + timedelta(days=days)


def owe(due: date | None = None) -> Payment:
    return Payment(AMOUNT, due, (AMOUNT.evidence,))


def make_hints(
    *, asks: bool = False, mine: bool = False, deadline: datetime | None = None, urgency: Any = "normal"
) -> Hints:
    return Hints(
        Hint(asks, (WORDS,) if asks else ()),
        Hint(mine, (WORDS,) if mine else ()),
        Hint(deadline is not None),
        Hint(deadline, (WORDS,) if deadline else ()),
        Hint(urgency),
    )


def make_case(
    *,
    asks: bool = False,
    mine: bool = False,
    deadline: datetime | None = None,
    urgency: Any = "normal",
    conventions: Sequence[str] = (),
    lead: timedelta = TWO_DAYS,
    facts: dict[str, Any] | None = None,
    **more: Any,
) -> Case:
    """A case of hints and facts; conventions are those that hold, the first one above the others."""
    found: dict[str, Any] = dict(facts or {})
    if asks:
        found.setdefault("requests", (REQUEST,))
    if deadline:
        found.setdefault("deadline", FoundDate(deadline.date(), None, WORDS, True))
    firings = [Firing(n, 1, parse_convention(text).consequence) for n, text in enumerate(conventions, 1)]
    hints = make_hints(asks=asks, mine=mine, deadline=deadline, urgency=urgency)
    return Case(TextFacts(**found), hints, NOW, lead, firings=firings, **more)


def convene(action: str) -> str:
    return f"when type is email then {action}"
